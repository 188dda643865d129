"""Copying: the layout of its sequences, its masks and strata, its noise, and its limits on drawn data."""

from collections import Counter
from functools import cache
from itertools import product
from math import comb, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fathometer.core.interface import Batch
from fathometer.core.spec import SpecError
from fathometer.tasks.copying import PAD, Copying, Noise

READINGS = ("R0", "R1", "R2", "R3", "R4", "R5")
NOISY = READINGS[1:]
SILENT = Noise(reading="R0")


def generator(seed=0):
    return np.random.default_rng(seed)


def rows_of(batch, length):
    return np.flatnonzero(batch.strata["length"] == length)


def visible(batch):
    """The symbol that is copied at each scored position, 0 elsewhere."""
    return np.where(batch.scored, np.take_along_axis(batch.inputs, np.maximum(batch.sources, 0), axis=1), 0)


def limit_table(task, split):
    """By kind, metric and stratum."""
    return {(limit.kind, limit.metric, limit.stratum): limit for limit in limits_of(task, split)}


@cache
def limits_of(task, split):
    return task.limits(split)


def assert_mean(values, mask, wanted, what):
    """The mean of values over the mask is as wanted, within 4 standard errors of whole rows."""
    excess = ((values - wanted) * mask).sum(axis=1)
    assert abs(excess.sum()) <= 4 * np.sqrt((excess**2).sum()) + 1e-9, what


noises = st.builds(
    Noise,
    reading=st.sampled_from(READINGS),
    share=st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]),
    rate=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]),
    count=st.sampled_from(["fixed", "each"]),
)


@st.composite
def tasks(draw, noise=noises):
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4, unique=True))
    seen = draw(st.integers(1, len(lengths)))
    return Copying(
        lengths=tuple(lengths[:seen]),
        unseen_lengths=tuple(lengths[seen:]),
        symbols=draw(st.integers(2, 4)),
        layout=draw(st.sampled_from(["mixed", "fixed_split"])),
        loss=draw(st.sampled_from(["output", "everything"])),
        ends=draw(st.booleans()),
        noise=draw(noise),
    )


@st.composite
def draws(draw, noise=noises):
    """A task, one of its splits, and a batch of it."""
    task = draw(tasks(noise))
    split = draw(st.sampled_from(task.splits()))
    return task, split, task.draw(generator(draw(st.integers(0, 10**6))), draw(st.integers(1, 40)), split)


def fixed(reading):
    return st.builds(
        Noise,
        reading=st.sampled_from(reading),
        share=st.sampled_from([0.5, 1.0]),
        rate=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]),
    )


def assert_row(batch, row, wanted):
    """The row holds these sequences up to its length."""
    until = batch.lengths[row]
    found = {name: getattr(batch, name)[row, :until].astype(int).tolist() for name in wanted}
    assert found == wanted


def test_mixed_layout_puts_the_delimiter_right_after_the_string():
    batch = Copying(lengths=(2, 3), symbols=3, noise=SILENT).draw(generator(), 2, "in_distribution")
    (two,), (three,) = rows_of(batch, 2), rows_of(batch, 3)
    a, b = batch.inputs[two, :2].tolist()
    assert batch.lengths[two] == 4
    assert_row(batch, two, {
        "inputs":  [a, b, 4, a],
        "targets": [b, 4, a, b],
        "trained": [0, 0, 1, 1],
        "scored":  [0, 0, 1, 1],
        "fed":     [0, 0, 0, 1],
        "sources": [-1, -1, 0, 1],
    })  # fmt: skip
    a, b, c = batch.inputs[three, :3].tolist()
    assert batch.lengths[three] == 6
    assert_row(batch, three, {
        "inputs":  [a, b, c, 4, a, b],
        "targets": [b, c, 4, a, b, c],
        "trained": [0, 0, 0, 1, 1, 1],
        "scored":  [0, 0, 0, 1, 1, 1],
        "fed":     [0, 0, 0, 0, 1, 1],
        "sources": [-1, -1, -1, 0, 1, 2],
    })  # fmt: skip


