"""Holm's adjustment against statsmodels."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from fathometer.statistics.multiplicity import holm


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_it_is_statsmodels(p_values: list[float]) -> None:
    np.testing.assert_allclose(holm(p_values), multipletests(p_values, method="holm")[1], rtol=1e-12, atol=1e-15)


def test_nothing_stays_nothing() -> None:
    assert holm([]) == []
