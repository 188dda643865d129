"""Deepened networks compute what they were made from, and their trials wait for it."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import torch

from fathometer.core.claim import Claim
from fathometer.core.evidence import Evidence
from fathometer.core.recipe import Evaluation, Optimiser, Recipe
from fathometer.core.spec import SpecError, decode, encode
from fathometer.core.study import Figure, Study
from fathometer.core.trial import Measurement, Trial, decode_work
from fathometer.laboratory import run as run_study
from fathometer.models.transformer import Transformer
from fathometer.starts.deepened import Deepened
from fathometer.tasks.copying import Copying
from fathometer.training.loop import run

RECIPE = Recipe(
    steps=30, batch=16, optimiser=Optimiser(learning_rate=1e-2), evaluation=Evaluation(every=10, test_on=50)
)
SHALLOW = Trial(
    task=Copying(lengths=(2, 3)), model=Transformer(depth=1, width=16, heads=2, tied=True), recipe=RECIPE, seed=3
)
DEEP = SHALLOW.with_(
    model=SHALLOW.model.with_(depth=3), recipe=RECIPE.with_(steps=0), start=Deepened(trial=SHALLOW)
)  # fmt: skip


class Grown(Study):
    """Wants nothing but deepened trials: what they start from is nobody's wish but theirs."""

    @property
    def question(self) -> str:
        return "Does depth contain?"

    def wanted(self, evidence: Evidence) -> Sequence[Trial | Measurement]:
        return [DEEP, DEEP.with_(start=Deepened(trial=DEEP), model=DEEP.model.with_(depth=4))]

    def claims(self) -> Sequence[Claim]:
        return []

    def figures(self, evidence: Evidence) -> Iterable[Figure]:
        return []


@pytest.mark.parametrize("norm", ["pre", "none"])
@pytest.mark.parametrize("feedforward", [0, 4])
def test_every_output_is_the_same(norm: str, feedforward: int) -> None:
    shallow = SHALLOW.with_(model=SHALLOW.model.with_(norm=norm, feedforward=feedforward))
    deep = DEEP.with_(model=shallow.model.with_(depth=3), start=Deepened(trial=shallow))
    before, after = run(shallow), run(deep)
    x = torch.randint(12, (8, 6))
    assert torch.equal(before.network(x), after.network(x))
    assert before.outcome["scores"] == after.outcome["scores"]


def test_the_idle_layers_can_be_trained_further() -> None:
    trained = run(DEEP.with_(recipe=RECIPE))
    assert trained.status == "done"
    assert trained.network.blocks[2].attention.out.weight.abs().max() > 0
    assert trained.outcome["curve"]["validation_loss"][0] == run(SHALLOW).outcome["curve"]["validation_loss"][-1]


def test_the_study_need_not_want_what_its_trials_start_from(tmp_path: Path) -> None:
    found = {}
    for workers in (0, 2):
        records = run_study(Grown(), to=tmp_path / str(workers), workers=workers).evidence()
        found[workers] = {record.key: record.digest() for record in records if record.kind == "trial"}
        assert len(found[workers]) == 3
        assert SHALLOW.key in found[workers]
        assert {record.status for record in records} == {"done"}
    assert found[0] == found[2]


def test_weights_that_are_gone_are_trained_again(tmp_path: Path) -> None:
    results = run_study(Grown(), to=tmp_path / "r", workers=0)
    before = {record.key: record.digest() for record in results.evidence()}
    for record in results.evidence():
        if record.key in (DEEP.key, Grown().wanted(Evidence())[1].key):
            results.folder.record_path(record).unlink()
    for weights in (tmp_path / "r" / "weights").rglob("*.safetensors"):
        weights.unlink()
    again = run_study(Grown(), to=tmp_path / "r", workers=0).evidence()
    assert {record.key: record.digest() for record in again} == before


class Wild(Grown):
    """What its trial starts from does not survive."""

    def wanted(self, evidence: Evidence) -> Sequence[Trial | Measurement]:
        wild = SHALLOW.with_(recipe=RECIPE.with_(optimiser=Optimiser(learning_rate=1e30, clip=None)))
        return [DEEP.with_(start=Deepened(trial=wild))]


def test_a_source_that_diverged_is_a_failure_that_says_so(tmp_path: Path) -> None:
    records = run_study(Wild(), to=tmp_path / "r", workers=0).evidence()
    assert {record.status for record in records if record.kind == "trial"} == {"diverged", "failed"}
    failed = next(record for record in records if record.status == "failed")
    assert "trial that this one starts from diverged" in failed.outcome["reason"]


def test_without_a_folder_a_diverged_source_is_refused_too() -> None:
    with pytest.raises(ValueError, match="trial that this one starts from diverged"):
        run(Wild().wanted(Evidence())[0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (DEEP.model.with_(heads=4), "adds layers and changes nothing else"),
        (DEEP.model.with_(depth=0), "adds layers and changes nothing else"),
        (DEEP.model.with_(norm="post"), "adds layers and changes nothing else"),
    ],
)
def test_a_model_that_does_not_extend_it_is_refused(model: Transformer, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        DEEP.with_(model=model)


def test_a_post_norm_layer_is_never_idle() -> None:
    post = SHALLOW.with_(model=SHALLOW.model.with_(norm="post"))
    with pytest.raises(SpecError, match="deepened needs norm = pre or none"):
        DEEP.with_(model=post.model.with_(depth=2), start=Deepened(trial=post))


def test_it_comes_back_whole_from_json() -> None:
    assert decode("start", encode(DEEP.start)) == DEEP.start
    assert decode_work("trial", encode(DEEP)).key == DEEP.key
