"""Contrasts, times to solve, powers and constructions: each rule decides as it was written down."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fathometer.core.claim import Claim
from fathometer.core.evidence import Evidence
from fathometer.core.record import Record
from fathometer.core.spec import named

SHORT, LONG = "length=10", "length=50"


def trial(depth: int, seed: int, rates: dict[str, float], **outcome: Any) -> Record:
    rows = [
        {"split": "s", "stratum": stratum, "metric": "token_accuracy", "value": value, "n": 10_000}
        for stratum, value in rates.items()
    ]
    recipe = {"evaluation": {"test_on": 100}, "stop": {"rule": "solved"}}
    spec = {"task": {"name": "copying"}, "model": {"depth": depth}, "seed": seed, "recipe": recipe}
    return Record(f"{depth:012d}{seed:012d}", "trial", 0, "done", spec, {"scores": rows, **outcome})


def term(weight: float, depth: int, stratum: str = "all") -> dict[str, Any]:
    return {"weight": weight, "reading": {"where": {"model.depth": depth}, "strata": (stratum,)}}


def contrast(*terms: dict[str, Any], **fields: Any) -> Claim:
    settings = {"matters": 0.5, "told": "It changes by", **fields}
    return named("claim", "contrast", identifier="c", statement="s", terms=terms, **settings)


def spread(centre: float, seeds: int = 5) -> list[float]:
    """Rates about a centre, a little apart."""
    return list(1 / (1 + np.exp(-(np.log(centre / (1 - centre)) + np.linspace(-0.05, 0.05, seeds)))))


def both(shallow: tuple[float, float], deep: tuple[float, float]) -> Evidence:
    """Five seeds of two depths, each with a score on short and on long strings."""
    return Evidence(
        trial(depth, seed, {SHORT: short, LONG: long})
        for depth, (at_short, at_long) in ((1, shallow), (2, deep))
        for seed, (short, long) in enumerate(zip(spread(at_short), spread(at_long), strict=True))
    )


INTERACTION = (term(1, 2, LONG), term(-1, 1, LONG), term(-1, 2, SHORT), term(1, 1, SHORT))


def test_an_interaction_is_a_difference_of_differences() -> None:
    grows = contrast(*INTERACTION).judge(both(shallow=(0.9, 0.5), deep=(0.9, 0.8)))
    same = contrast(*INTERACTION).judge(both(shallow=(0.8, 0.5), deep=(0.941, 0.8)))
    assert grows.decision == "supported"
    assert grows.effect == pytest.approx(np.log(0.8 / 0.2), abs=0.01)
    assert len(grows.records) == 10
    assert same.decision == "refuted"
    assert same.effect == pytest.approx(0, abs=0.02)


def test_a_claim_of_nothing_is_supported_by_what_refutes_a_claim_of_more() -> None:
    evidence = both(shallow=(0.9, 0.5), deep=(0.9, 0.8))
    short, long = (contrast(term(1, 2, at), term(-1, 1, at), expects="none").judge(evidence) for at in (SHORT, LONG))
    assert (short.decision, long.decision) == ("supported", "refuted")
    assert "smaller than matters" in short.sentence


def test_shares_are_told_in_points_and_other_numbers_as_they_are() -> None:
    evidence = both(shallow=(0.9, 0.5), deep=(0.9, 0.8))
    points = contrast(term(1, 2, LONG), term(-1, 1, LONG), scale="difference", matters=0.05).judge(evidence)
    assert "It changes by +30.0 points (95% from +2" in points.sentence
    ratio = contrast(term(1, 2, LONG), term(-1, 1, LONG), scale="ratio", matters=0.1).judge(evidence)
    assert "It changes by a factor of 1.6 (95% from" in ratio.sentence


def test_seeds_that_lack_a_part_are_left_out() -> None:
    evidence = Evidence([*both((0.9, 0.5), (0.9, 0.8)), trial(1, 9, {SHORT: 0.5, LONG: 0.5})])
    assert contrast(*INTERACTION).judge(evidence).n == 5


def test_false_support_is_as_rare_as_the_interval_says() -> None:
    rng = np.random.default_rng(3)
    rounds, false = 300, 0
    for _ in range(rounds):
        records = [
            trial(depth, seed, {at: 1 / (1 + np.exp(-rng.normal(1, 0.6))) for at in (SHORT, LONG)})
            for depth in (1, 2)
            for seed in range(5)
        ]
        false += contrast(*INTERACTION, matters=0.0).judge(Evidence(records)).decision == "supported"
    assert false <= stats.binom.ppf(0.9995, rounds, 0.025)


def test_a_prospect_is_the_effect_found_four_times_in_five() -> None:
    planned = both((0.9, 0.5), (0.9, 0.8))
    told = contrast(term(1, 2, LONG), term(-1, 1, LONG)).prospect(planned)
    assert told.endswith("if that is more than matters (a factor of 1.65)")
    effect = float(told.split("effect of ")[1].split()[0])
    rng = np.random.default_rng(4)
    found = [stats.ttest_1samp(rng.normal(effect, 1, 5), 0) for _ in range(2000)]
    power = np.mean([test.pvalue < 0.05 and test.statistic > 0 for test in found])
    assert power == pytest.approx(0.8, abs=0.06)
    assert contrast(term(1, 3)).prospect(planned) == "nothing: 0 seeds, and an interval needs two"
    none = contrast(term(1, 2, LONG), term(-1, 1, LONG), expects="none").prospect(planned)
    spread = float(none.split("deviate by ")[1])
    shown = [stats.t.interval(0.95, 4, x.mean(), stats.sem(x))[1] < 0.5 for x in rng.normal(0, spread, (2000, 5))]
    assert np.mean(shown) > 0.75


def test_seeds_that_agree_exactly_decide_nothing_unless_answers_are_counted() -> None:
    same = [trial(depth, seed, {"all": 1.0}) for depth in (1, 2) for seed in range(3)]
    counted = contrast(term(1, 2), term(-1, 1), scale="difference", matters=0.05).judge(Evidence(same))
    assert counted.decision == "refuted"
    assert counted.high is not None
    assert 0 < counted.high < 0.001
    rows = [{"split": "s", "stratum": "all", "metric": "removable", "value": 0.5, "n": 8}]
    equal = [Record(r.key, "trial", 0, "done", r.spec, {"scores": rows}) for r in same]
    readings = [
        {"weight": w, "reading": {"where": {"model.depth": d}, "metric": "removable"}} for w, d in ((1.0, 2), (-1.0, 1))
    ]
    verdict = contrast(*readings, scale="difference", matters=0.05).judge(Evidence(equal))
    assert verdict.decision == "inconclusive"
    assert verdict.would_decide == "seeds that do not agree exactly, or a score that counts answers"


def test_odds_are_of_rates_alone() -> None:
    reading = {"weight": 1.0, "reading": {"metric": "loss"}}
    with pytest.raises(ValueError, match="'loss' does not count right answers"):
        contrast(reading)
    assert contrast(reading, scale="ratio")


def solved(depth: int, steps: Sequence[int | None]) -> list[Record]:
    return [trial(depth, seed, {"all": 0.9}, solved_at=step) for seed, step in enumerate(steps)]


def sooner(**fields: Any) -> Claim:
    where = {"sooner": {"model.depth": 2}, "later": {"model.depth": 1}}
    return named("claim", "sooner", identifier="c", statement="s", **where, **fields)


@pytest.mark.parametrize(
    ("deep", "shallow", "decision", "told"),
    [
        ([100] * 5, [200, 300, None, 250, 900], "supported", "Sooner in 5 of 5 pairs of seeds"),
        ([200, 300, None, 250, 900], [100] * 5, "refuted", "Sooner in 0 of 5 pairs of seeds"),
        ([100] * 4, [200] * 4, "inconclusive", "Sooner in 4 of 4 pairs of seeds"),
        ([100, None, None, 100], [200, None, None, 50], "inconclusive", "in 1 of 2 pairs of seeds (2 ties)"),
        ([None, 100], [None, 100], "inconclusive", "2 seeds ended on both sides, and none tells them apart."),
    ],
)
def test_times_to_solve_are_compared_seed_by_seed(
    deep: list[int | None], shallow: list[int | None], decision: str, told: str
) -> None:
    verdict = sooner().judge(Evidence([*solved(2, deep), *solved(1, shallow)]))
    assert verdict.decision == decision
    assert told in verdict.sentence


def test_an_unsolved_trial_took_longer_than_any_solved_one() -> None:
    verdict = sooner().judge(Evidence([*solved(2, [900] * 5), *solved(1, [None] * 5)]))
    assert verdict.decision == "supported"
    assert "median steps 900 against unsolved" in verdict.sentence
    assert sooner().prospect(Evidence([*solved(2, [1] * 5), *solved(1, [2] * 5)])).endswith("in 5 of them supports it")
    assert "too few" in sooner().prospect(Evidence([*solved(2, [1] * 3), *solved(1, [2] * 3)]))


def timed(flops: float, seconds: float, place: int) -> Record:
    spec = {"trial": {"seed": 0}, "probe": {"name": "timing"}}
    outcome = {"scores": [], "flops": flops}
    return Record(f"{place:024d}", "probe", 0, "done", spec, outcome, {"timing": {"seconds": seconds}})


def power_law(**fields: Any) -> Claim:
    paths = {"x": "outcome.flops", "y": "provenance.timing.seconds"}
    return named("claim", "power_law", identifier="c", statement="s", probe="timing", **paths, **fields)


def test_a_power_is_found_with_its_interval() -> None:
    rng = np.random.default_rng(5)
    sizes = np.logspace(0, 3, 9)
    linear = [timed(x, 2 * x * np.exp(0.02 * rng.normal()), i) for i, x in enumerate(sizes)]
    root = [timed(x, x**0.5 * np.exp(0.02 * rng.normal()), i) for i, x in enumerate(sizes)]
    noisy = [timed(x, x * np.exp(2 * rng.normal()), i) for i, x in enumerate(sizes)]
    assert power_law().judge(Evidence(linear)).decision == "supported"
    assert power_law().judge(Evidence(root)).decision == "refuted"
    assert power_law().judge(Evidence(noisy)).decision == "inconclusive"
    found = power_law(exponent=0.5).judge(Evidence(root))
    assert found.decision == "supported"
    assert found.effect == pytest.approx(0.5, abs=0.02)
    few = power_law().judge(Evidence([timed(x, x, i) for i, x in enumerate((1, 2, 4) * 5)]))
    assert (few.decision, few.n, few.would_decide) == ("inconclusive", 3, "4 different sizes")


def constructed(seed: int, value: float) -> list[Record]:
    plain = trial(1, seed, {"all": 0.9})
    grown = trial(2, seed, {"all": value})
    spec = {**grown.spec, "start": {"name": "deepened", "trial": plain.spec}}
    return [plain, Record(grown.key, "trial", 0, "done", spec, grown.outcome)]


def test_a_construction_scores_as_what_it_was_made_from_or_is_refuted() -> None:
    claim = named("claim", "equal_scores", identifier="c", statement="s", where={"start.name": "deepened"})
    held = claim.judge(Evidence([*constructed(0, 0.9), *constructed(1, 0.9)]))
    broken = claim.judge(Evidence([*constructed(0, 0.9), *constructed(1, 0.8999)]))
    assert (held.decision, held.n, len(held.records)) == ("supported", 2, 4)
    assert "Checked on 2 pairs of networks" in held.sentence
    assert broken.decision == "refuted"
    assert claim.judge(Evidence(constructed(0, 0.9)[1:])).decision == "inconclusive"
