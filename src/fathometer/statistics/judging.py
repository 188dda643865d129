"""Judging: every claim of a study against the evidence at hand."""

from collections.abc import Iterable

from fathometer.core.claim import Claim, Verdict
from fathometer.core.evidence import Evidence


def judge(claims: Iterable[Claim], evidence: Evidence) -> list[Verdict]:
    """The verdict on each claim, in the order of the claims; the same at every place that shows it."""
    return [_judge_one(claim, evidence) for claim in claims]


def _judge_one(claim: Claim, evidence: Evidence) -> Verdict:
    """A claim that cannot be judged is inconclusive and says why; the others are judged all the same."""
    try:
        return claim.judge(evidence)
    except (ValueError, LookupError) as error:
        would = "records that fit the claim"
        return claim.verdict("inconclusive", f"It cannot be judged: {error}", "none", would_decide=would)
