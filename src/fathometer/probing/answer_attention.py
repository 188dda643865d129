"""Answer attention: how much each head attends, where an answer is asked, to the position that holds it.

On the copy task this is the copy-head score: the mean of A[n + j - 1, j - 1] over the answers j.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from fathometer.core.streams import stream
from fathometer.core.trial import Finding, Probe, Subject
from fathometer.evaluation.answers import chunks, evaluating, precision
from fathometer.evaluation.numerics import tensor
from fathometer.models.transformer import Attention


class AnswerAttention(Probe):
    """Mean attention of every head to the source of the answer, in all and by stratum, on ``examples`` examples."""

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
            for name, mask in piece.strata_masks().items():
                example, position = np.nonzero(mask & (piece.sources >= 0))
                source = piece.sources[example, position]
                onto = torch.stack([map_BHTT[example, :, position, source].sum(dim=0) for map_BHTT in maps])
                totals[name] = totals.get(name, 0) + onto.double().cpu().numpy()
                counts[name] = counts.get(name, 0) + len(example)
        mean = {name: (total / counts[name]).tolist() for name, total in totals.items() if counts[name]}
        best = float(np.max(mean["all"]))
        row = {"split": task.splits()[0], "stratum": "all", "metric": "answer_attention", "value": best}
        outcome = {"scores": [row | {"n": counts["all"]}], "attention": mean.pop("all"), "attention_by_stratum": mean}
        return Finding(outcome)


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
