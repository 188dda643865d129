"""The live view: what it says of a run, on a terminal and in a log."""

import io

import pytest
from rich.console import Console

from fathometer import live
from fathometer.core.evidence import Evidence
from fathometer.execution.driver import State, everything_wanted
from fathometer.laboratory import Results


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    held = Clock()
    monkeypatch.setattr(live, "time", held)
    return held


def test_a_log_tells_done_rate_time_left_and_what_happened(results: Results, clock: Clock) -> None:
    study, evidence = results.study, results.evidence()
    assert study is not None
    wanted = everything_wanted(study, evidence)
    trials = [record for record in evidence if record.kind == "trial"]
    out = io.StringIO()
    with live.LiveView(study, Console(file=out, width=200)) as view:
        view.update(State(wanted, Evidence(), done=0))
        clock.now += 60
        shallow = [record for record in trials if record.spec["model"]["depth"] == 1]
        view.update(State(wanted, Evidence(shallow), done=len(shallow), notes=["a worker died; done again"]))
    whole = sum(work.flops() for work in wanted if work.key in {record.key for record in trials})
    done = sum(work.flops() for work in wanted if work.key in {record.key for record in shallow})
    left = live.duration(60 * (whole - done) / done)
    assert out.getvalue().splitlines() == [
        f"0/{len(wanted)} records, 0.0 a minute, time left unknown yet",
        "a worker died; done again",
        f"2/{len(wanted)} records, 2.0 a minute, about {left} left",
    ]


def test_a_terminal_shows_the_verdicts_as_they_firm_up(results: Results, clock: Clock) -> None:
    study, evidence = results.study, results.evidence()
    assert study is not None
    out = io.StringIO()
    with live.LiveView(study, Console(file=out, force_terminal=True, width=100, height=40)) as view:
        view.update(State(everything_wanted(study, evidence), evidence, done=12, busy=0))
        view._live.refresh()
    shown = out.getvalue()
    assert "12/12 records" in shown
    for verdict in results.verdicts():
        assert verdict.statement in shown
        assert verdict.decision in shown


def test_durations_read_like_speech() -> None:
    assert [live.duration(seconds) for seconds in (0.4, 59.6, 3599, 3600, 90_000)] == [
        "0 s", "1 min 0 s", "59 min 59 s", "1 h 0 min", "25 h 0 min",
    ]  # fmt: skip
