"""Every registered task and model against its kit, and the kits against breaches they must find."""

from typing import Any

import numpy as np
import pytest
import torch

from fathometer.core import registry
from fathometer.core.interface import Batch, Interface, Tokens, Vectors
from fathometer.core.spec import named
from fathometer.models.transformer import Transformer, TransformerNetwork
from fathometer.tasks.copying import Copying
from fathometer.testing import check_model, check_task

TASKS = [
    named("task", "copying", lengths=(2, 3, 5), noise={"reading": reading, "count": count}, layout=layout, **more)
    for reading in ("R0", "R1", "R2", "R3", "R4", "R5")
    for count, layout, more in (
        ("fixed", "mixed", {}),
        ("each", "fixed_split", {"ends": True, "loss": "everything", "unseen_lengths": (7,)}),
    )
]

TOKENS = Interface(inputs=Tokens(vocab=7), outputs=Tokens(vocab=7), length=9, causal=True)
VECTORS = Interface(inputs=Vectors(dim=3), outputs=Vectors(dim=2), length=6, causal=False)

MODELS = [
    *[
        (named("model", "transformer", width=16, positions=kind), TOKENS)
        for kind in ("none", "learned", "sinusoidal", "rope", "alibi", "t5")
    ],
    *[
        (named("model", "transformer", width=16, norm=norm, feedforward=feedforward, depth=depth), TOKENS)
        for norm, feedforward, depth in (("post", 4, 2), ("none", 0, 1), ("pre", 0, 0))
    ],
    (named("model", "transformer", width=16, causal=False, positions="t5"), VECTORS),
    (named("model", "transformer", width=16, tied=True, dropout=0.1), TOKENS),
]  # fmt: skip


def test_every_registered_task_and_model_is_checked_here() -> None:
    assert {task.name for task in TASKS} == {entry.name for entry in registry.entries("task")}
    assert {model.name for model, _ in MODELS} == {entry.name for entry in registry.entries("model")}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.noise.reading}-{task.noise.count}")
def test_task(task: Any) -> None:
    check_task(task)


@pytest.mark.parametrize(("model", "interface"), MODELS, ids=lambda x: getattr(x, "key", "")[:6])
def test_model(model: Any, interface: Interface) -> None:
    check_model(model, interface)


class Careless(Copying):
    """Draws from the global generator."""

    def draw(self, rng: np.random.Generator, n: int, split: str) -> Batch:
        np.random.random()  # noqa: NPY002
        return super().draw(np.random.default_rng(int(np.random.random() * 1e9)), n, split)  # noqa: NPY002


class Padded(Copying):
    """Scores padding."""

    def draw(self, rng: np.random.Generator, n: int, split: str) -> Batch:
        batch = super().draw(rng, n, split)
        batch.scored[:, -1] = True
        return batch


class Boundless(Copying):
    """Knows no limits."""

    def limits(self, split: str) -> list[Any]:
        return []


@pytest.mark.parametrize(
    ("task", "breach"),
    [
        (Careless(lengths=(3,)), "do not depend on the generator|from equal generators differ"),
        (Padded(lengths=(2, 5)), "scored marks padding"),
        (Boundless(lengths=(2,)), "no chance limit of token_accuracy for all"),
    ],
)
def test_breaches_of_a_task_are_found(task: Copying, breach: str) -> None:
    with pytest.raises(AssertionError, match=breach):
        check_task(task)


class Mixing(TransformerNetwork):
    """Lets the examples of a batch see each other."""

    def forward(self, x: torch.Tensor, first: int = 0) -> torch.Tensor:
        y = super().forward(x, first)
        return y + y.mean(dim=0)


class Peeking(TransformerNetwork):
    """Lets a position see the next."""

    def forward(self, x: torch.Tensor, first: int = 0) -> torch.Tensor:
        return super().forward(x.roll(-1, dims=1), first)


class Breach(Transformer):
    """A transformer that builds one of the networks above."""

    which: str = "mixing"

    def build(self, interface: Interface) -> TransformerNetwork:
        return {"mixing": Mixing, "peeking": Peeking}[self.which](self, interface)


@pytest.mark.parametrize(
    ("which", "breach"),
    [("mixing", "depends on the others in its batch"), ("peeking", "outputs before position")],
)
def test_breaches_of_a_model_are_found(which: str, breach: str) -> None:
    with pytest.raises(AssertionError, match=breach):
        check_model(Breach(width=16, which=which), TOKENS)
