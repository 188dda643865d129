"""Solve rate: a configuration solves its task in at least a given share of seeds."""

from typing import Any

from pydantic import Field

from fathometer.core.claim import Claim, Decision, Verdict
from fathometer.core.evidence import Evidence, score
from fathometer.core.metrics import metric
from fathometer.core.record import Record
from fathometer.statistics.intervals import clopper_pearson, wilson

ALPHA = 0.05

METHOD = "solve rate: exact one-sided limits at 95% decide, Wilson's interval is shown"


class SolveRate(Claim):
    """P(solved) >= ``at_least`` over seeds, for the trials that ``where`` selects.

    Solved: the score on the test split comes within ``tolerance`` of the task-optimal limit. Decided by one-sided exact
    limits at 95%; shown with Wilson's interval. A diverged trial has not solved.
    """

    where: dict[str, Any]
    at_least: float = Field(gt=0, lt=1)
    metric: str = "token_accuracy"
    stratum: str = "all"
    tolerance: float = Field(default=0.01, gt=0)

    def judge(self, evidence: Evidence) -> Verdict:
        found = [(trial.key, self._solved(evidence, trial)) for trial in evidence.trials(self.where)]
        solved = [(key, good) for key, good in found if good is not None]
        n, right = len(solved), sum(good for _, good in solved)
        would = self._would_decide(right, n)
        if not n:
            return self.verdict("inconclusive", "No trial of this kind has ended yet.", METHOD, would_decide=would)
        sure = clopper_pearson(right, n, level=1 - 2 * ALPHA)
        decision: Decision = "inconclusive"
        if sure.low >= self.at_least:
            decision, would = "supported", ""
        elif sure.high < self.at_least:
            decision, would = "refuted", ""
        shown = wilson(right, n)
        sentence = (
            f"{right} of {n} seeds solved it: the rate is between {shown.low:.0%} and {shown.high:.0%} "
            f"(95%, Wilson), and the claim needs {self.at_least:.0%}."
        )
        keys = tuple(key for key, _ in solved)
        return self.verdict(decision, sentence, METHOD, n, shown, would, keys)

    def prospect(self, planned: Evidence) -> str:
        n = len(planned.trials(self.where))
        sure = [clopper_pearson(right, n, level=1 - 2 * ALPHA) for right in range(n + 1)] if n else []
        least = next((right for right, limits in enumerate(sure) if limits.low >= self.at_least), None)
        most = max((right for right, limits in enumerate(sure) if limits.high < self.at_least), default=None)
        supports = "none can support it" if least is None else f"{least} or more solved support it"
        return f"{n} seeds: {supports}, " + ("none can refute it" if most is None else f"{most} or fewer refute it")

    def _would_decide(self, right: int, n: int) -> str:
        for more in range(1, 1000):
            if clopper_pearson(right + more, n + more, level=1 - 2 * ALPHA).low >= self.at_least:
                return f"{more} more seeds, all solved, would support it"
        return "more than 1000 further seeds"

    def _solved(self, evidence: Evidence, trial: Record) -> bool | None:
        if trial.status == "diverged":
            return False
        value = score(trial, self.metric, self.stratum)
        ceilings = [
            limit["value"]
            for limit in evidence.limits(trial)
            if (limit["kind"], limit["metric"], limit["stratum"]) == ("task_optimal", self.metric, self.stratum)
        ]
        if value is None or not ceilings:
            return None
        return metric(self.metric).reached(value, ceilings[0], self.tolerance)