def test_fixed_split_layout_pads_the_string_so_that_the_delimiter_always_stands_at_one_place():
    task = Copying(lengths=(2, 3), symbols=3, layout="fixed_split", unseen_lengths=(4,), noise=SILENT)
    batch = task.draw(generator(), 2, "in_distribution")
    (two,), (three,) = rows_of(batch, 2), rows_of(batch, 3)
    a, b = batch.inputs[two, :2].tolist()
    assert batch.lengths[two] == 6
    assert_row(batch, two, {
        "inputs":  [a, b, 0, 0, 4, a],
        "targets": [b, 0, 0, 4, a, b],
        "trained": [0, 0, 0, 0, 1, 1],
        "scored":  [0, 0, 0, 0, 1, 1],
        "fed":     [0, 0, 0, 0, 0, 1],
        "sources": [-1, -1, -1, -1, 0, 1],
    })  # fmt: skip
    assert batch.lengths[three] == 7
    assert (batch.inputs[:, 4] == 4).all()


def test_ends_marks_the_beginning_and_the_end_by_tokens_of_their_own():
    batch = Copying(lengths=(2,), symbols=3, ends=True, noise=SILENT).draw(generator(), 1, "in_distribution")
    a, b = batch.inputs[0, 1:3].tolist()
    assert batch.lengths.tolist() == [6]
    assert_row(batch, 0, {
        "inputs":  [5, a, b, 4, a, b],
        "targets": [a, b, 4, a, b, 6],
        "trained": [0, 0, 0, 1, 1, 1],
        "scored":  [0, 0, 0, 1, 1, 0],
        "fed":     [0, 0, 0, 0, 1, 1],
        "sources": [-1, -1, -1, 1, 2, -1],
    })  # fmt: skip


def test_ends_in_the_fixed_split_layout():
    task = Copying(lengths=(1, 2), symbols=2, ends=True, layout="fixed_split", noise=SILENT)
    batch = task.draw(generator(), 2, "in_distribution")
    (one,) = rows_of(batch, 1)
    a = int(batch.inputs[one, 1])
    assert_row(batch, one, {
        "inputs":  [4, a, 0, 3, a],
        "targets": [a, 0, 3, a, 5],
        "trained": [0, 0, 0, 1, 1],
        "scored":  [0, 0, 0, 1, 0],
        "fed":     [0, 0, 0, 0, 1],
        "sources": [-1, -1, -1, 1, -1],
    })  # fmt: skip


@pytest.mark.parametrize(("layout", "trained"), [("mixed", [1] * 4), ("fixed_split", [1, 0, 1, 1, 1])])
def test_loss_on_everything_trains_all_targets_but_padding(layout, trained):
    task = Copying(lengths=(2, 3), symbols=3, layout=layout, loss="everything", noise=SILENT)
    batch = task.draw(generator(), 2, "in_distribution")
    (row,) = rows_of(batch, 2)
    assert_row(batch, row, {"trained": trained})
    assert not batch.trained[row, batch.lengths[row] :].any()
    assert batch.scored[row].sum() == 2


@settings(deadline=None, max_examples=150)
@given(draws())
def test_every_row_reads_as_a_string_a_delimiter_and_its_copy_and_every_mask_says_where(drawn):
    task, _, batch = drawn
    width = batch.inputs.shape[1]
    for row in range(len(batch)):
        tokens = [int(batch.inputs[row, 0]), *batch.targets[row].tolist()]
        n, first = int(batch.strata["length"][row]), int(task.ends)
        at = first + (n if task.layout == "mixed" else max(task.lengths + task.unseen_lengths))
        string, answers = tokens[first : first + n], tokens[at + 1 : at + 1 + n]
        assert set(string) | set(answers) <= set(range(1, task.symbols + 1))
        begin, end = ([task.symbols + 2], [task.symbols + 3]) if task.ends else ([], [])
        whole = [*begin, *string, *[PAD] * (at - first - n), task.symbols + 1, *answers, *end]
        assert tokens == whole + [PAD] * (width + 1 - len(whole))
        assert batch.lengths[row] == len(whole) - 1
        assert np.flatnonzero(batch.scored[row]).tolist() == list(range(at, at + n))
        assert batch.sources[row, at : at + n].tolist() == list(range(first, first + n))
        assert (batch.sources[row] >= 0).sum() == n
        since = at if task.loss == "output" else 0
        wanted = [t for t in range(since, len(whole) - 1) if whole[t + 1] != PAD]
        assert np.flatnonzero(batch.trained[row]).tolist() == wanted
        until = batch.lengths[row]
        assert np.flatnonzero(batch.fed[row, :until]).tolist() == [t for t in range(at + 1, at + 1 + n) if t < until]


