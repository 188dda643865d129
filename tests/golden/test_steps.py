"""Golden: twenty steps of three configurations, bit for bit on every kind of machine they were recorded on.

Elsewhere (another processor or torch) the same numbers within a tolerance. A change here is a change of numerics: show
that training still converges, then run ``python tests/golden/test_steps.py --anew``. Without ``--anew`` it adds the
machine at hand to those recorded.
"""

import json
import sys
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


def here() -> str:
    """What floating-point results depend on."""
    about = machine()
    return f"{about['cpu']}, torch {about['torch']}"


def outcome(name: str) -> dict[str, Any]:
    """What a configuration ends in."""
    task = named("task", "copying", lengths=(3, 6))
    return run(Trial(task=task, model=named("model", "transformer", **CONFIGURATIONS[name]), recipe=RECIPE)).outcome


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_twenty_steps(name: str) -> None:
    held, now = json.loads(FILE.read_text()), outcome(name)
    if here() in held:
        assert now == held[here()][name]
    for recorded in held.values():
        for curve in ("train_loss", "validation_loss"):
            mine, theirs = (found["curve"][curve][1:] for found in (now, recorded[name]))
            assert np.allclose(mine, theirs, rtol=1e-3), curve


if __name__ == "__main__":
    recorded = json.loads(FILE.read_text()) if FILE.exists() and "--anew" not in sys.argv else {}
    recorded[here()] = {name: outcome(name) for name in CONFIGURATIONS}
    FILE.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
