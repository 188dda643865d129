"""The library in five lines, as in a notebook."""

from pathlib import Path

import altair as alt
import pandas as pd
import polars as pl
import pytest

import fathometer as fm
from fathometer.laboratory import Results


def test_five_lines_run_read_and_draw(tmp_path: Path) -> None:
    results = fm.try_(
        "copying", "transformer", depth=[1, 2], width=8, heads=2, lengths=[[2, 3]], steps=10,
        evaluation__test_on=16, seeds=1, to=tmp_path / "r", workers=0,
    )  # fmt: skip
    frame = results.scores()
    assert isinstance(frame, pl.DataFrame)
    assert isinstance(frame.to_pandas(), pd.DataFrame)
    accuracy = frame.filter((pl.col("metric") == "token_accuracy") & (pl.col("stratum") == "all"))
    assert sorted(accuracy["model.depth"]) == [1, 2]
    assert isinstance(results.draw("scores"), alt.TopLevelMixin)


def test_tables_join_by_key(results: Results) -> None:
    curves = results.sql("select t.key, count(*) n from trials t join curves c on t.key = c.key group by all")
    assert curves["n"].to_list() == [7] * 4
    limits = results.table("limits")
    assert {"exact", "estimated"} == set(limits["source"])
    assert results.table("probes")["probe"].value_counts().sort("probe")["count"].to_list() == [4, 1]


def test_unknown_names_are_told(results: Results) -> None:
    with pytest.raises(LookupError, match="no table 'trails': did you mean 'trials'"):
        results.table("trails")
    with pytest.raises(LookupError, match="no figure 'score': did you mean 'scores'"):
        results.draw("score")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fm.nothing  # noqa: B018


def test_everything_public_can_be_had() -> None:
    assert all(getattr(fm, name) is not None for name in fm.__all__)


def test_dry_runs_are_honest_in_kind(tmp_path: Path, tiny: str) -> None:
    short = fm.estimate(fm.laboratory.find_study(tiny), tmp_path / "none", workers=1)
    assert (short.wanted, short.open_trials) == (12, 4)
    assert short.seconds is not None
    assert 0 < short.seconds < 300
