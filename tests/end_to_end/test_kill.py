"""A short turn of the kill harness; the long one is a command of its own."""

from pathlib import Path

import pytest
from kill_harness import harness


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="finds workers through /proc")
def test_kills_lose_nothing() -> None:
    study = f"{Path(__file__).with_name('tiny.py')}:Tiny"
    tally = harness(study, kills=4, seed=3, pause=(2.0, 6.0))
    assert tally.kills == 4
