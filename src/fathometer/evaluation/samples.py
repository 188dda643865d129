"""Samples: the examples a trial trains, validates and is tested on, each from its own named stream."""

from functools import cached_property

import numpy as np

from fathometer.core.interface import Batch
from fathometer.core.streams import stream
from fathometer.core.trial import Trial

LOOKAHEAD = 8
"""Steps drawn at once and sorted by length, so that batches need little padding and each draw covers all lengths."""

VALIDATION_SHARE = 0.1
"""How much of a finite training set is kept for validation."""


class Samples:
    """All data of one trial. Any step can be asked for in any order: nothing depends on what was drawn before."""

    def __init__(self, trial: Trial) -> None:
        self.task, self.recipe, self.seed = trial.task, trial.recipe, trial.seed
        self.split = self.task.splits()[0]
        self._drawn: tuple[int, list[Batch]] | None = None

    def batch(self, step: int) -> Batch:
        """The training batch of this step."""
        turn, place = divmod(step, LOOKAHEAD)
        if self._drawn is None or self._drawn[0] != turn:
            self._drawn = turn, self._draw_turn(turn)
        return self._drawn[1][place]

    def validation(self) -> Batch:
        """The validation examples: of the finite training set where there is one, else fresh."""
        n = self.recipe.evaluation.validate_on
        if self._finite is None:
            return self.task.draw(stream("validate", self.seed, self.task.key), n, self.split)
        _, kept = self._finite
        return kept.take(np.arange(min(n, len(kept))))

    def test(self, split: str, n: int | None = None) -> Batch:
        """The test examples of a split, as many as the recipe says; what a finite training set holds is left out."""
        n = n or self.recipe.evaluation.test_on
        drawn = self.task.draw(stream("test", self.seed, self.task.key, split), n, split)
        if self._finite is None:
            return drawn
        known = {_content(pool, row) for pool in self._finite for row in range(len(pool))}
        fresh = [row for row in range(len(drawn)) if _content(drawn, row) not in known]
        if not fresh:
            raise ValueError(
                f"All {len(drawn)} test examples also stand in the training set: "
                f"take a smaller training set, or longer sequences."
            )
        return drawn.take(np.array(fresh))

    def _draw_turn(self, turn: int) -> list[Batch]:
        rng = stream("train", self.seed, self.task.key, turn)
        n = self.recipe.batch * LOOKAHEAD
        if self._finite is None:
            drawn = self.task.draw(rng, n, self.split)
        else:
            drawn = self._finite[0].take(self._finite_rows(turn * n, n))
        order = np.argsort(drawn.lengths, kind="stable") if self.recipe.grouped else np.arange(n)
        batches = np.split(order, LOOKAHEAD)
        return [drawn.take(batches[i]) for i in rng.permutation(LOOKAHEAD)]

    def _finite_rows(self, start: int, n: int) -> np.ndarray:
        """Rows ``start .. start + n`` of epoch after epoch, each epoch a fresh permutation."""
        assert self._finite is not None
        size = len(self._finite[0])
        rows: list[np.ndarray] = []
        for epoch in range(start // size, (start + n - 1) // size + 1):
            order = stream("train", self.seed, self.task.key, "epoch", epoch).permutation(size)
            low, high = max(start - epoch * size, 0), min(start + n - epoch * size, size)
            rows.append(order[low:high])
        return np.concatenate(rows)

    @cached_property
    def _finite(self) -> tuple[Batch, Batch] | None:
        """The finite training set and its validation part; None when data are fresh."""
        size = self.task.training_set()
        if size is None:
            return None
        rng = stream("instance", self.seed, self.task.key)
        pool = self.task.draw(rng, size, self.split)
        contents = [_content(pool, row) for row in range(size)]
        order = rng.permutation(size)
        kept = {contents[row] for row in order[: max(1, round(VALIDATION_SHARE * size))]}
        validation = np.array([row for row in order if contents[row] in kept])
        training = np.array([row for row in range(size) if contents[row] not in kept], dtype=int)
        if not len(training):
            raise ValueError(f"The {size} examples of the training set repeat each other: take longer sequences.")
        return pool.take(training), pool.take(validation)


def _content(batch: Batch, row: int) -> bytes:
    """What makes two examples the same question: the input without what is fed back."""
    asked = batch.inputs[row, : batch.lengths[row]]
    if batch.fed is not None:
        asked = asked[~batch.fed[row, : batch.lengths[row]]]
    return asked.tobytes()
