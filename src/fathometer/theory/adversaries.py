"""Shallow adversaries: cheap predictors that a task's score must be compared with before anything is called ability.

Each is fitted on one draw and scored on another. They read the inputs up to the position asked, never the targets.
"""

from collections.abc import Callable, Mapping

import numpy as np

from fathometer.core.interface import Array, Batch

Adversary = Callable[[Batch, Batch], Array]
"""Fits on the first batch and predicts a class at every position of the second: ``(n, time)``."""


def majority(fit: Batch, test: Batch) -> Array:
    """The commonest answer of all."""
    return np.full(test.targets.shape, np.bincount(fit.targets[fit.scored]).argmax())


def position_only(fit: Batch, test: Batch) -> Array:
    """The commonest answer at this position of examples of this length."""
    return _by_cell(fit, test, _length_and_position)


def last_value(fit: Batch, test: Batch) -> Array:
    """The commonest answer after the input now seen."""
    return _by_cell(fit, test, lambda batch: batch.inputs)


def majority_so_far(fit: Batch, test: Batch) -> Array:
    """The input seen most often so far, among those that can be answers."""
    counts = _prefix_counts(test, max(_classes(fit), _classes(test)))
    answers = np.unique(fit.targets[fit.scored])
    return answers[counts[:, :, answers].argmax(axis=2)]


def bag_of_symbols(fit: Batch, test: Batch) -> Array:
    """A linear read-out of how often each symbol has been seen so far and which is seen now."""
    classes = max(_classes(fit), _classes(test))
    rows = _bag_features(fit, classes)[fit.scored]
    answers = np.eye(classes)[fit.targets[fit.scored]]
    gram = rows.T @ rows + 1e-3 * len(rows) * np.eye(rows.shape[1]) / rows.shape[1]
    return (_bag_features(test, classes) @ np.linalg.solve(gram, rows.T @ answers)).argmax(axis=2)


SHALLOW: Mapping[str, Adversary] = {
    "majority": majority,
    "position only": position_only,
    "last value": last_value,
    "majority so far": majority_so_far,
    "bag of symbols": bag_of_symbols,
}
"""The adversaries that run on every token task."""


def best_shortcuts(
    fit: Batch, test: Batch, extra: Mapping[str, Adversary] | None = None
) -> dict[str, tuple[str, int, int]]:
    """By stratum of ``test``: the best adversary's name, how many answers it got right, and of how many."""
    masks = test.strata_masks()
    best: dict[str, tuple[str, int, int]] = {}
    for name, adversary in {**SHALLOW, **(extra or {})}.items():
        right = adversary(fit, test) == test.targets
        for stratum, mask in masks.items():
            score = (name, int(right[mask].sum()), int(mask.sum()))
            if stratum not in best or score[1] > best[stratum][1]:
                best[stratum] = score
    return best


def _by_cell(fit: Batch, test: Batch, cell: Callable[[Batch], Array]) -> Array:
    fit_cells, test_cells = cell(fit), cell(test)
    counts = np.zeros((int(max(fit_cells.max(), test_cells.max())) + 1, max(_classes(fit), _classes(test))))
    np.add.at(counts, (fit_cells[fit.scored], fit.targets[fit.scored]), 1)
    counts[counts.sum(axis=1) == 0] = np.bincount(fit.targets[fit.scored], minlength=counts.shape[1])
    return counts.argmax(axis=1)[test_cells]


def _length_and_position(batch: Batch) -> Array:
    time = batch.inputs.shape[1]
    return batch.lengths[:, None] * 4096 + np.arange(time)[None, :]


def _classes(batch: Batch) -> int:
    return int(max(batch.inputs.max(), batch.targets.max())) + 1


def _prefix_counts(batch: Batch, classes: int) -> Array:
    return np.cumsum(np.eye(classes)[batch.inputs], axis=1)


def _bag_features(batch: Batch, classes: int) -> Array:
    counts = _prefix_counts(batch, classes)
    now = np.eye(classes)[batch.inputs]
    return np.concatenate([counts / counts.sum(axis=2, keepdims=True), now, np.ones_like(now[:, :, :1])], axis=2)
