"""Head importance against weights scaled by hand and against networks whose gradients are known in closed form."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fathometer.core.interface import Batch
from fathometer.core.recipe import Recipe
from fathometer.core.streams import stream
from fathometer.core.trial import Subject, Trial
from fathometer.evaluation.numerics import steady
from fathometer.models.transformer import Attention, Transformer
from fathometer.probing.head_importance import THRESHOLDS, HeadImportance, gate_gradients, gated
from fathometer.tasks.copying import Copying, Noise

TASK = Copying(lengths=(3, 5), symbols=4, noise=Noise(share=0.5))
COIN = Copying(lengths=(1,), symbols=2, noise=Noise(reading="R0"))
SPLIT = "in_distribution"
SMALL = Transformer(depth=2, width=8, heads=4, feedforward=2)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with steady():
        yield


def random_subject(model: Transformer = SMALL, task: Copying = TASK) -> Subject:
    torch.manual_seed(0)
    network = model.build(task.interface()).double()
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.5)
    return Subject(network, Trial(task=task, model=model, recipe=Recipe(precision="float64")), "cpu")


def voting_subject(votes: Sequence[float]) -> Subject:
    """Head ``h`` adds ``votes[h]`` to the logit of symbol 1, and together they just balance it against symbol 2.

    So both symbols have probability 1/2 whatever is read, and the derivative of the loss by gate ``h`` is ``votes[h]``
    times -1/2 where the answer is 1 and +1/2 where it is 2. The width is the vocabulary: padding, 1, 2, delimiter.
    """
    model = Transformer(depth=1, width=4, heads=len(votes), feedforward=0, norm="none", positions="none")
    subject = random_subject(model, COIN)
    network, head_width = subject.network, 4 // len(votes)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        attention = network.blocks[0].attention
        attention.qkv.bias[8::head_width] = torch.tensor(votes, dtype=torch.float64)
        attention.out.weight[1, ::head_width] = 1.0
        attention.out.bias[:] = torch.tensor([-100.0, -sum(votes), 0.0, -100.0], dtype=torch.float64)
        network.head.weight.copy_(torch.eye(4))
    return subject


def probed(subject: Subject, examples: int) -> Batch:
    """The examples that a probe draws."""
    task = subject.trial.task
    return task.draw(stream("probe", subject.trial.seed, task.key), examples, SPLIT)


def loss_of_example(network: nn.Module, batch: Batch, row: int) -> Tensor:
    """The mean loss over an example's scored positions, the example run alone and without padding."""
    time = batch.lengths[row]
    logits = network(torch.from_numpy(batch.inputs[row : row + 1, :time]))[0]
    scored = np.flatnonzero(batch.scored[row, :time])
    return -logits.log_softmax(dim=1)[scored, batch.targets[row, scored]].mean()


def layers(network: nn.Module) -> list[Attention]:
    return [block.attention for block in network.blocks]


def gradients_one_by_one(network: nn.Module, batch: Batch) -> Tensor:
    """What scaling the columns of each head in the output projection does to each example's loss: ``(B, L, H)``."""
    found = []
    for row in range(len(batch)):
        weights = [layer.out.weight for layer in layers(network)]
        slopes = torch.autograd.grad(loss_of_example(network, batch, row), weights)
        by_column = torch.stack([(slope * weight).sum(dim=0) for slope, weight in zip(slopes, weights, strict=True)])
        found.append(by_column.unflatten(1, (layers(network)[0].heads, -1)).sum(dim=2))
    return torch.stack(found).detach()


@pytest.mark.parametrize(
    "fields",
    [{}, {"norm": "post"}, {"positions": "rope", "norm": "none"}, {"positions": "t5"}, {"depth": 1, "feedforward": 0}],
)
def test_gate_gradients_are_those_of_one_example_at_a_time(fields: dict[str, object]) -> None:
    subject = random_subject(SMALL.with_(**fields))
    batch = TASK.draw(np.random.default_rng(0), 7, SPLIT).take(np.arange(0, 7, 2))
    found = gate_gradients(subject, batch)
    assert found.abs().min() > 1e-8
    torch.testing.assert_close(found, gradients_one_by_one(subject.network, batch), rtol=0, atol=1e-10)


def test_gate_gradients_are_finite_differences() -> None:
    subject, step = random_subject(), 1e-5
    batch = TASK.draw(np.random.default_rng(0), 3, SPLIT)
    found = gate_gradients(subject, batch)
    for index, layer in enumerate(layers(subject.network)):
        for head in range(layer.heads):
            losses = []
            for factor in (1 + step, 1 - step):
                with torch.no_grad():
                    kept = layer.out.weight.clone()
                    layer.out.weight[:, 2 * head : 2 * head + 2] *= factor
                    losses.append([loss_of_example(subject.network, batch, row) for row in range(len(batch))])
                    layer.out.weight.copy_(kept)
            slope = (torch.tensor(losses[0]) - torch.tensor(losses[1])) / (2 * step)
            torch.testing.assert_close(found[:, index, head], slope.double(), rtol=0, atol=1e-8)


