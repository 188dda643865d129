"""Samples: balanced batches of like length, finite sets without leaks, any step in any order."""

import numpy as np
import pytest

from fathometer.core.recipe import Evaluation, Recipe
from fathometer.core.trial import Trial
from fathometer.evaluation.samples import LOOKAHEAD, Samples
from fathometer.models.transformer import Transformer
from fathometer.tasks.copying import Copying


def trial(**task: object) -> Trial:
    recipe = Recipe(steps=100, batch=15, evaluation=Evaluation(validate_on=50, test_on=200))
    return Trial(task=Copying(**({"lengths": (2, 5, 9)} | task)), model=Transformer(width=8, heads=2), recipe=recipe)


def test_steps_can_be_asked_for_in_any_order() -> None:
    forward, backward = Samples(trial()), Samples(trial())
    steps = {step: forward.batch(step).inputs for step in range(20)}
    for step in reversed(range(20)):
        assert np.array_equal(backward.batch(step).inputs, steps[step])


def test_grouped_batches_have_little_padding_and_all_lengths_in_turn() -> None:
    samples = Samples(trial())
    batches = [samples.batch(step) for step in range(LOOKAHEAD)]
    lengths = np.concatenate([batch.strata["length"] for batch in batches])
    assert [int((lengths == n).sum()) for n in (2, 5, 9)] == [40, 40, 40]
    padding = sum(batch.inputs.size - batch.lengths.sum() for batch in batches) / sum(b.inputs.size for b in batches)
    ungrouped = Samples(trial().with_(recipe=trial().recipe.with_(grouped=False))).batch(0)
    assert padding < 0.15 < 1 - ungrouped.lengths.sum() / ungrouped.inputs.size


def test_an_epoch_of_a_finite_set_shows_every_training_string_once() -> None:
    samples = Samples(trial(strings=40, lengths=(5, 9)))
    assert samples._finite is not None
    training, validation = samples._finite
    size = len(training)
    assert (size, len(validation)) == (72, 8)
    seen = [row[:length].tobytes() for step in range(40) for row, length in _rows(samples, step)]
    assert set(seen) == {row[:length].tobytes() for row, length in zip(training.inputs, training.lengths, strict=True)}
    rows = samples._finite_rows(0, size)
    assert sorted(rows) == sorted(samples._finite_rows(size, size)) == list(range(size))
    assert not np.array_equal(rows, samples._finite_rows(size, size))


def test_no_string_is_both_trained_on_and_validated_on() -> None:
    samples = Samples(trial(strings=40, lengths=(1, 2, 9)))  # there are only ten strings of length 1
    assert samples._finite is not None
    training, validation = (
        {tuple(row[: (length + 1) // 2]) for row, length in zip(pool.inputs, pool.lengths, strict=True)}
        for pool in samples._finite
    )
    assert len(samples._finite[1]) > len(validation)
    assert not training & validation


def test_a_training_set_that_validation_uses_up_is_an_error() -> None:
    with pytest.raises(ValueError, match="The 100 examples of the training set repeat each other"):
        Samples(trial(strings=100, lengths=(1,), symbols=2, noise={"reading": "R0"})).validation()


def _rows(samples: Samples, step: int) -> list[tuple[np.ndarray, int]]:
    batch = samples.batch(step)
    return list(zip(batch.inputs, batch.lengths, strict=True))


def test_test_strings_never_stand_in_a_finite_training_set() -> None:
    samples = Samples(trial(strings=40, lengths=(2, 9)))
    test = samples.test("in_distribution")
    asked = {tuple(row[: (length + 1) // 2]) for row, length in zip(test.inputs, test.lengths, strict=True)}
    known = {
        tuple(row[: (length + 1) // 2])
        for pool in samples._finite or ()
        for row, length in zip(pool.inputs, pool.lengths, strict=True)
    }
    assert len(known) > 40
    assert not asked & known
    assert len(test) < 200


def test_a_test_set_that_is_all_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="All 200 test examples also stand in the training set"):
        Samples(trial(strings=100, lengths=(1,), noise={"reading": "R0"})).test("in_distribution")
