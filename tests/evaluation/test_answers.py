"""Answers: chunks change nothing, and running free is exactly step-by-step greedy decoding."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from fathometer.core.streams import stream
from fathometer.evaluation import answers
from fathometer.evaluation.answers import answer, answer_freely
from fathometer.evaluation.scoring import scores
from fathometer.models.transformer import Transformer
from fathometer.tasks.copying import Copying

TASK = Copying(lengths=(2, 4, 7))
MODEL = Transformer(depth=2, width=16, heads=2)


@pytest.fixture
def network() -> torch.nn.Module:
    torch.manual_seed(0)
    built = MODEL.build(TASK.interface()).double()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.mul_(8)
    return built


def test_answers_are_the_argmax_and_its_cross_entropy(
    network: torch.nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = TASK.draw(stream("test", 0), 40, "in_distribution")
    monkeypatch.setattr(answers, "CHUNK", 50)
    found = answer(network, MODEL, batch, "cpu")
    logits = network(torch.from_numpy(batch.inputs)).detach()
    mask = batch.scored
    assert np.array_equal(found.predicted[mask], logits.argmax(2).numpy()[mask])
    nats = F.cross_entropy(logits.transpose(1, 2), torch.from_numpy(batch.targets), reduction="none").numpy()
    assert found.loss[mask] == pytest.approx(nats[mask], abs=1e-12)
    assert not found.loss[~mask].any()


def test_running_free_is_greedy_decoding_one_step_at_a_time(network: torch.nn.Module) -> None:
    batch = TASK.draw(stream("test", 1), 30, "in_distribution")
    free = answer_freely(network, MODEL, batch, "cpu")
    forced = answer(network, MODEL, batch, "cpu").predicted
    differs = False
    for row in range(len(batch)):
        inputs = torch.from_numpy(batch.inputs[row : row + 1].copy())
        for time in np.flatnonzero(batch.scored[row]):
            guess = int(network(inputs[:, : time + 1])[0, -1].argmax())
            assert free[row, time] == guess
            if time + 1 < inputs.shape[1]:
                inputs[0, time + 1] = guess
        differs |= bool((free[row] != forced[row])[batch.scored[row]].any())
    assert differs, "the network is so simple that both ways agree: the test shows nothing"


def test_scores_by_stratum_are_counted_by_hand(network: torch.nn.Module) -> None:
    batch = TASK.draw(stream("test", 2), 60, "in_distribution")
    right = answer(network, MODEL, batch, "cpu").predicted == batch.targets
    rows = {(row["metric"], row["stratum"]): row for row in scores(network, MODEL, batch, "in_distribution", "cpu")}
    long = batch.strata["length"] == 7
    assert rows["token_accuracy", "length=7"]["value"] == right[long][batch.scored[long]].mean()
    assert rows["token_accuracy", "length=7"]["n"] == 7 * long.sum()
    flipped = (batch.strata["flipped"] == 1) & batch.scored
    assert rows["token_accuracy", "flipped=1"]["n"] == flipped.sum()
    whole = np.array([right[i][batch.scored[i]].all() for i in range(60)])
    assert rows["sequence_accuracy", "all"]["value"] == whole.mean()
    assert ("sequence_accuracy", "flipped=1") not in rows
