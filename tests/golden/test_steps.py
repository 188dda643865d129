"""Golden: twenty steps of three configurations, bit for bit on the machine they were recorded on.

Elsewhere (another processor or torch) the same numbers within a tolerance. A change here is a change of numerics: show
that training still converges, then run ``python tests/golden/test_steps.py``.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fathometer.core.recipe import Evaluation, Optimiser, Recipe, Schedule
from fathometer.core.spec import named
from fathometer.core.trial import Trial
from fathometer.execution.worker import machine
from fathometer.training.loop import run

FILE = Path(__file__).with_name("steps.json")

RECIPE = Recipe(
    steps=20,
    batch=16,
    optimiser=Optimiser(learning_rate=3e-3, weight_decay=0.01),
    schedule=Schedule(warmup=5, decay="cosine"),
    evaluation=Evaluation(every=5, validate_on=64, test_on=64),
)

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "gpt2": {"depth": 2, "width": 32, "heads": 4},
    "rope_post_dropout": {"depth": 1, "width": 32, "heads": 2, "norm": "post", "positions": "rope", "dropout": 0.1},
    "attention_only_t5": {"depth": 3, "width": 16, "heads": 1, "norm": "none", "positions": "t5", "feedforward": 0},
}


def outcomes() -> dict[str, Any]:
    """What each configuration ends in, and where."""
    task = named("task", "copying", lengths=(3, 6))
    found: dict[str, Any] = {
        name: run(Trial(task=task, model=named("model", "transformer", **fields), recipe=RECIPE)).outcome
        for name, fields in CONFIGURATIONS.items()
    }
    return {"machine": {name: machine()[name] for name in ("cpu", "torch")}, "outcomes": found}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_twenty_steps(name: str) -> None:
    held = json.loads(FILE.read_text())
    now = outcomes()
    if now["machine"] == held["machine"]:
        assert now["outcomes"][name] == held["outcomes"][name]
    for curve in ("train_loss", "validation_loss"):
        mine, theirs = (x["outcomes"][name]["curve"][curve][1:] for x in (now, held))
        assert np.allclose(mine, theirs, rtol=1e-3), curve


if __name__ == "__main__":
    FILE.write_text(json.dumps(outcomes(), indent=1) + "\n")
