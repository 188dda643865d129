"""Intervals against closed forms, published values and their own promise."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from fathometer.statistics.intervals import clopper_pearson, log_odds, t_interval, wilson


@pytest.mark.parametrize(("right", "n"), [(0, 10), (3, 10), (10, 10), (497, 1000)])
def test_rates_agree_with_statsmodels(right: int, n: int) -> None:
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "beta")):
        assert ours(right, n)[1:] == pytest.approx(proportion_confint(right, n, method=method), abs=1e-12)


def test_certifying_takes_as_many_seeds_as_published() -> None:
    for share, needed in ((0.9, 29), (0.75, 11), (0.5, 5)):
        assert clopper_pearson(needed, needed, level=0.9).low >= share
        assert clopper_pearson(needed - 1, needed - 1, level=0.9).low < share


def test_no_rate_has_an_interval_of_no_width() -> None:
    assert all(wilson(k, 5).high > wilson(k, 5).low for k in range(6))


def test_bad_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="right = 5, n = 4"):
        wilson(5, 4)


def test_t_interval_covers_as_promised() -> None:
    rng = np.random.default_rng(0)
    rounds = 2000
    covered = sum(low <= 1 <= high for _, low, high in (t_interval(rng.normal(1, 2, size=4)) for _ in range(rounds)))
    low, high = stats.binom.ppf([0.0005, 0.9995], rounds, 0.95)
    assert low <= covered <= high
    with pytest.raises(ValueError, match="at least 2 values, got 1"):
        t_interval([1.0])


def test_log_odds_stay_finite() -> None:
    assert log_odds(1.0, 9) == pytest.approx(np.log(9.5 / 0.5))
    assert log_odds(0.0, 9) == pytest.approx(-log_odds(1.0, 9))
