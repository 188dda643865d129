"""Head removal: what is left of the score as heads are taken out one after another.

A small derivative does not make a head idle: two heads that do the same work each look idle while the other stands.
Only taking them out together shows how many a network could spare.
"""

from collections.abc import Sequence

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from fathometer.core.interface import Batch
from fathometer.core.metrics import metric
from fathometer.core.streams import stream
from fathometer.core.trial import Finding, Probe, Subject
from fathometer.evaluation.answers import answer
from fathometer.probing.head_importance import example_gradients, gated

Head = tuple[int, int]
"""Layer and head."""


class HeadRemoval(Probe):
    """Accuracy after taking out 0, 1, 2, ... heads, least important first, and the share that can go.

    A removed head puts out zero. Heads are ranked once, by `head_importance` on other examples than are scored; the
    controls take them out most important first and in ``draws`` random orders. ``removable`` is the largest share that
    can go, least important first, with accuracy never more than ``within`` below the whole network's, in all and by
    stratum. The curve has at most ``points`` points beside the whole network.
    """

    examples: int = Field(default=500, ge=1)
    within: float = Field(default=0.01, gt=0)
    points: int = Field(default=16, ge=1)
    draws: int = Field(default=10, ge=0)

    def measure(self, subject: Subject) -> Finding:
        task, seed = subject.trial.task, subject.trial.seed
        if not metric(task.metric).counted:
            raise ValueError(f"{task.name} counts no right answers, and removable heads are told by their loss.")
        split = task.splits()[0]
        ranked = _by_importance(subject, task.draw(stream("probe", seed, task.key, "rank"), self.examples, split))
        batch = task.draw(stream("probe", seed, task.key, "remove"), self.examples, split)
        masks, removed = batch.strata_masks(), _counts(len(ranked), self.points)
        curve = [_accuracy(subject, batch, ranked[:count]) for count in removed]
        rng = stream("probe", seed, task.key, "order")
        orders = {
            "most important first": [ranked[::-1]],
            "in random order": [_shuffled(rng, ranked) for _ in range(self.draws)],
        }
        beside = {
            name: [
                [_share(_accuracy(subject, batch, order[:count]), masks["all"]) for count in removed] for order in drawn
            ]
            for name, drawn in orders.items()
        }
        by_stratum = {stratum: [_share(right, mask) for right in curve] for stratum, mask in masks.items()}
        rows = [
            {
                "split": split,
                "stratum": stratum,
                "metric": "removable",
                "value": self._removable(removed, kept),
                "n": len(ranked),
            }
            for stratum, kept in by_stratum.items()
        ]
        accuracy = {"least important first": [by_stratum["all"]], **beside}
        return Finding({"scores": rows, "removed": removed, "accuracy": accuracy, "accuracy_by_stratum": by_stratum})

    def _removable(self, removed: Sequence[int], accuracy: Sequence[float]) -> float:
        fine = [value >= accuracy[0] - self.within for value in accuracy]
        kept = fine.index(False) if False in fine else len(fine)
        return removed[kept - 1] / removed[-1]


def _by_importance(subject: Subject, batch: Batch) -> list[Head]:
    """All heads, the least important first."""
    importance = example_gradients(subject, batch).abs().mean(dim=0)
    order = importance.flatten().argsort(stable=True).tolist()
    return [divmod(index, importance.shape[1]) for index in order]


def _counts(heads: int, points: int) -> list[int]:
    return sorted({round(count) for count in np.linspace(0, heads, min(heads, points) + 1)})


def _shuffled(rng: np.random.Generator, heads: Sequence[Head]) -> list[Head]:
    return [heads[index] for index in rng.permutation(len(heads))]


def _accuracy(subject: Subject, batch: Batch, without: Sequence[Head]) -> np.ndarray:
    """Which positions are still answered right without these heads."""
    with removed_heads(subject.network, without):
        found = answer(subject.network, subject.trial.model, batch, subject.device)
    return found.predicted == batch.targets


def removed_heads(network: nn.Module, without: Sequence[Head]):
    """While it lasts these heads put out zero."""

    def gate(layer: int, z_BSHK: Tensor) -> Tensor:
        keep_H = torch.ones_like(z_BSHK[:1, 0, :, 0])
        keep_H[:, [head for of, head in without if of == layer]] = 0.0
        return keep_H

    return gated(network, gate)


def _share(right: np.ndarray, mask: np.ndarray) -> float:
    return float(right[mask].mean())
