"""Intervals: what a count or a handful of seeds says about the truth behind it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats


class Interval(NamedTuple):
    """An estimate with its lower and upper limit."""

    estimate: float
    low: float
    high: float


def wilson(right: int, n: int, level: float = 0.95) -> Interval:
    """A rate with its Wilson interval: for display, and never of zero width.

    >>> [round(x, 2) for x in wilson(10, 10)]
    [1.0, 0.72, 1.0]
    """
    return _rate(right, n, level, "wilson")


def clopper_pearson(right: int, n: int, level: float = 0.95) -> Interval:
    """A rate with its exact, conservative interval: for certification.

    >>> [round(x, 2) for x in clopper_pearson(29, 29, level=0.9)]
    [1.0, 0.9, 1.0]
    """
    return _rate(right, n, level, "exact")


def t_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """A mean with its t interval; needs two values. Transform first when the scale is not roughly normal."""
    if len(values) < 2:
        raise ValueError(f"A t interval needs at least 2 values, got {len(values)}.")
    mean = float(np.mean(values))
    half = float(stats.t.ppf((1 + level) / 2, len(values) - 1) * stats.sem(values))
    return Interval(mean, mean - half, mean + half)


def log_odds(rate: float, n: int) -> float:
    """The log odds of a rate found on ``n`` trials, kept finite at 0 and 1 by half a count on each side."""
    shrunk = (rate * n + 0.5) / (n + 1)
    return float(np.log(shrunk / (1 - shrunk)))


def _rate(right: int, n: int, level: float, method: str) -> Interval:
    if not 0 <= right <= n or n < 1:
        raise ValueError(f"A rate needs 0 <= right <= n and n >= 1, got right = {right}, n = {n}.")
    limits = stats.binomtest(right, n).proportion_ci(level, method=method)
    return Interval(right / n, float(limits.low), float(limits.high))
