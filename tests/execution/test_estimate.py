"""Estimates: all open work is in them, shared among workers but for what needs the machine to itself."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from fathometer.core.recipe import Recipe
from fathometer.core.spec import named
from fathometer.core.trial import LimitSheet, Measurement, Trial, Work
from fathometer.execution import estimate


def seconds_of(work: Work) -> float:
    """The true time of each piece of work: a power of its cost, another one for each kind."""
    if isinstance(work, LimitSheet):
        return 0.01 * work.task.interface().length ** 2
    if isinstance(work, Trial):
        return 1e-6 * work.flops() ** 0.75
    return {"timing": 3.0, "scores": 1e-4 * work.trial.flops_a_step() ** 0.5}[work.probe.name]


class Rehearsing:
    """An executor that knows the true times, and counts what it was asked."""

    asked = 0

    def __init__(self, root: Path, workers: int, device: str) -> None:
        Rehearsing.asked = 0

    def rehearse(self, work: Sequence[Work]) -> list[float]:
        Rehearsing.asked += len(work)
        return [seconds_of(each) for each in work]

    def close(self) -> None:
        pass


def work() -> list[Work]:
    trials = [
        Trial(
            task=named("task", "copying", lengths=(length,)),
            model=named("model", "transformer", depth=depth, width=16),
            recipe=Recipe(steps=100),
            seed=seed,
        )
        for length in (5, 9)
        for depth in (1, 2, 3, 4, 5)
        for seed in (0, 1)
    ]
    scores = [Measurement(trial=trial, probe=named("probe", "scores", split="clean")) for trial in trials]
    timings = [Measurement(trial=trial, probe=named("probe", "timing")) for trial in trials[:3]]
    sheets = [LimitSheet(task=trials[index].task, split="clean") for index in (0, -1)]
    return [*trials, *scores, *timings, *sheets]


@pytest.mark.parametrize("workers", [1, 3])
def test_times_that_grow_as_a_power_of_the_cost_are_told_exactly(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(estimate, "LocalExecutor", Rehearsing)
    monkeypatch.setattr(estimate.time, "perf_counter", iter([0.0, 4.0]).__next__)
    everything = work()
    start_up = 4.0 - seconds_of(min(everything, key=estimate._cost))
    alone = sum(seconds_of(each) for each in everything if estimate._alone(each))
    shared = sum(seconds_of(each) for each in everything if not estimate._alone(each))
    found = estimate.estimated_seconds(everything, workers, "cpu")
    assert found == pytest.approx(start_up + alone + shared / workers)
    assert Rehearsing.asked < len(everything) / 2


def test_no_number_of_workers_ends_before_the_longest_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "LocalExecutor", Rehearsing)
    trials = [each for each in work() if isinstance(each, Trial)]
    longest = max(seconds_of(trial) for trial in trials)
    monkeypatch.setattr(estimate.time, "perf_counter", iter([0.0, 0.0]).__next__)
    start_up = -seconds_of(min(trials, key=estimate._cost))
    assert estimate.estimated_seconds(trials, 1000, "cpu") == pytest.approx(start_up + longest)
