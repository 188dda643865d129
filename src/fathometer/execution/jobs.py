"""Jobs and events: all that passes between a driver and whatever runs the work. Specs travel as JSON, never pickled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fathometer.core.trial import Work


@dataclass(frozen=True)
class Item:
    """One piece of work: the JSON form of a trial, a measurement or a limit sheet, and which attempt this is."""

    kind: str
    key: str
    spec: Mapping[str, Any]
    attempt: int = 0


@dataclass(frozen=True)
class Job:
    """Items done in turn by one worker: a trial and what is measured on it while its weights are warm."""

    items: tuple[Item, ...]
    cost: float = 0.0
    exclusive: bool = False


@dataclass(frozen=True)
class Recorded:
    """A record is on disk."""

    key: str
    status: str


@dataclass(frozen=True)
class Ended:
    """All items of a job have their records."""

    job: Job


@dataclass(frozen=True)
class Lost:
    """The worker died on a job; items without a record are to be done again."""

    job: Job
    reason: str


@dataclass(frozen=True)
class Unwritable:
    """The results folder takes no more."""

    reason: str


Event = Recorded | Ended | Lost | Unwritable


class Executor(Protocol):
    """What runs jobs. `fathometer.testing.check_executor` tests this contract.

    * Every submitted job comes back once, as `Ended` or as `Lost`; a `Recorded` follows each record written.
    * A record is on disk before its `Recorded` is reported. Submitting never waits for work to end.
    * After `close` nothing of the executor runs any more.
    """

    workers: int

    def submit(self, job: Job) -> None:
        """Takes a job; at most ``workers`` are under way at once."""
        ...

    def wait(self, seconds: float) -> list[Event]:
        """What has happened since the last call; waits up to ``seconds`` when nothing has."""
        ...

    def rehearse(self, work: Sequence[Work]) -> list[float]:
        """The seconds that each piece of work would take here, told from a few steps with all workers busy."""
        ...

    def close(self) -> None:
        """Ends all work at once; what is not recorded is not lost but undone."""
        ...
