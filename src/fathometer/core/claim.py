"""Claim and verdict: a falsifiable sentence with its rule fixed beforehand, and what the records say of it."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fathometer.core.evidence import Evidence
from fathometer.core.spec import Named

Decision = Literal["supported", "refuted", "inconclusive"]


@dataclass(frozen=True)
class Verdict:
    """What the records say of a claim.

    ``effect`` and its interval are on the claim's own scale, positive in the direction claimed. ``would_decide`` says
    what is missing when the verdict is inconclusive. ``records`` are the keys of all records that were used.
    """

    claim: str
    statement: str
    decision: Decision
    sentence: str
    effect: float | None
    low: float | None
    high: float | None
    n: int
    method: str
    would_decide: str = ""
    records: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


class Claim(Named):
    """A sentence that could turn out false. ``identifier`` names it within its study."""

    kind = "claim"

    identifier: str
    statement: str

    @abstractmethod
    def judge(self, evidence: Evidence) -> Verdict:
        """A pure function of the records."""

    def prospect(self, planned: Evidence) -> str:
        """What it could decide on these trials, told before any of them is run: ``planned`` has no results yet."""
        return ""

    def verdict(
        self,
        decision: Decision,
        sentence: str,
        method: str,
        n: int = 0,
        interval: tuple[float | None, float | None, float | None] = (None, None, None),
        would_decide: str = "",
        records: Sequence[str] = (),
    ) -> Verdict:
        """A verdict on this claim; ``interval`` is the effect with its lower and upper limit."""
        told = (self.identifier, self.statement, decision, sentence)
        return Verdict(*told, *interval, n, method, would_decide, tuple(records))
