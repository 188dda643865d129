"""Head importance: what a small change of a head's gate does to the loss of each example.

Michel, Levy & Neubig 2019, with the absolute value taken example by example: means cancel and tend to zero at an
optimum. Heads of different layers share one scale here, so they can be compared.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

    ``redundancy(t)`` is the share of heads whose importance is below ``t`` times the largest, in all and by stratum.
    """

    version = 2

    examples: int = Field(default=256, ge=1)

    def measure(self, subject: Subject) -> Finding:
        task = subject.trial.task
        split = task.splits()[0]
        batch = task.draw(stream("probe", subject.trial.seed, task.key), self.examples, split)
        gradients = example_gradients(subject, batch).abs()
        means = {"all": gradients.mean(dim=0)} | {
            f"{name}={value}": gradients[torch.from_numpy(labels == value)].mean(dim=0)
            for name, labels in batch.strata.items()
            if labels.ndim == 1
            for value in np.unique(labels)
        }
        rows = [
            {
                "split": split,
                "stratum": stratum,
                "metric": f"redundancy({threshold})",
                "value": float((importance < threshold * importance.max()).double().mean()),
                "n": importance.numel(),
            }
            for stratum, importance in means.items()
            for threshold in THRESHOLDS
        ]
        by_stratum = {stratum: importance.tolist() for stratum, importance in means.items()}
        return Finding({"scores": rows, "importance": by_stratum.pop("all"), "importance_by_stratum": by_stratum})


@contextmanager
def gated(network: nn.Module, gate: Callable[[int, Tensor], Tensor]) -> Iterator[None]:
    """While it lasts the output of layer ``l``'s heads is multiplied by ``gate(l, output)``, of shape ``(B or 1, H)``.

    Layers are counted from 0, in the order of the network's parts.
    """
    places = [module for module in network.modules() if isinstance(module, Heads)]
    if not places:
        raise ValueError("This network shows no attention heads, so there is no head to gate.")

    def multiply(layer: int) -> Callable[..., Tensor]:
        return lambda _, given, z_BSHK: z_BSHK * gate(layer, z_BSHK)[:, None, :, None]

    handles = [place.register_forward_hook(multiply(layer)) for layer, place in enumerate(places)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def example_gradients(subject: Subject, batch: Batch) -> Tensor:
    """The derivative of each example's mean loss by the gate of each head: ``(example, layer, head)``."""
    pieces = [(rows, gate_gradients(subject, piece)) for rows, piece in chunks(batch)]
    order = torch.from_numpy(np.argsort(np.concatenate([rows for rows, _ in pieces])))
    return torch.cat([piece for _, piece in pieces])[order]


def gate_gradients(subject: Subject, batch: Batch) -> Tensor:
    """The derivative of each example's mean loss by each gate: ``(B, L, H)``, from one backward pass."""
    network, device = subject.network, subject.device
    dtype = precision(network)
    first = int(batch.scored.any(axis=0).argmax())
    gates_LBH: list[Tensor] = []

    def gate_of_one(layer: int, z_BSHK: Tensor) -> Tensor:
        gates_LBH.append(torch.ones_like(z_BSHK[:, 0, :, 0], requires_grad=True))
        return gates_LBH[-1]

    with without_dropout(network), gated(network, gate_of_one):
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
