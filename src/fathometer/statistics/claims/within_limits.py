"""Within limits: no network scores above what the task allows. A check on the lab itself."""

from typing import Any

from pydantic import Field
from scipy import stats

from fathometer.core.claim import Claim, Verdict
from fathometer.core.evidence import Evidence

ALPHA = 0.05


class WithinLimits(Claim):
    """No score of a trial that ``where`` selects exceeds its exact limit by more than chance explains.

    Every accuracy is tested against the stratum's best possible value by an exact binomial test, where answers are
    counted one by one, with Holm's step over all of them. Anything else than ``supported`` points to a leak or a wrong
    limit.
    """

    where: dict[str, Any] = Field(default_factory=dict)
    metric: str = "token_accuracy"

    def judge(self, evidence: Evidence) -> Verdict:
        worst, p_values, keys, excess = 1.0, list[float](), list[str](), list[float]()
        for trial in evidence.trials(self.where):
            for row in trial.scores:
                limit = self._limit(evidence, trial.spec["task"], row) if row["metric"] == self.metric else None
                if limit is None:
                    continue
                right = round(row["value"] * row["n"])
                p_values.append(float(stats.binom.sf(right - 1, row["n"], limit)) if limit < 1 else 1.0)
                excess.append(row["value"] - limit)
                keys.append(trial.key)
        worst = min((p * len(p_values) for p in p_values), default=1.0)
        n = len(p_values)
        broken = worst < ALPHA
        sentence = (
            f"{n} scores were held against their limits; the highest stands {max(excess):+.4f} from its own "
            f"(smallest Holm-adjusted p = {min(1.0, worst):.2g})."
            if n
            else "No score with an exact limit has come in yet."
        )
        return Verdict(
            claim=self.identifier,
            statement=self.statement,
            decision="inconclusive" if not n else "refuted" if broken else "supported",
            sentence=sentence,
            effect=max(excess) if n else None,
            low=None,
            high=None,
            n=n,
            method="exact binomial tests against the stratum's best possible score, Holm over all scores, 5%",
            would_decide="" if n else "one finished trial",
            records=tuple(dict.fromkeys(keys)),
        )

    def _limit(self, evidence: Evidence, task: dict[str, Any], row: dict[str, Any]) -> float | None:
        for limit in evidence.limits(task, row["split"]):
            if (
                limit["metric"] == row["metric"]
                and limit["stratum"] == row["stratum"]
                and limit["kind"] == "stratum_best"
                and limit["source"] in ("exact", "bound")
            ):
                return limit["value"]
        return None
