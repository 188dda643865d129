"""Worker: does jobs one after another in one process with one thread, and writes each record itself.

Nothing raises for a piece of work: a failure is a record with its traceback. As a program it reads jobs from standard
input and answers on standard output, a JSON line each, and ends at once when its driver is gone.
"""

import argparse
import hashlib
import json
import os
import platform
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import nn

from fathometer.core.record import Record, Status
from fathometer.core.spec import canonical
from fathometer.core.trial import LimitSheet, Measurement, Subject, Trial, Work, decode_work
from fathometer.evaluation.numerics import pick_device, steady
from fathometer.execution.jobs import Event, Item, Job, Recorded, Unwritable
from fathometer.storage.folder import Folder, FolderError
from fathometer.training.checkpoint import Checkpoint
from fathometer.training.loop import fresh_network, run
from fathometer.training.rehearsal import rehearse, seconds_of

Found = tuple[Status, dict[str, Any], dict[str, Any]]
"""Status, outcome and what belongs to the provenance."""


class Worker:
    """Turns items into records in a folder. Keeps the last trained network warm for the probes that follow it."""

    def __init__(self, root: Path, device: str, checkpoint_every: float = 10.0) -> None:
        self.folder, self.device, self.checkpoint_every = Folder(root), device, checkpoint_every
        self._warm: tuple[str, nn.Module] | None = None
        self._diverged: set[str] = set()

    def do(self, job: Job, tell: Callable[[Event], None]) -> None:
        """Every item of the job ends in a record, told when it is on disk."""
        for item in job.items:
            try:
                record = self._record(item)
                self.folder.write(record)
            except FolderError as error:
                tell(Unwritable(str(error)))
                return
            tell(Recorded(record.key, record.status))

    def _record(self, item: Item) -> Record:
        started = time.perf_counter()
        try:
            work = decode_work(item.kind, item.spec)
            status, outcome, beside = self._do(work)
            canonical([outcome, beside])  # what is no JSON is a failure of this work, not of the worker
        except FolderError:
            raise
        except Exception as error:
            status, beside = "failed", {}
            outcome = {"scores": [], "error": traceback.format_exc(), "reason": f"{type(error).__name__}: {error}"}
        provenance = {"seconds": round(time.perf_counter() - started, 3), "device": self.device, **machine(), **beside}
        return Record(item.key, item.kind, item.attempt, status, item.spec, outcome, provenance)

    def _do(self, work: Work) -> Found:
        if isinstance(work, Trial):
            return self._train(work)
        if isinstance(work, Measurement):
            return self._measure(work)
        limits = [limit.model_dump() for limit in work.task.limits(work.split)]
        return "done", {"scores": [], "limits": limits, "task_key": work.task.key}, {}

    def _train(self, trial: Trial) -> Found:
        checkpoint = Checkpoint(self.folder.checkpoint_path(trial.key), self.checkpoint_every)
        trained = run(trial, self.device, checkpoint, trained=self._network)
        parameters = sum(p.numel() for p in trained.network.parameters())
        outcome = trained.outcome | {"parameters": parameters, "task_key": trial.task.key, "cell": trial.cell()}
        if trained.status == "done":
            outcome["weights"] = self._keep(trial.key, trained.network)
        else:
            self._diverged.add(trial.key)
        checkpoint.discard()
        return trained.status, outcome, {"flops": trial.flops()}

    def _measure(self, measurement: Measurement) -> Found:
        trial = measurement.trial
        network = self._network(trial)
        if network is None:
            reason = "the trial diverged, so there is no trained network to measure"
            return "diverged", {"scores": [], "trial": trial.key, "reason": reason}, {}
        with steady():
            finding = measurement.probe.measure(Subject(network, trial, self.device))
        outcome = {"scores": [], "trial": trial.key, **finding.outcome}
        return "done", outcome, ({"timing": dict(finding.timing)} if finding.timing else {})

    def _network(self, trial: Trial) -> nn.Module | None:
        """The trained network: warm, from its file, or trained again, which gives the same. None when it diverged."""
        if self._warm and self._warm[0] == trial.key:
            return self._warm[1]
        record = self.folder.evidence().get(trial.key)
        if trial.key in self._diverged or (record and record.status == "diverged"):
            return None
        path = self.folder.weights_path(trial.key)
        content = path.read_bytes() if path.exists() else b""
        if record and hashlib.sha256(content).hexdigest() == record.outcome.get("weights"):
            with steady():
                network = fresh_network(trial, self.device)
            network.load_state_dict(load(content))
            self._warm = (trial.key, network)
            return network
        trained = run(trial, self.device, trained=self._network)
        if trained.status != "done":
            return None
        self._keep(trial.key, trained.network)
        return trained.network

    def _keep(self, key: str, network: nn.Module) -> str:
        content = save(
            {name: value.detach().cpu().contiguous().clone() for name, value in network.state_dict().items()}
        )
        self.folder.write_weights(key, content)
        self._warm = (key, network)
        return hashlib.sha256(content).hexdigest()


