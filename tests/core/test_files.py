"""Files: whole or absent, and never replaced unasked, on file systems with links and without."""

import errno
import os
from pathlib import Path

import pytest

from fathometer.core.files import write_whole


@pytest.fixture(params=["links", "no links"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def refuse(path: Path, target: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    if request.param == "no links":
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    return tmp_path / "a" / "file"


def test_a_new_file_is_written_and_a_held_one_is_kept(place: Path) -> None:
    write_whole(place, b"one", replace=False)
    with pytest.raises(FileExistsError):
        write_whole(place, b"two", replace=False)
    assert [path.read_bytes() for path in place.parent.iterdir()] == [b"one"]


def test_a_held_file_is_replaced_when_asked(place: Path) -> None:
    write_whole(place, b"one")
    write_whole(place, b"two")
    assert [path.read_bytes() for path in place.parent.iterdir()] == [b"two"]
