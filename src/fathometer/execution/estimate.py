"""Estimate: what a study would cost here, from a short rehearsal and before anything is spent."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fathometer.core.evidence import Evidence
from fathometer.core.record import Record
from fathometer.core.spec import encode
from fathometer.core.study import Study
from fathometer.core.trial import LimitSheet, Measurement, Trial, Work, kind_of
from fathometer.execution.driver import complete
from fathometer.execution.jobs import Executor
from fathometer.execution.local import LocalExecutor

SAMPLES = {Trial: 6, Measurement: 2, LimitSheet: 2}
"""How many of each kind of work are rehearsed; the time of the others is read off between them by their cost."""


def open_work(study: Study, evidence: Evidence) -> tuple[int, list[Work]]:
    """How many records will be wanted in all, as far as can be told, and the work that has none yet."""
    wanted = complete(study.foreseen(evidence))
    return len(wanted), [work for work in wanted if evidence.get(work.key) is None]


def prospects(study: Study, evidence: Evidence) -> list[tuple[str, str]]:
    """Each claim with what it could decide on the trials that are foreseen, told before any of them is run."""
    planned = Evidence(
        Record(work.key, kind_of(work), 0, "done", encode(work), {"scores": []})
        for work in complete(study.foreseen(evidence))
    )
    return [(claim.statement, claim.prospect(planned)) for claim in study.claims()]


def estimated_seconds(work: Sequence[Work], workers: int, device: str) -> float:
    """Seconds of wall time for all of it on this many workers, from their start, if no trial stops early."""
    families: dict[tuple[type, str], list[Work]] = {}
    for each in work:
        families.setdefault(_family(each), []).append(each)
    with tempfile.TemporaryDirectory() as scratch:
        executor = LocalExecutor(Path(scratch), workers, device)
        try:
            started = time.perf_counter()
            start_up = -sum(executor.rehearse([min(work, key=_cost)]))
            start_up += time.perf_counter() - started
            seconds = {family: _seconds_of_each(members, executor) for family, members in families.items()}
        finally:
            executor.close()
    alone = sum(seconds[family].sum() for family, members in families.items() if _alone(members[0]))
    shared = np.concatenate([s for family, s in seconds.items() if not _alone(families[family][0])] or [np.zeros(1)])
    return float(start_up + alone + max(shared.sum() / workers, shared.max()))


def _family(work: Work) -> tuple[type, str]:
    """Work whose time can be read off by cost: of one kind, and of one probe where it is a measurement."""
    return type(work), work.probe.name if isinstance(work, Measurement) else ""


def _alone(work: Work) -> bool:
    return isinstance(work, Measurement) and work.probe.exclusive


def _cost(work: Work) -> float:
    """What the time of a family's members grows with."""
    if isinstance(work, LimitSheet):
        return float(work.task.interface().length)
    return max(1.0, work.flops() if isinstance(work, Trial) else work.trial.flops_a_step())


def _seconds_of_each(work: Sequence[Work], executor: Executor) -> np.ndarray:
    shapes = sorted({_cost(each): each for each in work}.items())
    number = min(SAMPLES[type(work[0])], len(shapes))
    picked = [shapes[round(place)] for place in np.linspace(0, len(shapes) - 1, number)]
    measured = np.log(np.maximum(executor.rehearse([each for _, each in picked]), 1e-6))
    costs = np.log([cost for cost, _ in picked])
    return np.exp([np.interp(np.log(_cost(each)), costs, measured) for each in work])
