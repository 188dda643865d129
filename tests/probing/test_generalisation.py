"""Generalisation: nothing where data are fresh, much where a few strings were learnt by heart."""

import pytest

from fathometer.core.recipe import Evaluation, Optimiser, Recipe
from fathometer.core.trial import Subject, Trial
from fathometer.evaluation.answers import answer
from fathometer.evaluation.samples import Samples
from fathometer.models.transformer import Transformer
from fathometer.probing.generalisation import Generalisation
from fathometer.tasks.copying import Copying, Noise
from fathometer.training.loop import run

RECIPE = Recipe(
    steps=150,
    batch=16,
    optimiser=Optimiser(learning_rate=1e-2),
    evaluation=Evaluation(every=50, validate_on=16, test_on=200),
)
FEW = Copying(lengths=(6,), strings=20, noise=Noise(reading="R0"))


def measured(task: Copying, examples: int = 100) -> tuple[dict[tuple[str, str], float], Subject]:
    trial = Trial(task=task, model=Transformer(depth=1, width=32, heads=2), recipe=RECIPE)
    subject = Subject(run(trial).network, trial, "cpu")
    rows = Generalisation(examples=examples).measure(subject).outcome["scores"]
    return {(row["split"], row["metric"]): row["value"] for row in rows}, subject


def test_strings_learnt_by_heart_are_told_from_others() -> None:
    found, subject = measured(FEW)
    assert found["trained_on", "loss"] < 0.2 * found["in_distribution", "loss"]
    gap = found["in_distribution", "loss"] - found["trained_on", "loss"]
    assert found["in_distribution", "loss_gap"] == pytest.approx(gap)
    batch = Samples(subject.trial).test("in_distribution", 100)
    losses = answer(subject.network, subject.trial.model, batch, "cpu").loss[batch.scored]
    assert found["in_distribution", "loss"] == pytest.approx(losses.mean())


def test_fresh_data_leave_no_gap() -> None:
    found, _ = measured(FEW.with_(strings=None), examples=1000)
    assert abs(found["in_distribution", "loss_gap"]) < 0.1 * found["in_distribution", "loss"]


def test_both_sides_hold_all_lengths_alike() -> None:
    task = Copying(lengths=(2, 12), noise=Noise(reading="R0"))
    trial = Trial(task=task, model=Transformer(depth=1, width=8, heads=1), recipe=RECIPE.with_(steps=8))
    rows = Generalisation(examples=16).measure(Subject(run(trial).network, trial, "cpu")).outcome["scores"]
    assert [row["n"] for row in rows] == [8 * 16 * 7, 16 * 7, 16 * 7]


def test_a_network_that_was_not_trained_has_learnt_nothing_by_heart() -> None:
    trial = Trial(task=FEW, model=Transformer(depth=1, width=32, heads=2), recipe=Recipe(steps=0))
    with pytest.raises(ValueError, match="trained on nothing"):
        Generalisation().measure(Subject(run(trial).network, trial, "cpu"))
