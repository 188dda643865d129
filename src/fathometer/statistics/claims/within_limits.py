"""Within limits: no network scores above what the task allows. A check on the lab itself."""

from math import ceil
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field
from scipy import stats

from fathometer.core.claim import Claim, Decision, Verdict
from fathometer.core.evidence import Evidence, score
from fathometer.core.metrics import counted
from fathometer.core.record import Record
from fathometer.statistics.intervals import wilson

ALPHA = 0.05


class _Excess(NamedTuple):
    """How far one score stands above its limit."""

    key: str
    stratum: str
    value: float
    upper: float
    p: float


class WithinLimits(Claim):
    """No score of a trial that ``where`` selects exceeds its exact or bounding limit.

    Every score is tested against the best possible in its stratum by a binomial test, Holm's step over all; answers of
    one example are counted as one, since they may stand and fall together. ``refuted`` points to a leak or a wrong
    limit. Supported when nothing is found and every whole score is known to be within ``margin`` of its limit.
    """

    where: dict[str, Any] = Field(default_factory=dict)
    metric: Annotated[str, AfterValidator(counted)] = "token_accuracy"
    margin: float = Field(default=0.02, gt=0)

    def judge(self, evidence: Evidence) -> Verdict:
        found = [excess for trial in evidence.trials(self.where) for excess in self._excesses(evidence, trial)]
        smallest = min((excess.p * len(found) for excess in found), default=1.0)
        whole = [excess.upper for excess in found if excess.stratum == "all"]
        decision: Decision = "inconclusive"
        if smallest < ALPHA:
            decision = "refuted"
        elif whole and max(whole) <= self.margin:
            decision = "supported"
        sentence = "No score with an exact limit has come in yet."
        if found:
            sentence = (
                f"{len(found)} scores were held against their limits; the highest stands "
                f"{max(excess.value for excess in found):+.4f} from its own (smallest Holm-adjusted p = "
                f"{min(1.0, smallest):.2g}); whole scores are at most {max(whole, default=1.0):+.4f} from theirs (95%)."
            )
        would = "more test examples" if found else "one finished trial"
        return self.verdict(
            decision,
            sentence,
            "binomial tests by example against the stratum's best possible score, Holm over all scores, 5%",
            n=len(found),
            interval=(max(whole, default=None), None, None),
            would_decide=would if decision == "inconclusive" else "",
            records=tuple(dict.fromkeys(excess.key for excess in found)),
        )

    def prospect(self, planned: Evidence) -> str:
        return f"every score of {len(planned.trials(self.where))} trials is tested"

    def _excesses(self, evidence: Evidence, trial: Record) -> list[_Excess]:
        best = {
            limit["stratum"]: limit["value"]
            for limit in evidence.limits(trial)
            if limit["metric"] == self.metric
            and limit["kind"] == "stratum_best"
            and limit["source"] in ("exact", "bound")
        }
        together = _answers_an_example(trial, self.metric)
        found: list[_Excess] = []
        for row in trial.scores:
            if row["metric"] != self.metric or row["stratum"] not in best:
                continue
            limit, n = best[row["stratum"]], max(1, round(row["n"] / together))
            right = min(n, ceil(row["value"] * n - 1e-9))
            p = float(stats.binom.sf(right - 1, n, limit)) if limit < 1 else 1.0
            upper = wilson(right, n).high - limit
            found.append(_Excess(trial.key, row["stratum"], row["value"] - limit, upper, p))
        return found


def _answers_an_example(trial: Record, metric: str) -> float:
    """How many answers of the metric one example holds, on average; 1 where that is not known."""
    if score(trial, "sequence_accuracy") is None or "token" not in metric:
        return 1.0
    counts = {row["metric"]: row["n"] for row in trial.scores if row["stratum"] == "all"}
    return max(1.0, counts[metric] / counts[metric.replace("token", "sequence")])
