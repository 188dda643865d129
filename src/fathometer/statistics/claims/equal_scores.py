"""Equal scores: networks started from a construction score as the networks they were constructed from."""

from typing import Any

from pydantic import Field

from fathometer.core.claim import Claim, Decision, Verdict
from fathometer.core.evidence import Evidence, at
from fathometer.core.record import Record
from fathometer.core.spec import canonical

METHOD = "every score of both networks on the same test examples, compared one by one"


class EqualScores(Claim):
    """Every trial that ``where`` selects scores like the trial it starts from, to within ``tolerance``.

    Both are scored on the same examples, by every metric in every stratum. Supported means: checked on so many pairs.
    """

    where: dict[str, Any]
    tolerance: float = Field(default=1e-5, ge=0, description="how far a score may differ: rounding")

    def prospect(self, planned: Evidence) -> str:
        return f"{len(planned.trials(self.where))} pairs of networks: one that differs refutes it"

    def judge(self, evidence: Evidence) -> Verdict:
        of_spec = {canonical(trial.spec): trial for trial in evidence.trials()}
        pairs = [
            (trial, of_spec.get(canonical(at(trial.spec, "start.trial"))))
            for trial in evidence.trials(self.where)
            if at(trial.spec, "start.trial") is not None
        ]
        gaps = [_largest_gap(one, other) for one, other in pairs if other is not None]
        if not gaps:
            would = "one trial of a construction and the trial that it starts from"
            return self.verdict("inconclusive", "No pair has ended yet.", METHOD, would_decide=would)
        decision: Decision = "supported" if max(gaps) <= self.tolerance else "refuted"
        sentence = (
            f"Checked on {len(gaps)} pairs of networks: their scores on the same examples differ by at most "
            f"{max(gaps):.2g}, and the claim allows {self.tolerance:g}."
        )
        keys = tuple(side.key for one, other in pairs if other is not None for side in (one, other))
        return self.verdict(decision, sentence, METHOD, len(gaps), (max(gaps), None, None), "", keys)


def _largest_gap(one: Record, other: Record) -> float:
    """Infinite where one side has a score that the other lacks."""
    sides = [{(r["split"], r["stratum"], r["metric"]): r["value"] for r in side.scores} for side in (one, other)]
    if sides[0].keys() != sides[1].keys() or not sides[0]:
        return float("inf")
    return max(abs(value - sides[1][name]) for name, value in sides[0].items())
