"""The driver: what ends in the folder depends on the study alone, not on order, workers, deaths or restarts."""

import os
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fathometer.core.claim import Claim
from fathometer.core.evidence import Evidence, score
from fathometer.core.record import Record, Status
from fathometer.core.spec import digest, named
from fathometer.core.study import Figure, Study
from fathometer.core.trial import Measurement, Trial, Work
from fathometer.execution.driver import LOSSES_ALLOWED, drive
from fathometer.execution.jobs import Ended, Event, Item, Job, Lost, Recorded, Unwritable
from fathometer.probing.timing import Timing
from fathometer.storage.folder import Folder, FolderError


class Climb(Study):
    """Goes to the next depth when the mean score of the last one, over its seeds in order, is below a mark."""

    seeds: int = 3

    @property
    def question(self) -> str:
        return "How deep?"

    def wanted(self, evidence: Evidence) -> Sequence[Trial | Measurement]:
        wanted: list[Trial | Measurement] = []
        for depth in range(1, 6):
            trials = [_trial(depth, seed) for seed in range(self.seeds)]
            wanted += trials
            wanted.append(Measurement(trial=trials[0], probe=Timing()))
            records = [evidence.get(trial.key) for trial in trials]
            values = [score(record, "token_accuracy") if record else None for record in records]
            if None in values or sum(v for v in values if v) / self.seeds > 0.6:
                break
        return wanted

    def claims(self) -> Sequence[Claim]:
        return []

    def figures(self, evidence: Evidence) -> Iterable[Figure]:
        return []


def _trial(depth: int, seed: int) -> Trial:
    return Trial(
        task=named("task", "copying", lengths=(2,)), model=named("model", "transformer", depth=depth), seed=seed
    )


def _record(item: Item, status: Status = "done") -> Record:
    value = int(digest([item.key, "score"])[:8], 16) / 2**32
    row = {"split": "in_distribution", "stratum": "all", "metric": "token_accuracy", "value": value, "n": 9}
    return Record(item.key, item.kind, item.attempt, status, item.spec, {"scores": [row]}, {"luck": random.random()})


class LuckyExecutor:
    """Does jobs in any order, and now and then loses a worker before or after a record is written."""

    def __init__(self, folder: Folder, workers: int, luck: random.Random, losses: int = 0) -> None:
        self.folder, self.workers, self.luck, self.losses = folder, workers, luck, losses
        self.jobs: list[Job] = []
        self.done: list[str] = []
        self.alone = True

    def submit(self, job: Job) -> None:
        self.jobs.append(job)
        if any(held.exclusive for held in self.jobs) and len(self.jobs) > 1:
            self.alone = False
        assert len(self.jobs) <= self.workers

    def wait(self, seconds: float) -> list[Event]:
        if not self.jobs:
            return []
        job = self.jobs.pop(self.luck.randrange(len(self.jobs)))
        events: list[Event] = []
        for item in job.items:
            if self.losses and self.luck.random() < 0.5:
                self.losses -= 1
                return [*events, Lost(job, "the worker died (signal 9)")]
            self.folder.write(_record(item))
            self.done.append(item.key)
            events.append(Recorded(item.key, "done"))
        return [*events, Ended(job)]

    def rehearse(self, work: Sequence[Work]) -> list[float]:
        return [1.0 for _ in work]

    def close(self) -> None:
        self.jobs.clear()


def _outcomes(evidence: Evidence) -> dict[str, str]:
    return {record.key: record.digest() for record in evidence}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = Folder.create(tmp_path_factory.mktemp("undisturbed") / "r", {"key": "climb", "study": {"name": "climb"}})
    return _outcomes(drive(Climb(), folder, LuckyExecutor(folder, 1, random.Random(0))))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(workers=st.integers(1, 7), seed=st.integers(0, 10**6), losses=st.integers(0, 2))
def test_order_workers_and_deaths_change_nothing(
    undisturbed: dict[str, str], tmp_path_factory: pytest.TempPathFactory, workers: int, seed: int, losses: int
) -> None:
    folder = Folder.create(tmp_path_factory.mktemp("run") / "r", {"key": "climb", "study": {"name": "climb"}})
    executor = LuckyExecutor(folder, workers, random.Random(seed), losses)
    assert _outcomes(drive(Climb(), folder, executor)) == undisturbed
    assert len(set(executor.done)) == len(executor.done), "work was done twice"
    assert executor.alone, "exclusive work ran beside other work"


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keep=st.sets(st.integers(0, 30)))
def test_any_part_of_the_records_grows_to_the_same_whole(
    undisturbed: dict[str, str], tmp_path_factory: pytest.TempPathFactory, keep: set[int]
) -> None:
    folder = Folder.create(tmp_path_factory.mktemp("part") / "r", {"key": "climb", "study": {"name": "climb"}})
    drive(Climb(), folder, LuckyExecutor(folder, 2, random.Random(1)))
    for index, path in enumerate(sorted((folder.root / "records").glob("*/*.json"))):
        if index not in keep:
            path.unlink()
    again = Folder(folder.root)
    assert _outcomes(drive(Climb(), again, LuckyExecutor(again, 3, random.Random(2)))) == undisturbed


