"""The inline executor: jobs run in this process, one after another. For debugging, notebooks and tests."""

from collections.abc import Sequence
from pathlib import Path

from fathometer.core.trial import Work
from fathometer.execution.jobs import Ended, Event, Job, Lost, Unwritable
from fathometer.execution.worker import Worker, rehearsed_seconds


class InlineExecutor:
    """Runs one submitted job at each call of ``wait``."""

    def __init__(self, root: Path, device: str = "cpu") -> None:
        self.workers = 1
        self._worker = Worker(root, device)
        self._jobs: list[Job] = []

    def submit(self, job: Job) -> None:
        self._jobs.append(job)

    def wait(self, seconds: float) -> list[Event]:
        if not self._jobs:
            return []
        job = self._jobs.pop(0)
        events: list[Event] = []
        self._worker.do(job, events.append)
        unwritable = any(isinstance(event, Unwritable) for event in events)
        return [*events, Lost(job, "the folder takes no more") if unwritable else Ended(job)]

    def rehearse(self, work: Sequence[Work]) -> list[float]:
        return [rehearsed_seconds(each, self._worker.device) for each in work]

    def close(self) -> None:
        self._jobs.clear()
