"""Paired difference: one configuration scores higher than another on the same seeds."""

from math import exp, sqrt
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field
from scipy import stats

from fathometer.core.claim import Claim, Decision, Verdict
from fathometer.core.evidence import Evidence
from fathometer.core.metrics import counted
from fathometer.core.record import Record
from fathometer.statistics.intervals import Interval, log_odds, t_interval

METHOD = "difference of log odds, paired by seed, 95% t interval"


class _Side(NamedTuple):
    """One trial's part in a pair."""

    key: str
    log_odds: float
    n: int


class PairedDifference(Claim):
    """The log odds of a right answer are higher in ``better`` than in ``worse``, and by as much as ``matters``.

    Trials are paired by seed. Supported when the 95% t interval over seeds lies above 0 and its centre reaches
    ``matters``; refuted when the whole interval lies below ``matters``. Accuracies of 0 and 1 stay finite by half a
    count, and the interval is never narrower than the number of answers allows. A diverged trial counts as never right.
    """

    better: dict[str, Any]
    worse: dict[str, Any]
    metric: Annotated[str, AfterValidator(counted)] = "token_accuracy"
    stratum: str = "all"
    matters: float = Field(default=0.5, ge=0, description="smallest difference of interest, in log odds")

    def judge(self, evidence: Evidence) -> Verdict:
        better, worse = self._by_seed(evidence, self.better), self._by_seed(evidence, self.worse)
        seeds = sorted(better.keys() & worse.keys())
        gaps = [better[seed].log_odds - worse[seed].log_odds for seed in seeds]
        keys = tuple(side[seed].key for seed in seeds for side in (better, worse))
        if len(gaps) < 2:
            number = ("No seed has", "Only one seed has")[len(gaps)]
            sentence = f"{number} ended on both sides; an interval needs two."
            would = "two pairs of seeds at the least"
            return self.verdict("inconclusive", sentence, METHOD, len(gaps), would_decide=would, records=keys)
        interval = _interval(gaps, [side[seed] for seed in seeds for side in (better, worse)])
        decision: Decision = "inconclusive"
        if interval.low > 0 and interval.estimate >= self.matters:
            decision = "supported"
        elif interval.high < max(self.matters, 0.0):
            decision = "refuted"
        would = self._would_decide(interval, len(gaps)) if decision == "inconclusive" else ""
        return self.verdict(decision, self._sentence(interval, gaps), METHOD, len(gaps), interval, would, keys)

    def _by_seed(self, evidence: Evidence, where: dict[str, Any]) -> dict[int, _Side]:
        """What was scored, by seed. Raises ValueError when ``where`` selects several cells."""
        found: dict[int, _Side] = {}
        for trial in evidence.trials(where):
            seed = trial.spec["seed"]
            if seed in found:
                raise ValueError(f"Claim {self.identifier}: {where} selects more than one trial of seed {seed}.")
            rate, n = self._rate(trial)
            found[seed] = _Side(trial.key, log_odds(rate, n), n)
        return found

    def _rate(self, trial: Record) -> tuple[float, int]:
        for row in trial.scores:
            if row["metric"] == self.metric and row["stratum"] == self.stratum:
                return row["value"], row["n"]
        return 0.0, int(trial.spec["recipe"]["evaluation"]["test_on"])

    def _sentence(self, interval: Interval, gaps: list[float]) -> str:
        wins = sum(gap > 0 for gap in gaps)
        untied = sum(gap != 0 for gap in gaps)
        sign = stats.binomtest(wins, untied).pvalue if untied else 1.0
        size = ""
        if interval.high < self.matters:
            kind = (
                "real, but smaller than matters"
                if interval.low > 0
                else "if there is a gain, it is smaller than matters"
            )
            size = f"; {kind} (a factor of {_factor(self.matters)})"
        return (
            f"The odds of a right answer change by a factor of {_factor(interval.estimate)} "
            f"(95% from {_factor(interval.low)} to {_factor(interval.high)}); higher in {wins} of {len(gaps)} seeds "
            f"(sign test p = {sign:.2g}){size}."
        )

    def _would_decide(self, interval: Interval, n: int) -> str:
        """Pairs at which an interval of this centre and spread would clear the boundary that it now crosses."""
        spread = (interval.high - interval.estimate) * sqrt(n) / float(stats.t.ppf(0.975, n - 1))
        to_clear = interval.estimate if interval.estimate >= self.matters else self.matters - interval.estimate
        for pairs in range(n + 1, 1000):
            if float(stats.t.ppf(0.975, pairs - 1)) * spread / sqrt(pairs) < to_clear:
                return f"about {pairs} pairs of seeds, if they go on as these did"
        return "more than 1000 pairs of seeds: the difference is about as large as the smallest that matters"


def _interval(gaps: list[float], sides: list[_Side]) -> Interval:
    """The t interval over seeds, widened where seeds agree more closely than their numbers of answers let them."""
    interval = t_interval(gaps)
    from_answers = sqrt(sum(_variance(side) for side in sides)) / len(gaps)
    half = max(interval.high - interval.estimate, 1.96 * from_answers)
    return Interval(interval.estimate, interval.estimate - half, interval.estimate + half)


def _variance(side: _Side) -> float:
    """Of the log odds of a rate among ``n`` answers."""
    rate = 1 / (1 + exp(-side.log_odds))
    return 1 / (side.n * rate * (1 - rate))


def _factor(log_ratio: float) -> str:
    return f"{exp(min(log_ratio, 50)):.2g}"