def test_the_climb_is_adaptive(undisturbed: dict[str, str], tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "r", {"key": "climb", "study": {"name": "climb"}})
    evidence = drive(Climb(), folder, LuckyExecutor(folder, 2, random.Random(0)))
    assert len(evidence.trials()) > 3
    assert set(folder.plan()["wanted"]) == set(undisturbed)


def test_work_that_kills_every_worker_ends_as_failed(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "r", {"key": "climb", "study": {"name": "climb"}})

    class Poison(LuckyExecutor):
        def wait(self, seconds: float) -> list[Event]:
            if self.jobs and self.jobs[0].items[0].kind == "trial":
                return [Lost(self.jobs.pop(0), "the worker died (signal 11)")]
            return super().wait(seconds)

    notes: list[str] = []
    evidence = drive(
        Climb(seeds=1), folder, Poison(folder, 1, random.Random(0)), notify=lambda s: notes.extend(s.notes)
    )
    (failed,) = [record for record in evidence if record.kind == "trial"]
    assert failed.status == "failed"
    assert failed.outcome["reason"] == f"the worker died (signal 11), {LOSSES_ALLOWED} times"
    assert "signal 11" in notes[0]


@pytest.mark.parametrize("retry", [False, True])
def test_failed_work_is_done_again_when_asked_for(tmp_path: Path, retry: bool) -> None:
    folder = Folder.create(tmp_path / "r", {"key": "climb", "study": {"name": "climb"}})
    drive(Climb(), folder, LuckyExecutor(folder, 1, random.Random(0)))
    trial = _trial(1, 0)
    first = next(record for record in folder.evidence() if record.key == trial.key)
    folder.record_path(first).unlink()
    folder.write(Record(first.key, first.kind, 0, "failed", first.spec, {"scores": [], "error": "?"}))
    again = Folder(folder.root)
    evidence = drive(Climb(), again, LuckyExecutor(again, 1, random.Random(0)), retry=retry)
    found = evidence.get(trial.key)
    assert found is not None
    assert (found.status, found.attempt) == (("done", 1) if retry else ("failed", 0))


def test_a_full_folder_stops_the_run_with_its_reason(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "r", {"key": "climb", "study": {"name": "climb"}})

    class Full(LuckyExecutor):
        def wait(self, seconds: float) -> list[Event]:
            return [Unwritable("the disk is full"), Lost(self.jobs.pop(), "the folder takes no more")]

    with pytest.raises(FolderError, match="the disk is full"):
        drive(Climb(), folder, Full(folder, 1, random.Random(0)))


def test_two_drivers_on_one_folder_lose_nothing(undisturbed: dict[str, str], tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "r", {"key": "climb", "study": {"name": "climb"}})

    class Interfering(LuckyExecutor):
        """Between two events of the first driver a second one does everything."""

        def wait(self, seconds: float) -> list[Event]:
            second = Folder(folder.root)
            drive(Climb(), second, LuckyExecutor(second, 2, random.Random(5)))
            return super().wait(seconds)

    evidence: Any = drive(Climb(), folder, Interfering(folder, 2, random.Random(0)))
    assert _outcomes(evidence) == undisturbed


def test_work_that_gets_further_between_deaths_is_no_poison(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "r", {"key": "climb", "study": {"name": "climb"}})

    class Interrupted(LuckyExecutor):
        deaths = 0

        def wait(self, seconds: float) -> list[Event]:
            if self.jobs and self.jobs[0].items[0].kind == "trial" and self.deaths < 6:
                self.deaths += 1
                path = folder.checkpoint_path(self.jobs[0].items[0].key)
                path.parent.mkdir(exist_ok=True)
                path.write_text(str(self.deaths))
                os.utime(path, ns=(self.deaths, self.deaths))
                return [Lost(self.jobs.pop(0), "the worker died (signal 9)")]
            return super().wait(seconds)

    evidence = drive(Climb(seeds=1), folder, Interrupted(folder, 1, random.Random(0)))
    assert {record.status for record in evidence} == {"done"}
