"""Model: a family of networks as hyperparameters."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fathometer.core.interface import Interface
from fathometer.core.spec import Named

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Size:
    """How large a network is and what one token costs.

    ``state`` counts the numbers carried from one position to the next when the network runs step by step at the
    interface's longest length. ``flops`` are multiply-adds counted twice, forward, per token at that length; attention
    counts the causal half.
    """

    parameters: int
    state: int
    flops: float


class Model(Named):
    """The contract that `fathometer.testing.check_model` tests.

    The network that ``build`` gives is a plain module that maps ``(batch, time)`` tokens or ``(batch, time, dim)``
    vectors to ``(batch, time, outputs)``, draws its initial weights from torch's default generator alone, and treats
    every example of a batch by itself.
    """

    kind = "model"

    partial_outputs: ClassVar[bool] = False
    """True when the network takes ``first=p`` and then computes the outputs from position ``p`` on only."""

    @abstractmethod
    def build(self, interface: Interface) -> "nn.Module":
        """A network with fresh weights."""

    @abstractmethod
    def size(self, interface: Interface) -> Size:
        """Parameters, state and cost, by formula: nothing is built."""

    def refusal(self, interface: Interface) -> str | None:
        """Why this model cannot take this interface, in a sentence with the fix; None when it can."""
        return None
