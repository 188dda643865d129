"""Answers: what a network puts out on a batch, in chunks of like length, teacher-forced or running free."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fathometer.core.interface import Array, Batch
from fathometer.core.model import Model
from fathometer.evaluation.numerics import tensor

CHUNK = 16_384
"""Positions that are run at once: bounds the memory of an evaluation."""


@dataclass(frozen=True)
class Answers:
    """By example and position: the class put out (or the squared error of a vector), and the loss in nats."""

    predicted: Array
    loss: Array


def outputs(network: nn.Module, model: Model, inputs: Tensor, first: int = 0) -> Tensor:
    """The network's outputs from position ``first`` on, computed there alone where the network can."""
    if model.partial_outputs:
        return network(inputs, first=first)
    found = network(inputs)
    return getattr(found, "logits", found)[:, first:]


def chunks(batch: Batch) -> Iterator[tuple[Array, Batch]]:
    """The batch in pieces of like length: rows, and the examples at those rows."""
    order = np.argsort(batch.lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = batch.lengths[order[-1]]
        rows = order[start : start + max(1, CHUNK // int(longest))]
        same = rows[batch.lengths[rows] == batch.lengths[rows[0]]]
        yield same, batch.take(same)
        start += len(same)


def answer(network: nn.Module, model: Model, batch: Batch, device: str) -> Answers:
    """Answers at the scored positions, each given the true earlier ones; zero elsewhere."""
    classes = np.issubdtype(batch.targets.dtype, np.integer)
    predicted = np.zeros(batch.targets.shape[:2], dtype=np.int64 if classes else np.float64)
    loss = np.zeros(batch.targets.shape[:2])
    dtype = precision(network)
    with evaluating(network):
        for rows, piece in chunks(batch):
            first = int(piece.scored.any(axis=0).argmax())
            mask = tensor(piece.scored[:, first:], device)
            found = outputs(network, model, tensor(piece.inputs, device, dtype), first)[mask]
            wanted = tensor(piece.targets[:, first:], device, dtype)[mask]
            where = np.nonzero(piece.scored)
            if classes:
                predicted[rows[where[0]], where[1]] = found.argmax(dim=1).cpu().numpy()
                nats = F.cross_entropy(found.double(), wanted, reduction="none")
                loss[rows[where[0]], where[1]] = nats.cpu().numpy()
            else:
                errors = (found - wanted).double().square().mean(dim=1).cpu().numpy()
                predicted[rows[where[0]], where[1]] = errors
                loss[rows[where[0]], where[1]] = errors
    return Answers(predicted, loss)


def answer_freely(network: nn.Module, model: Model, batch: Batch, device: str) -> Array:
    """Greedy answers of a causal network that reads its own earlier answers in place of the true ones.

    All positions are guessed at once and guessed again from those guesses until nothing changes: position ``t`` is
    final after at most ``t`` rounds, and a network that is nearly right needs one or two.
    """
    assert batch.fed is not None
    predicted = np.zeros(batch.targets.shape, dtype=np.int64)
    with evaluating(network):
        for rows, piece in chunks(batch):
            assert piece.fed is not None
            first = int(piece.scored.any(axis=0).argmax())
            inputs, found = piece.inputs.copy(), np.zeros_like(piece.targets)
            open_rows = np.arange(len(piece))
            for _ in range(inputs.shape[1] + 1):
                if not len(open_rows):
                    break
                logits = outputs(network, model, tensor(inputs[open_rows], device), first)
                found[open_rows, first:] = logits.argmax(dim=2).cpu().numpy()
                follow = np.where(piece.fed[:, 1:], found[:, :-1], inputs[:, 1:])
                open_rows = np.flatnonzero((follow != inputs[:, 1:]).any(axis=1))
                inputs[:, 1:] = follow
            if len(open_rows):
                raise ValueError("Running free does not come to rest: this network's outputs depend on later inputs.")
            predicted[rows, : found.shape[1]] = found
    return predicted


def precision(network: nn.Module) -> torch.dtype:
    """The type of a network's numbers."""
    return next((p.dtype for p in network.parameters() if p.is_floating_point()), torch.float32)


def check_causal(network: nn.Module, model: Model, batch: Batch, device: str) -> None:
    """Raises ValueError when outputs change with a later input, which on a causal task holds the answers."""
    longest = int(batch.lengths.argmax())
    row = batch.take(np.array([longest]))
    changed = row.inputs.copy()
    others = row.inputs[(row.inputs != row.inputs[:, -1:])]
    changed[:, -1] = others[0] if others.size else row.inputs[:, -1]
    dtype = precision(network)
    with evaluating(network):
        before, after = (outputs(network, model, tensor(x, device, dtype))[:, :-1] for x in (row.inputs, changed))
    if before.numel() and not torch.allclose(before, after, rtol=1e-3, atol=1e-4 * float(before.abs().max() + 1e-6)):
        where = int((before - after).abs().amax(dim=(0, 2)).argmax())
        raise ValueError(
            f"This network looks ahead: its output at position {where} changes with the input at the last position, "
            f"{row.inputs.shape[1] - 1}. On this task later inputs hold the answers, so it must be causal."
        )


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """No gradients and no dropout inside; the mode of every part is given back afterwards."""
    with torch.no_grad(), without_dropout(network):
        yield


@contextmanager
def without_dropout(network: nn.Module) -> Iterator[None]:
    """Evaluation mode inside; the mode of every part is given back afterwards."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
