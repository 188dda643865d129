"""The benchmark: all contenders learn to copy from the same data, and the README shows what was measured."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import copy_trainers
from copy_trainers import Examples, contenders, padded, table, trial_of
from fathometer.evaluation.samples import Samples

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.filterwarnings("ignore")  # other people's trainers warn of what they please
def test_every_contender_learns_from_the_same_examples() -> None:
    trial = trial_of((2, 3), depth=1, heads=2, batch=32, steps=60, rate=1e-2, seed=0)
    validation = Samples(trial).validation()
    for contender in contenders():
        steps: list[int] = []

        def clock(step: int, network: nn.Module | None, seen: list[int] = steps) -> bool:
            seen.append(step)
            return False

        network = contender.train(trial, clock)
        assert steps == list(range(1, len(steps) + 1))
        assert copy_trainers.accuracy(network, validation) > 0.3, contender.name


def test_the_examples_are_those_of_our_engine() -> None:
    trial = trial_of((2, 3), depth=1, heads=2, batch=4, steps=3, rate=1e-2, seed=0)
    answers, whole = Examples(trial, answers_only=True), Examples(trial, answers_only=False)
    assert len(answers) == len(whole) == 12
    batch = Samples(trial).batch(0)
    held = padded([whole[row] for row in range(4)])
    assert torch.equal(held["input_ids"][:, : batch.inputs.shape[1]], torch.from_numpy(batch.inputs))
    for row in range(4):
        labels = answers[row]["labels"]
        assert (labels != copy_trainers.IGNORED).sum() == batch.trained[row].sum()
        assert np.array_equal(labels[1:][labels[1:] >= 0], batch.targets[row][batch.trained[row]])
        assert np.array_equal(whole[row]["labels"], whole[row]["input_ids"])


def test_the_readme_shows_what_was_measured() -> None:
    held = json.loads(copy_trainers.HELD.read_text())
    text = (ROOT / "README.md").read_text()
    assert f"{copy_trainers.START}\n{table(held)}\n{copy_trainers.END}" in text
