"""Answer attention: the maps against what the network computes, the scores on attention set by hand."""

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fathometer.core.interface import Array, Batch, Interface, Tokens, Vectors
from fathometer.core.recipe import Recipe
from fathometer.core.trial import Subject, Trial
from fathometer.evaluation.numerics import steady
from fathometer.models.transformer import PositionKind, Transformer, TransformerNetwork
from fathometer.probing.answer_attention import AnswerAttention, attention_maps
from fathometer.tasks.copying import Copying

KINDS = get_args(PositionKind)
LONGEST = 6
TASK = Copying(lengths=(4, LONGEST), symbols=3, layout="fixed_split")


class Unsourced(Copying):
    """Copying that does not say where its answers stand."""

    def draw(self, rng: np.random.Generator, n: int, split: str) -> Batch:
        return replace(super().draw(rng, n, split), sources=None)


class InNumbers(Copying):
    """Copying of one-hot vectors to tokens."""

    def interface(self) -> Interface:
        inner = super().interface()
        assert isinstance(inner.inputs, Tokens)
        return inner.with_(inputs=Vectors(dim=inner.inputs.vocab))

    def draw(self, rng: np.random.Generator, n: int, split: str) -> Batch:
        drawn = super().draw(rng, n, split)
        return replace(drawn, inputs=np.eye(self.symbols + 2)[drawn.inputs])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with steady():
        yield


def subject_of(model: Transformer, task: Copying = TASK, std: float = 0.5) -> Subject:
    """A network of normal weights, in float64."""
    torch.manual_seed(0)
    network = model.build(task.interface()).double()
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=std)
    return Subject(network, Trial(task=task, model=model, recipe=Recipe(precision="float64")), "cpu")


def lookup_subject(task: Copying = TASK) -> Subject:
    """Two layers of two heads; the second head of the first layer looks from position ``LONGEST + j`` at ``j``.

    All other heads attend evenly: their queries are zero.
    """
    places = 2 * LONGEST
    model = Transformer(depth=2, width=2 * places, heads=2, feedforward=0, norm="none")
    subject = subject_of(model, task, std=0.0)
    network = subject.network
    with torch.no_grad():
        network.positions.weight[:, :places] = torch.eye(places)
        of_head = slice(places, 2 * places)
        queries, keys, _ = network.blocks[0].attention.qkv.weight.chunk(3)
        for j in range(LONGEST):
            queries[of_head][j, LONGEST + j] = 100.0
            keys[of_head][j, j] = 1.0
    return subject


def even(length: int) -> float:
    """The mean attention of an even head to one position, over the answers of a string of this length."""
    return float(np.mean([1 / (LONGEST + j + 1) for j in range(length)]))


def run_and_watch(network: TransformerNetwork, x: Tensor) -> list[tuple[Tensor, Tensor | None, Tensor]]:
    """By layer: what attention was given, its bias, and what its heads gave."""
    given, by_head = [], []
    for block in network.blocks:
        block.attention.register_forward_pre_hook(lambda module, args: given.append(args[:2]))
        block.attention.by_head.register_forward_hook(lambda module, args, out: by_head.append(out))
    network(x)
    return [(*args, out) for args, out in zip(given, by_head, strict=True)]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_maps_applied_to_values_are_what_the_heads_give(kind: PositionKind, causal: bool) -> None:
    model = Transformer(depth=2, width=8, heads=2, positions=kind, causal=causal)
    interface = Interface(inputs=Tokens(vocab=5), outputs=Tokens(vocab=5), length=11, causal=causal)
    network = model.build(interface).double()
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.7)
    x = torch.randint(5, (3, 11))
    future = torch.ones(11, 11, dtype=torch.bool).triu(1)
    for block, (seen, bias, by_head) in zip(network.blocks, run_and_watch(network, x), strict=True):
        attention = block.attention
        weights = attention.weights(seen, bias)
        values = nn.functional.linear(seen, attention.qkv.weight[16:], attention.qkv.bias[16:]).unflatten(2, (2, 4))
        torch.testing.assert_close(torch.einsum("bhts,bshk->bthk", weights, values), by_head, rtol=0, atol=1e-10)
        torch.testing.assert_close(weights.sum(dim=3), torch.ones(3, 2, 11, dtype=torch.float64), rtol=0, atol=1e-12)
        ahead = weights[:, :, future]
        assert (ahead == 0).all() if causal else (ahead > 0).all()


def test_maps_come_by_layer_from_an_unchanged_run() -> None:
    network = subject_of(Transformer(depth=2, width=8, heads=2, dropout=0.5)).network.eval()
    x = torch.randint(5, (4, 9))
    plain, seen = network(x), []
    handle = network.register_forward_hook(lambda module, args, out: seen.append(out))
    maps = attention_maps(network, x)
    handle.remove()
    assert torch.equal(seen[0], plain)
    expected = [
        block.attention.weights(given, bias)
        for block, (given, bias, _) in zip(network.blocks, run_and_watch(network, x), strict=True)
    ]
    assert all(torch.equal(found, wanted) for found, wanted in zip(maps, expected, strict=True))
    assert not any(found.requires_grad for found in maps)