def test_importance_is_the_mean_absolute_gradient_overall_and_by_stratum() -> None:
    subject = random_subject()
    batch = probed(subject, 30)
    expected = gradients_one_by_one(subject.network, batch).abs().numpy()
    outcome = HeadImportance(examples=30).measure(subject).outcome
    np.testing.assert_allclose(outcome["importance"], expected.mean(axis=0), rtol=0, atol=1e-10)
    by_stratum = {"length=3": batch.lengths == 6, "length=5": batch.lengths == 10}
    by_stratum |= {f"noised={value}": batch.strata["noised"] == value for value in (0, 1)}
    assert outcome["importance_by_stratum"].keys() == by_stratum.keys()
    for name, rows in by_stratum.items():
        np.testing.assert_allclose(
            outcome["importance_by_stratum"][name], expected[rows].mean(axis=0), rtol=0, atol=1e-10
        )


def test_the_absolute_value_is_taken_by_example_where_signs_cancel() -> None:
    subject = voting_subject([3.0])
    batch = COIN.draw(np.random.default_rng(0), 40, SPLIT)
    answers = batch.targets[:, 1]
    gradients = gate_gradients(subject, batch)[:, 0, 0].numpy()
    np.testing.assert_allclose(gradients, np.where(answers == 1, -1.5, 1.5), rtol=1e-12)
    pairs = min((answers == 1).sum(), (answers == 2).sum())
    even = np.concatenate([np.flatnonzero(answers == answer)[:pairs] for answer in (1, 2)])
    assert pairs > 10
    assert gradients[even].mean() == pytest.approx(0.0, abs=1e-12)
    assert HeadImportance(examples=40).measure(subject).outcome["importance"] == [[pytest.approx(1.5, rel=1e-12)]]


def test_redundancy_is_the_share_of_heads_below_each_threshold() -> None:
    outcome = HeadImportance(examples=20).measure(voting_subject([0.008, 2.0, 0.15, 0.04])).outcome
    assert outcome["importance"] == [pytest.approx([0.004, 1.0, 0.075, 0.02], rel=1e-10)]
    assert THRESHOLDS == (0.01, 0.05, 0.1)
    assert [row for row in outcome["scores"] if row["stratum"] == "all"] == [
        {"split": SPLIT, "stratum": "all", "metric": metric, "value": value, "n": 4}
        for metric, value in [("redundancy(0.01)", 0.25), ("redundancy(0.05)", 0.5), ("redundancy(0.1)", 0.75)]
    ]


def test_a_head_that_is_not_read_has_importance_zero_and_is_redundant() -> None:
    subject = random_subject()
    with torch.no_grad():
        layers(subject.network)[1].out.weight[:, 4:6] = 0.0
    outcome = HeadImportance(examples=20).measure(subject).outcome
    importance = np.array(outcome["importance"])
    assert np.argwhere(importance == 0.0).tolist() == [[1, 2]]
    assert importance[importance > 0].min() > 0.01 * importance.max()
    assert outcome["scores"][0]["value"] == 1 / 8


def test_a_gate_of_one_changes_no_output() -> None:
    network = random_subject().network
    x = torch.from_numpy(TASK.draw(np.random.default_rng(0), 6, SPLIT).inputs)
    plain = network(x)
    seen: list[tuple[int, torch.Size]] = []

    def one(layer: int, z_BSHK: Tensor) -> Tensor:
        seen.append((layer, z_BSHK.shape))
        return torch.ones_like(z_BSHK[:, 0, :, 0])

    with gated(network, one):
        assert torch.equal(network(x), plain)
    assert seen == [(0, (6, x.shape[1], 4, 2)), (1, (6, x.shape[1], 4, 2))]


@pytest.mark.parametrize("training", [True, False])
def test_measuring_leaves_the_network_as_it_was(training: bool) -> None:
    network = random_subject(SMALL.with_(dropout=0.5)).network.train(training)
    subject = Subject(network, random_subject().trial, "cpu")
    before = {name: value.clone() for name, value in network.state_dict().items()}
    first = HeadImportance(examples=10).measure(subject)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(module.training == training for module in network.modules())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in network.parameters())
    assert HeadImportance(examples=10).measure(subject) == first


def test_hooks_are_gone_after_an_error() -> None:
    network = random_subject().network
    with pytest.raises(RuntimeError, match="stop"), gated(network, lambda layer, z_BSHK: z_BSHK[:, 0, :, 0]):
        raise RuntimeError("stop")
    assert not any(module._forward_hooks for module in network.modules())


def test_the_mode_is_given_back_after_an_error() -> None:
    subject = random_subject()
    subject.network.train()
    too_long = Copying(lengths=(9,), symbols=4).draw(np.random.default_rng(0), 2, SPLIT)
    with pytest.raises(ValueError, match="learned positions for 10 tokens"):
        gate_gradients(subject, too_long)
    assert subject.network.training


def test_a_network_without_heads_is_refused() -> None:
    with pytest.raises(ValueError, match="no attention heads"):
        HeadImportance(examples=2).measure(random_subject(SMALL.with_(depth=0)))
