"""One finished run of the tiny study, for all tests that read results, and a browser to look at its report."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import open_browser
from selenium.webdriver import Chrome

import fathometer as fm
from fathometer.laboratory import Results


@pytest.fixture(scope="session")
def tiny() -> str:
    return f"{Path(__file__).with_name('tiny.py')}:Tiny"


@pytest.fixture(scope="session")
def results(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> Results:
    return fm.run(tiny, to=tmp_path_factory.mktemp("tiny") / "results", workers=0)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    driver = open_browser(tmp_path_factory.mktemp("browser"))
    yield driver
    driver.quit()
