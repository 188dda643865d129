"""Every executor against the kit."""

from pathlib import Path

import pytest

from fathometer.execution.inline import InlineExecutor
from fathometer.execution.local import LocalExecutor
from fathometer.testing import check_executor


def test_inline(tmp_path: Path) -> None:
    check_executor(lambda root: InlineExecutor(root), tmp_path / "r")


@pytest.mark.slow
def test_local(tmp_path: Path) -> None:
    executors: list[LocalExecutor] = []

    def make(root: Path) -> LocalExecutor:
        executors.append(LocalExecutor(root, workers=2))
        return executors[0]

    check_executor(make, tmp_path / "r")
    assert executors[0].worker_ids() == []
