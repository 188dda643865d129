"""Shallow adversaries, on small batches whose right predictions can be seen by eye."""

from dataclasses import replace

import numpy as np
import pytest

from fathometer.core.interface import Batch
from fathometer.theory.adversaries import (
    SHALLOW,
    bag_of_symbols,
    best_shortcuts,
    last_value,
    majority,
    majority_so_far,
    position_only,
)


def batch(inputs, targets, scored=None, lengths=None, strata=None):
    """A batch written as lists; scored everywhere and of full length unless told."""
    inputs = np.array(inputs)
    scored = np.ones(inputs.shape, dtype=bool) if scored is None else np.array(scored, dtype=bool)
    return Batch(
        inputs=inputs,
        targets=np.array(targets),
        trained=scored,
        scored=scored,
        lengths=np.full(len(inputs), inputs.shape[1]) if lengths is None else np.array(lengths),
        strata={name: np.array(labels) for name, labels in (strata or {}).items()},
    )


def random_batch(rng, n=60, time=7, symbols=4):
    """Inputs 1..symbols, answers that depend on the inputs, all lengths, the second half scored."""
    inputs = rng.integers(1, symbols + 1, (n, time))
    targets = (np.cumsum(inputs, axis=1) + rng.integers(0, 2, (n, time))) % symbols + 1
    lengths = rng.integers(time // 2 + 1, time + 1, n)
    scored = (np.arange(time) >= time // 2) & (np.arange(time) < lengths[:, None])
    return Batch(inputs=inputs, targets=targets, trained=scored, scored=scored, lengths=lengths)


def test_majority_says_the_commonest_scored_answer_everywhere():
    fit = batch([[1, 1, 1], [1, 1, 1]], [[5, 5, 3], [5, 2, 3]], scored=[[0, 0, 1], [0, 1, 1]])
    test = batch([[1, 2], [3, 4]], [[5, 5], [5, 5]])
    assert majority(fit, test).tolist() == [[3, 3], [3, 3]]


def test_position_only_says_the_commonest_answer_of_the_place_among_examples_of_the_length():
    fit = batch(
        [[9, 9, 9]] * 4,
        [[1, 2, 3], [1, 2, 3], [4, 5, 0], [4, 5, 0]],
        scored=[[1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 1, 0]],
        lengths=[3, 3, 2, 2],
    )
    test = batch([[7, 7, 7], [8, 8, 8]], [[9, 9, 9], [9, 9, 9]], lengths=[3, 2])
    found = position_only(fit, test)
    assert found[0].tolist() == [1, 2, 3]
    assert found[1, :2].tolist() == [4, 5]


def test_position_only_falls_back_on_the_commonest_answer_for_a_length_never_fitted():
    fit = batch([[9, 9]] * 2, [[1, 2], [2, 2]])
    test = batch([[9, 9, 9]], [[1, 1, 1]])
    assert position_only(fit, test).tolist() == [[2, 2, 2]]


def test_last_value_says_the_commonest_answer_after_the_input_now_seen():
    fit = batch([[1, 2, 3], [1, 2, 3], [1, 2, 3]], [[4, 5, 6], [4, 6, 6], [5, 5, 6]])
    test = batch([[3, 3, 1], [2, 1, 2]], [[1, 1, 1], [1, 1, 1]])
    assert last_value(fit, test).tolist() == [[6, 6, 4], [5, 4, 5]]


def test_last_value_falls_back_on_the_commonest_answer_for_an_input_never_fitted():
    fit = batch([[1, 2, 2]], [[4, 5, 5]])
    test = batch([[7, 1]], [[1, 1]])
    assert last_value(fit, test).tolist() == [[5, 4]]


def test_majority_so_far_counts_the_inputs_up_to_now_that_can_be_answers():
    fit = batch([[1, 2, 3, 9]], [[1, 2, 3, 3]])
    test = batch([[9, 9, 2, 2, 3], [3, 1, 1, 9, 9]], [[1] * 5, [1] * 5])
    found = majority_so_far(fit, test)
    assert found[0, 2:].tolist() == [2, 2, 2]
    assert found[1].tolist() == [3, 1, 1, 1, 1]


def test_bag_of_symbols_learns_an_answer_named_by_the_input_now_seen():
    rng = np.random.default_rng(0)
    fit, test = (batch(inputs := rng.integers(1, 5, (200, 6)), 5 - inputs) for _ in range(2))
    assert (bag_of_symbols(fit, test) == test.targets).all()


def test_bag_of_symbols_learns_which_of_two_symbols_has_been_seen_more_often():
    rng = np.random.default_rng(0)

    def draw():
        inputs = rng.integers(1, 3, (400, 5))
        return batch(inputs, 1 + (np.cumsum(2 * inputs - 3, axis=1) > 0), scored=np.tile([0, 0, 0, 0, 1], (400, 1)))

    fit, test = draw(), draw()
    assert (bag_of_symbols(fit, test) == test.targets)[test.scored].all()


def test_bag_of_symbols_does_not_see_the_order_of_what_came_before():
    rng = np.random.default_rng(0)
    fit = batch(inputs := rng.integers(1, 4, (300, 4)), inputs[:, [0, 0, 0, 0]])
    test = batch([[1, 2, 3, 3], [2, 1, 3, 3], [3, 2, 1, 3]], [[1] * 4] * 3)
    found = bag_of_symbols(fit, test)[:, -1]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", SHALLOW)
def test_no_adversary_reads_the_targets_of_the_test_batch(name):
    rng = np.random.default_rng(1)
    fit, test = random_batch(rng), random_batch(rng)
    found = SHALLOW[name](fit, test)
    permuted = replace(test, targets=rng.permuted(test.targets, axis=None))
    assert (SHALLOW[name](fit, permuted) == found).all()
    assert (SHALLOW[name](fit, replace(test, targets=np.ones_like(test.targets))) == found).all()


@pytest.mark.parametrize("name", SHALLOW)
def test_no_adversary_reads_inputs_later_than_the_position_asked(name):
    rng = np.random.default_rng(2)
    fit, test = random_batch(rng), random_batch(rng)
    later = np.where(np.arange(7) > 4, rng.permutation(test.inputs), test.inputs)
    assert (later != test.inputs).any()
    changed = SHALLOW[name](fit, replace(test, inputs=later))
    assert (changed[:, :5] == SHALLOW[name](fit, test)[:, :5]).all()


@pytest.mark.parametrize("name", SHALLOW)
def test_no_adversary_is_fitted_on_answers_that_do_not_count(name):
    rng = np.random.default_rng(3)
    fit, test = random_batch(rng), random_batch(rng)
    noise = np.where(fit.scored, fit.targets, rng.permutation(fit.targets))
    assert (noise != fit.targets).any()
    assert (SHALLOW[name](replace(fit, targets=noise), test) == SHALLOW[name](fit, test)).all()


@pytest.mark.parametrize("name", SHALLOW)
def test_every_adversary_predicts_a_class_at_every_position(name):
    rng = np.random.default_rng(4)
    fit, test = random_batch(rng), random_batch(rng, n=11, time=9)
    found = SHALLOW[name](fit, test)
    assert found.shape == test.targets.shape
    assert set(np.unique(found)) <= {1, 2, 3, 4}


@pytest.mark.parametrize("name", SHALLOW)
def test_every_adversary_takes_a_test_batch_with_a_symbol_never_fitted(name):
    fit = batch([[1, 2, 1, 2]] * 3, [[1, 2, 1, 2]] * 3)
    test = batch([[1, 3, 3, 3]], [[1, 3, 3, 3]])
    assert SHALLOW[name](fit, test)[0, 0] in (1, 2)


def test_best_shortcuts_names_and_counts_the_best_adversary_of_every_stratum_and_the_first_of_equals():
    fit = batch([[1, 2, 3, 4]] * 2, [[1, 2, 3, 1]] * 2)
    test = batch(
        [[2, 2, 2, 2], [4, 3, 1, 2], [1, 2, 3, 4]],
        [[1, 1, 1, 3], [1, 3, 1, 2], [1, 2, 3, 2]],
        scored=[[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]],
        strata={"kind": [0, 1, 2], "late": [[0, 0, 1, 1]] * 3},
    )
    assert best_shortcuts(fit, test) == {
        "all": ("last value", 7, 11),
        "kind=0": ("majority", 3, 4),
        "kind=1": ("last value", 4, 4),
        "kind=2": ("position only", 3, 3),
        "late=0": ("majority", 4, 6),
        "late=1": ("last value", 3, 5),
    }


def test_best_shortcuts_lets_an_extra_adversary_win_only_where_it_is_better():
    fit = batch([[1, 2]] * 4, [[1, 1]] * 4)
    test = batch([[1, 2], [1, 2]], [[1, 1], [3, 3]], strata={"row": [0, 1]})
    extra = {"always three": lambda fit, test: np.full(test.targets.shape, 3)}
    assert best_shortcuts(fit, test, extra) == {
        "all": ("majority", 2, 4),
        "row=0": ("majority", 2, 2),
        "row=1": ("always three", 2, 2),
    }
