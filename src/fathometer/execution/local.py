"""The local executor: long-lived worker processes on this machine, one a core, one thread each."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from fathometer.core.spec import encode
from fathometer.core.trial import Work, kind_of
from fathometer.execution.jobs import Ended, Event, Job, Lost, Recorded, Unwritable

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def available_cores() -> list[int]:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class LocalExecutor:
    """Workers start when first needed and are replaced when they die."""

    def __init__(self, root: Path, workers: int, device: str = "cpu", checkpoint_every: float = 10.0) -> None:
        self.workers = workers
        self._root, self._device, self._checkpoint_every = root, device, checkpoint_every
        self._pool: list[_Process | None] = [None] * workers
        self._queue: list[Job] = []
        self._lines: queue.Queue[tuple[_Process, dict[str, Any] | None]] = queue.Queue()

    def submit(self, job: Job) -> None:
        self._queue.append(job)
        self._hand_out()

    def wait(self, seconds: float) -> list[Event]:
        events: list[Event] = []
        for process, line in self._arrived(seconds):
            events += self._understand(process, line)
        self._hand_out()
        return events

    def rehearse(self, work: Sequence[Work]) -> list[float]:
        """All workers work at once, as they will in the sweep, so the seconds have its contention in them."""
        waiting, seconds = list(range(len(work))), dict[int, float]()
        while len(seconds) < len(work):
            for slot in range(min(self.workers, len(work))):
                process = self._process(slot)
                if process.rehearsing is None and waiting:
                    process.rehearsing = waiting.pop(0)
                    one = work[process.rehearsing]
                    process.send({"rehearse": {"kind": kind_of(one), "spec": encode(one)}})
            for process, line in self._arrived(1.0):
                if line is None:
                    raise ValueError(f"A worker died while it was timed: {process.log.read_text()[-500:]}")
                assert process.rehearsing is not None
                if "error" in line:
                    raise ValueError(f"{work[process.rehearsing]!r} cannot be timed: {line['error']}")
                seconds[process.rehearsing] = line["seconds"]
                process.rehearsing = None
        return [seconds[index] for index in range(len(work))]

    def close(self) -> None:
        self._queue.clear()
        for process in self._pool:
            if process:
                process.end()
        self._pool = [None] * self.workers

    def worker_ids(self) -> list[int]:
        """The process numbers of the workers that are alive."""
        return [process.popen.pid for process in self._pool if process]

    def _hand_out(self) -> None:
        for slot in range(self.workers):
            if not self._queue:
                return
            process = self._process(slot)
            if process.job is None:
                process.job = self._queue.pop(0)
                process.send({"items": [asdict(item) for item in process.job.items]})

    def _process(self, slot: int) -> "_Process":
        process = self._pool[slot]
        if process is None:
            process = _Process(self._root, slot, self._device, self._checkpoint_every, self._lines)
            self._pool[slot] = process
        return process

    def _arrived(self, seconds: float) -> list[tuple["_Process", dict[str, Any] | None]]:
        try:
            found = [self._lines.get(timeout=seconds)]
        except queue.Empty:
            return []
        while not self._lines.empty():
            found.append(self._lines.get_nowait())
        return found

    def _understand(self, process: "_Process", line: dict[str, Any] | None) -> list[Event]:
        if line is None:
            self._pool[process.slot] = None
            code = process.popen.wait()
            reason = f"signal {-code}" if code < 0 else f"exit code {code}"
            return [Lost(process.job, f"the worker died ({reason})")] if process.job else []
        kind = line.pop("event")
        if kind == "Recorded":
            return [Recorded(**line)]
        if kind == "Unwritable":
            return [Unwritable(**line)]
        assert kind == "Ended" and process.job is not None
        job, process.job = process.job, None
        return [Ended(job)]


class _Process:
    """One worker process and what it is doing."""

    def __init__(self, root: Path, slot: int, device: str, checkpoint_every: float, lines: "queue.Queue[Any]") -> None:
        self.slot = slot
        self.job: Job | None = None
        self.rehearsing: int | None = None
        self.log = root / "logs" / f"worker-{slot}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "fathometer.execution.worker", str(root), "--device", device]
        command += ["--checkpoint-every", str(checkpoint_every)]
        with self.log.open("ab") as log:
            self.popen = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=os.environ | ONE_THREAD
            )
        assert self.popen.stdin is not None and self.popen.stdout is not None
        self._stdin: IO[bytes] = self.popen.stdin
        threading.Thread(target=self._read, args=(self.popen.stdout, lines), daemon=True).start()

    def send(self, request: dict[str, Any]) -> None:
        try:
            self._stdin.write((json.dumps(request) + "\n").encode())
            self._stdin.flush()
        except BrokenPipeError:
            pass  # it has died: the reader reports it

    def end(self) -> None:
        with suppress(BrokenPipeError):
            self._stdin.close()
        try:
            self.popen.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()

    def _read(self, stdout: IO[bytes], lines: "queue.Queue[Any]") -> None:
        with stdout:
            for text in stdout:
                try:
                    lines.put((self, json.loads(text)))
                except ValueError:
                    break  # cut off in mid-line
        lines.put((self, None))
