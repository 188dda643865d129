"""Trials, measurements and limit sheets: the three things a study can want, as pure values."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, model_validator

from fathometer.core.interface import Array, Interface, Tokens
from fathometer.core.metrics import metric
from fathometer.core.model import Model
from fathometer.core.recipe import Recipe
from fathometer.core.spec import Named, Spec, SpecError
from fathometer.core.task import Task

if TYPE_CHECKING:
    from torch import nn


class Start(Named):
    """Where weights come from when they are not fresh: a construction, or what training left."""

    kind = "start"

    def source(self) -> "Trial | None":
        """The trial whose trained weights are needed; None when none are."""
        return None

    def refusal(self, model: Model) -> str | None:
        """Why this model cannot start so, in a sentence with the fix; None when it can."""
        return None

    @abstractmethod
    def weights(self, model: Model, interface: Interface, trained: Mapping[str, Array]) -> Mapping[str, Array]:
        """Named arrays for the whole state of the model's network; ``trained`` holds those of the source."""


class Trial(Spec):
    """Task x model x recipe x start x one seed. Without a start the weights are fresh, drawn from the seed."""

    task: Task
    model: Model
    recipe: Recipe = Recipe()
    start: Start | None = None
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        interface = self.task.interface()
        if reason := self.model.refusal(interface):
            raise ValueError(reason)
        if self.start and (reason := self.start.refusal(self.model)):
            raise ValueError(reason)
        counts = metric(self.task.metric).counted
        if counts != isinstance(interface.outputs, Tokens):
            fits = "token_accuracy" if isinstance(interface.outputs, Tokens) else "nmse"
            raise ValueError(
                f"{self.task.name}.metric = {self.task.metric!r} does not go with its outputs, {interface.outputs!r}: "
                f"set metric = {fits!r} in its class"
            )
        return self

    def source(self) -> "Trial | None":
        """The trial that must have been trained before this one can start."""
        return self.start.source() if self.start else None

    def cell(self) -> str:
        """The key of the trials that differ from this one by seed only."""
        return self.with_(seed=0).key

    def flops_a_step(self) -> float:
        """Nominal cost of one step: forward and backward at the longest length."""
        interface = self.task.interface()
        return 3 * self.model.size(interface).flops * interface.length * self.recipe.batch

    def flops(self) -> float:
        """Nominal cost of all steps, if nothing stops early."""
        return self.flops_a_step() * self.recipe.steps


@dataclass(frozen=True)
class Subject:
    """A trained network, ready to be measured, with the trial that made it."""

    network: "nn.Module"
    trial: Trial
    device: str


@dataclass(frozen=True)
class Finding:
    """What a probe found: ``outcome`` is deterministic, ``timing`` is not and is kept with the provenance."""

    outcome: Mapping[str, Any]
    timing: Mapping[str, Any] | None = None


class Probe(Named):
    """A pure description of something to measure on a trained network."""

    kind = "probe"

    exclusive: ClassVar[bool] = False
    """True when it must run with no other work on the machine: timings."""

    @abstractmethod
    def measure(self, subject: Subject) -> Finding:
        """Measures without changing the network."""


class Measurement(Spec):
    """A probe on the network that a trial trained."""

    trial: Trial
    probe: Probe


class LimitSheet(Spec):
    """All limits of one split of a task."""

    task: Task
    split: str

    @model_validator(mode="after")
    def _split_exists(self) -> Self:
        if self.split not in self.task.splits():
            raise ValueError(f"there is no split {self.split!r}; there are {', '.join(self.task.splits())}")
        return self


Work = Trial | Measurement | LimitSheet

KINDS: Mapping[str, type[Trial] | type[Measurement] | type[LimitSheet]] = {
    "trial": Trial,
    "probe": Measurement,
    "limit": LimitSheet,
}


def kind_of(work: Work) -> str:
    """The kind of record that this work ends in."""
    return next(kind for kind, cls in KINDS.items() if type(work) is cls)


def decode_work(kind: str, form: Mapping[str, Any]) -> Work:
    """The work that a record's kind and spec describe, validated."""
    if kind not in KINDS:
        raise SpecError(f"There is no work of kind {kind!r}; there are {', '.join(KINDS)}.")
    return KINDS[kind](**form)
