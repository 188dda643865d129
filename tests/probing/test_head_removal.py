"""Head removal against weights set to zero by hand and networks whose heads are known to be idle or not."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

from fathometer.core.recipe import Recipe
from fathometer.core.trial import Subject, Trial
from fathometer.evaluation.numerics import steady
from fathometer.models.transformer import Transformer
from fathometer.probing.head_removal import HeadRemoval, removed_heads
from fathometer.tasks.copying import Copying, Noise

ONE = Copying(lengths=(1,), symbols=4, noise=Noise(reading="R0"))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with steady():
        yield


def random_network(model: Transformer, task: Copying) -> Subject:
    torch.manual_seed(0)
    network = model.build(task.interface()).double()
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.5)
    return Subject(network, Trial(task=task, model=model, recipe=Recipe(precision="float64")), "cpu")


def copier_with_an_idle_layer() -> Subject:
    """The first layer's one head copies the symbol before the delimiter; the second layer's writes nothing."""
    vocab = ONE.symbols + 2
    model = Transformer(depth=2, width=vocab, heads=1, feedforward=0, norm="none", positions="none")
    network = model.build(ONE.interface())
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        network.embed.weight[:-1, :-1] = torch.eye(vocab - 1)
        network.blocks[0].attention.qkv.weight[2 * vocab :] = torch.eye(vocab)
        network.blocks[0].attention.out.weight.copy_(torch.eye(vocab))
        network.head.weight.copy_(torch.eye(vocab))
    return Subject(network, Trial(task=ONE, model=model), "cpu")


def test_removing_heads_is_writing_nothing_with_them() -> None:
    task = Copying(lengths=(3, 5), symbols=4)
    subject = random_network(Transformer(depth=2, width=8, heads=4), task)
    x = torch.from_numpy(task.draw(np.random.default_rng(0), 6, "in_distribution").inputs)
    plain = subject.network(x)
    with removed_heads(subject.network, [(0, 1), (1, 3)]):
        removed = subject.network(x)
    assert torch.equal(subject.network(x), plain)
    with torch.no_grad():
        subject.network.blocks[0].attention.out.weight[:, 2:4] = 0
        subject.network.blocks[1].attention.out.weight[:, 6:8] = 0
    torch.testing.assert_close(subject.network(x), removed, rtol=0, atol=1e-12)
    assert not torch.allclose(removed, plain)


def test_an_idle_head_can_go_and_the_other_cannot() -> None:
    outcome = HeadRemoval(examples=200, draws=2).measure(copier_with_an_idle_layer()).outcome
    assert outcome["removed"] == [0, 1, 2]
    least, most = (outcome["accuracy"][order][0] for order in ("least important first", "most important first"))
    assert least[:2] == [1.0, 1.0]
    assert most[0] == 1.0
    assert least[2] == most[2] == most[1] < 0.5
    assert len(outcome["accuracy"]["in random order"]) == 2
    rows = {row["stratum"]: row for row in outcome["scores"]}
    assert rows["all"] == {"split": "in_distribution", "stratum": "all", "metric": "removable", "value": 0.5, "n": 2}
    assert rows["length=1"]["value"] == 0.5


@pytest.mark.parametrize(("points", "counts"), [(16, list(range(9))), (4, [0, 2, 4, 6, 8]), (1, [0, 8])])
def test_a_curve_has_so_many_points_and_both_ends(points: int, counts: list[int]) -> None:
    subject = random_network(Transformer(depth=2, width=8, heads=4), ONE)
    outcome = HeadRemoval(examples=20, points=points, draws=1).measure(subject).outcome
    assert outcome["removed"] == counts
    assert {len(curve) for curves in outcome["accuracy"].values() for curve in curves} == {len(counts)}
    assert outcome["accuracy_by_stratum"]["all"] == outcome["accuracy"]["least important first"][0]


def test_what_can_go_ends_at_the_first_fall() -> None:
    probe = HeadRemoval(within=0.01)
    assert probe._removable([0, 1, 2, 3, 4], [0.9, 0.895, 0.5, 0.9, 0.1]) == 0.25
    assert probe._removable([0, 1, 2], [0.9, 0.9, 0.9]) == 1.0
    assert probe._removable([0, 1], [0.9, 0.1]) == 0.0


def test_measuring_twice_gives_the_same_and_leaves_no_hook() -> None:
    subject = random_network(Transformer(depth=1, width=8, heads=4), ONE)
    assert HeadRemoval(examples=30).measure(subject) == HeadRemoval(examples=30).measure(subject)
    assert not any(module._forward_hooks for module in subject.network.modules())
