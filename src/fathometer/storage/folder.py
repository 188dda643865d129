"""The results folder: one file a record, named by its key, written whole; weights beside them, written before.

Two drivers may work on one folder and folders merge by copying: a file is only ever replaced by its equal. A record
that cannot be trusted is named, and set aside when somebody next writes here; it is never dropped in silence.
"""

import dataclasses
import errno
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fathometer.core.evidence import Evidence
from fathometer.core.files import write_whole
from fathometer.core.record import VERSION, Record, RecordError, from_json

MANIFEST = "fathometer.json"
PLAN = "plan.json"

STALE = 3600.0
"""Seconds after which a half-written file belongs to nobody any more."""


class FolderError(ValueError):
    """A results folder that cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Problem:
    """A file that could not be trusted."""

    path: Path
    reason: str


class Folder:
    """An open results folder. Reading is incremental: each file is parsed once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.manifest = _read_manifest(root)
        self.problems: list[Problem] = []
        self.removed: list[Problem] = []
        self._seen: dict[str, Record] = {}
        self._attempts: dict[str, int] = {}

    @classmethod
    def create(cls, root: Path, manifest: Mapping[str, Any]) -> "Folder":
        """Opens ``root`` for this study, making it when it is new. Raises FolderError when it holds another study."""
        if root.exists() and not root.is_dir():
            raise FolderError(f"{root} is a file: give a folder with --to.")
        path = root / MANIFEST
        if not path.exists():
            if root.is_dir() and any(path.suffix != ".part" for path in root.iterdir()):
                raise FolderError(
                    f"{root} is not empty and holds no {MANIFEST}, so it is no results folder: give another with --to."
                )
            text = json.dumps({"version": VERSION, **manifest}, indent=1) + "\n"
            _guarded(root, lambda: write_whole(path, text.encode()))
        folder = cls(root)
        if folder.manifest.get("key") != manifest["key"]:
            raise FolderError(
                f"{root} holds the results of another study ({_name(folder.manifest)}): give another folder with --to."
            )
        if folder.manifest["study"] != manifest["study"]:  # the same question, its file elsewhere than before
            text = json.dumps({"version": VERSION, **manifest}, indent=1) + "\n"
            _guarded(root, lambda: write_whole(path, text.encode()))
        return folder

    def evidence(self) -> Evidence:
        """All records that can be trusted."""
        self._scan()
        return Evidence(self._seen.values())

    def next_attempt(self, key: str) -> int:
        """The number of the next attempt at a key, by what was last read."""
        return self._attempts.get(key, -1) + 1

    def write(self, record: Record) -> None:
        """Keeps a record for good; beside one that another driver wrote meanwhile and that says something else.

        Raises FolderError when the folder takes no more, and ValueError when the record is no JSON.
        """
        content = record.to_json().encode()
        try:
            _guarded(self.root, lambda: write_whole(self.record_path(record), content, replace=False))
        except FileExistsError:
            held = self._read(self.record_path(record))
            if held is None or held.digest() != record.digest():
                self.write(dataclasses.replace(record, attempt=record.attempt + 1))

    def write_weights(self, key: str, content: bytes) -> None:
        """Keeps a network's weights; call it before the record that names them is written."""
        _guarded(self.root, lambda: write_whole(self.weights_path(key), content))

    def write_plan(self, plan: Mapping[str, Any]) -> None:
        """Notes what is wanted, so that progress can be told without the code of the study."""
        _guarded(self.root, lambda: write_whole(self.root / PLAN, (json.dumps(plan) + "\n").encode()))

    def plan(self) -> dict[str, Any]:
        """What was wanted when it was last noted; empty when nothing was."""
        try:
            plan = json.loads((self.root / PLAN).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return plan if isinstance(plan, dict) else {}

    def record_path(self, record: Record) -> Path:
        """Where a record stands: its key and its attempt, nothing else."""
        return self.root / "records" / record.key[:2] / f"{record.key}.{record.attempt}.json"

    def weights_path(self, key: str) -> Path:
        """Where a trial's weights stand."""
        return self.root / "weights" / key[:2] / f"{key}.safetensors"

    def checkpoint_path(self, key: str) -> Path:
        """Where a trial that is under way keeps its checkpoint."""
        return self.root / "checkpoints" / f"{key}.safetensors"

    def check_writable(self) -> None:
        """Raises FolderError when nothing can be written here."""
        probe = self.root / ".writable"
        _guarded(self.root, lambda: write_whole(probe, b""))
        probe.unlink(missing_ok=True)

    def set_aside(self) -> list[Problem]:
        """Moves every file that cannot be trusted to ``aside/``, so that its work can be done again."""
        self._scan()
        self.removed, self.problems = self.problems, []
        for part in self.root.rglob(".*.part"):
            with suppress(FileNotFoundError):
                if time.time() - part.stat().st_mtime > STALE:
                    part.unlink()
        for problem in self.removed:
            place = self.root / "aside" / problem.path.name
            number = 0
            while place.exists():
                number += 1
                place = place.with_name(f"{problem.path.name}.{number}")
            place.parent.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):  # another driver was faster
                problem.path.replace(place)
        return self.removed

    def _scan(self) -> None:
        self.problems = []
        for path in sorted((self.root / "records").glob("*/*.json")):
            if path.name in self._seen or path.name.startswith("."):
                continue
            record = self._read(path)
            if record:
                self._seen[path.name] = record
                self._attempts[record.key] = max(record.attempt, self._attempts.get(record.key, -1))

    def _read(self, path: Path) -> Record | None:
        try:
            record = from_json(path.read_text(encoding="utf-8", errors="strict"))
            if path.name != f"{record.key}.{record.attempt}.json":
                raise RecordError(f"it holds the record of {record.key}, attempt {record.attempt}")
        except FileNotFoundError:
            return None  # set aside by another driver meanwhile
        except (OSError, ValueError) as error:
            self.problems.append(Problem(path, str(error)))
            return None
        return record


