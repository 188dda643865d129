"""Paired difference: one configuration scores higher than another on the same seeds."""

from math import exp, sqrt
from typing import Any

from pydantic import Field
from scipy import stats

from fathometer.core.claim import Claim, Decision, Verdict
from fathometer.core.evidence import Evidence
from fathometer.core.record import Record
from fathometer.statistics.intervals import Interval, log_odds, t_interval


class PairedDifference(Claim):
    """The log odds of a right answer are higher by at least ``matters`` in ``better`` than in ``worse``.

    Trials are paired by seed. Supported when the 95% t interval over seeds lies above 0 and its centre reaches
    ``matters``; refuted when it lies below 0. Accuracies of 0 and 1 stay finite by half a count. A diverged trial
    counts as right half a time in all it was asked.
    """

    better: dict[str, Any]
    worse: dict[str, Any]
    metric: str = "token_accuracy"
    stratum: str = "all"
    matters: float = Field(0.5, ge=0, description="smallest difference of interest, in log odds")

    def judge(self, evidence: Evidence) -> Verdict:
        better, worse = self._by_seed(evidence, self.better), self._by_seed(evidence, self.worse)
        seeds = sorted(better.keys() & worse.keys())
        gaps = [better[seed][0] - worse[seed][0] for seed in seeds]
        keys = tuple(side[seed][1] for seed in seeds for side in (better, worse))
        if len(gaps) < 2:
            sentence = f"Only {len(gaps)} seed has ended on both sides; an interval needs 2."
            return self._verdict("inconclusive", sentence, None, len(gaps), "2 pairs of seeds at the least", keys)
        interval = self._interval(gaps, [side[seed][2] for seed in seeds for side in (better, worse)])
        decision: Decision = "inconclusive"
        if interval.low > 0 and interval.estimate >= self.matters:
            decision = "supported"
        elif interval.high < 0:
            decision = "refuted"
        return self._verdict(
            decision,
            self._sentence(interval, gaps),
            interval,
            len(gaps),
            "" if decision != "inconclusive" else self._would_decide(interval, len(gaps)),
            keys,
        )

    def _by_seed(self, evidence: Evidence, where: dict[str, Any]) -> dict[int, tuple[float, str, int]]:
        """Log odds, key and number of answers by seed. Raises ValueError when ``where`` selects several cells."""
        found: dict[int, tuple[float, str, int]] = {}
        for trial in evidence.trials(where):
            seed = trial.spec["seed"]
            if seed in found:
                raise ValueError(f"Claim {self.identifier}: {where} selects more than one trial of seed {seed}.")
            rate, n = self._rate(trial)
            found[seed] = (log_odds(rate, n), trial.key, n)
        return found

    def _rate(self, trial: Record) -> tuple[float, int]:
        for row in trial.scores:
            if row["metric"] == self.metric and row["stratum"] == self.stratum:
                return row["value"], row["n"]
        return 0.0, int(trial.spec["recipe"]["evaluation"]["test_on"])

    def _interval(self, gaps: list[float], counts: list[int]) -> Interval:
        """The t interval, never narrower than half a count on each side allows."""
        interval = t_interval(gaps)
        least = 1.0 / min(counts)
        half = max(interval.high - interval.estimate, least)
        return Interval(interval.estimate, interval.estimate - half, interval.estimate + half)

    def _sentence(self, interval: Interval, gaps: list[float]) -> str:
        wins = sum(gap > 0 for gap in gaps)
        untied = sum(gap != 0 for gap in gaps)
        sign = stats.binomtest(wins, untied).pvalue if untied else 1.0
        size = "" if interval.estimate >= self.matters or interval.low <= 0 else "; real, but smaller than matters"
        return (
            f"The odds of a right answer change by a factor of {_factor(interval.estimate)} "
            f"(95% from {_factor(interval.low)} to {_factor(interval.high)}); higher in {wins} of {len(gaps)} seeds "
            f"(sign test p = {sign:.2g}){size}."
        )

    def _would_decide(self, interval: Interval, n: int) -> str:
        """Pairs at which a gap of this size and spread would leave 0 outside the interval."""
        if interval.low > 0:
            return "a larger difference: more seeds will not change this verdict"
        spread = (interval.high - interval.estimate) * sqrt(n) / float(stats.t.ppf(0.975, n - 1))
        effect = max(abs(interval.estimate), self.matters)
        for pairs in range(n + 1, 1000):
            if float(stats.t.ppf(0.975, pairs - 1)) * spread / sqrt(pairs) < effect:
                return f"about {pairs} pairs of seeds, if the true difference is {effect:.2g} in log odds"
        return "more than 1000 pairs of seeds"

    def _verdict(
        self, decision: Decision, sentence: str, interval: Interval | None, n: int, would: str, keys: tuple[str, ...]
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
            method="difference of log odds, paired by seed, 95% t interval",
            would_decide=would,
            records=keys,
        )


def _factor(log_ratio: float) -> str:
    return f"{exp(min(log_ratio, 50)):.2g}"
