"""Kills a run at random instants and checks that nothing is lost, doubled or different.

``python tests/end_to_end/kill_harness.py --kills 30`` does it to the smoke sweep: sweep after sweep, each killed every
few seconds (the driver's whole process group, or one worker, by lot) and started again by the same command until it
ends, its outcomes then compared bit for bit with those of a run that was left alone. The seed is printed; give it again
to see the same instants.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fathometer.storage.folder import Folder


@dataclass
class Tally:
    """What was done to the sweeps."""

    driver_kills: int = 0
    worker_kills: int = 0
    sweeps: int = 0

    @property
    def kills(self) -> int:
        return self.driver_kills + self.worker_kills


def outcomes(root: Path) -> dict[str, str]:
    """The digest of every record, by key and attempt. Raises AssertionError for a record that cannot be trusted."""
    folder = Folder(root)
    found = {record.key: record.digest() for record in folder.evidence()}
    files = list((root / "records").glob("*/*.json"))
    assert not folder.problems, folder.problems
    assert len(files) == len(found), "a record stands twice"
    assert not list((root / "aside").glob("*")), "a record was set aside"
    return found


def start(study: str, root: Path) -> subprocess.Popen[bytes]:
    """The run, in a process group of its own."""
    command = [sys.executable, "-m", "fathometer.cli", "run", study, "--to", str(root), "--workers", "2"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def workers_of(driver: int) -> list[int]:
    """The process numbers of a driver's workers."""
    children = Path(f"/proc/{driver}/task/{driver}/children").read_text().split()
    return [int(child) for child in children]


def sweep(study: str, root: Path, luck: random.Random, pause: tuple[float, float], tally: Tally, most: int) -> None:
    """One sweep to its end, killed now and then until the tally is full."""
    tally.sweeps += 1
    run = start(study, root)
    while True:
        wait = luck.uniform(*pause) if tally.kills < most else None
        try:
            _, errors = run.communicate(timeout=wait)
        except subprocess.TimeoutExpired:
            workers = workers_of(run.pid)
            if luck.random() < 0.5 and workers:
                os.kill(luck.choice(workers), signal.SIGKILL)
                tally.worker_kills += 1
            else:
                os.killpg(run.pid, signal.SIGKILL)
                run.communicate()
                tally.driver_kills += 1
                run = start(study, root)
            continue
        assert run.returncode == 0, errors.decode()
        return


def harness(study: str, kills: int, seed: int, pause: tuple[float, float]) -> Tally:
    """Sweeps until there were so many kills; raises AssertionError at the first difference."""
    luck, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory() as scratch:
        undisturbed = Path(scratch) / "undisturbed"
        sweep(study, undisturbed, luck, pause, Tally(), most=0)
        expected = outcomes(undisturbed)
        while tally.kills < kills:
            root = Path(scratch) / f"sweep-{tally.sweeps}"
            sweep(study, root, luck, pause, tally, most=kills)
            found = outcomes(root)
            assert found.keys() == expected.keys(), "records are missing or were added"
            different = [key for key in expected if found[key] != expected[key]]
            assert not different, f"outcomes differ: {different}"
    return tally


def main(words: Sequence[str] | None = None) -> None:
    """Runs the harness and prints its tally."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", default="copy")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--pause", type=float, nargs=2, default=(1.0, 40.0))
    options = parser.parse_args(words)
    print(f"seed {options.seed}", flush=True)
    tally = harness(options.study, options.kills, options.seed, tuple(options.pause))
    print(
        f"{tally.kills} kills ({tally.driver_kills} of the driver's group, {tally.worker_kills} of a worker) in "
        f"{tally.sweeps} sweeps: the same outcomes bit for bit, none lost, none doubled"
    )


if __name__ == "__main__":
    main()