def test_a_head_set_to_look_at_the_answer_is_found() -> None:
    outcome = AnswerAttention(examples=20).measure(lookup_subject()).outcome
    (evenly, looking), second_layer = outcome["attention"]
    assert looking > 0.999
    overall = (4 * even(4) + 6 * even(6)) / 10
    assert [evenly, *second_layer] == pytest.approx([overall] * 3, rel=1e-12)
    row = {
        "split": "in_distribution",
        "stratum": "all",
        "metric": "answer_attention",
        "value": looking,
        "n": 10 * (4 + 6),
    }
    assert outcome["scores"][0] == row
    assert {"length=4", "length=6", "noised=1"} <= {each["stratum"] for each in outcome["scores"]}


def test_lengths_are_told_apart() -> None:
    found = AnswerAttention(examples=20).measure(lookup_subject()).outcome["attention_by_stratum"]
    short, long = found["length=4"], found["length=6"]
    assert short[1] == pytest.approx([even(4)] * 2, rel=1e-12)
    assert long[1] == pytest.approx([even(6)] * 2, rel=1e-12)
    assert min(short[0][1], long[0][1]) > 0.999


@pytest.mark.parametrize("layout", ["fixed_split", "mixed"])
def test_lengths_are_named_as_the_strata_of_the_task(layout: str) -> None:
    subject = subject_of(Transformer(depth=1, width=8, heads=2), TASK.with_(layout=layout))
    found = AnswerAttention(examples=20).measure(subject).outcome["attention_by_stratum"]
    assert [name for name in found if name.startswith("length")] == ["length=4", "length=6"]


@pytest.mark.parametrize("layout", ["fixed_split", "mixed"])
def test_the_score_is_the_mean_over_answers_read_one_at_a_time(layout: str) -> None:
    task = TASK.with_(layout=layout, ends=True)
    subject = subject_of(Transformer(depth=2, width=8, heads=2, positions="rope"), task)
    drawn: list[Batch] = []

    class Watched(Copying):
        def draw(self, rng: np.random.Generator, n: int, split: str) -> Batch:
            drawn.append(super().draw(rng, n, split))
            return drawn[-1]

    watched = Watched(**{name: getattr(task, name) for name in type(task).model_fields})
    outcome = AnswerAttention(examples=9).measure(replace(subject, trial=subject.trial.with_(task=watched))).outcome
    delimiter, found = task.symbols + 1, []
    for inputs, time in zip(drawn[0].inputs, drawn[0].lengths, strict=True):
        split_at = int(np.flatnonzero(inputs == delimiter)[0])
        maps = torch.stack(attention_maps(subject.network, torch.from_numpy(inputs[None, :time])))[:, 0]
        answers = time - 1 - split_at  # what follows the delimiter in the input, without the end mark
        found += [maps[:, :, split_at + j, 1 + j] for j in range(answers)]
    expected: Array = torch.stack(found).mean(dim=0).numpy()
    np.testing.assert_allclose(outcome["attention"], expected, rtol=0, atol=1e-12)
    assert outcome["scores"][0]["value"] == pytest.approx(expected.max(), rel=1e-12)
    assert outcome["scores"][0]["n"] == len(found)


def test_the_controls_look_right_beside_the_answer() -> None:
    subject = lookup_subject()
    outcome = AnswerAttention(examples=20).measure(subject).outcome
    before, after = (outcome["attention_beside"][name][0][1] for name in ("one before", "one after"))
    assert before < 1e-3
    assert after < 1e-3
    evenly = outcome["attention_beside"]["one after"][0][0]
    assert evenly == pytest.approx(outcome["attention"][0][0], rel=1e-12)


@pytest.mark.parametrize("training", [True, False])
def test_measuring_leaves_the_network_as_it_was(training: bool) -> None:
    subject = subject_of(Transformer(depth=2, width=8, heads=2, dropout=0.5))
    network = subject.network.train(training)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    first = AnswerAttention(examples=10).measure(subject)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(module.training == training for module in network.modules())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())
    assert AnswerAttention(examples=10).measure(subject) == first


def test_a_task_that_does_not_name_its_sources_is_refused() -> None:
    with pytest.raises(ValueError, match="does not say where its answers stand"):
        AnswerAttention(examples=2).measure(subject_of(Transformer(depth=1), Unsourced(lengths=(3,))))


def test_a_network_without_heads_is_refused() -> None:
    with pytest.raises(ValueError, match="no attention heads"):
        AnswerAttention(examples=2).measure(subject_of(Transformer(depth=0)))


def test_vectors_are_read_in_the_networks_precision() -> None:
    subject = subject_of(Transformer(depth=1, width=8, heads=2), InNumbers(lengths=(3,), symbols=3))
    assert 0 < AnswerAttention(examples=4).measure(subject).outcome["scores"][0]["value"] < 1