def _read_manifest(root: Path) -> dict[str, Any]:
    if root.exists() and not root.is_dir():
        raise FolderError(f"{root} is a file, not a results folder.")
    try:
        manifest = json.loads((root / MANIFEST).read_text(encoding="utf-8"))
        version = manifest["version"]
        manifest["study"]["name"]
    except FileNotFoundError:
        raise FolderError(f"{root} is no results folder: it has no {MANIFEST}.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise FolderError(f"{root / MANIFEST} is damaged ({error!r}): restore it, or begin in a new folder.") from None
    if not isinstance(version, int) or version > VERSION:
        raise FolderError(
            f"{root} was written by a newer Fathometer (folder version {version}, known {VERSION}): "
            f"upgrade with pip install -U fathometer."
        )
    return manifest


def _name(manifest: Mapping[str, Any]) -> str:
    study = manifest["study"]
    return f"{study['name']}, scale {study.get('scale')}, seed {study.get('seed')}"


def _guarded(root: Path, write: Any) -> None:
    """Runs a write; turns what the file system says into what the user can do."""
    try:
        write()
    except FileExistsError:
        raise
    except OSError as error:
        reasons = {
            errno.ENOSPC: "the disk is full: free some space",
            errno.EDQUOT: "the disk quota is used up: free some space",
            errno.EROFS: "it is on a read-only file system: give another folder with --to",
            errno.EACCES: "it is not writable by you: change its permissions, or give another folder with --to",
            errno.EPERM: "it is not writable by you: change its permissions, or give another folder with --to",
            errno.ENOTDIR: "part of its path is a file: give another folder with --to",
        }
        reason = reasons.get(error.errno or 0, str(error))
        raise FolderError(
            f"Cannot write to {root}: {reason}. All that is recorded there is kept; the same command goes on."
        ) from error
