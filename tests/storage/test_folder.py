"""The results folder: nothing half written, nothing silently dropped, every refusal explained."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from fathometer.core import files
from fathometer.core.record import Record
from fathometer.storage.folder import MANIFEST, Folder, FolderError

STUDY = {"key": "a", "study": {"name": "copy", "scale": "smoke", "seed": 0}}


def record(letter: str, attempt: int = 0) -> Record:
    return Record(letter * 24, "trial", attempt, "done", {"seed": 0}, {"scores": []})


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder.create(tmp_path / "results", STUDY)


def test_what_is_written_is_read_again(folder: Folder) -> None:
    folder.write(record("a"))
    assert [r.key for r in Folder(folder.root).evidence()] == ["a" * 24]
    assert not list(folder.root.rglob("*.part"))


def test_attempts_are_counted_by_key(folder: Folder) -> None:
    folder.write(record("a"))
    folder.write(record("a", 1))
    folder.evidence()
    assert folder.next_attempt("a" * 24) == 2
    assert folder.next_attempt("b" * 24) == 0


def test_folders_merge_by_copying(folder: Folder, tmp_path: Path) -> None:
    other = Folder.create(tmp_path / "other", STUDY)
    folder.write(record("a"))
    other.write(record("a"))
    other.write(record("b"))
    shutil.copytree(other.root, folder.root, dirs_exist_ok=True)
    assert [r.key[0] for r in Folder(folder.root).evidence()] == ["a", "b"]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text[: len(text) // 2], "not whole JSON"),
        (lambda text: text.replace('"done"', '"failed"'), "edited or damaged"),
        (lambda text: "\xff" + text, "not whole JSON"),
        (lambda text: "", "not whole JSON"),
    ],
)
def test_untrusted_records_are_named_and_set_aside(folder: Folder, damage: object, reason: str) -> None:
    folder.write(record("a"))
    path = folder.record_path(record("a"))
    path.write_text(damage(path.read_text()))
    again = Folder(folder.root)
    assert len(again.evidence()) == 0
    assert again.problems[0].path == path
    assert reason in again.problems[0].reason
    again.set_aside()
    assert (folder.root / "aside" / path.name).exists()
    assert not path.exists()
    assert len(Folder(folder.root).evidence()) == 0
    assert not Folder(folder.root).problems


def test_a_record_under_a_foreign_name_is_named(folder: Folder) -> None:
    folder.write(record("a"))
    path = folder.record_path(record("a"))
    path.rename(path.with_name("b" * 24 + ".0.json"))
    again = Folder(folder.root)
    again.evidence()
    assert "it holds the record of aaaa" in again.problems[0].reason


def test_setting_aside_twice_keeps_both(folder: Folder) -> None:
    for _ in range(2):
        folder.record_path(record("a")).parent.mkdir(parents=True, exist_ok=True)
        folder.record_path(record("a")).write_text("{")
        Folder(folder.root).set_aside()
    assert len(list((folder.root / "aside").iterdir())) == 2


def test_refusals_say_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(FolderError, match="is a file: give a folder with --to"):
        Folder.create(file, STUDY)
    with pytest.raises(FolderError, match="part of its path is a file"):
        Folder.create(file / "below", STUDY)
    with pytest.raises(FolderError, match="no results folder"):
        Folder(tmp_path / "nothing")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("")
    with pytest.raises(FolderError, match="is not empty and holds no"):
        Folder.create(foreign, STUDY)


def test_another_study_s_folder_is_refused(folder: Folder) -> None:
    with pytest.raises(FolderError, match=r"another study \(copy, scale smoke, seed 0\)"):
        Folder.create(folder.root, {"key": "b", "study": {"name": "copy", "scale": "paper", "seed": 0}})


def test_a_newer_folder_is_refused(folder: Folder) -> None:
    (folder.root / MANIFEST).write_text(json.dumps({"version": 99, **STUDY}))
    with pytest.raises(FolderError, match=r"written by a newer Fathometer .* upgrade"):
        Folder(folder.root)


def test_a_damaged_manifest_is_refused(folder: Folder) -> None:
    (folder.root / MANIFEST).write_text("{")
    with pytest.raises(FolderError, match="is damaged"):
        Folder(folder.root)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "not writable"),
        (errno.EIO, "Input/output"),
    ],
)
def test_a_write_that_fails_is_explained_and_leaves_nothing(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, number: int, message: str
) -> None:
    def full(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(FolderError, match=f"{message}.*the same command goes on"):
        folder.write(record("a"))
    assert not [path for path in (folder.root / "records").rglob("*") if path.is_file()]
