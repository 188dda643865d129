"""Cells: what to call the trials that differ by seed only, by what sets them apart from the others."""

from collections.abc import Mapping, Sequence
from typing import Any

from fathometer.core.evidence import flat
from fathometer.core.record import Record
from fathometer.core.spec import canonical
from fathometer.core.study import Study

Labels = Mapping[str, str]
"""What to call the cell of each trial, by the trial's key, in the order in which cells are read."""

NOISE_FIELDS = ("seed", "path", "source", "version")


def cell_labels(trials: Sequence[Record], silent: Sequence[str] = ()) -> dict[str, str]:
    """By record key: a short label of what varies among these trials, such as ``depth 2, heads 4``.

    ``silent`` names settings, such as ``recipe.optimiser.learning_rate``, that are not told. Labels come in the order
    in which cells are best read: by the first setting that varies, then the next, numbers by size.
    """
    forms = {trial.key: _telling(trial.spec) for trial in trials}
    paths = list(dict.fromkeys(path for form in forms.values() for path in form))
    varying = [
        path for path in paths if path not in silent and len({canonical(form.get(path)) for form in forms.values()}) > 1
    ]
    short = _short_names(varying)
    labels: dict[str, str] = {}
    for key, form in sorted(forms.items(), key=lambda item: [_rank(item[1].get(path)) for path in varying]):
        parts = [_say(short[path], form[path]) for path in varying if path in form and form[path] is not None]
        labels[key] = ", ".join(parts) or str(form.get("model.name", "all trials"))
    return labels


def arms_of(trials: Sequence[Record], study: Study | None) -> dict[str, dict[str, str]]:
    """By arm of the study, the labels of its trials: what varies within the arm alone. One arm where none is told."""
    members: dict[str, list[Record]] = {}
    for trial in trials:
        members.setdefault(study.arm(trial.spec) if study else "", []).append(trial)
    return {arm: cell_labels(members[arm]) for arm in sorted(members)}


def _telling(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {path: value for path, value in flat(spec).items() if path.rsplit(".", 1)[-1] not in NOISE_FIELDS}


def _short_names(paths: Sequence[str]) -> dict[str, str]:
    """The last part of each path, with as many parts before it as it takes to tell the paths apart."""
    names: dict[str, str] = {}
    for path in paths:
        parts = path.split(".")
        for count in range(1, len(parts) + 1):
            name = ".".join(parts[-count:])
            if sum(other == name or other.endswith("." + name) for other in paths) == 1 or count == len(parts):
                names[path] = name
                break
    return names


def _rank(value: Any) -> tuple[float, str]:
    """Numbers by size, then all else by its text."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (float(value), "") if is_number else (float("inf"), canonical(value))


def _say(name: str, value: Any) -> str:
    if name == "name":
        return str(value)
    if isinstance(value, str):
        return value.replace("_", " ")
    if isinstance(value, list):
        value = "-".join(str(each) for each in value)
    return f"{name.replace('_', ' ')} {value}"
