"""Task: a distribution over (input, target) with an exact answer, its splits and its limits."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from fathometer.core.interface import Batch, Interface
from fathometer.core.limit import Limit
from fathometer.core.spec import Named


class Task(Named):
    """The contract that `fathometer.testing.check_task` tests.

    * Draws depend on the generator alone: equal generators give equal batches, bit for bit.
    * The first split is the one trained on. Any run of consecutive examples of a draw is a fair sample, as balanced
      over the strata as its size allows.
    * Targets are already aligned with outputs; the exact answer is known at every scored position.
    """

    kind = "task"

    metric: ClassVar[str] = "token_accuracy"
    """The score that decides whether a trial is solved and that figures show first."""

    @abstractmethod
    def interface(self) -> Interface:
        """What a network must take and give."""

    @abstractmethod
    def splits(self) -> tuple[str, ...]:
        """The names of the distributions one can draw from; the first is the one trained on."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, n: int, split: str) -> Batch:
        """``n`` examples of a split, at least one."""

    @abstractmethod
    def limits(self, split: str) -> Sequence[Limit]:
        """Chance, shortcut, task-optimal and stratum-best scores by stratum, each with its source."""

    def training_set(self) -> int | None:
        """How many examples exist to train and validate on; None for fresh data at every step."""
        return None
