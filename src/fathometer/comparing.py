"""Comparing: two results folders side by side. Which verdicts changed, which scores, and which trials are the same."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import stats

from fathometer.core.claim import Verdict
from fathometer.core.evidence import Evidence, cells, score
from fathometer.core.record import Record
from fathometer.core.study import Study
from fathometer.figures.cells import arms_of
from fathometer.figures.standard import main_metric
from fathometer.report.page import read
from fathometer.statistics.multiplicity import holm
from fathometer.storage.folder import Folder

ALPHA = 0.05

ROUNDING = 1e-9
"""Scores that differ by less are alike."""


@dataclass(frozen=True)
class VerdictPair:
    """What both folders say of one claim; None where a folder does not make it."""

    claim: str
    before: Verdict | None
    after: Verdict | None

    @property
    def changed(self) -> bool:
        """Whether the decision is another one."""
        return self.before is None or self.after is None or self.before.decision != self.after.decision


@dataclass(frozen=True)
class ScorePair:
    """One configuration in both folders: mean scores, their difference with its Welch interval, Holm's p over all."""

    cell: str
    seeds: tuple[int, int]
    before: float
    after: float
    low: float | None
    high: float | None
    p: float | None

    @property
    def apart(self) -> bool:
        """Whether the difference is more than seeds explain, all configurations considered."""
        return self.p is not None and self.p < ALPHA


@dataclass(frozen=True)
class Comparison:
    """Two folders side by side. ``same`` trials ended in the same bits in both, ``other`` did not."""

    metric: str
    verdicts: tuple[VerdictPair, ...]
    scores: tuple[ScorePair, ...]
    same: int
    other: tuple[str, ...]
    only_before: int
    only_after: int


def compare(before: Path | str, after: Path | str) -> Comparison:
    """Claims by their identifier, configurations by all that they are but their seeds, trials by their keys.

    Where the seeds of a configuration are the same in both folders so are its trials, and their difference is a matter
    of machines or versions; where they are not, it is one of luck, and the interval says how much luck explains.
    """
    sides = [read(Folder(Path(folder))) for folder in (before, after)]
    trials = [{trial.key: trial for trial in side.evidence.trials()} for side in sides]
    common = sorted(trials[0].keys() & trials[1].keys())
    same = [key for key in common if trials[0][key].outcome == trials[1][key].outcome]
    metric, scores = _scores(sides[0].study, [side.evidence for side in sides])
    return Comparison(
        metric,
        _verdicts([side.verdicts for side in sides]),
        scores,
        same=len(same),
        other=tuple(key for key in common if key not in set(same)),
        only_before=len(trials[0].keys() - trials[1].keys()),
        only_after=len(trials[1].keys() - trials[0].keys()),
    )


def _verdicts(sides: Sequence[Sequence[Verdict]]) -> tuple[VerdictPair, ...]:
    by_claim = [{verdict.claim: verdict for verdict in side} for side in sides]
    names = dict.fromkeys([*by_claim[0], *by_claim[1]])
    return tuple(VerdictPair(name, by_claim[0].get(name), by_claim[1].get(name)) for name in names)


def _scores(study: Study | None, sides: Sequence[Evidence]) -> tuple[str, tuple[ScorePair, ...]]:
    scored = [[trial for trial in side.trials() if trial.scores] for side in sides]
    if not scored[0] or not scored[1]:
        return "", ()
    metric = main_metric(scored[0])
    arms = arms_of([*scored[0], *scored[1]], study)
    labels = {
        key: f"{arm}: {label}" if arm else label for arm, members in arms.items() for key, label in members.items()
    }
    by_cell = [cells(trials) for trials in scored]
    rows: list[ScorePair] = []
    for cell in [cell for cell in by_cell[0] if cell in by_cell[1]]:
        groups = [_values(side[cell], metric) for side in by_cell]
        if min(map(len, groups)) == 0:
            continue
        low, high, p = _welch(*groups)
        seeds = (len(groups[0]), len(groups[1]))
        means = [float(np.mean(group)) for group in groups]
        rows.append(ScorePair(labels[by_cell[0][cell][0].key], seeds, means[0], means[1], low, high, p))
    adjusted = iter(holm([row.p for row in rows if row.p is not None]))
    return metric, tuple(row if row.p is None else replace(row, p=next(adjusted)) for row in rows)


def _values(trials: Sequence[Record], metric: str) -> list[float]:
    return [value for trial in trials if (value := score(trial, metric)) is not None]


def _welch(before: Sequence[float], after: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """The interval of the difference and its p; None where seeds are too few, or all alike, to give one."""
    if min(len(before), len(after)) < 2:
        return None, None, None
    if np.ptp(before) + np.ptp(after) < ROUNDING:  # nothing varies: either all alike, or apart beyond doubt
        gap = float(after[0] - before[0])
        return (gap, gap, 0.0) if abs(gap) > ROUNDING else (None, None, None)
    gap = float(np.mean(after) - np.mean(before))
    parts = [float(np.var(side, ddof=1)) / len(side) for side in (before, after)]
    error = sum(parts) ** 0.5
    freedom = error**4 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (before, after), strict=True))
    half = float(stats.t.ppf(0.975, freedom)) * error
    return gap - half, gap + half, float(2 * stats.t.sf(abs(gap) / error, freedom))
