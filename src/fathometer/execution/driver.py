"""The driver: asks the study what is wanted, hands out what is not yet known, and asks again, until nothing is.

What is wanted is a pure function of the records, so it does not matter in which order they arrive, how many workers
there are, or how often the driver was killed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fathometer.core.evidence import Evidence
from fathometer.core.record import Record
from fathometer.core.spec import encode
from fathometer.core.study import Study
from fathometer.core.trial import LimitSheet, Measurement, Trial, Work, kind_of
from fathometer.execution.jobs import Ended, Executor, Item, Job, Lost, Recorded, Unwritable
from fathometer.storage.folder import Folder, FolderError

LOSSES_ALLOWED = 3
"""Work on which so many workers died in a row, none getting further than the last, is recorded as failed."""


@dataclass
class State:
    """Where a run stands: what is wanted, what is known, what is being done."""

    wanted: list[Work]
    evidence: Evidence
    done: int = 0
    busy: int = 0
    notes: list[str] = field(default_factory=list)


def everything_wanted(study: Study, evidence: Evidence) -> list[Work]:
    """What the study wants, each once in canonical order, and the limits of every split of its tasks."""
    return complete(study.wanted(evidence))


def complete(named_work: Iterable[Trial | Measurement]) -> list[Work]:
    """This work, each piece once and after what it starts from, and the limits of every split of its tasks."""
    wanted: dict[str, Work] = {}
    for work in named_work:
        trial = work.trial if isinstance(work, Measurement) else work
        for each in (*_sources(trial), trial, work):
            wanted.setdefault(each.key, each)
    tasks = {work.task.key: work.task for work in wanted.values() if isinstance(work, Trial)}
    sheets = [LimitSheet(task=task, split=split) for task in tasks.values() for split in task.splits()]
    return [*sheets, *wanted.values()]


def _sources(trial: Trial) -> list[Trial]:
    """The trials that this one starts from, the first of them first."""
    source = trial.source()
    return [] if source is None else [*_sources(source), source]


def drive(
    study: Study,
    folder: Folder,
    executor: Executor,
    retry: bool = False,
    notify: Callable[[State], None] | None = None,
) -> Evidence:
    """Runs a study to its end and gives all its evidence. Raises FolderError when the folder takes no more."""
    return _Drive(study, folder, executor, retry, notify).run()


def _may_start(work: Work, known: set[str]) -> bool:
    """Whether all that this work starts from has ended."""
    if isinstance(work, LimitSheet):
        return True
    return all(source.key in known for source in _sources(work.trial if isinstance(work, Measurement) else work))


class _Group(NamedTuple):
    """Work for one worker in one go: a trial and what is measured on it, or one thing that stands alone."""

    work: list[Work]
    cost: float
    exclusive: bool = False


def _groups(open_work: Sequence[Work]) -> list[_Group]:
    by_trial: dict[str, list[Work]] = {}
    alone: list[_Group] = []
    for work in open_work:
        if isinstance(work, LimitSheet):
            alone.append(_Group([work], cost=float("inf")))
        elif isinstance(work, Measurement) and work.probe.exclusive:
            alone.append(_Group([work], cost=-1.0, exclusive=True))
        else:
            trial = work.trial if isinstance(work, Measurement) else work
            by_trial.setdefault(trial.key, []).append(work)
    together = [
        _Group(group, cost=sum(work.flops() for work in group if isinstance(work, Trial)))
        for group in by_trial.values()
    ]
    return sorted([*alone, *together], key=lambda group: -group.cost)


class _Drive:
    def __init__(
        self,
        study: Study,
        folder: Folder,
        executor: Executor,
        retry: bool,
        notify: Callable[[State], None] | None,
    ) -> None:
        self.study, self.folder, self.executor, self.notify = study, folder, executor, notify
        self.flying: list[Job] = []
        self.losses: dict[str, tuple[int | None, int]] = {}
        evidence = folder.evidence()
        self.again = {r.key for r in evidence if r.status == "failed"} if retry else set[str]()
        self.planned: list[str] = []
        self.state = State([], evidence)

    def run(self) -> Evidence:
        while True:
            queue = self._plan()
            while queue and len(self.flying) < self.executor.workers and self._may_fly(queue[0]):
                self._fly(queue.pop(0))
            self._tell()
            if not self.flying:
                return self.state.evidence
            for event in self.executor.wait(1.0):
                if isinstance(event, Unwritable):
                    raise FolderError(event.reason)
                if isinstance(event, Recorded):
                    self.again.discard(event.key)
                elif isinstance(event, Ended):
                    self.flying.remove(event.job)
                elif isinstance(event, Lost):
                    self._lost(event)

    def _plan(self) -> list[_Group]:
        """What is still to be handed out, costliest first; what needs the machine to itself comes last."""
        evidence = self.folder.evidence()
        wanted = everything_wanted(self.study, evidence)
        keys = [work.key for work in wanted]
        if keys != self.planned:
            self.folder.write_plan({"wanted": keys})
            self.planned = keys
        flying = {item.key for job in self.flying for item in job.items}
        known = {key for key in keys if evidence.get(key) is not None and key not in self.again}
        self.state.wanted, self.state.evidence = wanted, evidence.only(keys)
        self.state.done, self.state.busy = len(known), len(self.flying)
        return _groups([work for work in wanted if work.key not in known | flying and _may_start(work, known)])

    def _may_fly(self, group: _Group) -> bool:
        """Exclusive work waits until all is quiet, and other work waits for it."""
        return not self.flying if group.exclusive else not any(job.exclusive for job in self.flying)

    def _fly(self, group: _Group) -> None:
        items = [Item(kind_of(w), w.key, encode(w), self.folder.next_attempt(w.key)) for w in group.work]
        job = Job(tuple(items), group.cost, group.exclusive)
        self.flying.append(job)
        self.state.busy = len(self.flying)
        self.executor.submit(job)

    def _lost(self, event: Lost) -> None:
        self.flying.remove(event.job)
        evidence = self.folder.evidence()
        unfinished = [i for i in event.job.items if evidence.get(i.key) is None or i.key in self.again]
        if not unfinished:
            return
        item = unfinished[0]
        reached = self._reached(item)
        before, count = self.losses.get(item.key, (None, 0))
        count = count + 1 if reached == before else 1
        self.losses[item.key] = reached, count
        self.state.notes.append(f"{item.kind} {item.key[:8]}: {event.reason}; done again")
        if count >= LOSSES_ALLOWED:
            reason = f"{event.reason}, {LOSSES_ALLOWED} times"
            outcome = {"scores": [], "error": reason, "reason": reason}
            self.folder.write(Record(item.key, item.kind, item.attempt, "failed", item.spec, outcome))
            self.again.discard(item.key)

    def _reached(self, item: Item) -> int | None:
        """Names the checkpoint that the work has got to: work that gets further between deaths is no poison."""
        try:
            return self.folder.checkpoint_path(item.key).stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def _tell(self) -> None:
        if self.notify:
            self.notify(self.state)
