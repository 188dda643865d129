"""Records what every registered spec means now: its version, fields, defaults, key, and what a task draws."""

import hashlib
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from fathometer.core import registry
from fathometer.core.interface import Batch
from fathometer.core.recipe import Recipe
from fathometer.core.spec import Spec
from fathometer.core.streams import stream
from fathometer.core.task import Task

FILE = Path(__file__).with_name("meanings.json")

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Where a function lies in memory: no part of any meaning."""

_TRIAL = {"task": {"name": "copying"}, "model": {"name": "transformer"}}
_TERM = {"weight": 1.0, "reading": {}}

EXAMPLES: dict[str, dict[str, Any]] = {
    "probe scores": {"split": "clean"},
    "claim solve_rate": {"identifier": "a", "statement": "b", "where": {}, "at_least": 0.5},
    "claim paired_difference": {"identifier": "a", "statement": "b", "better": {}, "worse": {}},
    "claim within_limits": {"identifier": "a", "statement": "b"},
    "claim contrast": {"identifier": "a", "statement": "b", "matters": 0.5, "told": "c", "terms": (_TERM,)},
    "claim sooner": {"identifier": "a", "statement": "b", "sooner": {}, "later": {}},
    "claim power_law": {"identifier": "a", "statement": "b", "probe": "timing", "x": "c", "y": "d"},
    "claim equal_scores": {"identifier": "a", "statement": "b", "where": {}},
    "start deepened": {"trial": _TRIAL},
    "study repeating": {"trials": (_TRIAL,)},
    "study trying": {"tasks": [{"name": "copying"}], "models": [{"name": "transformer"}]},
}
"""Values for the fields that have no default."""


def meanings() -> dict[str, dict[str, Any]]:
    """By kind and name."""
    classes = {
        f"{kind} {entry.name}": registry.find(kind, entry.name)
        for kind in registry.FOLDERS
        for entry in registry.entries(kind)
    }
    return {name: _meaning(cls, EXAMPLES.get(name, {})) for name, cls in {**classes, "recipe": Recipe}.items()}


def _meaning(cls: type[Spec], example: dict[str, Any]) -> dict[str, Any]:
    spec = cls(**example)
    found = {"version": cls.version, "key": spec.key, "fields": _fields(cls)}
    if isinstance(spec, Task):
        found["draws"] = {split: _digest(spec, split) for split in spec.splits()}
    return found


def _fields(cls: type[Spec]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, field in cls.model_fields.items():
        found[name] = ADDRESS.sub("", f"{field.annotation!r} = {field.default!r} {field.metadata!r}")
        if isinstance(field.annotation, type) and issubclass(field.annotation, Spec):
            found |= {f"{name}.{inner}": text for inner, text in _fields(field.annotation).items()}
    return found


def _digest(task: Task, split: str) -> str:
    batch = task.draw(stream("test", 0, "golden"), 32, split)
    text = hashlib.sha256()
    for field in fields(Batch):
        value = getattr(batch, field.name)
        for name, array in sorted(value.items()) if isinstance(value, dict) else [(field.name, value)]:
            text.update(name.encode())
            text.update(b"" if array is None else array.astype("float64").tobytes())
    return text.hexdigest()[:16]


if __name__ == "__main__":
    FILE.write_text(json.dumps(meanings(), indent=1, sort_keys=True) + "\n")
