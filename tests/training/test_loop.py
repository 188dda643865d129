"""The loop: learns what can be learnt, the same way twice, stops by its own curve, and says when it diverged."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from fathometer.core.interface import Array, Interface
from fathometer.core.model import Model
from fathometer.core.recipe import Evaluation, Optimiser, Recipe, Schedule, Stop
from fathometer.core.trial import Start, Trial
from fathometer.evaluation.numerics import steady
from fathometer.models.transformer import Transformer
from fathometer.tasks.copying import Copying
from fathometer.training.checkpoint import Checkpoint
from fathometer.training.loop import fresh_network, loss_on, make_optimiser, run

EVALUATION = Evaluation(every=10, validate_on=32, test_on=64)
SMALL = Trial(
    task=Copying(lengths=(2, 3), noise={"reading": "R0"}),
    model=Transformer(depth=1, width=16, heads=2),
    recipe=Recipe(steps=30, batch=16, optimiser=Optimiser(learning_rate=1e-2), evaluation=EVALUATION),
)


def test_it_learns_to_copy_perfectly() -> None:
    recipe = SMALL.recipe.with_(steps=400, stop=Stop(rule="solved", level=1.0, checks=2))
    trained = run(SMALL.with_(recipe=recipe, model=Transformer(depth=1, width=32, heads=4)))
    assert trained.outcome["stopped"] == "solved"
    assert trained.outcome["steps"] < 400
    rows = {(row["metric"], row["stratum"]): row["value"] for row in trained.outcome["scores"]}
    assert rows["token_accuracy", "all"] == rows["free_sequence_accuracy", "length=3"] == 1.0
    curve = trained.outcome["curve"]
    solved = curve["step"].index(trained.outcome["solved_at"])
    assert curve["token_accuracy"][solved:] == [1.0, 1.0]


def test_equal_trials_end_in_equal_bits_whatever_torch_did_before() -> None:
    torch.manual_seed(1)
    one = run(SMALL)
    torch.rand(7)
    torch.set_num_threads(2)
    two = run(SMALL)
    assert one.outcome == two.outcome
    for a, b in zip(one.network.state_dict().values(), two.network.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_the_caller_s_torch_is_left_as_it_was() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    threads = torch.get_num_threads()
    run(SMALL.with_(recipe=SMALL.recipe.with_(steps=1)))
    assert torch.equal(torch.rand(1), expected)
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()


def test_seeds_differ_and_models_share_their_data() -> None:
    assert run(SMALL).outcome != run(SMALL.with_(seed=1)).outcome
    wide = SMALL.with_(model=Transformer(depth=2, width=32, heads=4))
    from fathometer.evaluation.samples import Samples

    for step in (0, 9):
        assert np.array_equal(Samples(SMALL).batch(step).inputs, Samples(wide).batch(step).inputs)


class PowerCutError(Exception):
    """Stands for the power going."""


def _kill_at(step: int) -> Callable[[int], None]:
    def on_step(done: int) -> None:
        if done == step:
            raise PowerCutError

    return on_step


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_trial_killed_thrice_ends_in_the_same_bits(tmp_path: Path, dropout: float) -> None:
    trial = SMALL.with_(
        model=SMALL.model.with_(dropout=dropout), recipe=SMALL.recipe.with_(schedule=Schedule(warmup=5, decay="cosine"))
    )
    undisturbed = run(trial)
    checkpoint = Checkpoint(tmp_path / "trial.safetensors", every=0.0, share=float("inf"))
    for step in (5, 13, 29):
        with pytest.raises(PowerCutError):
            run(trial, checkpoint=checkpoint, on_step=_kill_at(step))
    first_step: list[int] = []
    resumed = run(trial, checkpoint=checkpoint, on_step=first_step.append)
    assert first_step[0] == 21
    assert resumed.outcome == undisturbed.outcome
    for a, b in zip(resumed.network.state_dict().values(), undisturbed.network.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_a_damaged_checkpoint_starts_over(tmp_path: Path) -> None:
    path = tmp_path / "trial.safetensors"
    checkpoint = Checkpoint(path, every=0.0, share=float("inf"))
    with pytest.raises(PowerCutError):
        run(SMALL, checkpoint=checkpoint, on_step=_kill_at(25))
    path.write_bytes(path.read_bytes()[:100])
    first_step: list[int] = []
    assert run(SMALL, checkpoint=checkpoint, on_step=first_step.append).outcome == run(SMALL).outcome
    assert first_step[0] == 1


def test_a_trial_that_blows_up_is_diverged_and_has_no_scores() -> None:
    optimiser = Optimiser(learning_rate=1e12, clip=None)
    trained = run(
        SMALL.with_(
            recipe=SMALL.recipe.with_(optimiser=optimiser), model=Transformer(depth=1, width=16, heads=2, norm="none")
        )
    )
    assert trained.status == "diverged"
    assert trained.outcome["scores"] == []
    assert None in trained.outcome["curve"]["train_loss"][1:] or None in trained.outcome["curve"]["validation_loss"]


class Ones(Start):
    """A start that sets every number to one value."""

    value: float = 1.0

    def weights(self, model: Model, interface: Interface, trained: Mapping[str, Array]) -> dict[str, Array]:
        network = model.build(interface)
        return {name: np.full(tuple(p.shape), self.value, dtype=np.float32) for name, p in network.state_dict().items()}


def test_a_start_sets_the_weights_and_zero_steps_only_test() -> None:
    trial = SMALL.with_(start=Ones(value=0.5), recipe=SMALL.recipe.with_(steps=0))
    trained = run(trial)
    assert all(torch.equal(p, torch.full_like(p, 0.5)) for p in trained.network.state_dict().values())
    assert (trained.outcome["steps"], trained.outcome["stopped"]) == (0, "budget")
    assert trained.outcome["scores"]


def test_the_loss_is_the_mean_cross_entropy_of_the_trained_positions() -> None:
    from fathometer.evaluation.samples import Samples

    batch = Samples(SMALL).batch(0)
    with steady():
        network = fresh_network(SMALL).double()
        found = loss_on(network, SMALL.model, batch, "cpu", torch.float64)
        logits = network(torch.from_numpy(batch.inputs)).log_softmax(dim=2)
    nats = [-logits[i, t, batch.targets[i, t]].item() for i, t in zip(*np.nonzero(batch.trained), strict=True)]
    assert found.item() == pytest.approx(np.mean(nats), abs=1e-12)


def test_matrices_decay_and_vectors_do_not() -> None:
    recipe = Recipe(optimiser=Optimiser(weight_decay=0.1))
    with steady():
        groups = make_optimiser(fresh_network(SMALL), recipe).param_groups
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]
    assert all(p.dim() >= 2 for p in groups[0]["params"])
    assert all(p.dim() < 2 for p in groups[1]["params"])


def test_learning_rates_warm_up_and_decay() -> None:
    recipe = Recipe(steps=100, optimiser=Optimiser(learning_rate=1.0), schedule=Schedule(warmup=10, decay="linear"))
    assert recipe.learning_rate(0) == pytest.approx(0.1)
    assert recipe.learning_rate(9) == recipe.learning_rate(10) == 1.0
    assert recipe.learning_rate(55) == pytest.approx(0.5)
    cosine = recipe.with_(schedule=Schedule(decay="cosine"))
    assert cosine.learning_rate(50) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="does not end within 5 steps"):
        Recipe(steps=5, schedule=Schedule(warmup=10))
