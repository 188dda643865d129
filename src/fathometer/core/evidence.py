"""Evidence: all records of a study, read-only, in an order that does not depend on when they arrived."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from fathometer.core.record import Record
from fathometer.core.spec import digest

_RANK = {"done": 2, "diverged": 1, "failed": 0}


def at(spec: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path of a spec's JSON form, None where there is none.

    >>> at({"model": {"depth": 2}}, "model.depth")
    2
    """
    value: Any = spec
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def flat(form: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A spec's JSON form as dotted paths.

    >>> flat({"model": {"depth": 2}})
    {'model.depth': 2}
    """
    found: dict[str, Any] = {}
    for name, value in form.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def matches(spec: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    """Whether the spec has the wanted value at every path; a tuple or list of values admits any of them, unless the
    spec's own value is a list."""
    for path, wanted in where.items():
        value = at(spec, path)
        if isinstance(wanted, tuple | list) and not isinstance(value, list):
            if value not in wanted:
                return False
        elif value != (list(wanted) if isinstance(wanted, tuple) else wanted):
            return False
    return True


class Evidence:
    """The records of one folder, one for each key: the latest attempt, a finished one before a failed one."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        best: dict[str, Record] = {}
        for record in records:
            held = best.get(record.key)
            if held is None or _order(record) > _order(held):
                best[record.key] = record
        self._records = {key: best[key] for key in sorted(best)}

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def only(self, keys: Iterable[str]) -> "Evidence":
        """The part of the evidence that a study wants: what else lies in the folder is no evidence for it."""
        return Evidence(self._records[key] for key in keys if key in self._records)

    def get(self, key: str) -> Record | None:
        """The record of this key, if there is one."""
        return self._records.get(key)

    def of_kind(self, kind: str) -> list[Record]:
        """All records of a kind."""
        return [record for record in self if record.kind == kind]

    def trials(self, where: Mapping[str, Any] | None = None) -> list[Record]:
        """Trials that ended, diverged ones included, by seed and then key."""
        found = [
            record
            for record in self
            if record.kind == "trial" and record.status != "failed" and matches(record.spec, where or {})
        ]
        return sorted(found, key=lambda record: (record.spec.get("seed", 0), record.key))

    def probes(
        self, name: str, where: Mapping[str, Any] | None = None, statuses: Sequence[str] = ("done",)
    ) -> list[Record]:
        """Measurements of the probe ``name`` on the trials that ``where`` selects; finished ones if not asked else."""
        return [
            record
            for record in self
            if record.kind == "probe"
            and record.status in statuses
            and at(record.spec, "probe.name") == name
            and matches(record.spec.get("trial", {}), where or {})
        ]

    def limits(self, trial: Record, split: str | None = None) -> list[dict[str, Any]]:
        """The limits known for a split of a trial's task; for the split of its own test when none is named."""
        asked = split or (str(trial.scores[0]["split"]) if trial.scores else "")
        record = self._limit_sheets.get((_task_of(trial), asked))
        return list(record.outcome["limits"]) if record else []

    @cached_property
    def _limit_sheets(self) -> dict[tuple[str, str], Record]:
        sheets = [record for record in self.of_kind("limit") if record.status == "done"]
        return {(_task_of(sheet), sheet.spec["split"]): sheet for sheet in sheets}


def _task_of(record: Record) -> str:
    """The key of a record's task; records from elsewhere may only have its JSON form."""
    return str(record.outcome.get("task_key") or digest(record.spec["task"]))


def score(record: Record, metric: str, stratum: str = "all", split: str | None = None) -> float | None:
    """One score of a record; the first split that has it when none is named."""
    for row in record.scores:
        if row["metric"] == metric and row["stratum"] == stratum and split in (None, row["split"]):
            return row["value"]
    return None


def cells(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Trials that differ by seed only, together, in order of first appearance."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        name = record.outcome.get("cell") or digest({n: value for n, value in record.spec.items() if n != "seed"})
        groups.setdefault(name, []).append(record)
    return groups


def _order(record: Record) -> tuple[int, int, str]:
    return _RANK[record.status], record.attempt, record.digest()
