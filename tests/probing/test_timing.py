"""Timing: exact rates on a clock that is turned by hand, and nothing of the clock in the outcome."""

from collections.abc import Iterator
from itertools import accumulate, chain, repeat
from types import SimpleNamespace

import pytest
import torch

from fathometer.core.recipe import Evaluation, Recipe
from fathometer.core.trial import Probe, Subject, Trial
from fathometer.evaluation.numerics import steady
from fathometer.evaluation.samples import LOOKAHEAD
from fathometer.models.transformer import Transformer
from fathometer.probing import timing
from fathometer.probing.answer_attention import AnswerAttention
from fathometer.probing.head_importance import HeadImportance
from fathometer.probing.scores import Scores
from fathometer.probing.timing import Timing
from fathometer.tasks.copying import Copying
from fathometer.training import rehearsal

TASK, MODEL = Copying(lengths=(2, 3), symbols=3), Transformer(depth=1, width=8, heads=2, dropout=0.5)
RECIPE = Recipe(steps=4, batch=16, evaluation=Evaluation(validate_on=8, test_on=30))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with steady():
        yield


def subject(recipe: Recipe = RECIPE) -> Subject:
    torch.manual_seed(0)
    return Subject(MODEL.build(TASK.interface()), Trial(task=TASK, model=MODEL, recipe=recipe), "cpu")


def turn_clock(monkeypatch: pytest.MonkeyPatch, module: object, seconds: list[float]) -> None:
    """What is timed in this module takes these seconds, one after another, and nothing from then on."""
    ticks = accumulate(chain.from_iterable((0.0, each) for each in chain(seconds, repeat(0.0))), initial=0.0)
    next(ticks)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))


def test_only_timing_needs_the_machine_to_itself() -> None:
    assert not Probe.exclusive
    assert {probe for probe in (AnswerAttention, HeadImportance, Scores, Timing) if probe.exclusive} == {Timing}


def test_rates_come_from_the_median_second(monkeypatch: pytest.MonkeyPatch) -> None:
    turn_clock(monkeypatch, rehearsal, [7.0, *(LOOKAHEAD * each for each in (9.0, 2.0, 4.0))])
    turn_clock(monkeypatch, timing, [1.0, 3.0, 50.0])
    assert Timing(repeats=3).measure(subject()).timing == {
        "train_samples_per_second": 16 / 4,
        "eval_samples_per_second": 30 / 3,
        "eval_runtime": 3.0,
    }


def test_the_outcome_is_known_before_the_clock_runs() -> None:
    first, second = Timing(repeats=1).measure(subject()), Timing(repeats=2).measure(subject())
    step = 3 * MODEL.size(TASK.interface()).flops * 6 * 16
    expected = {"scores": [], "batch": 16, "eval_examples": 30, "flops_per_step": pytest.approx(step, rel=1e-12)}
    assert first.outcome == second.outcome == expected
    assert first.timing is not None
    assert all(value > 0 for value in first.timing.values())


def test_the_cost_of_a_step_does_not_depend_on_the_number_of_steps() -> None:
    none = Timing(repeats=1).measure(subject(RECIPE.with_(steps=0))).outcome
    assert none == Timing(repeats=1).measure(subject()).outcome


@pytest.mark.parametrize("training", [True, False])
def test_measuring_leaves_the_network_as_it_was(training: bool) -> None:
    given = subject()
    network = given.network.train(training)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    Timing(repeats=1).measure(given)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(module.training == training for module in network.modules())
    assert all(parameter.grad is None for parameter in network.parameters())
