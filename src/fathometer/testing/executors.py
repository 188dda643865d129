"""What every executor promises, checked with tiny jobs."""

import time
from collections.abc import Callable
from pathlib import Path

from fathometer.core.recipe import Evaluation, Recipe
from fathometer.core.spec import encode, named
from fathometer.core.trial import Trial, kind_of
from fathometer.execution.jobs import Ended, Event, Executor, Item, Job, Lost, Recorded
from fathometer.storage.folder import Folder


def check_executor(make: Callable[[Path], Executor], root: Path, patience: float = 120.0) -> None:
    """Raises AssertionError with the promise that the executor breaks. ``make`` gives one for a results folder.

    Checked: every job comes back once and is on disk when it is told; a job whose spec cannot be run ends in a failed
    record and not in an exception; rehearsals answer in order; nothing is left running after ``close``.
    """
    folder = Folder.create(root, {"key": "check", "study": {"name": "check"}})
    trials = [_trial(seed) for seed in range(3)]
    jobs = [Job((_item(trial),)) for trial in trials]
    broken = Item("trial", "0" * 24, {**encode(trials[0]), "seed": -1})
    jobs.append(Job((broken,)))
    executor = make(root)
    try:
        for job in jobs:
            executor.submit(job)
        events = _until_all_ended(executor, len(jobs), folder, patience)
        seconds = executor.rehearse(trials[:2])
    finally:
        executor.close()
    ended = [event.job for event in events if isinstance(event, Ended)]
    assert sorted(job.items[0].key for job in ended) == sorted(job.items[0].key for job in jobs), (
        "a job is not ended once"
    )
    evidence = Folder(root).evidence()
    assert all((record := evidence.get(trial.key)) and record.status == "done" for trial in trials), (
        "a trial is missing"
    )
    failed = evidence.get(broken.key)
    assert failed is not None and failed.status == "failed", "a job that cannot be run left no failed record"
    assert len(seconds) == 2 and all(each > 0 for each in seconds), "a rehearsal gave no seconds"


def _trial(seed: int) -> Trial:
    return Trial(
        task=named("task", "copying", lengths=(2, 3)),
        model=named("model", "transformer", depth=1, width=8, heads=2),
        recipe=Recipe(steps=4, batch=4, evaluation=Evaluation(every=2, validate_on=8, test_on=16)),
        seed=seed,
    )


def _item(trial: Trial) -> Item:
    return Item(kind_of(trial), trial.key, encode(trial))


def _until_all_ended(executor: Executor, jobs: int, folder: Folder, patience: float) -> list[Event]:
    events: list[Event] = []
    deadline = time.monotonic() + patience
    while sum(isinstance(event, Ended | Lost) for event in events) < jobs:
        assert time.monotonic() < deadline, f"{jobs} tiny jobs have not come back within {patience} s"
        new = executor.wait(1.0)
        for event in new:
            if isinstance(event, Recorded):
                assert folder.evidence().get(event.key), f"{event.key} was told before it was on disk"
        events += new
    return events
