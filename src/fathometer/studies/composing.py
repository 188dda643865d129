"""Composing: from names and loose settings, as one types them, to a study of any task against any models."""

from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin

from fathometer.core import registry
from fathometer.core.naming import nearest
from fathometer.core.recipe import Recipe
from fathometer.core.spec import Spec
from fathometer.design.grid import combinations
from fathometer.studies.trying import Trying

Settings = Mapping[str, Sequence[Any]]
"""Each setting with the values it is to take."""


def compose(task: str, models: Sequence[str], settings: Settings, seeds: int = 3, seed: int = 0) -> Trying:
    """The study of ``task`` against ``models`` over every combination of the settings.

    A setting is named by its field (``depth``), by as much of its path as tells it apart (``optimiser.learning_rate``)
    or in full (``task.noise.share``). Raises LookupError or ValueError that names the setting and the fix.
    """
    if not models:
        known = ", ".join(entry.name for entry in registry.entries("model"))
        raise ValueError(f"Which model is to try {task!r}? Name one or more of: {known}.")
    if any(entry.name == task for entry in registry.entries("model")) and not _is_task(task):
        raise ValueError(f"{task!r} is a model, and a task is needed here: first the task, then the models.")
    task_class = registry.find("task", task)
    model_classes = {name: registry.find("model", name) for name in models}
    _check_kind(task, task_class, "task")
    for name, cls in model_classes.items():
        _check_kind(name, cls, "model")
    places = {"task": task_class, "recipe": Recipe, **{f"model:{name}": cls for name, cls in model_classes.items()}}
    chosen: dict[str, dict[str, Sequence[Any]]] = {place: {} for place in places}
    for setting, values in settings.items():
        for place, path in _places_of(setting, places):
            chosen[place][path] = values
    return Trying(
        tasks=tuple(_variants(task_class, chosen["task"])),
        models=tuple(m for name, cls in model_classes.items() for m in _variants(cls, chosen[f"model:{name}"])),
        recipes=tuple(_variants(Recipe, chosen["recipe"])),
        seeds=seeds,
        seed=seed,
    )


def _is_task(name: str) -> bool:
    return any(entry.name == name for entry in registry.entries("task"))


def _check_kind(name: str, cls: type, kind: str) -> None:
    found = getattr(cls, "kind", None)
    if found != kind and {found, kind} == {"task", "model"}:
        raise ValueError(f"{name!r} is a {found}, and a {kind} is needed here: first the task, then the models.")
    if found != kind:
        what = f"a {found}" if found else f"a {cls.__name__}, which is no fathometer.{kind.capitalize()}"
        raise ValueError(f"{name!r} is {what}, and a {kind} is needed here.")


def _places_of(setting: str, places: Mapping[str, type[Spec]]) -> list[tuple[str, str]]:
    """Where a setting belongs: one place, or the same path in several models."""
    first, _, rest = setting.partition(".")
    wanted = rest if first in ("task", "model", "recipe") and rest else setting
    found = [
        (place, path)
        for place, cls in places.items()
        if first not in ("task", "model", "recipe") or not rest or place.split(":")[0] == first
        for path in _paths(cls)
        if path == wanted or path.endswith("." + wanted)
    ]
    exact = [(place, path) for place, path in found if path == wanted]
    found = exact or found
    distinct = {(place.split(":")[0], path) for place, path in found}
    if not found:
        names = {path for cls in places.values() for path in _paths(cls)}
        raise LookupError(f"Nothing here has a setting {setting!r}: {nearest(setting, names)}")
    if len(distinct) > 1:
        full = " or ".join(sorted(f"{place}.{path}" for place, path in distinct))
        raise ValueError(f"{setting!r} could be {full}: say which.")
    return found


def _paths(cls: type[Spec]) -> Iterator[str]:
    """Every field of a spec and of the specs nested in it."""
    for name, field in cls.model_fields.items():
        yield name
        for nested in _nested(field.annotation):
            yield from (f"{name}.{path}" for path in _paths(nested))


def _nested(annotation: Any) -> list[type[Spec]]:
    options = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return [each for each in options if isinstance(each, type) and issubclass(each, Spec)]


def _variants(cls: type[Spec], axes: Mapping[str, Sequence[Any]]) -> list[Any]:
    return [cls(**_tree(choice)) for choice in combinations(axes)]


def _tree(choice: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted paths as nested fields: ``{"noise.share": 0.2}`` is ``{"noise": {"share": 0.2}}``."""
    tree: dict[str, Any] = {}
    for path, value in choice.items():
        *above, last = path.split(".")
        branch = tree
        for depth, part in enumerate(above, start=1):
            if not isinstance(branch.setdefault(part, {}), dict):
                whole = ".".join(above[:depth])
                raise ValueError(f"{whole!r} and {path!r} were both given: set the parts of {whole!r} one by one.")
            branch = branch[part]
        branch[last] = value
    return tree
