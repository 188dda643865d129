"""The command line: every verb does its work, and every mistake gets one clear sentence and exit code 2."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from fathometer.laboratory import Results


def fathom(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fathometer.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)


def test_help_needs_no_torch_and_answers_at_once() -> None:
    program = (
        "import sys\nfrom fathometer.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'polars', 'altair', 'pydantic', 'duckdb'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    for verb in ("list", "show", "run", "try", "status", "report", "sql", "export", "reproduce", "diff", "doctor"):
        assert f"  {verb} " in told.stdout


def test_list_and_show_name_everything() -> None:
    listed = fathom("list").stdout
    for name in ("copying", "transformer", "head_importance", "solve_rate", "copy"):
        assert f"  {name} " in listed
        assert fathom("show", name).stdout.startswith(f"{name} (")
    assert "share: float; >= 0; <= 1; default 0.1" in fathom("show", "copying").stdout


def test_try_trains_reports_and_goes_on_for_free(tmp_path: Path) -> None:
    words = ["try", "copying", "transformer", "depth=1", "heads=1,2", "width=8", "lengths=[2,3]", "steps=20"]
    words += ["evaluation.every=10", "test_on=32", "validate_on=16", "--seeds", "2", "--to", "r", "--workers", "1"]
    first = fathom(*words, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "Report: r/report/index.html" in first.stdout
    assert (tmp_path / "r" / "report" / "index.html").exists()
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "r" / "records").glob("*/*.json")}
    assert len(files) == 4 + 3
    again = fathom(*words, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "r" / "records").glob("*/*.json")} == files


def test_a_dry_run_tells_the_cost_and_spends_nothing(tmp_path: Path) -> None:
    words = ["try", "copying", "transformer", "depth=1,2", "lengths=[2,3]", "steps=1000", "--dry-run"]
    told = fathom(*words, cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "9 records wanted; 6 trials still to train" in told.stdout
    assert "FLOPs, nominal" in told.stdout
    assert "if nothing stops early" in told.stdout
    assert not list(tmp_path.iterdir())


def test_status_sql_and_export_read_what_is_there(results: Results, tmp_path: Path) -> None:
    root = str(results.folder.root)
    status = fathom("status", root)
    assert "12 of 12 records, 0 diverged, 0 failed" in status.stdout
    assert "Depth helps." in status.stdout
    sql = fathom("sql", root, "select count(*) as trials from trials where status = 'done'")
    assert "4" in sql.stdout
    wrong = fathom("sql", root, "select nothing from trials")
    assert wrong.returncode == 2
    assert "DuckDB cannot answer that" in wrong.stderr
    export = tmp_path / "out"
    for form in ("csv", "parquet", "latex"):
        assert fathom("export", root, "--as", form, "--to", str(export)).returncode == 0
    assert pl.read_csv(export / "trials.csv").height == 4
    scores = pl.read_parquet(export / "scores.parquet")
    assert scores.filter(pl.col("metric") == "token_accuracy")["value"].is_between(0, 1).all()
    assert r"\toprule" in (export / "scores.tex").read_text()


def test_sql_cannot_reach_files(results: Results) -> None:
    told = fathom("sql", str(results.folder.root), "select * from read_text('/etc/passwd')")
    assert told.returncode == 2
    assert "root:" not in told.stdout


def test_doctor_finds_this_machine_well() -> None:
    told = fathom("doctor")
    assert told.returncode == 0, told.stdout
    assert "ok   same bits twice" in told.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "copi"], "no study named 'copi': did you mean 'copy'"),
        (["run", "copying"], "no study named 'copying': did you mean 'copy'"),
        (["show", "transformr"], "Nothing is named 'transformr': did you mean 'transformer'"),
        (["try", "copying", "transformer", "dept=1"], "'dept': did you mean 'depth'"),
        (["try", "copying", "transformer", "heads=3"], "heads = 3 does not divide width = 64"),
        (["try", "copying", "transformer", "lengths=5,10"], "lengths = 5: takes a list: write [5,10]"),
        (["try", "copying", "transformer", "positions.longest=4", "lengths=[5]"], "positions.longest = 4 is shorter"),
        (["try", "copying"], "Missing argument"),
        (["status", "nowhere"], "nowhere is no results folder"),
        (["report", "nowhere"], "nowhere is no results folder"),
        (["run", "copy", "--device", "cuda"], "no CUDA device"),
        (["run", "copy", "--to", "pyproject.toml"], "is a file: give a folder with --to"),
        (["run", "copy", "--to", "src"], "holds no fathometer.json"),
        (["run", "copy", "--scale", "huge"], "huge"),
    ],
)
def test_mistakes_get_a_sentence_and_exit_code_2(words: list[str], message: str) -> None:
    told = fathom(*words, cwd=Path(__file__).parents[2])
    assert told.returncode == 2, told.stdout
    assert message in " ".join(told.stderr.split())
    assert "Traceback" not in told.stderr


def test_a_damaged_record_is_set_aside_and_done_again(results: Results, tiny: str, tmp_path: Path) -> None:
    root = tmp_path / "r"
    shutil.copytree(results.folder.root, root)
    manifest = json.loads((root / "fathometer.json").read_text())
    (root / "fathometer.json").write_text(json.dumps(manifest))
    path = next(p for p in sorted((root / "records").glob("*/*.json")) if json.loads(p.read_text())["kind"] == "probe")
    whole = json.loads(path.read_text())
    path.write_text(path.read_text()[:200])
    told = fathom("run", tiny, "--to", str(root), "--workers", "1")
    assert told.returncode == 0, told.stderr
    assert f"Set aside: {path.name}" in told.stdout
    assert (root / "aside" / path.name).exists()
    assert json.loads(path.read_text())["outcome"] == whole["outcome"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_told(tiny: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    told = fathom("run", tiny, "--to", str(tmp_path / "r"))
    assert told.returncode == 2
    assert "not writable by you" in told.stderr


@pytest.mark.slow
def test_a_user_s_broken_network_fails_with_its_traceback_and_is_retried(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "from fathometer.models.transformer import Transformer\n"
        "class Broken(Transformer):\n"
        "    '''Fails as it is built.'''\n"
        "    def build(self, interface):\n"
        "        raise RuntimeError('no such luck')\n"
    )
    words = ["try", "copying", "net.py:Broken", "lengths=[2]", "--seeds", "1", "--to", "r", "--workers", "1"]
    told = fathom(*words, cwd=tmp_path)
    assert told.returncode == 1
    assert "RuntimeError: no such luck" in told.stderr
    assert "--retry does them again" in told.stderr
    again = fathom(*words, "--retry", cwd=tmp_path)
    assert again.returncode == 1
    attempts = sorted(path.name.split(".")[1] for path in (tmp_path / "r" / "records").glob("*/*.json"))
    assert attempts == ["0", "0", "0", "0", "1"]


@pytest.mark.slow
def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tiny: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fathometer.cli", "run", tiny, "--to", str(tmp_path / "r"), "--workers", "1"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list((tmp_path / "r" / "records").glob("*/*.json")):
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)
    out, errors = run.communicate(timeout=60)
    assert run.returncode == 130, errors
    assert "records are safe; the same command goes on from there" in out
    assert "Traceback" not in errors
    assert fathom(*command[3:]).returncode == 0


@pytest.mark.slow
def test_two_drivers_on_one_folder_end_in_the_same_records(results: Results, tiny: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fathometer.cli", "run", tiny, "--to", str(tmp_path / "r"), "--workers", "1"]
    drivers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    for driver in drivers:
        _, errors = driver.communicate(timeout=300)
        assert driver.returncode == 0, errors.decode()
    expected = {record.key: record.digest() for record in results.evidence()}
    found = Results(tmp_path / "r")
    assert {record.key: record.digest() for record in found.evidence()} == expected
    assert not found.folder.problems
    assert len(list((tmp_path / "r" / "records").glob("*/*.json"))) == len(expected)


def test_a_results_folder_names_its_own_study(results: Results) -> None:
    root = str(results.folder.root)
    assert results.folder.manifest["command"] == f"fathom run {root}"
    told = fathom("run", root, "--dry-run")
    assert told.returncode == 0, told.stderr
    assert "0 trials still to train" in told.stdout
