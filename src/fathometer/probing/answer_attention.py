"""Answer attention: how much each head attends, where an answer is asked, to the position that holds it.

On the copy task this is the copy-head score: the mean of A[n + j - 1, j - 1] over the answers j.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from fathometer.core.interface import Batch
from fathometer.core.streams import stream
from fathometer.core.trial import Finding, Probe, Subject
from fathometer.evaluation.answers import chunks, evaluating, precision
from fathometer.evaluation.numerics import tensor
from fathometer.models.transformer import Attention

BESIDE = {"one before": -1, "one after": 1}
"""The controls: places right beside the source."""


class AnswerAttention(Probe):
    """Mean attention of every head to the source of the answer, in all and by stratum, on ``examples`` examples.

    The controls look at the positions right before and right after the source: a head that counts places roughly
    attends there as well.
    """

    version = 2

    examples: int = Field(default=128, ge=1)

    def measure(self, subject: Subject) -> Finding:
        task = subject.trial.task
        batch = task.draw(stream("probe", subject.trial.seed, task.key), self.examples, task.splits()[0])
        if batch.sources is None:
            raise ValueError(f"{task!r} does not say where its answers stand, so attention to them has no meaning.")
        totals: dict[str, np.ndarray] = {}
        counts: dict[str, int] = {}
        for _, piece in chunks(batch):
            assert piece.sources is not None
            maps = attention_maps(subject.network, tensor(piece.inputs, subject.device, precision(subject.network)))
            for name, mask, offset in _looks(piece):
                example, position = np.nonzero(mask & (piece.sources >= 0) & (piece.sources + offset >= 0))
                source = piece.sources[example, position] + offset
                onto = torch.stack([map_BHTT[example, :, position, source].sum(dim=0) for map_BHTT in maps])
                totals[name] = totals.get(name, 0) + onto.double().cpu().numpy()
                counts[name] = counts.get(name, 0) + len(example)
        mean = {name: (total / counts[name]).tolist() for name, total in totals.items() if counts[name]}
        split = task.splits()[0]
        rows = [
            {
                "split": split,
                "stratum": name,
                "metric": "answer_attention",
                "value": float(np.max(heads)),
                "n": counts[name],
            }
            for name, heads in mean.items()
            if name not in BESIDE
        ]
        beside = {name: mean.pop(name) for name in BESIDE if name in mean}
        whole = {"attention": mean.pop("all"), "attention_beside": beside, "attention_by_stratum": mean}
        return Finding({"scores": rows, **whole})


def _looks(batch: Batch) -> Iterator[tuple[str, np.ndarray, int]]:
    """What is averaged: a name, the positions that ask, and how far from the source they are to look."""
    for name, mask in batch.strata_masks().items():
        yield name, mask, 0
    for name, offset in BESIDE.items():
        yield name, batch.scored, offset


def attention_maps(network: nn.Module, inputs: Tensor) -> list[Tensor]:
    """The attention map of every layer, ``(B, H, T, T)``, first layer first; the network runs as it always does."""
    seen: list[Tensor] = []
    with evaluating(network), _watching(network, seen):
        network(inputs)
    if not seen:
        raise ValueError("This network has no attention heads, so there is no attention to look at.")
    return seen


@contextmanager
def _watching(network: nn.Module, seen: list[Tensor]) -> Iterator[None]:
    def hook(module: nn.Module, given: tuple[Tensor, Tensor | None, int]) -> None:
        assert isinstance(module, Attention)
        seen.append(module.weights(given[0], given[1]))

    layers = [module for module in network.modules() if isinstance(module, Attention)]
    handles = [layer.register_forward_pre_hook(hook) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
