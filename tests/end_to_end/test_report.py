"""The report, from records alone: whole, linked, safe, and as a reader sees it in a browser."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from fathometer.core.record import Record
from fathometer.laboratory import Results
from fathometer.report.page import read, render, write_report
from fathometer.storage.folder import Folder


@pytest.fixture(scope="module")
def page(results: Results) -> Path:
    return results.report()


def test_it_loads_nothing_from_elsewhere(page: Path) -> None:
    text = page.read_text()
    head = text[: text.index('<script type="application/json"')]
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', head)
    assert "@import" not in head
    assert len(text) < 2_000_000


def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text()
    body = text[: text.index('<script type="application/json"')]
    identifiers = set(re.findall(r'id="([^"]+)"', body))
    targets = set(re.findall(r'href="([^"]+)"', body)) - {"data:,"}
    assert len(targets) > 10
    for target in targets:
        if target.startswith("#"):
            assert target[1:] in identifiers, target
        else:
            assert (page.parent / target).exists(), target


def test_all_text_is_escaped(page: Path) -> None:
    text = page.read_text()
    assert "Is &lt;b&gt;anything&lt;/b&gt; lost &amp; found?" in text
    assert "Nothing &lt;i&gt;beats&lt;/i&gt; the limits." in text
    assert "<i>beats" not in text


def test_a_hostile_name_is_harmless(results: Results, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(results.folder.root, root)
    evil = "</script><script>alert(1)</script>"
    path = next((root / "records").glob("*/*.json"))
    while json.loads(path.read_text())["kind"] != "trial":
        path = next(p for p in (root / "records").glob("*/*.json") if json.loads(p.read_text())["kind"] == "trial")
    held = json.loads(path.read_text())
    held["spec"]["model"]["name"] = evil
    fields = {name: value for name, value in held.items() if name not in ("digest", "checksum")}
    path.write_text(Record(**fields).to_json())
    text = write_report(Folder(root)).read_text()
    assert evil not in text
    assert text.count("<script") == 3


def test_figures_are_files_fit_for_a_paper(page: Path) -> None:
    names = {path.stem for path in (page.parent / "figures").iterdir()}
    assert {"scores", "learning_curves", "head_importance", "speed", "scores_by_length"} <= names
    for name in names:
        assert (page.parent / "figures" / f"{name}.svg").read_text().startswith("<svg")
        assert (page.parent / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert (page.parent / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_it_reads_records_without_torch_and_without_the_study(results: Results, tmp_path: Path) -> None:
    root = tmp_path / "carried"
    shutil.copytree(results.folder.root, root)
    manifest = json.loads((root / "fathometer.json").read_text())
    manifest["study"]["path"] = "/nowhere/tiny.py"
    (root / "fathometer.json").write_text(json.dumps(manifest))
    program = (
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name.split('.')[0] == 'torch': raise ModuleNotFoundError('no torch here', name=name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "from pathlib import Path\n"
        "from fathometer.laboratory import Results\n"
        f"results = Results(Path({str(root)!r}))\n"
        "print([verdict.decision for verdict in results.verdicts()], len(results.figures()))\n"
        "results.report()\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    expected = [verdict.decision for verdict in results.verdicts()]
    assert told.startswith(str(expected))
    assert "The code of this study is not installed here" in (root / "report" / "index.html").read_text()


def test_an_empty_and_a_half_done_folder_have_a_report_too(results: Results, tmp_path: Path) -> None:
    root = tmp_path / "half"
    shutil.copytree(results.folder.root, root)
    trials = [record for record in Folder(root).evidence() if record.kind == "trial"]
    for record in trials[1:]:
        Folder(root).record_path(record).unlink()
    half = render(read(Folder(root)), [])
    assert "1 of 1 trials trained" in half
    assert "3 records are still wanted" in half
    shutil.rmtree(root / "records")
    assert "0 of 0 trials trained" in write_report(Folder(root)).read_text()


def test_failures_and_untrusted_records_are_shown(results: Results, tmp_path: Path) -> None:
    root = tmp_path / "hurt"
    shutil.copytree(results.folder.root, root)
    folder = Folder(root)
    trial, other = [record for record in folder.evidence() if record.kind == "trial"][:2]
    folder.record_path(trial).unlink()
    outcome = {"scores": [], "error": "Traceback <x>", "reason": "boom"}
    folder.write(Record(trial.key, "trial", 0, "failed", trial.spec, outcome))
    folder.record_path(other).write_text("{")
    text = write_report(Folder(root)).read_text()
    assert "1 failed" in text
    assert "Traceback &lt;x&gt;" in text
    assert f"{other.key}.0.json" in text
    assert "not whole JSON" in text


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 25, 31)")])
def test_in_a_browser_it_is_drawn_in_light_and_dark(page: Path, browser: Chrome, scheme: str, paper: str) -> None:
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.set_window_size(1200, 900)
    browser.get(page.as_uri())
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == paper
    charts = browser.find_elements(By.CSS_SELECTOR, ".chart")
    assert len(charts) >= 5
    assert all(chart.find_elements(By.CSS_SELECTOR, "svg .mark-group") for chart in charts)
    ink = browser.execute_script("return getComputedStyle(document.body).color")
    label = browser.execute_script("return getComputedStyle(document.querySelector('.chart svg text')).fill")
    assert label == ink
    problems = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert not problems


@pytest.mark.browser
def test_on_a_phone_nothing_runs_over_the_side(page: Path, browser: Chrome) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.get(page.as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.browser
def test_the_table_sorts_both_ways(page: Path, browser: Chrome) -> None:
    browser.get(page.as_uri())
    heading = browser.find_element(By.XPATH, "//h2[@id='trials']/following::button[text()='token accuracy']")

    def column() -> list[float]:
        cells = browser.find_elements(By.CSS_SELECTOR, "#trials ~ .scroll tbody tr td:nth-child(4)")
        return [float(cell.text) for cell in cells if cell.text]

    browser.execute_script("arguments[0].click()", heading)
    up = column()
    browser.execute_script("arguments[0].click()", heading)
    down = column()
    assert up == sorted(up)
    assert down == sorted(down, reverse=True)
    assert len(up) == 4


@pytest.mark.browser
def test_it_prints_on_white(page: Path, browser: Chrome) -> None:
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        browser.get(page.as_uri())
        assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
        assert len(printed["data"]) > 20_000
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
