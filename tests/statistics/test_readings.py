"""Readings: what is read off scores, probes and curves, and on which scale."""

import numpy as np
import pytest

from fathometer.core.evidence import Evidence
from fathometer.core.record import Record, Status
from fathometer.core.spec import decode, encode, named
from fathometer.statistics.readings import Reading, Value, fluctuation, on_scale

SPEC = {"task": {"name": "copying"}, "recipe": {"evaluation": {"test_on": 50}}}


def row(
    stratum: str, value: float, metric: str = "token_accuracy", split: str = "s", n: int = 100
) -> dict[str, object]:
    return {"split": split, "stratum": stratum, "metric": metric, "value": value, "n": n}


def trial(seed: int, rows: list[dict[str, object]], depth: int = 1, status: Status = "done") -> Record:
    spec = SPEC | {"model": {"depth": depth}, "seed": seed}
    return Record(f"{depth:012d}{seed:012d}", "trial", 0, status, spec, {"scores": rows})


def probe(seed: int, settings: dict[str, object], rows: list[dict[str, object]]) -> Record:
    spec = {"trial": SPEC | {"model": {"depth": 1}, "seed": seed}, "probe": settings}
    return Record(f"{seed:023d}{settings['name'][0]}", "probe", 0, "done", spec, {"scores": rows})  # type: ignore[index]


def test_strata_are_averaged_with_equal_weight_and_their_answers_added() -> None:
    evidence = Evidence([trial(0, [row("length=10", 0.9, n=100), row("length=20", 0.5, n=300), row("all", 0.6)])])
    read = Reading(strata=("length=10", "length=20")).by_seed(evidence)
    assert read[0].value == pytest.approx(0.7)
    assert read[0].n == 400
    assert Reading(strata=("length=10", "length=30")).by_seed(evidence) == {}


def test_a_probe_is_told_apart_by_its_settings() -> None:
    clean = probe(0, {"name": "scores", "split": "clean", "task": None}, [row("all", 0.9)])
    noised = probe(1, {"name": "scores", "split": "noised", "task": None}, [row("all", 0.8)])
    other = probe(2, {"name": "scores", "split": "noised", "task": {"name": "copying"}}, [row("all", 0.1)])
    evidence = Evidence([clean, noised, other])
    asked = {"name": "scores", "split": "noised", "task": None}
    assert {seed: read.value for seed, read in Reading(probe=asked).by_seed(evidence).items()} == {1: 0.8}


def test_a_diverged_trial_has_answered_nothing_right() -> None:
    evidence = Evidence([trial(0, [], status="diverged"), trial(1, [row("all", 0.9)])])
    assert {seed: read.value for seed, read in Reading().by_seed(evidence).items()} == {0: 0.0, 1: 0.9}
    assert Reading(metric="loss").by_seed(evidence) == {}
    settings = {"name": "scores", "split": "clean", "examples": 70}
    measured = probe(0, settings, [])
    evidence = Evidence([Record(measured.key, "probe", 0, "diverged", measured.spec, {"scores": []})])
    assert Reading(probe={"name": "scores"}).by_seed(evidence)[0][1:] == (0.0, 70)
    assert Reading(probe={"name": "scores"}, metric="loss_gap").by_seed(evidence) == {}


def test_two_trials_of_one_seed_are_refused() -> None:
    evidence = Evidence([trial(0, [row("all", 0.9)], depth=1), trial(0, [row("all", 0.9)], depth=2)])
    with pytest.raises(ValueError, match="selects more than one trial of seed 0"):
        Reading().by_seed(evidence)


def test_a_reading_of_one_seed_comes_back_whole_from_json() -> None:
    claim = named(
        "claim", "contrast", identifier="c", statement="s", matters=0.5, told="It is",
        terms=({"weight": 1.0, "reading": {"where": {"model.depth": 1}, "strata": ("length=1", "length=2")}},),
    )  # fmt: skip
    again = decode("claim", encode(claim))
    assert again == claim
    assert again.key == claim.key


@pytest.mark.parametrize("deviation", [0.02, 0.1])
def test_fluctuation_is_the_deviation_about_a_trend(deviation: float) -> None:
    rng = np.random.default_rng(0)
    steps = np.arange(4000)
    losses = np.exp(2 - 0.001 * steps + deviation * rng.normal(size=len(steps)))
    assert fluctuation({"train_loss": [None, *losses]}) == pytest.approx(deviation, rel=0.05)
    smooth = np.exp(-((steps / 4000) ** 2))
    assert fluctuation({"train_loss": list(smooth)}) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("points", "most"), [(100, 0.005), (10, 0.2)])
def test_a_bend_seen_at_a_hundred_points_is_next_to_no_fluctuation(points: int, most: float) -> None:
    place = np.linspace(0, 1, points)
    sigmoid = np.exp(0.8 - 2.5 / (1 + np.exp(-(place - 0.4) / 0.08)))
    assert fluctuation({"train_loss": list(sigmoid)}) < most  # type: ignore[operator]


def test_a_curve_too_short_to_fluctuate_says_nothing() -> None:
    assert fluctuation({"train_loss": [None, 1.0, 0.9, 0.8, 0.7]}) is None
    assert fluctuation({}) is None


def test_scales() -> None:
    odds = on_scale(Value("k", 0.75, 100), "odds", counts=True)
    assert odds.value == pytest.approx(np.log(75.5 / 25.5))
    assert odds.variance == pytest.approx(1 / (100 * (75.5 / 101) * (25.5 / 101)))
    assert on_scale(Value("k", 0.5, 0), "ratio", counts=False) == (pytest.approx(np.log(0.5)), 0.0)
    assert on_scale(Value("k", -0.2, 0), "difference", counts=False) == (-0.2, 0.0)
    with pytest.raises(ValueError, match="numbers above 0"):
        on_scale(Value("k", 0.0, 0), "ratio", counts=False)


@pytest.mark.parametrize("scale", ["odds", "ratio", "difference"])
def test_the_variance_is_that_of_counting(scale: str) -> None:
    rng = np.random.default_rng(1)
    shares = rng.binomial(400, 0.7, 20_000) / 400
    values = [on_scale(Value("k", share, 400), scale, counts=True).value for share in shares]
    assert on_scale(Value("k", 0.7, 400), scale, counts=True).variance == pytest.approx(np.var(values), rel=0.05)
