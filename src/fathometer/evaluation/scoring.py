"""Scoring: answers counted by stratum, into the rows that a record keeps."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fathometer.core.interface import Array, Batch
from fathometer.core.model import Model
from fathometer.evaluation.answers import answer, answer_freely

FREE_EXAMPLES = 256
"""How many examples are run freely at most: a network that is wrong everywhere needs as many rounds as positions."""


def scores(network: nn.Module, model: Model, batch: Batch, split: str, device: str) -> list[dict[str, Any]]:
    """All scores of a network on a batch, by stratum.

    Classes: ``token_accuracy`` and ``loss`` (nats) over scored positions, ``sequence_accuracy`` over examples, and
    where a network can run free the same two accuracies so. Vectors: ``nmse``, the squared error over the targets'.
    """
    found = answer(network, model, batch, device)
    masks = batch.strata_masks()
    if not np.issubdtype(batch.targets.dtype, np.integer):
        energy = np.square(batch.targets).mean(axis=2)
        return [
            _row(split, stratum, "nmse", found.loss[mask].sum() / energy[mask].sum(), int(mask.sum()))
            for stratum, mask in masks.items()
            if energy[mask].sum() > 0  # an error relative to nothing has no value
        ]
    right = found.predicted == batch.targets
    rows: list[dict[str, Any]] = []
    for stratum, mask in masks.items():
        rows.append(_row(split, stratum, "token_accuracy", right[mask].mean(), int(mask.sum())))
        rows.append(_row(split, stratum, "loss", found.loss[mask].mean(), int(mask.sum())))
    rows += _sequence_rows(split, "sequence_accuracy", right, batch)
    if batch.fed is not None and batch.fed.any():
        some = batch.take(np.arange(min(len(batch), FREE_EXAMPLES)))
        free = answer_freely(network, model, some, device) == some.targets
        for stratum, mask in some.strata_masks().items():
            rows.append(_row(split, stratum, "free_token_accuracy", free[mask].mean(), int(mask.sum())))
        rows += _sequence_rows(split, "free_sequence_accuracy", free, some)
    return rows


def main_score(network: nn.Module, model: Model, batch: Batch, metric: str, device: str) -> tuple[float, float]:
    """The deciding score and the loss over all scored positions: what a validation looks at."""
    found = answer(network, model, batch, device)
    loss = float(found.loss[batch.scored].mean())
    if metric == "token_accuracy":
        return float((found.predicted == batch.targets)[batch.scored].mean()), loss
    if metric == "nmse":
        return float(found.loss[batch.scored].sum() / np.square(batch.targets).mean(axis=2)[batch.scored].sum()), loss
    raise ValueError(f"No validation knows the metric {metric!r}; there are token_accuracy and nmse.")


def _sequence_rows(split: str, metric: str, right: NDArray[np.bool_], batch: Batch) -> list[dict[str, Any]]:
    whole = np.all(right | ~batch.scored, axis=1)
    groups: dict[str, Array] = {"all": np.ones(len(batch), dtype=bool)}
    for name, labels in batch.strata.items():
        if labels.ndim == 1:
            groups |= {f"{name}={value}": labels == value for value in np.unique(labels)}
    return [_row(split, stratum, metric, whole[rows].mean(), int(rows.sum())) for stratum, rows in groups.items()]


def _row(split: str, stratum: str, metric: str, value: float, n: int) -> dict[str, Any]:
    return {"split": split, "stratum": stratum, "metric": metric, "value": float(value), "n": n}
