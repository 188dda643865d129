"""Rehearsal: a few steps of a trial against the clock, so that a sweep's time can be told before it is spent."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from fathometer.core.trial import Trial
from fathometer.evaluation.numerics import steady
from fathometer.evaluation.samples import LOOKAHEAD, Samples
from fathometer.evaluation.scoring import main_score, scores
from fathometer.training.loop import fresh_network, make_optimiser, train_step


@dataclass(frozen=True)
class Pace:
    """Seconds that the beginning of a trial, one step, one validation and the test at its end take."""

    beginning: float
    step: float
    validation: float
    test: float

    def whole(self, trial: Trial) -> float:
        """Seconds for the trial if nothing stops it early."""
        recipe = trial.recipe
        validations = 1 + recipe.steps // recipe.evaluation.every
        return self.beginning + self.step * recipe.steps + self.validation * validations + self.test


def rehearse(trial: Trial, device: str = "cpu", rounds: int = 1) -> Pace:
    """Times the parts of a trial on this machine.

    A round is as many steps as are drawn at once, so that drawing is in their time; the median round counts, after one
    step that warms up.
    """
    with steady():
        started = time.perf_counter()
        samples, network = Samples(trial), fresh_network(trial, device)
        optimiser = make_optimiser(network, trial.recipe)
        validation = samples.validation()
        beginning = time.perf_counter() - started

        def step(index: int) -> None:
            train_step(network, trial, optimiser, samples.batch(index), device).item()

        def round_of_steps(number: int) -> None:
            for index in range(LOOKAHEAD):
                step(number * LOOKAHEAD + index)

        step(0)
        seconds = [seconds_of(lambda number=number: round_of_steps(number)) for number in range(1, rounds + 1)]
        model, metric = trial.model, trial.task.metric
        return Pace(
            beginning=beginning,
            step=median(seconds) / LOOKAHEAD,
            validation=seconds_of(lambda: main_score(network, model, validation, metric, device)),
            test=seconds_of(lambda: scores(network, model, samples.test(samples.split), samples.split, device)),
        )


def seconds_of(work: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
