"""Interface and batch: all that a task and a network need to know of each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fathometer.core.spec import Spec

Array = NDArray[Any]


class Tokens(Spec):
    """One of ``vocab`` symbols at each position."""

    vocab: int = Field(ge=2)

    @property
    def channels(self) -> int:
        """How many numbers a network puts out for one position: here a score for each symbol."""
        return self.vocab


class Vectors(Spec):
    """``dim`` real numbers at each position."""

    dim: int = Field(ge=1)

    @property
    def channels(self) -> int:
        """How many numbers a network puts out for one position."""
        return self.dim


class Interface(Spec):
    """What goes in, what comes out, how long, and whether a network must not look ahead.

    ``causal``: inputs at later positions contain earlier targets, so a network that sees the future sees the answer.
    """

    inputs: Tokens | Vectors
    outputs: Tokens | Vectors
    length: int = Field(ge=1)
    causal: bool


@dataclass(frozen=True)
class Batch:
    """Examples of one task, right-padded to a common length.

    ``targets[i, t]`` is what the network should put out at position ``t`` (nothing is shifted later).
    ``trained`` marks the positions in the loss, ``scored`` those that count; both are False on padding.
    ``fed`` marks inputs that are the network's own previous output when it runs free: there
    ``inputs[i, t] == targets[i, t - 1]`` in teacher forcing.
    ``sources`` names the input position that holds each answer, -1 where none does.
    ``strata`` gives each example (shape ``(n,)``) or position (shape ``(n, time)``) a small integer label.
    """

    inputs: Array
    targets: Array
    trained: NDArray[np.bool_]
    scored: NDArray[np.bool_]
    lengths: NDArray[np.int64]
    fed: NDArray[np.bool_] | None = None
    sources: NDArray[np.int64] | None = None
    strata: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, rows: Any) -> "Batch":
        """The examples at ``rows``, trimmed to the longest of them."""
        lengths = self.lengths[rows]
        time = int(lengths.max()) if len(lengths) else 0
        by_time = {
            name: getattr(self, name)[rows, :time]
            for name in ("inputs", "targets", "trained", "scored", "fed", "sources")
            if getattr(self, name) is not None
        }
        strata = {
            name: labels[rows] if labels.ndim == 1 else labels[rows, :time] for name, labels in self.strata.items()
        }
        return replace(self, **by_time, lengths=lengths, strata=strata)

    def strata_masks(self) -> dict[str, NDArray[np.bool_]]:
        """The scored positions of every stratum, ``all`` first, named like ``length=10``."""
        masks = {"all": self.scored}
        for name, labels in self.strata.items():
            spread = labels if labels.ndim == 2 else np.broadcast_to(labels[:, None], self.scored.shape)
            for value in np.unique(labels if labels.ndim == 1 else labels[self.scored]):
                masks[f"{name}={value}"] = self.scored & (spread == value)
        return masks
