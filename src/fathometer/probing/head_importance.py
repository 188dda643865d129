"""Head importance: what a small change of a head's gate does to the loss of each example.

Michel, Levy & Neubig 2019, with the absolute value taken example by example: means cancel and tend to zero at an
optimum. Heads of different layers share one scale here, so they can be compared.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from fathometer.core.interface import Batch
from fathometer.core.streams import stream
from fathometer.core.trial import Finding, Probe, Subject
from fathometer.evaluation.answers import chunks, outputs, precision, without_dropout
from fathometer.evaluation.numerics import tensor
from fathometer.models.transformer import Heads

THRESHOLDS = (0.01, 0.05, 0.1)


class HeadImportance(Probe):
    """Mean absolute derivative of an example's loss by each head's gate, and the share of heads below a threshold.

    ``redundancy(t)`` is the share of heads whose importance is below ``t`` times the largest.
    """

    examples: int = Field(default=256, ge=1)

    def measure(self, subject: Subject) -> Finding:
        task = subject.trial.task
        split = task.splits()[0]
        batch = task.draw(stream("probe", subject.trial.seed, task.key), self.examples, split)
        pieces = [(rows, gate_gradients(subject, piece)) for rows, piece in chunks(batch)]
        order = torch.from_numpy(np.argsort(np.concatenate([rows for rows, _ in pieces])))
        gradients = torch.cat([piece for _, piece in pieces])[order]
        importance = gradients.abs().mean(dim=0)
        by_stratum = {
            f"{name}={value}": gradients[torch.from_numpy(labels == value)].abs().mean(dim=0).tolist()
            for name, labels in batch.strata.items()
            if labels.ndim == 1
            for value in sorted(set(labels.tolist()))
        }
        outcome: dict[str, Any] = {
            "scores": [
                {
                    "split": split,
                    "stratum": "all",
                    "metric": f"redundancy({threshold})",
                    "value": float((importance < threshold * importance.max()).double().mean()),
                    "n": importance.numel(),
                }
                for threshold in THRESHOLDS
            ],
            "importance": importance.tolist(),
            "importance_by_stratum": by_stratum,
        }
        return Finding(outcome)


@contextmanager
def gates(network: nn.Module) -> Iterator[list[Tensor]]:
    """While it lasts every head's output is multiplied by a gate of 1: one tensor ``(B, H)`` a layer, in order."""
    placed: list[Tensor] = []

    def hook(module: nn.Module, given: tuple[Tensor], z_BSHK: Tensor) -> Tensor:
        gate_BH = torch.ones_like(z_BSHK[:, 0, :, 0], requires_grad=True)
        placed.append(gate_BH)
        return z_BSHK * gate_BH[:, None, :, None]

    handles = [module.register_forward_hook(hook) for module in network.modules() if isinstance(module, Heads)]
    if not handles:
        raise ValueError("This network shows no attention heads, so there is no head to gate.")
    try:
        yield placed
    finally:
        for handle in handles:
            handle.remove()


def gate_gradients(subject: Subject, batch: Batch) -> Tensor:
    """The derivative of each example's mean loss by each gate: ``(B, L, H)``, from one backward pass."""
    network, device = subject.network, subject.device
    dtype = precision(network)
    first = int(batch.scored.any(axis=0).argmax())
    with without_dropout(network), gates(network) as gates_LBH:
        found_BSV = outputs(network, subject.trial.model, tensor(batch.inputs, device, dtype), first)
    scored_BS = tensor(batch.scored[:, first:], device)
    wanted = tensor(batch.targets[:, first:], device, dtype)
    if wanted.is_floating_point():
        loss_BS = (found_BSV - wanted).square().mean(dim=2)
    else:
        loss_BS = F.cross_entropy(found_BSV.transpose(1, 2), wanted, reduction="none")
    by_example = (loss_BS * scored_BS).sum(dim=1) / scored_BS.sum(dim=1).clamp(min=1)
    gradients = torch.autograd.grad(by_example.sum(), gates_LBH)
    return torch.stack(gradients, dim=1).double().cpu()
