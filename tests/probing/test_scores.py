"""Scores against networks whose every answer is known, and against the test at the end of a trial."""

from collections.abc import Iterator
from math import exp, log

import pytest
import torch
from torch import nn

from fathometer.core.recipe import Evaluation, Recipe
from fathometer.core.streams import stream
from fathometer.core.trial import Subject, Trial
from fathometer.evaluation.numerics import steady
from fathometer.models.transformer import Transformer
from fathometer.probing.scores import Scores
from fathometer.tasks.copying import Copying, Noise
from fathometer.training.loop import run

CLEAN = Noise(reading="R0")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with steady():
        yield


def zero_subject(task: Copying) -> Subject:
    """One head that attends evenly, on a stream as wide as the vocabulary that is read out as it is."""
    vocab = task.symbols + 2
    model = Transformer(depth=1, width=vocab, heads=1, feedforward=0, norm="none", positions="none")
    network = model.build(task.interface())
    for parameter in network.parameters():
        nn.init.zeros_(parameter)
    nn.init.eye_(network.head.weight)
    return Subject(network, Trial(task=task, model=model), "cpu")


def constant_subject(task: Copying, logit: float) -> Subject:
    """Always answers symbol 1."""
    subject = zero_subject(task)
    with torch.no_grad():
        subject.network.blocks[0].attention.out.bias[1] = logit
    return subject


def copying_subject(task: Copying, scale: float = 1.0) -> Subject:
    """Answers the one symbol before the delimiter: even attention over both, and the delimiter is never the answer."""
    subject, vocab = zero_subject(task), task.symbols + 2
    attention = subject.network.blocks[0].attention
    with torch.no_grad():
        subject.network.embed.weight[:-1, :-1] = torch.eye(vocab - 1)
        attention.qkv.weight[2 * vocab :] = torch.eye(vocab)
        attention.out.weight.copy_(scale * torch.eye(vocab))
    return subject


def measured(subject: Subject, split: str, examples: int) -> dict[tuple[str, str], tuple[float, int]]:
    """Value and n by metric and stratum."""
    rows = Scores(split=split, examples=examples).measure(subject).outcome["scores"]
    assert {row["split"] for row in rows} == {split}
    return {(row["metric"], row["stratum"]): (row["value"], row["n"]) for row in rows}


def test_a_constant_answer_scores_the_share_of_its_symbol() -> None:
    task = Copying(lengths=(2, 3), symbols=3, noise=CLEAN)
    found = measured(constant_subject(task, logit=1.5), "in_distribution", 60)
    batch = task.draw(stream("test", 0, task.key, "in_distribution"), 60, "in_distribution")
    for stratum, rows in {
        "all": batch.lengths > 0,
        "length=2": batch.lengths == 4,
        "length=3": batch.lengths == 6,
    }.items():
        ones = (batch.targets == 1)[rows]
        scored = batch.scored[rows]
        share, n = ones[scored].mean(), int(scored.sum())
        whole = (ones | ~scored).all(axis=1).mean()
        assert 0 < whole < share < 1
        assert found["token_accuracy", stratum] == found["free_token_accuracy", stratum] == (share, n)
        assert found["sequence_accuracy", stratum] == found["free_sequence_accuracy", stratum] == (whole, rows.sum())
        loss = log(exp(1.5) + 4) - 1.5 * share  # five logits: 1.5 and four zeros
        assert found["loss", stratum] == (pytest.approx(loss, rel=1e-6), n)


def test_a_copier_is_right_exactly_where_nothing_was_flipped() -> None:
    noise = Noise(share=0.5)
    subject = copying_subject(Copying(lengths=(1,), symbols=4, noise=noise))
    for split, right, strata in [
        ("clean", 1.0, {"noised=0": (1.0, 40)}),
        ("noised", 0.0, {"noised=1": (0.0, 40)}),
        ("in_distribution", 0.5, {"noised=0": (1.0, 20), "noised=1": (0.0, 20)}),
    ]:
        found = measured(subject, split, 40)
        assert not any(metric.startswith("free") for metric, _ in found)  # one answer, and nothing to feed it back to
        for metric in ("token_accuracy", "sequence_accuracy"):
            assert found[metric, "all"] == (right, 40)
            by_noise = {
                stratum: value for (name, stratum), value in found.items() if name == metric and "noised" in stratum
            }
            assert by_noise == strata


def test_the_loss_of_a_copier_is_its_closed_form() -> None:
    subject = copying_subject(Copying(lengths=(1,), symbols=4, noise=CLEAN), scale=6.0)
    # half of the attention is on the symbol, half on the delimiter, whose embedding is zero: one logit of 3, five of 0
    assert measured(subject, "in_distribution", 20)["loss", "all"][0] == pytest.approx(log(exp(3) + 5) - 3, rel=1e-6)


def test_scores_on_the_trained_split_are_those_of_the_trials_own_test() -> None:
    task = Copying(lengths=(3, 4), symbols=3)
    model = Transformer(depth=1, width=8, heads=2)
    trial = Trial(task=task, model=model, recipe=Recipe(steps=2, evaluation=Evaluation(test_on=50, validate_on=10)))
    trained = run(trial)
    found = Scores(split="in_distribution", examples=50).measure(Subject(trained.network, trial, "cpu"))
    assert found.outcome == {"scores": trained.outcome["scores"]}
    assert found.timing is None


def test_strings_of_a_finite_training_set_are_left_out() -> None:
    task = Copying(lengths=(3,), symbols=2, strings=6, noise=CLEAN)
    model = Transformer(depth=1, width=8, heads=2)
    trial = Trial(task=task, model=model, recipe=Recipe(steps=0, evaluation=Evaluation(test_on=50, validate_on=10)))
    trained = run(trial)
    found = Scores(split="in_distribution", examples=50).measure(Subject(trained.network, trial, "cpu"))
    assert found.outcome["scores"] == trained.outcome["scores"]


def test_another_task_of_the_same_form_can_be_asked() -> None:
    task = Copying(lengths=(1,), symbols=4, noise=CLEAN)
    noisy = task.with_(noise=Noise(share=1.0))
    subject = copying_subject(task)
    here = measured(subject, "in_distribution", 40)
    there = Scores(split="in_distribution", examples=40, task=noisy).measure(subject).outcome["scores"]
    assert here["token_accuracy", "all"] == (1.0, 40)
    assert {row["value"] for row in there if (row["metric"], row["stratum"]) == ("token_accuracy", "all")} == {0.0}
    with pytest.raises(ValueError, match="differ in their interface"):
        Scores(split="in_distribution", task=task.with_(symbols=5)).measure(subject)


@pytest.mark.parametrize("training", [True, False])
def test_measuring_leaves_the_network_as_it_was(training: bool) -> None:
    task, model = Copying(lengths=(2, 3), symbols=3), Transformer(depth=2, width=8, heads=2, dropout=0.5)
    network = model.build(task.interface()).train(training)
    subject = Subject(network, Trial(task=task, model=model), "cpu")
    before = {name: value.clone() for name, value in network.state_dict().items()}
    first = Scores(split="noised", examples=20).measure(subject)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(module.training == training for module in network.modules())
    assert Scores(split="noised", examples=20).measure(subject) == first


def test_a_split_that_does_not_exist_is_refused_with_those_that_do() -> None:
    subject = zero_subject(Copying(lengths=(2,), noise=CLEAN))
    with pytest.raises(ValueError, match="no split 'longer'; it has in_distribution"):
        Scores(split="longer", examples=2).measure(subject)