@settings(deadline=None, max_examples=100)
@given(draws())
def test_targets_are_the_inputs_shifted_by_one_and_what_is_fed_is_the_previous_target(drawn):
    _, _, batch = drawn
    inside = np.arange(1, batch.inputs.shape[1]) < batch.lengths[:, None]
    assert (batch.inputs[:, 1:] == batch.targets[:, :-1])[inside].all()
    assert (batch.inputs[:, 1:][~inside] == PAD).all()
    rows, times = np.nonzero(batch.fed)
    assert (times > 0).all()
    assert (batch.inputs[rows, times] == batch.targets[rows, times - 1]).all()
    assert batch.scored[rows, times - 1].all()


@settings(deadline=None, max_examples=100)
@given(draws())
def test_the_answer_is_the_symbol_at_its_source_wherever_nothing_is_flipped(drawn):
    _, _, batch = drawn
    flipped = batch.strata.get("flipped", np.zeros_like(batch.inputs)).astype(bool)
    kept = batch.scored & ~flipped
    assert (visible(batch)[kept] == batch.targets[kept]).all()
    assert not (flipped & ~batch.scored).any()
    if "noised" in batch.strata:
        assert not flipped[batch.strata["noised"] == 0].any()


@settings(deadline=None, max_examples=100)
@given(draws(noise=fixed(["R1", "R2"])))
def test_flips_of_one_side_always_change_the_symbol_and_are_as_many_as_asked(drawn):
    task, _, batch = drawn
    flipped = batch.strata["flipped"].astype(bool)
    assert ((visible(batch) != batch.targets)[batch.scored] == flipped[batch.scored]).all()
    wanted = np.array([min(n, max(1, round(task.noise.rate * n))) for n in batch.strata["length"].tolist()])
    assert (flipped.sum(axis=1) == wanted * batch.strata["noised"]).all()


@settings(deadline=None, max_examples=100)
@given(draws(noise=fixed(["R3"])))
def test_flips_of_the_source_are_copied_and_are_as_many_as_asked(drawn):
    task, _, batch = drawn
    assert (visible(batch)[batch.scored] == batch.targets[batch.scored]).all()
    wanted = np.array([min(n, max(1, round(task.noise.rate * n))) for n in batch.strata["length"].tolist()])
    assert (batch.strata["flipped"].sum(axis=1) == wanted * batch.strata["noised"]).all()


@settings(deadline=None, max_examples=100)
@given(draws(noise=fixed(["R4", "R5"])))
def test_flips_on_two_sides_are_as_many_as_asked_and_undo_each_other_at_most_where_they_meet(drawn):
    task, _, batch = drawn
    number = np.array([min(n, max(1, round(task.noise.rate * n))) for n in batch.strata["length"].tolist()])
    number = number * batch.strata["noised"] * (2 if task.noise.reading == "R5" else 1)
    flipped = batch.strata["flipped"].sum(axis=1)
    twice = number - flipped
    changed = ((visible(batch) != batch.targets) & batch.scored).sum(axis=1)
    assert ((twice >= 0) & (twice <= flipped)).all()
    assert (changed >= flipped - twice).all()
    if task.symbols == 2:
        assert (changed == flipped - twice).all()


@pytest.mark.parametrize("reading", NOISY)
def test_a_rate_of_zero_one_by_one_flips_nothing(reading):
    task = Copying(lengths=(3, 5), noise=Noise(reading=reading, share=1, rate=0, count="each"))
    batch = task.draw(generator(), 20, "noised")
    assert (batch.strata["noised"] == 1).all()
    assert (batch.strata["flipped"] == 0).all()
    assert (visible(batch) == batch.targets)[batch.scored].all()


