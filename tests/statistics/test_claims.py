"""Claims: every rule decides as it was written down, says what is missing, and keeps its error rates."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fathometer.core.claim import Claim
from fathometer.core.evidence import Evidence
from fathometer.core.record import Record, Status
from fathometer.core.spec import decode, encode, named
from fathometer.statistics.judging import judge

TASK = {"name": "copying", "lengths": [3]}


def trial(depth: int, seed: int, value: float, n: int = 1000, status: Status = "done") -> Record:
    row = {"split": "s", "stratum": "all", "metric": "token_accuracy", "value": value, "n": n}
    spec = {"task": TASK, "model": {"depth": depth}, "seed": seed, "recipe": {"evaluation": {"test_on": n}}}
    outcome = {"scores": [row] if status == "done" else []}
    return Record(f"{depth:012d}{seed:012d}", "trial", 0, status, spec, outcome)


def sheet(optimal: float, best: float | None = None) -> Record:
    limit = {"split": "s", "stratum": "all", "metric": "token_accuracy", "source": "exact"}
    limits = [
        limit | {"kind": "task_optimal", "value": optimal},
        limit | {"kind": "stratum_best", "value": best or optimal},
    ]
    return Record("f" * 24, "limit", 0, "done", {"task": TASK, "split": "s"}, {"scores": [], "limits": limits})


def paired(**fields: Any) -> Claim:
    where = {"better": {"model.depth": 2}, "worse": {"model.depth": 1}}
    return named("claim", "paired_difference", identifier="c", statement="s", **where, **fields)


def solves(at_least: float) -> Claim:
    where = {"model.depth": 1}
    return named("claim", "solve_rate", identifier="c", statement="s", where=where, at_least=at_least)


def pairs(better: Sequence[float], worse: Sequence[float], n: int = 1000) -> Evidence:
    sides = [(2, better), (1, worse)]
    return Evidence([trial(depth, seed, value, n) for depth, side in sides for seed, value in enumerate(side)])


def test_a_clear_difference_is_supported_and_its_opposite_refuted() -> None:
    up = paired().judge(pairs([0.9, 0.91, 0.92, 0.9], [0.5, 0.52, 0.51, 0.5]))
    down = paired().judge(pairs([0.5, 0.52, 0.51, 0.5], [0.9, 0.91, 0.92, 0.9]))
    assert (up.decision, down.decision) == ("supported", "refuted")
    assert up.low is not None
    assert up.low > 0
    assert len(up.records) == 8
    assert "higher in 4 of 4 seeds (sign test p = 0.12)" in up.sentence


def test_a_difference_that_does_not_matter_is_refuted_and_named_so() -> None:
    real = paired(matters=1.0).judge(pairs([0.55] * 6, [0.5] * 6, n=10**6))
    assert real.decision == "refuted"
    assert "real, but smaller than matters (a factor of 2.72)" in real.sentence
    assert real.would_decide == ""
    unsure = paired(matters=1.0).judge(pairs([0.5, 0.51, 0.5, 0.51], [0.5, 0.5, 0.51, 0.51]))
    assert unsure.decision == "refuted"
    assert "if there is a gain, it is smaller than matters" in unsure.sentence


def test_a_difference_about_as_large_as_what_matters_stays_open() -> None:
    edge = 1 / (1 + np.exp(-0.499))
    verdict = paired().judge(pairs([edge + 0.01, edge - 0.01], [0.5, 0.5], n=10**6))
    assert verdict.decision == "inconclusive"
    assert verdict.would_decide.startswith("more than 1000 seeds")


def test_seeds_that_agree_exactly_never_give_an_interval_of_no_width() -> None:
    verdict = paired().judge(pairs([0.9] * 3, [0.9] * 3, n=100))
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.high - verdict.low > 0.3
    assert verdict.decision == "inconclusive"


def test_only_seeds_on_both_sides_are_paired() -> None:
    verdict = paired().judge(Evidence([trial(2, 0, 0.9), trial(1, 1, 0.5)]))
    assert (verdict.decision, verdict.n) == ("inconclusive", 0)
    assert verdict.would_decide == "two seeds at the least"


def test_a_filter_that_catches_several_cells_is_an_error() -> None:
    claim = named("claim", "paired_difference", identifier="c", statement="s", better={"model.depth": (1, 2)}, worse={})
    with pytest.raises(ValueError, match=r"Claim c: .* selects more than one trial of seed 0"):
        claim.judge(pairs([0.9], [0.5]))


def test_the_pairs_said_to_decide_would_decide() -> None:
    rng = np.random.default_rng(1)
    worse = [0.5] * 3
    few = [0.6, 0.75, 0.65]
    verdict = paired().judge(pairs(few, worse))
    assert verdict.decision == "inconclusive"
    needed = int(verdict.would_decide.split()[1])
    logs = [np.log(x / (1 - x)) for x in few]
    drawn = stats.norm.ppf((np.arange(needed) + 0.5) / needed) * np.std(logs, ddof=1) + np.mean(logs)
    many = list(1 / (1 + np.exp(-rng.permutation(drawn))))
    assert paired().judge(pairs(many, [0.5] * needed)).decision == "supported"


def test_a_difference_of_nothing_is_rarely_supported() -> None:
    rng = np.random.default_rng(2)
    rounds, false = 400, 0
    for _ in range(rounds):
        better, worse = (1 / (1 + np.exp(-rng.normal(1.0, 0.7, size=5))) for _ in range(2))
        false += paired(matters=0.0).judge(pairs(list(better), list(worse))).decision == "supported"
    assert false <= stats.binom.ppf(0.9995, rounds, 0.025)


@pytest.mark.parametrize(
    ("solved", "n", "at_least", "decision"),
    [(5, 5, 0.5, "supported"), (4, 4, 0.5, "inconclusive"), (29, 29, 0.9, "supported"), (0, 2, 0.9, "refuted"),
     (3, 3, 1 / 3, "supported"), (0, 3, 0.5, "inconclusive"), (0, 5, 0.5, "refuted"), (6, 10, 0.9, "refuted")],
)  # fmt: skip
def test_solve_rates_are_decided_at_the_published_counts(solved: int, n: int, at_least: float, decision: str) -> None:
    records = [trial(1, seed, 0.985 if seed < solved else 0.9) for seed in range(n)]
    verdict = solves(at_least).judge(Evidence([*records, sheet(0.99)]))
    assert verdict.decision == decision
    assert f"{solved} of {n} seeds" in verdict.sentence


def test_diverged_trials_have_not_solved() -> None:
    records = [trial(1, seed, 0.0, status="diverged") for seed in range(5)]
    assert solves(0.5).judge(Evidence([*records, sheet(0.99)])).decision == "refuted"


def test_without_trials_it_says_what_would_decide() -> None:
    verdict = solves(0.5).judge(Evidence())
    assert (verdict.decision, verdict.would_decide) == ("inconclusive", "5 more seeds, all solved, would support it")


def test_scores_above_the_limit_are_found_and_luck_is_not() -> None:
    claim = named("claim", "within_limits", identifier="c", statement="s")
    lucky = Evidence([trial(1, 0, 0.905, n=5000), sheet(0.9)])
    leaking = Evidence([trial(1, 0, 0.95), trial(2, 0, 0.9), sheet(0.9)])
    too_few = claim.judge(Evidence([trial(1, 0, 0.905, n=1000), sheet(0.9)]))
    without_limit = claim.judge(Evidence([trial(1, 0, 0.9)]))
    assert claim.judge(lucky).decision == "supported"
    assert claim.judge(leaking).decision == "refuted"
    assert (too_few.decision, too_few.would_decide) == ("inconclusive", "more test examples")
    assert (without_limit.decision, without_limit.would_decide) == ("inconclusive", "one finished trial")


def test_answers_of_one_example_are_not_taken_for_independent() -> None:
    claim = named("claim", "within_limits", identifier="c", statement="s")
    alone = trial(1, 0, 0.91, n=10_000)
    whole = {"split": "s", "stratum": "all", "metric": "sequence_accuracy", "value": 0.5, "n": 1000}
    together = dataclasses.replace(alone, outcome={"scores": [*alone.scores, whole]})
    assert claim.judge(Evidence([alone, sheet(0.9)])).decision == "refuted"
    assert claim.judge(Evidence([together, sheet(0.9)])).decision == "inconclusive"


def test_a_perfect_score_at_a_limit_of_one_is_no_leak() -> None:
    claim = named("claim", "within_limits", identifier="c", statement="s")
    assert claim.judge(Evidence([trial(1, 0, 1.0), sheet(1.0)])).decision == "supported"


def test_a_claim_about_a_score_that_counts_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="'loss' does not count right answers"):
        paired(metric="loss")


def test_claims_survive_their_json_form_and_judge_the_same() -> None:
    evidence = pairs([0.9, 0.8], [0.5, 0.6])
    again = decode("claim", encode(paired()))
    assert judge([again], evidence) == judge([paired()], evidence)
