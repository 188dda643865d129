"""Trials of someone else's results again, one by one: what ``fathom reproduce`` runs."""

from collections.abc import Iterable, Sequence

from pydantic import Field

from fathometer.core.claim import Claim
from fathometer.core.evidence import Evidence
from fathometer.core.study import Figure, Study
from fathometer.core.trial import Measurement, Trial
from fathometer.figures.standard import standard_figures


class Repeating(Study):
    """Every trial given, as it stands, and whatever it starts from."""

    trials: tuple[Trial, ...] = Field(min_length=1)

    @property
    def question(self) -> str:
        return "Do these trials end as they did?"

    def wanted(self, evidence: Evidence) -> Sequence[Trial | Measurement]:
        return self.trials

    def claims(self) -> Sequence[Claim]:
        return []

    def figures(self, evidence: Evidence) -> Iterable[Figure]:
        return standard_figures(evidence)
