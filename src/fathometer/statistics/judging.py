"""Judging: every claim of a study against the evidence at hand."""

from collections.abc import Iterable

from fathometer.core.claim import Claim, Verdict
from fathometer.core.evidence import Evidence


def judge(claims: Iterable[Claim], evidence: Evidence) -> list[Verdict]:
    """The verdict on each claim, in the order of the claims; the same at every place that shows it."""
    return [claim.judge(evidence) for claim in claims]
