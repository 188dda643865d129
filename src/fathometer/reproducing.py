"""Reproducing: some trials of a results folder trained again, and held against what the folder says."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fathometer.core.evidence import at
from fathometer.core.metrics import METRICS
from fathometer.core.record import Record
from fathometer.core.spec import SpecError, digest
from fathometer.core.trial import Trial
from fathometer.laboratory import run
from fathometer.storage.folder import Folder
from fathometer.studies.repeating import Repeating

if TYPE_CHECKING:
    from collections.abc import Callable

    from fathometer.execution.driver import State

Agreement = Literal["bit for bit", "within tolerance", "different", "not run"]

TELLING = ("commit", "cpu", "gpu", "device", "torch", "numpy", "python", "system", "threads", "fathometer")
"""What of a record's provenance may explain that bits differ."""


@dataclass(frozen=True)
class Repeat:
    """One trial done again: how well both ends agree, by how much its scores differ, and what was not the same."""

    key: str
    agreement: Agreement
    gap: float | None
    remark: str


def reproduce(
    to: Path | str, sample: int = 5, seed: int = 0, tolerance: float = 0.02, workers: int | None = None,
    device: str = "auto", notify: "Callable[[State], None] | None" = None,
) -> list[Repeat]:  # fmt: skip
    """Trains ``sample`` trials of a results folder again, chosen by a hash of ``seed``, and compares.

    Two ends agree bit for bit when their outcomes are equal, the digest of the trained weights among them. Elsewhere
    than on the kind of machine that made the folder that is not to be expected: there a share such as an accuracy, over
    all examples, may differ by ``tolerance``. Nothing is written to the folder. Raises ValueError when it has no trial.
    """
    if sample < 1:
        raise ValueError(f"sample = {sample}: give the number of trials to do again, at least 1.")
    ended = [record for record in Folder(Path(to)).evidence().trials() if record.status in ("done", "diverged")]
    if not ended:
        raise ValueError(f"{to} has no trial that ended, so there is nothing to do again.")
    chosen = sorted(ended, key=lambda record: digest([seed, record.key]))[:sample]
    trials = {record.key: _decoded(record) for record in chosen}
    found: dict[str, Record] = {}
    if wanted := tuple(trial for trial in trials.values() if isinstance(trial, Trial)):
        with tempfile.TemporaryDirectory() as scratch:
            study = Repeating(trials=wanted)
            results = run(study, to=Path(scratch) / "again", workers=workers, device=device, notify=notify)
            found = {record.key: record for record in results.evidence()}
    return [_compare(record, trials[record.key], found.get(record.key), tolerance) for record in chosen]


def _decoded(record: Record) -> Trial | str:
    """The trial of a record, or why it cannot be run here."""
    try:
        trial = Trial(**record.spec)
    except (SpecError, LookupError, ImportError) as error:
        return str(error)
    if trial.key != record.key:
        return "its key is another one here: a part of it means something else in this version"
    return trial


def _compare(before: Record, trial: Trial | str, after: Record | None, tolerance: float) -> Repeat:
    if isinstance(trial, str) or after is None:
        return Repeat(before.key, "not run", None, trial if isinstance(trial, str) else "it did not end")
    if after.status == "failed":
        return Repeat(before.key, "not run", None, str(after.outcome.get("reason", "it failed")))
    if (after.status, after.outcome) == (before.status, before.outcome):
        return Repeat(before.key, "bit for bit", 0.0, "")
    gap = _gap(before, after)
    remark = _differences(before.provenance, after.provenance) or "on a machine that says it is of the same kind"
    if after.status != before.status:
        return Repeat(before.key, "different", gap, f"{before.status} there, {after.status} here; {remark}")
    close = gap is not None and gap <= tolerance
    return Repeat(before.key, "within tolerance" if close else "different", gap, remark)


def _gap(before: Record, after: Record) -> float | None:
    """The largest difference of a share over all examples; None when there is none to compare."""
    sides = [
        {(row["split"], row["metric"]): row["value"] for row in _whole(record.scores)} for record in (before, after)
    ]
    common = sides[0].keys() & sides[1].keys()
    return max((abs(sides[0][name] - sides[1][name]) for name in common), default=None)


def _whole(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [r for r in rows if r["stratum"] == "all" and r["metric"] in METRICS and METRICS[r["metric"]].share]


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What the two machines do not share."""
    told = [
        f"{name}: {at(before, name)} there, {at(after, name)} here"
        for name in TELLING
        if at(before, name) != at(after, name)
    ]
    return "; ".join(told)
