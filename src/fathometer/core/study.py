"""Study: a question, the work it wants given the records so far, the claims it decides and the figures it draws."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field

from fathometer.core.claim import Claim
from fathometer.core.evidence import Evidence
from fathometer.core.spec import Named
from fathometer.core.trial import Measurement, Trial

Scale = Literal["smoke", "quick", "paper"]


@dataclass(frozen=True)
class Figure:
    """One picture: a Vega-Lite chart with its data inside, and the keys of the records it was drawn from."""

    name: str
    title: str
    caption: str
    chart: dict[str, Any]
    records: tuple[str, ...]


class Study(Named):
    """The contract of a question.

    ``wanted`` is a pure function of the evidence, in canonical order; an adaptive study reads records in that order up
    to the first gap, so that arrival order, resuming and the number of workers change nothing. It may import models;
    ``claims`` and ``figures`` work from records alone.
    """

    kind = "study"

    source: ClassVar[str] = ""
    """The work whose question this is, empty for one of our own."""

    scale: Scale = "smoke"
    seed: int = Field(default=0, ge=0, description="the first of the seeds used")

    @property
    @abstractmethod
    def question(self) -> str:
        """What is asked, in one plain sentence."""

    @abstractmethod
    def wanted(self, evidence: Evidence) -> Sequence[Trial | Measurement]:
        """What should be known, whether it is already or not."""

    def foreseen(self, evidence: Evidence) -> Sequence[Trial | Measurement]:
        """What will be wanted in the end, as far as can be told now; what is wanted already where nothing adapts."""
        return self.wanted(evidence)

    def arm(self, spec: Mapping[str, Any]) -> str:
        """The part of the study that a trial of this JSON form belongs to; empty where there is but one."""
        return ""

    @abstractmethod
    def claims(self) -> Sequence[Claim]:
        """What is decided, with every rule fixed before a record is read."""

    @abstractmethod
    def figures(self, evidence: Evidence) -> Iterable[Figure]:
        """What is drawn."""