@cache
def machine() -> dict[str, Any]:
    """What of the machine and the software may explain a difference between two runs."""
    return {
        "fathometer": version("fathometer"),
        "torch": str(torch.__version__),
        "numpy": version("numpy"),
        "python": platform.python_version(),
        "system": platform.system(),
        "commit": _commit(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "cpu": _cpu_name(),
        "threads": 1,
    }


def _commit() -> str | None:
    """The commit of a checkout that the package runs from, marked when files were changed since; None elsewhere."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    ask = ["git", "-C", str(root)]
    try:
        commit = subprocess.run([*ask, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*ask, "status", "--porcelain", "src"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip() + ("+changed" if changed.stdout.strip() else "")


def _cpu_name() -> str:
    """The processor and the instructions torch uses on it: what floating-point results depend on."""
    instructions = torch.backends.cpu.get_cpu_capability()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    told = dict(line.split("\t", 1) for line in text.split("\n\n")[0].splitlines() if "\t" in line)
    parts = [told.get(name, ":").strip("\t: ") for name in ("model name", "cpu family", "model")]
    return f"{parts[0] or platform.machine()} (family {parts[1]}, model {parts[2]}), {instructions}"


def main() -> None:
    """Reads one JSON line a request: a job, or a trial to rehearse."""
    parser = argparse.ArgumentParser(prog="fathometer.execution.worker")
    parser.add_argument("root", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--checkpoint-every", type=float, default=10.0)
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what user code prints must not mix with the answers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()

    def tell(event: Event) -> None:
        answers.write(json.dumps({"event": type(event).__name__, **asdict(event)}) + "\n")
        answers.flush()

    device, worker = pick_device(options.device), None
    while True:
        request = requests.get()
        if "rehearse" in request:
            answers.write(json.dumps(_rehearsed(request["rehearse"], device)) + "\n")
        else:
            worker = worker or Worker(options.root, device, options.checkpoint_every)
            worker.do(Job(tuple(Item(**item) for item in request["items"])), tell)
            answers.write(json.dumps({"event": "Ended"}) + "\n")
        answers.flush()


def rehearsed_seconds(work: Work, device: str) -> float:
    """Seconds that a piece of work would take here: a trial's from a few steps, a probe's on a fresh network."""
    if isinstance(work, Trial):
        return rehearse(work, device).whole(work)
    if isinstance(work, LimitSheet):
        return seconds_of(lambda: work.task.limits(work.split))
    with steady():
        subject = Subject(fresh_network(work.trial, device), work.trial, device)
        return seconds_of(lambda: work.probe.measure(subject))


def _rehearsed(request: dict[str, Any], device: str) -> dict[str, Any]:
    try:
        return {"seconds": rehearsed_seconds(decode_work(request["kind"], request["spec"]), device)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _listen(requests: "queue.Queue[dict[str, Any]]") -> None:
    for line in sys.stdin:
        requests.put(json.loads(line))
    os._exit(0)  # the driver is gone: what is not recorded is undone, and its checkpoint is on disk


if __name__ == "__main__":
    main()
