"""Evidence: one record a key, in an order of its own."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from fathometer.core.evidence import Evidence, cells, matches, score
from fathometer.core.record import Record, Status


def trial(key: str, attempt: int = 0, status: Status = "done", value: float = 0.5, seed: int = 0) -> Record:
    row = {"split": "s", "stratum": "all", "metric": "token_accuracy", "value": value, "n": 4}
    spec = {"model": {"name": "m", "depth": int(key[-1], 16) % 3}, "seed": seed, "task": {"lengths": [1, 2]}}
    return Record(key.rjust(24, "0"), "trial", attempt, status, spec, {"scores": [row] if status == "done" else []})


RECORDS = [trial(k, a, s) for k in "abc" for a, s in ((0, "failed"), (1, "done"), (2, "failed"))]


@given(st.permutations(RECORDS))
def test_arrival_order_changes_nothing(records: Sequence[Record]) -> None:
    evidence = Evidence(records)
    assert [record.key for record in evidence] == [letter.rjust(24, "0") for letter in "abc"]
    assert all(record.attempt == 1 for record in evidence)


def test_where_matches_values_tuples_and_lists() -> None:
    spec = trial("a").spec
    assert matches(spec, {"model.depth": 1, "task.lengths": (1, 2)})
    assert matches(spec, {"model.depth": (1, 2)})
    assert not matches(spec, {"model.depth": (0, 2)})
    assert not matches(spec, {"model.nothing": 1})


def test_failed_trials_are_no_evidence_and_diverged_ones_are() -> None:
    evidence = Evidence([trial("a", status="failed"), trial("b", status="diverged"), trial("c")])
    assert [record.status for record in evidence.trials()] == ["diverged", "done"]


def test_score_reads_the_row_that_is_asked() -> None:
    assert score(trial("a", value=0.25), "token_accuracy") == 0.25
    assert score(trial("a"), "loss") is None


def test_cells_hold_trials_that_differ_by_seed_only() -> None:
    records = [trial("1", seed=0), trial("4", seed=1), trial("2", seed=0)]
    assert [len(group) for group in cells(records).values()] == [2, 1]
