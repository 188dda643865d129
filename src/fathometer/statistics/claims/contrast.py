"""Contrast: a weighted sum of readings, seed by seed, is as large as claimed. Differences, and differences of them."""

from math import exp, sqrt
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator
from scipy import stats

from fathometer.core.claim import Claim, Decision, Verdict
from fathometer.core.evidence import Evidence
from fathometer.core.metrics import METRICS, counted, is_counted
from fathometer.core.spec import Spec
from fathometer.statistics.intervals import Interval, t_interval
from fathometer.statistics.readings import Effect, Reading, on_scale, widened

SCALES = {
    "odds": "log odds of a right answer",
    "ratio": "logarithms",
    "difference": "values as they are",
}


class Term(Spec):
    """One reading and its weight in the sum."""

    weight: float
    reading: Reading


class Contrast(Claim):
    """A weighted sum of readings is above zero, and by as much as ``matters``; or, with ``none``, is not so large.

    Each seed that has all readings gives one number, on the scale of log odds, of logarithms or of the values
    themselves. A claim of ``more`` is supported when the 95% t interval over seeds lies above 0 and its centre reaches
    ``matters``, and refuted when the whole interval lies below ``matters``. A claim of ``none`` is the other way round:
    supported when the whole interval lies below ``matters``. Rates of 0 and 1 stay finite by half a count, and where
    answers are counted the interval is never narrower than their number allows; of other numbers seeds that agree
    exactly decide nothing.
    """

    terms: tuple[Term, ...] = Field(min_length=1)
    scale: Literal["odds", "ratio", "difference"] = "odds"
    matters: float = Field(ge=0, description="smallest sum of interest, on the scale of the claim")
    expects: Literal["more", "none"] = "more"
    told: str = Field(description="the words before the amount in the verdict's sentence")

    @model_validator(mode="after")
    def _odds_are_of_rates(self) -> Self:
        for term in self.terms:
            if self.scale == "odds":
                counted(term.reading.metric)
        return self

    def judge(self, evidence: Evidence) -> Verdict:
        seeds = self._by_seed(evidence)
        keys = tuple(dict.fromkeys(key for seed in seeds for key in seed.keys))
        if len(seeds) < 2:
            number = ("No seed has", "Only one seed has")[len(seeds)]
            sentence = f"{number} all that this claim compares; an interval needs two."
            would = "two seeds at the least"
            return self.verdict("inconclusive", sentence, self._method, len(seeds), would_decide=would, records=keys)
        interval = self._interval(seeds)
        decision = self._decide(interval)
        would = self._would_decide(interval, len(seeds)) if decision == "inconclusive" else ""
        return self.verdict(decision, self._sentence(interval, seeds), self._method, len(seeds), interval, would, keys)

    def prospect(self, planned: Evidence) -> str:
        n = len(set.intersection(*(term.reading.seeds(planned) for term in self.terms)))
        if n < 2:
            return f"nothing: {n} seeds, and an interval needs two"
        needed = float(stats.t.ppf(0.975, n - 1) + stats.t.ppf(0.8, n - 1)) / sqrt(n)
        if self.expects == "none":
            spread = self.matters / needed
            return f"{n} seeds: where there is no gain it shows so four times in five, if seeds deviate by {spread:.2g}"
        return (
            f"{n} seeds: four times in five it finds an effect of {needed:.1f} deviations between seeds, if that is "
            f"more than matters ({self._amount(self.matters)})"
        )

    @property
    def _method(self) -> str:
        return f"contrast of {SCALES[self.scale]}, paired by seed, 95% t interval"

    def _by_seed(self, evidence: Evidence) -> list["_Seed"]:
        try:
            read = [(t.weight, is_counted(t.reading.metric), t.reading.by_seed(evidence)) for t in self.terms]
        except ValueError as error:
            raise ValueError(f"Claim {self.identifier}: {error}") from None
        common = set.intersection(*(set(values) for _, _, values in read))
        return [
            _Seed(
                tuple(values[seed].key for _, _, values in read),
                [(weight, on_scale(values[seed], self.scale, counts)) for weight, counts, values in read],
            )
            for seed in sorted(common)
        ]

    def _interval(self, seeds: list["_Seed"]) -> Interval:
        """The t interval over seeds, widened where they agree more closely than their numbers of answers let them."""
        interval = t_interval([seed.total for seed in seeds])
        parts = [part for seed in seeds for part in seed.parts]
        variances, weights = [effect.variance for _, effect in parts], [weight for weight, _ in parts]
        half = widened(interval.high - interval.estimate, variances, weights, len(seeds))
        return Interval(interval.estimate, interval.estimate - half, interval.estimate + half)

    def _decide(self, interval: Interval) -> Decision:
        if interval.low == interval.high:
            return "inconclusive"  # seeds that agree exactly say nothing of how sure that is
        if interval.low > 0 and interval.estimate >= self.matters:
            return "supported" if self.expects == "more" else "refuted"
        if interval.high < self.matters:
            return "refuted" if self.expects == "more" else "supported"
        return "inconclusive"

    def _sentence(self, interval: Interval, seeds: list["_Seed"]) -> str:
        wins, untied = sum(seed.total > 0 for seed in seeds), sum(seed.total != 0 for seed in seeds)
        sign = stats.binomtest(wins, untied).pvalue if untied else 1.0
        size = ""
        if interval.high < self.matters:
            real = interval.low > 0
            kind = "real, but smaller than matters" if real else "if there is a gain, it is smaller than matters"
            size = f"; {kind} ({self._amount(self.matters)})"
        return (
            f"{self.told} {self._amount(interval.estimate)} (95% from {self._number(interval.low)} to "
            f"{self._number(interval.high)}); higher in {wins} of {len(seeds)} seeds (sign test p = {sign:.2g}){size}."
        )

    def _amount(self, value: float) -> str:
        if self.scale != "difference":
            return f"a factor of {self._number(value)}"
        return self._number(value) + (" points" if self._shares else "")

    def _number(self, value: float) -> str:
        if self.scale != "difference":
            return f"{exp(min(value, 50)):.3g}"
        return f"{100 * value:+.1f}" if self._shares else f"{value:+.2g}"

    @property
    def _shares(self) -> bool:
        """Whether what is read lies between 0 and 1, so that differences are told in points."""
        name = self.terms[0].reading.metric
        return name in METRICS and METRICS[name].share

    def _would_decide(self, interval: Interval, n: int) -> str:
        """Seeds at which an interval of this centre and spread would clear the boundary that it now crosses."""
        if interval.low == interval.high:
            return "seeds that do not agree exactly, or a score that counts answers"
        spread = (interval.high - interval.estimate) * sqrt(n) / float(stats.t.ppf(0.975, n - 1))
        to_clear = interval.estimate if interval.estimate >= self.matters else self.matters - interval.estimate
        for seeds in range(n + 1, 1000):
            if float(stats.t.ppf(0.975, seeds - 1)) * spread / sqrt(seeds) < to_clear:
                return f"about {seeds} seeds, if they go on as these did"
        return "more than 1000 seeds: the difference is about as large as the smallest that matters"


class _Seed(NamedTuple):
    """One seed's part in a contrast."""

    keys: tuple[str, ...]
    parts: list[tuple[float, Effect]]

    @property
    def total(self) -> float:
        return sum(weight * effect.value for weight, effect in self.parts)
