"""Describing: what a registered name stands for, in words for a terminal or a page."""

import inspect
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from fathometer.core import registry
from fathometer.core.naming import nearest
from fathometer.core.spec import Named, Spec


def describe(name: str) -> str:
    """The documentation of a task, model, probe, claim, start or study. Raises LookupError for an unknown name."""
    found = [(kind, registry.find(kind, name)) for kind in registry.FOLDERS if _has(kind, name)]
    if not found and name.endswith(".py"):
        raise LookupError(f"{name!r} is a file: name the class in it, as {name}:Name.")
    if not found:
        known = {entry.name for kind in registry.FOLDERS for entry in registry.entries(kind)}
        raise LookupError(f"Nothing is named {name!r}: {nearest(name, known)}")
    return "\n\n".join(_describe_class(name, kind, cls) for kind, cls in found)


def _has(kind: str, name: str) -> bool:
    if ":" in name:
        return getattr(registry.find(kind, name), "kind", None) == kind
    return any(entry.name == name for entry in registry.entries(kind))


def _describe_class(name: str, kind: str, cls: type[Named]) -> str:
    about = inspect.getdoc(inspect.getmodule(cls)) or ""
    lines = [f"{name} ({kind}, version {cls.version})", "", about, "", inspect.cleandoc(cls.__doc__ or ""), ""]
    lines += ["Fields", *_field_lines(cls, "  ")]
    if kind == "task" and not any(field.is_required() for field in cls.model_fields.values()):
        task: Any = cls()
        lines += ["", f"Splits: {', '.join(task.splits())}"]
    return "\n".join(lines)


def _field_lines(cls: type[Spec], indent: str) -> list[str]:
    lines: list[str] = []
    for name, field in cls.model_fields.items():
        default = "required" if field.is_required() else f"default {_default(field)}"
        note = "; ".join(filter(None, [_type(field.annotation), *_ranges(field), default, field.description or ""]))
        lines.append(f"{indent}{name}: {note}")
        if isinstance(field.annotation, type) and issubclass(field.annotation, Spec):
            lines += _field_lines(field.annotation, indent + "  ") if field.annotation.model_fields else []
    return lines


def _type(annotation: Any) -> str:
    if isinstance(annotation, type) and not getattr(annotation, "__args__", None):
        return annotation.__name__
    return str(annotation).replace("typing.", "").replace("NoneType", "None")


def _ranges(field: FieldInfo) -> list[str]:
    signs = {"Ge": ("ge", ">="), "Gt": ("gt", ">"), "Le": ("le", "<="), "Lt": ("lt", "<")}
    return [
        f"{sign} {getattr(rule, attribute)}"
        for rule in field.metadata
        for kind, (attribute, sign) in signs.items()
        if type(rule).__name__ == kind
    ]


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    assert value is not PydanticUndefined
    return "as below" if isinstance(value, Spec) else repr(value)
