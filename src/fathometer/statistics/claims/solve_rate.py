"""Solve rate: a configuration solves its task in at least a given share of seeds."""

from math import ceil, log
from typing import Any

from pydantic import Field

from fathometer.core.claim import Claim, Decision, Verdict
from fathometer.core.evidence import Evidence, score
from fathometer.core.record import Record
from fathometer.statistics.intervals import clopper_pearson, wilson

ALPHA = 0.05


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
        trials = evidence.trials(self.where)
        solved = [found for found in (self._solved(evidence, trial) for trial in trials) if found is not None]
        n, right = len(solved), sum(solved)
        enough = ceil(log(ALPHA) / log(self.at_least))
        would = f"{enough} solved seeds of {enough} would support it"
        if not n:
            return self._verdict("inconclusive", "No trial of this kind has ended yet.", None, 0, would, ())
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
        keys = tuple(trial.key for trial in trials)
        return self._verdict(decision, sentence, (shown.estimate, shown.low, shown.high), n, would, keys)

    def _solved(self, evidence: Evidence, trial: Record) -> bool | None:
        if trial.status == "diverged":
            return False
        split = trial.scores[0]["split"]
        value = score(trial, self.metric, self.stratum, split)
        ceilings = [
            limit["value"]
            for limit in evidence.limits(trial.spec["task"], split)
            if (limit["kind"], limit["metric"], limit["stratum"]) == ("task_optimal", self.metric, self.stratum)
        ]
        return None if value is None or not ceilings else value >= ceilings[0] - self.tolerance

    def _verdict(
        self,
        decision: Decision,
        sentence: str,
        interval: tuple[float, float, float] | None,
        n: int,
        would: str,
        keys: tuple[str, ...],
    ) -> Verdict:
        effect, low, high = interval or (None, None, None)
        return Verdict(
            claim=self.identifier,
            statement=self.statement,
            decision=decision,
            sentence=sentence,
            effect=effect,
            low=low,
            high=high,
            n=n,
            method="solve rate: exact one-sided limits at 95% decide, Wilson's interval is shown",
            would_decide=would,
            records=keys,
        )