@settings(deadline=None, max_examples=100)
@given(tasks(), st.integers(1, 60), st.integers(0, 10**6))
def test_lengths_are_balanced_in_every_run_of_examples(task, n, seed):
    lengths = task.draw(generator(seed), n, "in_distribution").strata["length"]
    for start, stop in [(0, n), (n // 3, n), (n // 4, n // 2)]:
        counts = [int((lengths[start:stop] == length).sum()) for length in task.lengths]
        assert max(counts) - min(counts) <= 1
        assert sum(counts) == stop - start


def test_a_draw_begins_with_any_length():
    task = Copying(lengths=(1, 2, 3), noise=SILENT)
    rng = generator()
    begins = Counter(int(task.draw(rng, 1, "in_distribution").strata["length"][0]) for _ in range(900))
    assert all(abs(begins[n] - 300) < 4 * (900 * 2 / 9) ** 0.5 for n in (1, 2, 3))


@settings(deadline=None, max_examples=100)
@given(tasks(), st.integers(1, 60), st.integers(0, 10**6))
def test_the_share_of_noised_strings_is_exact_for_each_length_up_to_one_string(task, n, seed):
    if task.noise.reading == "R0":
        return
    batch = task.draw(generator(seed), n, "in_distribution")
    for length in task.lengths:
        noised = batch.strata["noised"][rows_of(batch, length)]
        assert abs(noised.sum() - task.noise.share * len(noised)) < 1 - 1e-9


def test_a_tenth_of_the_strings_of_each_length_is_noised_whatever_the_draw():
    task = Copying(lengths=(3, 5), noise=Noise(share=0.1))
    for seed in range(5):
        batch = task.draw(generator(seed), 200, "in_distribution")
        assert [batch.strata["noised"][rows_of(batch, n)].sum() for n in (3, 5)] == [10, 10]


def test_a_fraction_of_a_string_is_noised_as_often_as_the_share_says():
    task = Copying(lengths=(3,), noise=Noise(share=0.3))
    rng = generator()
    noised = np.array([task.draw(rng, 4, "in_distribution").strata["noised"].sum() for _ in range(2000)])
    assert set(noised.tolist()) == {1, 2}
    assert abs(noised.mean() - 1.2) < 4 * (0.2 * 0.8 / 2000) ** 0.5


def test_any_row_is_as_likely_to_be_noised_as_any_other():
    task = Copying(lengths=(1, 2), noise=Noise(share=0.2))
    rng = generator()
    noised = sum(task.draw(rng, 20, "in_distribution").strata["noised"] for _ in range(1000))
    assert (abs(noised - 200) < 4 * (1000 * 0.2 * 0.8) ** 0.5).all()


def test_strings_are_uniform():
    batch = Copying(lengths=(4,), symbols=5, noise=SILENT).draw(generator(), 5000, "in_distribution")
    counts = np.stack([np.bincount(batch.inputs[:, t], minlength=6)[1:6] for t in range(4)])
    assert (abs(counts - 1000) < 4 * (5000 * 0.2 * 0.8) ** 0.5).all()
    pairs = np.bincount(5 * (batch.inputs[:, 0] - 1) + batch.inputs[:, 1] - 1, minlength=25)
    assert (abs(pairs - 200) < 4 * (5000 * 0.04 * 0.96) ** 0.5).all()


@pytest.mark.parametrize("reading", ["R1", "R2"])
@pytest.mark.parametrize("count", ["fixed", "each"])
def test_flips_are_uniform_over_places_and_over_the_other_symbols(reading, count):
    task = Copying(lengths=(4,), symbols=4, noise=Noise(reading=reading, rate=0.5, count=count))
    batch = task.draw(generator(), 4000, "noised")
    flipped = batch.strata["flipped"][batch.scored].reshape(-1, 4)
    assert (abs(flipped.sum(axis=0) - 2000) < 4 * (4000 * 0.5 * 0.5) ** 0.5).all()
    by = (batch.targets - visible(batch))[batch.scored & (batch.strata["flipped"] == 1)] % 4
    counts = np.bincount(by, minlength=4)
    assert counts[0] == 0
    assert (abs(counts[1:] - len(by) / 3) < 4 * (len(by) * 2 / 9) ** 0.5).all()


def test_flips_anywhere_fall_on_input_and_output_alike():
    """Two flips among eight symbols meet at one place with probability 1/7, and then cancel for two symbols."""
    task = Copying(lengths=(4,), symbols=2, noise=Noise(reading="R4", rate=0.5))
    batch = task.draw(generator(), 7000, "noised")
    met = batch.strata["flipped"].sum(axis=1) == 1
    assert abs(met.sum() - 1000) < 4 * (7000 * 6 / 49) ** 0.5
    assert ((visible(batch) != batch.targets) & batch.scored)[met].sum() == 0


@pytest.mark.parametrize("reading", READINGS)
def test_splits_name_what_can_be_drawn(reading):
    noisy = ("clean", "noised") if reading != "R0" else ()
    task = Copying(lengths=(2, 3), noise=Noise(reading=reading))
    assert task.splits() == ("in_distribution", *noisy)
    assert task.with_(unseen_lengths=(4,)).splits() == ("in_distribution", *noisy, "longer")


@pytest.mark.parametrize("reading", NOISY)
def test_splits_choose_how_many_strings_are_noised_and_which_lengths_there_are(reading):
    task = Copying(lengths=(2, 3), unseen_lengths=(5, 6), noise=Noise(reading=reading, share=0.25))
    found = {}
    for split in task.splits():
        strata = task.draw(generator(), 80, split).strata
        found[split] = sorted(set(strata["length"].tolist())), int(strata["noised"].sum())
    assert found == {
        "in_distribution": ([2, 3], 20),
        "clean": ([2, 3], 0),
        "noised": ([2, 3], 80),
        "longer": ([5, 6], 20),
    }


def test_strata_label_length_noise_and_flips_and_a_silent_task_has_lengths_only():
    silent = Copying(lengths=(2, 3), noise=SILENT).draw(generator(), 20, "in_distribution")
    assert list(silent.strata_masks()) == ["all", "length=2", "length=3"]
    noisy = Copying(lengths=(2, 3), noise=Noise(share=0.5)).draw(generator(), 20, "in_distribution")
    masks = noisy.strata_masks()
    assert {name: int(mask.sum()) for name, mask in masks.items()} == {
        "all": 50,
        "length=2": 20,
        "length=3": 30,
        "noised=0": 25,
        "noised=1": 25,
        "flipped=0": 40,
        "flipped=1": 10,
    }
    assert (masks["length=2"].sum(axis=1)[rows_of(noisy, 2)] == 2).all()
    assert not (masks["flipped=1"] & masks["noised=0"]).any()


@pytest.mark.parametrize(("ends", "vocab", "length"), [(False, 12, 14), (True, 14, 16)])
def test_interface_covers_the_longest_sequence_seen_or_unseen(ends, vocab, length):
    task = Copying(lengths=(3, 5), unseen_lengths=(7,), ends=ends)
    found = task.interface()
    assert (found.inputs.vocab, found.outputs.vocab, found.length, found.causal) == (vocab, vocab, length, True)
    batch = task.draw(generator(), 40, "longer")
    assert batch.inputs.shape[1] == length
    assert max(batch.inputs.max(), batch.targets.max()) == vocab - 1


def test_interface_of_the_published_task():
    assert Copying().interface().length == 200
    assert Copying(ends=True).interface().inputs.vocab == 14


def same(one, other):
    names = ("inputs", "targets", "trained", "scored", "lengths", "fed", "sources")
    strata = all(np.array_equal(one.strata[name], other.strata[name]) for name in one.strata)
    return strata and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@settings(deadline=None, max_examples=50)
@given(tasks(), st.integers(1, 40), st.integers(0, 10**6))
def test_equal_generators_draw_equal_batches(task, n, seed):
    for split in task.splits():
        assert same(task.draw(generator(seed), n, split), task.draw(generator(seed), n, split))


def test_different_generators_draw_different_batches():
    task = Copying(lengths=(10,))
    assert not same(task.draw(generator(0), 20, "clean"), task.draw(generator(1), 20, "clean"))
    rng = generator(0)
    assert not same(task.draw(rng, 20, "clean"), task.draw(rng, 20, "clean"))


def test_a_finite_training_set_holds_so_many_strings_of_each_length():
    task = Copying(lengths=(4, 6, 8), strings=50, noise=Noise(share=0.1))
    assert task.training_set() == 150
    pool = task.draw(generator(), 150, "in_distribution")
    assert Counter(pool.strata["length"].tolist()) == {4: 50, 6: 50, 8: 50}
    assert [int(pool.strata["noised"][rows_of(pool, n)].sum()) for n in (4, 6, 8)] == [5, 5, 5]


def test_fresh_data_know_no_training_set_and_a_finite_set_is_another_task():
    assert Copying().training_set() is None
    assert Copying(strings=50).key != Copying().key


@pytest.mark.parametrize(("fields", "message"), [
    ({"lengths": ()}, r"copying\.lengths = \(\): give at least one length, each at least 1"),
    ({"lengths": (3, 0)}, r"copying\.lengths = \(3, 0\): give at least one length, each at least 1"),
    ({"lengths": (3, 3)}, r"copying\.lengths = \(3, 3\), .*: each length may be named once"),
    ({"lengths": (3,), "unseen_lengths": (3,)}, r"each length may be named once, seen or unseen"),
    ({"symbols": 1}, r"copying\.symbols = 1: input should be greater than or equal to 2"),
    ({"strings": 1}, r"copying\.strings = 1: input should be greater than or equal to 2"),
    ({"layout": "padded"}, r"copying\.layout = 'padded': input should be 'mixed' or 'fixed_split'"),
    ({"loss": "input"}, r"copying\.loss = 'input': input should be 'output' or 'everything'"),
    ({"simbols": 3}, r"copying has no field 'simbols' \(given 3\): did you mean 'symbols'"),
])  # fmt: skip
def test_wrong_fields_of_the_task_are_named_with_the_fix(fields, message):
    with pytest.raises(SpecError, match=message):
        Copying(**fields)


@pytest.mark.parametrize(("fields", "message"), [
    ({"reading": "R6"}, r"Noise\.reading = 'R6': input should be 'R0', 'R1'"),
    ({"share": 1.5}, r"Noise\.share = 1\.5: input should be less than or equal to 1"),
    ({"rate": -0.5}, r"Noise\.rate = -0\.5: input should be greater than or equal to 0"),
    ({"count": "some"}, r"Noise\.count = 'some': input should be 'fixed' or 'each'"),
])  # fmt: skip
def test_wrong_fields_of_the_noise_are_named_with_the_fix(fields, message):
    with pytest.raises(SpecError, match=message):
        Noise(**fields)


def test_a_wrong_unseen_length_is_named():
    with pytest.raises(SpecError) as caught:
        Copying(lengths=(3,), unseen_lengths=(0,))
    assert "(0,)" in str(caught.value)


@pytest.mark.parametrize("ask", [lambda task: task.draw(generator(), 3, "longer"), lambda task: task.limits("longer")])
def test_an_unknown_split_is_refused_with_the_splits_there_are(ask):
    message = r"copying has no split 'longer'; it has in_distribution, clean, noised\."
    with pytest.raises(ValueError, match=message):
        ask(Copying(lengths=(2, 3)))


def test_nothing_stands_behind_the_end_of_a_shorter_row():
    batch = Copying(lengths=(2, 3)).draw(generator(), 2, "clean")
    behind = np.arange(batch.inputs.shape[1]) >= batch.lengths[:, None]
    assert (batch.inputs[behind] == PAD).all()
    assert not batch.fed[behind].any()


SMALL = Copying(lengths=(3, 6), unseen_lengths=(7,), symbols=4)
"""The task whose limits are compared with draws."""


def small(reading, count):
    return SMALL.with_(noise=Noise(reading=reading, share=0.3, rate=0.3, count=count))


CASES = [("R0", "fixed"), *product(NOISY, ("fixed", "each"))]


@pytest.mark.parametrize(("reading", "count"), CASES)
def test_copying_what_is_visible_scores_the_limit_without_feedback(reading, count):
    task = small(reading, count)
    for split in task.splits():
        batch, table = task.draw(generator(1), 4000, split), limit_table(task, split)
        right = visible(batch) == batch.targets
        for stratum, mask in batch.strata_masks().items():
            if stratum == "all" or stratum.startswith("length"):
                wanted = table["task_optimal", "free_token_accuracy", stratum].value
                assert_mean(right, mask, wanted, (split, stratum))


@pytest.mark.parametrize("reading", NOISY)
def test_copying_what_is_visible_scores_the_task_optimum_when_symbols_flip_one_by_one(reading):
    task = small(reading, "each")
    for split in task.splits():
        batch, table = task.draw(generator(2), 4000, split), limit_table(task, split)
        right = visible(batch) == batch.targets
        for stratum, mask in batch.strata_masks().items():
            assert_mean(right, mask, table["task_optimal", "token_accuracy", stratum].value, (split, stratum))


@pytest.mark.parametrize(("reading", "count"), CASES)
def test_copying_what_is_visible_gets_whole_strings_right_as_the_limit_says(reading, count):
    task = small(reading, count)
    for split in ("in_distribution", "longer"):
        batch, table = task.draw(generator(3), 4000, split), limit_table(task, split)
        whole = ((visible(batch) == batch.targets) | ~batch.scored).all(axis=1, keepdims=True)
        for metric, length in product(("sequence_accuracy", "free_sequence_accuracy"), ("all", *batch_lengths(batch))):
            rows = np.ones((len(batch), 1)) if length == "all" else (batch.strata["length"] == length)[:, None]
            stratum = length if length == "all" else f"length={length}"
            assert_mean(whole, rows, table["task_optimal", metric, stratum].value, (split, stratum))
        each = [table["task_optimal", "sequence_accuracy", f"length={n}"].value for n in batch_lengths(batch)]
        assert table["task_optimal", "sequence_accuracy", "all"].value == pytest.approx(np.mean(each), abs=1e-12)


def batch_lengths(batch):
    return np.unique(batch.strata["length"]).tolist()


def chance_of_a_mismatch(n, number, share, j, m):
    """Probability that answer ``j`` differs from what is visible, after ``m`` of the ``j`` before did."""
    noised = share * comb(n - j, number - m) / comb(n, number)
    clean = (1 - share) * (m == 0)
    return noised * (number - m) / (n - j) / (noised + clean)


@pytest.mark.parametrize("reading", ["R1", "R2"])
@pytest.mark.parametrize(("split", "share"), [("in_distribution", 0.6), ("noised", 1.0)])
def test_a_predictor_that_counts_the_mismatches_scores_the_task_optimum_of_every_stratum(reading, split, share):
    task = Copying(lengths=(3, 5), symbols=3, noise=Noise(reading=reading, share=0.6, rate=0.4))
    batch, table = task.draw(generator(4), 4000, split), limit_table(task, split)
    shown = visible(batch)
    right, nats = np.zeros(shown.shape), np.zeros(shown.shape)
    for row, n in enumerate(batch.strata["length"].tolist()):
        mismatches = 0
        for j, t in enumerate(np.flatnonzero(batch.scored[row])):
            p = chance_of_a_mismatch(n, round(0.4 * n), share, j, mismatches)
            guess = shown[row, t] if 1 - p >= p / 2 else shown[row, t] % 3 + 1
            right[row, t] = guess == batch.targets[row, t]
            differs = shown[row, t] != batch.targets[row, t]
            nats[row, t] = -log(p / 2 if differs else 1 - p)
            mismatches += differs
    assert (right[batch.scored] != (shown == batch.targets)[batch.scored]).any()
    for stratum, mask in batch.strata_masks().items():
        assert_mean(right, mask, table["task_optimal", "token_accuracy", stratum].value, stratum)
        assert_mean(nats, mask, table["task_optimal", "loss", stratum].value, stratum)


@pytest.mark.parametrize(("reading", "count"), CASES)
def test_limits_cover_exactly_the_strata_that_draws_have(reading, count):
    task = small(reading, count)
    for split in task.splits():
        drawn = set(task.draw(generator(5), 4000, split).strata_masks())
        for kind in ("chance", "shortcut", "task_optimal", "stratum_best"):
            listed = {s for k, metric, s in limit_table(task, split) if (k, metric) == (kind, "token_accuracy")}
            assert listed == drawn, (split, kind)


@pytest.mark.parametrize("noise", [
    Noise(share=0.0),
    Noise(share=1.0),
    Noise(share=1.0, rate=0.0, count="each"),
    Noise(share=1.0, rate=1.0, count="each"),
    Noise(reading="R5", rate=1.0, count="each"),
    Noise(reading="R3", rate=1.0),
    Noise(reading="R4", rate=1.0),
], ids=str)  # fmt: skip
def test_limits_cover_exactly_the_strata_that_draws_of_extreme_noise_have(noise):
    task = Copying(lengths=(2, 4), symbols=3, noise=noise)
    for split in task.splits():
        drawn = set(task.draw(generator(6), 4000, split).strata_masks())
        for kind in ("chance", "shortcut", "task_optimal", "stratum_best"):
            listed = {s for k, metric, s in limit_table(task, split) if (k, metric) == (kind, "token_accuracy")}
            assert listed == drawn, (split, kind)


@pytest.mark.parametrize(("lengths", "noise"), [
    ((1,), Noise()),
    ((1,), Noise(reading="R4")),
    ((4,), Noise(rate=0.9)),
    ((4,), Noise(reading="R4", rate=1.0, count="each")),
], ids=str)  # fmt: skip
def test_limits_name_no_unflipped_symbol_where_rounding_or_shortness_flips_all(lengths, noise):
    task = Copying(lengths=lengths, symbols=3, noise=noise)
    assert (task.draw(generator(), 50, "noised").strata["flipped"].sum(axis=1) == lengths[0]).all()
    assert "flipped=0" not in {limit.stratum for limit in task.limits("noised")}


@pytest.mark.parametrize(("reading", "count"), CASES)
def test_limits_stand_in_the_order_their_meaning_demands(reading, count):
    task = small(reading, count)
    for split in task.splits():
        table = limit_table(task, split)
        assert all(limit.low <= limit.value <= limit.high and limit.split == split for limit in table.values())
        for stratum in {s for _, metric, s in table if metric == "token_accuracy"}:
            value = {
                kind: table[kind, "token_accuracy", stratum] for kind in ("chance", "task_optimal", "stratum_best")
            }
            shortcut = table["shortcut", "token_accuracy", stratum]
            assert value["stratum_best"].value >= value["task_optimal"].value - 1e-12
            assert value["stratum_best"].value >= max(value["chance"].value, shortcut.low) - 1e-12
        assert table["task_optimal", "token_accuracy", "all"] == table["stratum_best", "token_accuracy", "all"].with_(
            kind="task_optimal"
        )


def test_limits_are_exact_but_for_the_shortcuts_and_the_same_every_time():
    task = small("R1", "fixed")
    assert task.limits("noised") == task.limits("noised")
    sources = {(limit.kind, limit.source) for limit in task.limits("noised")}
    assert sources == {
        ("chance", "exact"),
        ("shortcut", "estimated"),
        ("task_optimal", "exact"),
        ("stratum_best", "exact"),
    }


def test_shortcuts_are_scored_on_strings_they_were_not_fitted_on():
    """Answers that differ from what is visible by lot: a linear read-out of so many symbols can only learn by heart."""
    task = Copying(lengths=(1,), symbols=200, noise=Noise(reading="R2", rate=1.0, count="each"))
    table = limit_table(task, "noised")
    assert table["stratum_best", "token_accuracy", "all"].value == pytest.approx(1 / 199)
    assert table["shortcut", "token_accuracy", "all"].low <= 1 / 199


def test_chance_is_a_uniform_guess_among_the_symbols():
    table = limit_table(SMALL, "in_distribution")
    assert table["chance", "token_accuracy", "all"].value == pytest.approx(1 / 4)
    assert table["chance", "loss", "flipped=1"].value == pytest.approx(log(4))
    assert table["chance", "sequence_accuracy", "length=3"].value == pytest.approx(1 / 64)
    assert table["chance", "free_sequence_accuracy", "all"].value == pytest.approx((4**-3 + 4**-6) / 2)


def test_the_published_ceilings_of_flipped_inputs():
    """In a flipped stratum the copier scores 0, a guesser 0.1 and the stratum's own best 1/9; unflipped it scores 1."""
    task = Copying(lengths=(5,), noise=Noise(rate=0.1, count="each"))
    table = limit_table(task, "in_distribution")
    found = {
        (kind, stratum): table[kind, "token_accuracy", stratum].value
        for kind, stratum in product(("chance", "task_optimal", "stratum_best"), ("all", "flipped=0", "flipped=1"))
    }
    assert found == pytest.approx({
        ("chance", "all"): 0.1, ("chance", "flipped=0"): 0.1, ("chance", "flipped=1"): 0.1,
        ("task_optimal", "all"): 0.99, ("task_optimal", "flipped=0"): 1, ("task_optimal", "flipped=1"): 0,
        ("stratum_best", "all"): 0.99, ("stratum_best", "flipped=0"): 1, ("stratum_best", "flipped=1"): 1 / 9,
    })  # fmt: skip
    assert limit_table(task, "clean")["task_optimal", "token_accuracy", "all"].value == 1


def test_symbols_not_yet_answered_are_counted_without_their_order():
    task = Copying(lengths=(3,), symbols=3, noise=SILENT)
    inputs = np.array([[2, 1, 2, 4, 2, 1], [3, 3, 1, 4, 3, 3]])
    blank = np.zeros_like(inputs)
    batch = Batch(inputs=inputs, targets=blank, trained=blank > 0, scored=blank > 0, lengths=np.array([6, 6]))
    assert task._left_over(batch, batch)[:, 3:].tolist() == [[2, 1, 2], [3, 1, 1]]


def test_the_shortcut_of_clean_copying_is_what_counting_scores_over_all_strings():
    right = 0
    for string in product(range(4), repeat=4):
        left = Counter(string)
        for symbol in string:
            right += symbol == max(range(4), key=lambda s: (left[s], -s))
            left[symbol] -= 1
    task = Copying(lengths=(4,), symbols=4, noise=SILENT)
    shortcut = limit_table(task, "in_distribution")["shortcut", "token_accuracy", "all"]
    assert shortcut.by == "symbols not yet answered"
    assert shortcut.value == pytest.approx(right / 4**5, abs=4 * (0.25 / 16_000) ** 0.5)


@pytest.mark.parametrize("count", ["each", "fixed"])
def test_the_visible_symbol_wins_an_exact_tie(count):
    task = Copying(lengths=(10,), noise=Noise(rate=0.9, count=count))
    optimum = {
        limit.stratum: limit.value
        for limit in task.limits("noised")
        if (limit.metric, limit.kind) == ("token_accuracy", "task_optimal")
    }
    assert optimum["flipped=0"] == 1.0


def test_an_empty_draw_is_refused():
    with pytest.raises(ValueError, match="asked to draw 0 examples: ask for one or more"):
        Copying().draw(np.random.default_rng(0), 0, "clean")
