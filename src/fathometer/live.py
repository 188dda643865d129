"""Live: a run as one watches it. Done and total, rate, time left, and the verdicts as they firm up."""

import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fathometer.comparing import Comparison
from fathometer.core.claim import Verdict
from fathometer.core.study import Study
from fathometer.core.trial import Trial
from fathometer.execution.driver import State
from fathometer.figures.style import metric_name
from fathometer.statistics.judging import judge

COLOURS = {"supported": "green", "refuted": "red", "inconclusive": "yellow"}


class LiveView:
    """Give its ``update`` to a run as ``notify``. On a terminal it redraws itself; elsewhere it prints now and then."""

    def __init__(self, study: Study, console: Console) -> None:
        self.study, self.console = study, console
        self._started = time.monotonic()
        self._first_closed: float | None = None
        self._first_done: int | None = None
        self._printed, self._said = 0.0, ""
        self._told = 0
        self._judged: tuple[int, list[Verdict]] = (-1, [])
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None

    def __enter__(self) -> "LiveView":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            self._live.stop()

    def update(self, state: State) -> None:
        """Shows where the run stands."""
        told = f"{state.done}/{len(state.wanted)} records"
        if state.done < len(state.wanted):
            told += f", {self._rate(state)}, {_left(self._seconds_left(state))}"
        for note in state.notes[self._told :]:
            self.console.print(note, style="yellow")
        self._told = len(state.notes)
        if self._live:
            self._live.update(self._panel(state, told))
        elif told != self._said and (time.monotonic() - self._printed >= 10 or state.done == len(state.wanted)):
            self._printed, self._said = time.monotonic(), told
            self.console.print(told, highlight=False)

    def _rate(self, state: State) -> str:
        """Records a minute since this run began."""
        self._first_done = state.done if self._first_done is None else self._first_done
        minutes = max(time.monotonic() - self._started, 1.0) / 60
        rate = (state.done - self._first_done) / minutes
        return f"{rate:.0f} a minute" if rate >= 10 else f"{rate:.1f} a minute"

    def _seconds_left(self, state: State) -> float | None:
        """From the nominal work done since this run began and what is still open; None until there is any.

        What an adaptive study will want later is not in it.
        """
        costs = {work.key: work.flops() for work in state.wanted if isinstance(work, Trial)}
        closed = sum(cost for key, cost in costs.items() if state.evidence.get(key) is not None)
        self._first_closed = closed if self._first_closed is None else self._first_closed
        done, open_cost = closed - self._first_closed, sum(costs.values()) - closed
        return None if done <= 0 else (time.monotonic() - self._started) * open_cost / done

    def _panel(self, state: State, told: str) -> RenderableType:
        head = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=max(1, len(state.wanted)), completed=state.done, width=40)
        head.add_row(bar, f"{told}, {state.busy} under way")
        if self._judged[0] != len(state.evidence):
            self._judged = len(state.evidence), judge(self.study.claims(), state.evidence)
        return Group(head, verdict_table(self._judged[1]))


def verdict_table(verdicts: list[Verdict]) -> Table:
    """Verdicts as a table for the terminal."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for verdict in verdicts:
        told = Text(verdict.statement, style="bold")
        told.append(f"\n{verdict.sentence}", style="default not bold")
        if verdict.would_decide:
            told.append(f"\nWould decide: {verdict.would_decide}.", style="dim not bold")
        table.add_row(Text(verdict.decision, style=COLOURS[verdict.decision]), told)
    return table


def comparison_tables(found: Comparison) -> list[RenderableType]:
    """Two folders side by side: changed verdicts first, then scores that are apart, then the rest in a line each."""
    verdicts = Table("", "A", "B", "claim", box=None, padding=(0, 2, 0, 0))
    for pair in sorted(found.verdicts, key=lambda pair: not pair.changed):
        sides = [
            Text(v.decision, style=COLOURS[v.decision]) if v else Text("not made") for v in (pair.before, pair.after)
        ]
        known = pair.after or pair.before
        verdicts.add_row("changed" if pair.changed else "same", *sides, known.statement if known else pair.claim)
    scores = Table("", "A", "B", "B - A, 95%", "seeds", "configuration", box=None, padding=(0, 2, 0, 0))
    for row in sorted(found.scores, key=lambda row: not row.apart):
        interval = "" if row.low is None or row.high is None else f"{row.low:+.4f} to {row.high:+.4f}"
        values = (f"{row.before:.4f}", f"{row.after:.4f}", interval, f"{row.seeds[0]}, {row.seeds[1]}", row.cell)
        scores.add_row("apart" if row.apart else "", *values)
    told = f"Trials in both: {found.same} the same bit for bit, {len(found.other)} not"
    told += f" ({', '.join(key[:8] for key in found.other)})" if found.other else ""
    told += f". {found.only_before} in A alone, {found.only_after} in B alone."
    parts: list[RenderableType] = [verdicts] if found.verdicts else []
    if found.scores:
        parts += [Text(f"\n{metric_name(found.metric)}", style="bold"), scores]
    return [*parts, Text(f"\n{told}")]


def duration(seconds: float) -> str:
    """Seconds as one reads them.

    >>> duration(95), duration(7500)
    ('1 min 35 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _left(seconds: float | None) -> str:
    return "time left unknown yet" if seconds is None else f"about {duration(seconds)} left"
