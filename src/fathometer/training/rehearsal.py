"""Rehearsal: a few steps of a trial against the clock, so that a sweep's time can be told before it is spent."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from fathometer.core.trial import Trial
from fathometer.evaluation.numerics import steady
from fathometer.evaluation.samples import Samples
from fathometer.evaluation.scoring import main_score, scores
from fathometer.training.loop import fresh_network, make_optimiser, train_step


@dataclass(frozen=True)
class Pace:
    """Seconds that one step, one validation and the test at the end of a trial take."""

    step: float
    validation: float
    test: float

    def whole(self, trial: Trial) -> float:
        """Seconds for the trial if nothing stops it early."""
        recipe = trial.recipe
        validations = 1 + recipe.steps // recipe.evaluation.every
        return self.step * recipe.steps + self.validation * validations + self.test


def rehearse(trial: Trial, device: str = "cpu", steps: int = 8) -> Pace:
    """Times the parts of a trial on this machine; the median step, after two that warm up."""
    with steady():
        samples, network = Samples(trial), fresh_network(trial, device)
        optimiser = make_optimiser(network, trial.recipe)

        def step(index: int) -> None:
            train_step(network, trial, optimiser, samples.batch(index), device).item()

        for index in range(2):
            step(index)
        pace = median([_seconds(lambda index=index: step(index)) for index in range(2, 2 + steps)])
        validation, test = samples.validation(), samples.test(samples.split)
        model, metric = trial.model, trial.task.metric
        return Pace(
            step=pace,
            validation=_seconds(lambda: main_score(network, model, validation, metric, device)),
            test=_seconds(lambda: scores(network, model, test, samples.split, device)),
        )


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
