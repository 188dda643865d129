"""Estimate: what a study would cost here, from a few measured steps and before anything is spent."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fathometer.core.evidence import Evidence
from fathometer.core.study import Study
from fathometer.core.trial import Trial
from fathometer.execution.driver import everything_wanted
from fathometer.execution.local import LocalExecutor

SAMPLES = 6
"""Shapes that are measured; the others are read off between them by their cost."""


def open_trials(study: Study, evidence: Evidence) -> tuple[int, list[Trial]]:
    """How many records are wanted in all, and the trials that have none yet."""
    wanted = everything_wanted(study, evidence)
    return len(wanted), [work for work in wanted if isinstance(work, Trial) and evidence.get(work.key) is None]


def estimated_seconds(trials: Sequence[Trial], workers: int, device: str) -> float:
    """Seconds of wall time for all trials to their last step on this many workers."""
    shapes = sorted({trial.cell(): trial for trial in trials}.values(), key=lambda trial: trial.flops())
    picked = [shapes[i] for i in sorted({round(x) for x in np.linspace(0, len(shapes) - 1, min(SAMPLES, len(shapes)))})]
    with tempfile.TemporaryDirectory() as scratch:
        executor = LocalExecutor(Path(scratch), workers, device)
        try:
            paces = executor.rehearse(picked)
        finally:
            executor.close()
    costs = np.log([max(trial.flops(), 1.0) for trial in picked])
    seconds = np.log([pace.whole(trial) for pace, trial in zip(paces, picked, strict=True)])
    each = np.exp([np.interp(np.log(max(trial.flops(), 1.0)), costs, seconds) for trial in trials])
    return float(max(each.sum() / workers, each.max()))
