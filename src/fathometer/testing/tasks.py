"""What every task promises, checked on draws."""

from dataclasses import fields
from typing import Any

import numpy as np

from fathometer.core.interface import Batch, Tokens, Vectors
from fathometer.core.spec import decode, encode
from fathometer.core.streams import stream
from fathometer.core.task import Task

SHARES = ("token_accuracy", "sequence_accuracy", "free_token_accuracy", "free_sequence_accuracy")


def check_task(task: Task, n: int = 64) -> None:
    """Raises AssertionError with the promise that ``task`` breaks.

    Checked: JSON round trip and key; draws that depend on their generator alone; shapes, ranges and masks; alignment
    of fed inputs with targets; limits for every stratum that is drawn, each inside its interval.
    """
    again = decode("task", encode(task))
    assert again == task and again.key == task.key, f"{task!r} does not survive its JSON form"
    assert len(set(task.splits())) == len(task.splits()) >= 1, "splits() must name one or more, each once"
    for split in task.splits():
        batch = task.draw(stream("test", 0, "check"), n, split)
        _check_determinism(task, batch, n, split)
        _check_shapes(task, batch, n)
        _check_masks(batch)
        _check_limits(task, batch, split)


def _check_determinism(task: Task, batch: Batch, n: int, split: str) -> None:
    np.random.seed(1)  # noqa: NPY002 (a draw must not care)
    again = task.draw(stream("test", 0, "check"), n, split)
    other = task.draw(stream("test", 1, "check"), n, split)
    assert _equal(batch, again), f"two draws of {split!r} from equal generators differ"
    assert not _equal(batch, other), f"draws of {split!r} do not depend on the generator"


def _equal(one: Batch, two: Batch) -> bool:
    def same(a: Any, b: Any) -> bool:
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
        return a is b if a is None or b is None else np.array_equal(a, b)

    return all(same(getattr(one, field.name), getattr(two, field.name)) for field in fields(Batch))


def _check_shapes(task: Task, batch: Batch, n: int) -> None:
    interface = task.interface()
    assert len(batch) == n, f"asked for {n} examples, drew {len(batch)}"
    time = batch.inputs.shape[1]
    assert time <= interface.length, f"a draw of {time} positions is longer than the interface's {interface.length}"
    for name, side in (("inputs", interface.inputs), ("targets", interface.outputs)):
        array = getattr(batch, name)
        if isinstance(side, Tokens):
            assert array.shape == (n, time) and np.issubdtype(array.dtype, np.integer), f"{name} are no tokens"
            assert array.min() >= 0 and array.max() < side.vocab, f"{name} leave the vocabulary of {side.vocab}"
        elif isinstance(side, Vectors):
            assert array.shape == (n, time, side.dim), f"{name} have shape {array.shape}, not ({n}, {time}, {side.dim})"
            assert np.isfinite(array).all(), f"{name} are not finite"
    assert batch.lengths.shape == (n,) and batch.lengths.max() == time, "lengths must reach the batch's last position"


def _check_masks(batch: Batch) -> None:
    inside = np.arange(batch.inputs.shape[1]) < batch.lengths[:, None]
    for name in ("trained", "scored", "fed"):
        mask = getattr(batch, name)
        if mask is not None:
            assert mask.shape == inside.shape and mask.dtype == bool, f"{name} must be booleans of shape (n, time)"
            assert not (mask & ~inside).any(), f"{name} marks padding"
    assert batch.scored.any(axis=1).all(), "an example has no scored position"
    assert batch.trained.any(), "nothing is trained on"
    if batch.fed is not None:
        assert not batch.fed[:, 0].any(), "the first input cannot be fed back"
        rows, times = np.nonzero(batch.fed)
        fed, answers = batch.inputs[rows, times], batch.targets[rows, times - 1]
        assert np.array_equal(fed, answers), "a fed input differs from the target before it"
    for name, labels in batch.strata.items():
        assert labels.shape in (batch.lengths.shape, inside.shape), f"stratum {name} has shape {labels.shape}"


def _check_limits(task: Task, batch: Batch, split: str) -> None:
    limits = task.limits(split)
    for limit in limits:
        assert limit.split == split, f"a limit of {split!r} says it is of {limit.split!r}"
        assert limit.low <= limit.value <= limit.high, f"{limit} lies outside its own interval"
        if limit.metric in SHARES:
            assert limit.low >= 0 and limit.high <= 1, f"{limit} is no share"
    keys = [(limit.stratum, limit.metric, limit.kind) for limit in limits]
    assert len(set(keys)) == len(keys), "a limit is given twice"
    for kind in ("chance", "task_optimal"):
        covered = {limit.stratum for limit in limits if limit.metric == task.metric and limit.kind == kind}
        missing = set(batch.strata_masks()) - covered
        assert not missing, f"no {kind} limit of {task.metric} for {', '.join(sorted(missing))} in {split!r}"
