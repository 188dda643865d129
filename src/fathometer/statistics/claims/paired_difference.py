"""Paired difference: one configuration scores higher than another on the same seeds."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from fathometer.core.claim import Claim, Verdict
from fathometer.core.evidence import Evidence
from fathometer.core.metrics import counted
from fathometer.statistics.claims.contrast import Contrast, Term
from fathometer.statistics.readings import Reading


class PairedDifference(Claim):
    """The log odds of a right answer are higher in ``better`` than in ``worse``, and by as much as ``matters``.

    The simplest contrast: trials are paired by seed and the rule is that of `contrast`. A diverged trial counts as
    never right.
    """

    better: dict[str, Any]
    worse: dict[str, Any]
    metric: Annotated[str, AfterValidator(counted)] = "token_accuracy"
    stratum: str = "all"
    matters: float = Field(default=0.5, ge=0, description="smallest difference of interest, in log odds")

    def judge(self, evidence: Evidence) -> Verdict:
        return self._contrast().judge(evidence)

    def prospect(self, planned: Evidence) -> str:
        return self._contrast().prospect(planned)

    def _contrast(self) -> Contrast:
        sides = [(1.0, self.better), (-1.0, self.worse)]
        terms = tuple(
            Term(weight=weight, reading=Reading(where=where, metric=self.metric, strata=(self.stratum,)))
            for weight, where in sides
        )
        return Contrast(
            identifier=self.identifier,
            statement=self.statement,
            terms=terms,
            matters=self.matters,
            told="The odds of a right answer change by",
        )
