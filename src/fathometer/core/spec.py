"""Specs: frozen, strict, versioned values with a JSON round trip and a content key.

Two equal specs have equal keys on every machine. Fields that equal their defaults are left out of the key, so adding
a field orphans no record; changing what a field means needs a new ``version``.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self, cast

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError, model_validator
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from fathometer.core import registry
from fathometer.core.naming import nearest

KEY_LENGTH = 24
"""Hex digits of a key: 96 bits, so a billion records collide with probability below 1e-10."""

RESERVED = ("name", "version", "source", "path")
"""What the JSON form of a spec says beside its fields."""


HINTS = {
    "tuple_type": "takes a list: write [5,10], or [5] for one",
    "bool_type": "is true or false",
    "int_type": "takes a whole number",
}
"""What is said in place of pydantic's words where they would not help."""


class SpecError(ValueError):
    """A spec was given a value it cannot take; the message names the field, the value and the fix."""


class Spec(BaseModel):
    """A pure value: what to do, never how it went."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())

    version: ClassVar[int] = 1

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise SpecError(explain(type(self), error)) from None

    @model_validator(mode="before")
    @classmethod
    def _read_json_form(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        fields = {name: _tuples(value) for name, value in data.items()}
        written = fields.pop("version", cls.version)
        if written != cls.version:
            raise ValueError(
                f"{title(cls)} was written at version {written} and is now at version {cls.version}: "
                f"its meaning has changed, so it cannot be run again under its old key"
            )
        return fields

    def with_(self, **changes: Any) -> Self:
        """The same spec with some fields changed, validated anew."""
        return type(self)(**({name: getattr(self, name) for name in type(self).model_fields} | changes))

    @cached_property
    def key(self) -> str:
        """The content address: equal specs have equal keys on every machine."""
        return digest(encode(self, defaults=False))[:KEY_LENGTH]


class Named(Spec):
    """A spec of a kind that grows by files: its JSON form carries the name that finds its class."""

    kind: ClassVar[str]

    @classmethod
    def __pydantic_init_subclass__(cls, **rest: Any) -> None:
        taken = [name for name in RESERVED if name in cls.model_fields]
        if taken:
            raise TypeError(f"{cls.__name__} has a field {taken[0]!r}, which its JSON form needs: rename it.")

    @property
    def name(self) -> str:
        """The registered name of this spec's class."""
        return registry.origin(type(self)).name

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if "kind" in cls.__dict__:  # the root of a kind: a field of this type takes any of its classes
            return core_schema.no_info_plain_validator_function(_member_of(cls))
        return schema

    @model_validator(mode="before")
    @classmethod
    def _check_name(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "name" not in data:
            return data
        here = registry.origin(cls)
        if data.get("source", here.source) != here.source:
            raise ValueError(
                f"{here.name} has changed since this spec was written (source {data['source']}, now {here.source}): "
                f"run it from the file as it was, or write the spec anew"
            )
        return {name: value for name, value in data.items() if name not in ("name", "source", "path")}


def named(kind: str, name: str, /, **fields: Any) -> Any:
    """The spec of this kind and name: how a study names a model without importing it.

    >>> named("task", "copying", lengths=(5, 10)).lengths
    (5, 10)
    """
    return registry.find(kind, name)(**fields)


def encode(spec: Spec, *, defaults: bool = True) -> dict[str, Any]:
    """The JSON form. Without ``defaults`` it is the form that is hashed: no default values, no file paths."""
    form: dict[str, Any] = {}
    if isinstance(spec, Named):
        here = registry.origin(type(spec))
        form["name"] = here.name
        if here.source:
            form["source"] = here.source
        if here.path and defaults:
            form["path"] = here.path
    if defaults or spec.version != 1:
        form["version"] = spec.version
    for name, field in type(spec).model_fields.items():
        value = getattr(spec, name)
        if defaults or field.is_required() or value != field.get_default(call_default_factory=True):
            form[name] = _encode_value(value, defaults)
    return form


def decode(kind: str, form: Mapping[str, Any]) -> Any:
    """The spec of this kind that ``form`` describes. Raises SpecError or LookupError, with the fix."""
    if not isinstance(form.get("name"), str):
        raise SpecError(f"A {kind} needs a 'name'; got {_short(form)}")
    cls = registry.find(kind, form["name"], form.get("path"))
    root = _root(cls)
    if root is None or root.kind != kind:
        raise SpecError(f"{form['name']} is not a {kind}: it is {'a ' + root.kind if root else repr(cls)}.")
    return cls(**form)


def canonical(value: Any) -> str:
    """One text for one JSON value, on every machine."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of the canonical text of a JSON value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def title(cls: type) -> str:
    """What a spec's class is called in messages: its registered name, else the name of the class."""
    return registry.origin(cls).name if issubclass(cls, Named) else cls.__name__


def explain(cls: type[Spec], error: ValidationError) -> str:
    """Pydantic's finding in one sentence for each field: which, what it was given, what would be right."""
    return "\n".join(_explain_one(cls, detail) for detail in error.errors(include_url=False))


def _explain_one(cls: type[Spec], detail: ErrorDetails) -> str:
    where = ".".join(str(part) for part in detail["loc"])
    value = _short(detail["input"])
    if detail["type"] == "extra_forbidden":
        field = str(detail["loc"][-1])
        return f"{title(cls)} has no field {where!r} (given {value}): {nearest(field, cls.model_fields)}"
    if detail["type"] == "missing":
        return f"{title(cls)} needs a value for {where!r}."
    message = detail["msg"].removeprefix("Value error, ")
    if not where or detail["type"] == "value_error":
        return message if not where else f"{title(cls)}.{where}: {message}"
    message = HINTS.get(detail["type"], message)
    if detail["type"] == "model_type":
        message = "has settings of its own: set one, as in " + f"{where}.NAME=VALUE"
    return f"{title(cls)}.{where} = {value}: {message[0].lower() + message[1:]}."


def _member_of(root: type[Named]) -> Callable[[Any], Named]:
    def validate(value: Any) -> Named:
        if isinstance(value, root):
            return value
        if isinstance(value, dict):
            return cast(Named, decode(root.kind, cast(dict[str, Any], value)))
        raise ValueError(f"expected a {root.kind}, got {_short(value)}")

    return validate


def _root(cls: type) -> type[Named] | None:
    return next((base for base in cls.__mro__ if issubclass(base, Named) and "kind" in base.__dict__), None)


def _encode_value(value: Any, defaults: bool) -> Any:
    if isinstance(value, Spec):
        return encode(value, defaults=defaults)
    if isinstance(value, tuple):
        return [_encode_value(each, defaults) for each in cast(tuple[Any, ...], value)]
    if isinstance(value, Mapping):
        mapping = cast(Mapping[str, Any], value)
        return {name: _encode_value(each, defaults) for name, each in mapping.items()}
    return value


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_tuples(each) for each in cast(list[Any], value))
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
