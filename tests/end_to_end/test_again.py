"""Reproducing and comparing: what is the same is told so, and what is not is told by how much and why."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from test_cli import fathom

import fathometer as fm
from fathometer.comparing import _welch
from fathometer.core.record import Record
from fathometer.laboratory import Results


def with_scores_moved(results: Results, to: Path, by: float) -> Results:
    """A copy of the results in which every trial of two layers says that it scored otherwise, elsewhere."""
    shutil.copytree(results.folder.root, to)
    for path in (to / "records").glob("*/*.json"):
        held = json.loads(path.read_text())
        if held["kind"] == "trial" and held["spec"]["model"]["depth"] == 2:
            fields = {name: value for name, value in held.items() if name not in ("digest", "checksum")}
            for row in fields["outcome"]["scores"]:
                if row["metric"] == "token_accuracy":
                    row["value"] = min(1.0, row["value"] + by)
            fields["provenance"] |= {"cpu": "another processor"}
            path.write_text(Record(**fields).to_json())
    return Results(to)


def test_the_same_machine_gives_the_same_bits(results: Results) -> None:
    repeats = fm.reproduce(results.folder.root, sample=3, workers=0)
    assert [(repeat.agreement, repeat.gap, repeat.remark) for repeat in repeats] == [("bit for bit", 0.0, "")] * 3
    assert len({repeat.key for repeat in repeats}) == 3
    assert len(fm.reproduce(results.folder.root, sample=99, workers=0)) == 4


def test_another_seed_takes_another_sample(results: Results) -> None:
    samples = {fm.reproduce(results.folder.root, sample=1, seed=seed, workers=0)[0].key for seed in range(4)}
    assert len(samples) > 1


def test_other_scores_are_told_with_what_may_explain_them(results: Results, tmp_path: Path) -> None:
    near = with_scores_moved(results, tmp_path / "near", 1e-4)
    far = with_scores_moved(results, tmp_path / "far", 0.3)
    agreements = {}
    for name, folder in (("near", near), ("far", far)):
        repeats = {r.key: r for r in fm.reproduce(folder.folder.root, sample=9, tolerance=0.15, workers=0)}
        deep = [repeats[t.key] for t in folder.evidence().trials() if t.spec["model"]["depth"] == 2]
        agreements[name] = {repeat.agreement for repeat in deep}
        assert all("cpu: another processor there" in repeat.remark for repeat in deep)
        assert all(repeat.gap is not None and repeat.gap > 0 for repeat in deep)
    assert agreements == {"near": {"within tolerance"}, "far": {"different"}}


def test_a_trial_that_cannot_be_run_here_says_why(results: Results, tmp_path: Path) -> None:
    root = tmp_path / "strange"
    shutil.copytree(results.folder.root, root)
    for path in (root / "records").glob("*/*.json"):
        held = json.loads(path.read_text())
        if held["kind"] == "trial":
            fields = {name: value for name, value in held.items() if name not in ("digest", "checksum")}
            fields["spec"]["model"]["name"] = "transfomer"
            path.write_text(Record(**fields).to_json())
    repeats = fm.reproduce(root, sample=2, workers=0)
    assert {repeat.agreement for repeat in repeats} == {"not run"}
    assert "did you mean 'transformer'" in repeats[0].remark


def test_mistakes_get_a_sentence(tmp_path: Path, results: Results) -> None:
    with pytest.raises(ValueError, match="sample = 0: give the number of trials"):
        fm.reproduce(results.folder.root, sample=0)
    empty = tmp_path / "empty"
    shutil.copytree(results.folder.root, empty)
    shutil.rmtree(empty / "records")
    with pytest.raises(ValueError, match="has no trial that ended"):
        fm.reproduce(empty)


def test_the_command_says_it_and_fails_when_something_differs(results: Results, tmp_path: Path) -> None:
    told = fathom("reproduce", str(results.folder.root), "--sample", "1", "--workers", "1")
    assert told.returncode == 0, told.stderr
    assert "1 trials done again: 1 bit for bit" in told.stdout
    far = with_scores_moved(results, tmp_path / "far", 0.3)
    told = fathom("reproduce", str(far.folder.root), "--sample", "4", "--workers", "2")
    assert told.returncode == 1
    assert "2 bit for bit" in told.stdout


def test_a_folder_is_the_same_as_itself(results: Results) -> None:
    found = fm.compare(results.folder.root, results.folder.root)
    assert (found.same, found.other, found.only_before, found.only_after) == (4, (), 0, 0)
    assert not any(pair.changed for pair in found.verdicts)
    assert not any(row.apart for row in found.scores)
    assert all(row.before == row.after for row in found.scores)


def test_other_verdicts_and_scores_are_found(results: Results, tmp_path: Path) -> None:
    leaking = with_scores_moved(results, tmp_path / "leaking", 0.9)
    found = fm.compare(results.folder.root, leaking.folder.root)
    changed = {pair.claim: (pair.before, pair.after) for pair in found.verdicts if pair.changed}
    assert changed["limits"][1] is not None
    assert changed["limits"][1].decision == "refuted"
    assert found.same == 2
    assert len(found.other) == 2
    moved = [row for row in found.scores if row.after > row.before]
    assert [row.cell for row in moved] == ["depth 2"]
    told = fathom("diff", str(results.folder.root), str(leaking.folder.root))
    assert told.returncode == 0, told.stderr
    assert "changed" in told.stdout
    assert "Trials in both: 2 the same bit for bit, 2 not" in told.stdout


def test_the_interval_is_welch_s() -> None:
    rng = np.random.default_rng(0)
    for sizes in ((2, 5), (3, 3), (8, 4)):
        before, after = (rng.normal(size=size) for size in sizes)
        test = stats.ttest_ind(after, before, equal_var=False)
        limits = test.confidence_interval(0.95)
        np.testing.assert_allclose(_welch(before, after), (limits.low, limits.high, test.pvalue), rtol=1e-9)
    assert _welch([1.0, 1.0], [0.0, 0.0]) == (-1.0, -1.0, 0.0)
    assert _welch([1.0, 1.0], [1.0, 1.0]) == _welch([1.0], [0.0, 0.1]) == (None, None, None)


def test_a_part_of_a_folder_is_told_as_missing(results: Results, tmp_path: Path) -> None:
    root = tmp_path / "part"
    shutil.copytree(results.folder.root, root)
    trials = results.evidence().trials()
    (root / results.folder.record_path(trials[0]).relative_to(results.folder.root)).unlink()
    found = fm.compare(results.folder.root, root)
    assert (found.same, found.only_before, found.only_after) == (3, 1, 0)
