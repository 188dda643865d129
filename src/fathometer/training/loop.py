"""The loop: trains one trial. A pure function of the trial; the only place in the lab where weights are changed.

It is lean because sweeps of small networks are bound by overhead: no loader processes, batches of like length, the
last layer and the loss at asked-for positions only, one fused optimiser call, one synchronisation a validation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fathometer.core.interface import Array, Batch
from fathometer.core.metrics import metric
from fathometer.core.model import Model
from fathometer.core.recipe import Recipe
from fathometer.core.record import Status
from fathometer.core.streams import seed_of
from fathometer.core.trial import Trial
from fathometer.evaluation.answers import check_causal, outputs
from fathometer.evaluation.numerics import DTYPES, steady, tensor
from fathometer.evaluation.samples import Samples
from fathometer.evaluation.scoring import main_score, scores
from fathometer.training.checkpoint import Checkpoint, Progress


@dataclass(frozen=True)
class Trained:
    """How a trial ended: its status, its deterministic outcome and its network."""

    status: Status
    outcome: dict[str, Any]
    network: nn.Module


def run(
    trial: Trial,
    device: str = "cpu",
    checkpoint: Checkpoint | None = None,
    on_step: Callable[[int], None] | None = None,
    trained: Callable[[Trial], nn.Module | None] | None = None,
) -> Trained:
    """Trains, validates and tests a trial. Equal trials on like machines end in equal bits, interrupted or not.

    ``trained`` gives the network of the trial that this one starts from, None when that diverged; without it that trial
    is trained first.
    """
    source, before = trial.source(), {}
    if source is not None:
        network = trained(source) if trained else _trained(source, device)
        if network is None:
            raise ValueError("The trial that this one starts from diverged, so there are no weights to start from.")
        before = {name: value.detach().cpu().numpy() for name, value in network.state_dict().items()}
    with steady():
        return _Run(trial, started_network(trial, before, device), device, checkpoint, on_step).to_the_end()


def _trained(trial: Trial, device: str) -> nn.Module | None:
    """The network of a trial, None when it diverged."""
    ended = run(trial, device)
    return ended.network if ended.status == "done" else None


def fresh_network(trial: Trial, device: str = "cpu") -> nn.Module:
    """The network of the trial's model with weights drawn from the seed, whatever the trial starts from."""
    torch.manual_seed(seed_of("init", trial.seed, trial.task.key))
    return trial.model.build(trial.task.interface()).to(device, DTYPES[trial.recipe.precision])


def started_network(trial: Trial, before: Mapping[str, Array], device: str = "cpu") -> nn.Module:
    """The trial's network before its first step; ``before`` holds the weights of the trial it starts from."""
    network = fresh_network(trial, device)
    if trial.start is not None:
        given = trial.start.weights(trial.model, trial.task.interface(), before)
        network.load_state_dict({name: torch.from_numpy(np.asarray(array)) for name, array in given.items()})
    return network


def make_optimiser(network: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW that decays matrices and leaves biases and norms alone."""
    matrices = [p for p in network.parameters() if p.requires_grad and p.dim() >= 2]
    others = [p for p in network.parameters() if p.requires_grad and p.dim() < 2]
    groups = [
        {"params": parameters, "weight_decay": decay}
        for parameters, decay in ((matrices, recipe.optimiser.weight_decay), (others, 0.0))
        if parameters
    ]
    return torch.optim.AdamW(groups, lr=recipe.optimiser.learning_rate, betas=recipe.optimiser.betas, fused=True)


def loss_on(
    network: nn.Module, model: Model, batch: Batch, device: str, dtype: torch.dtype, causal: bool = True
) -> Tensor:
    """Mean loss over the trained-on positions: cross-entropy in nats, or squared error for vectors."""
    if len(np.unique(batch.lengths)) > 1 and not causal:
        parts = [batch.take(np.flatnonzero(batch.lengths == length)) for length in np.unique(batch.lengths)]
        counts = [int(part.trained.sum()) for part in parts]
        losses = [loss_on(network, model, p, device, dtype, causal) * n for p, n in zip(parts, counts, strict=True)]
        return torch.stack(losses).sum() / sum(counts)
    first = int(batch.trained.any(axis=0).argmax())
    mask = tensor(batch.trained[:, first:], device)
    found = outputs(network, model, tensor(batch.inputs, device, dtype), first)[mask]
    wanted = tensor(batch.targets[:, first:], device, dtype)[mask]
    if wanted.is_floating_point():
        return F.mse_loss(found, wanted)
    return F.cross_entropy(found, wanted)


def train_step(network: nn.Module, trial: Trial, optimiser: torch.optim.Optimizer, batch: Batch, device: str) -> Tensor:
    """One step of a trial; the loss before it, still on the device."""
    recipe, causal = trial.recipe, trial.task.interface().causal
    loss = loss_on(network, trial.model, batch, device, DTYPES[recipe.precision], causal)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    if recipe.optimiser.clip is not None:
        nn.utils.clip_grad_norm_(network.parameters(), recipe.optimiser.clip)
    optimiser.step()
    return loss.detach()


class _Run:
    def __init__(
        self,
        trial: Trial,
        network: nn.Module,
        device: str,
        checkpoint: Checkpoint | None,
        on_step: Callable[[int], None] | None,
    ) -> None:
        self.trial, self.recipe, self.device = trial, trial.recipe, device
        self.checkpoint, self.on_step = checkpoint, on_step
        self.samples = Samples(trial)
        self.network = network
        self.optimiser = make_optimiser(self.network, self.recipe) if self.recipe.steps else None
        self.progress = Progress()
        self.validation = self.samples.validation()
        self.pending: list[Tensor] = []

    def to_the_end(self) -> Trained:
        if self.checkpoint and self.optimiser:
            self.progress = self.checkpoint.load(self.network, self.optimiser) or self.progress
        if not self.progress.curve:
            if self.trial.task.interface().causal:
                check_causal(self.network, self.trial.model, self.validation, self.device)
            self._validate()
        stopped = self._stopped()
        while not stopped:
            self._step()
            if self.progress.step % self.recipe.evaluation.every == 0 or self.progress.step == self.recipe.steps:
                self._validate()
                stopped = self._stopped()
                if not stopped and self.checkpoint and self.optimiser and self.checkpoint.due():
                    self.checkpoint.save(self.network, self.optimiser, self.progress)
        return self._ended(stopped)

    def _step(self) -> None:
        assert self.optimiser is not None
        step = self.progress.step
        torch.manual_seed(seed_of("dropout", self.trial.seed, self.trial.task.key, step))
        for group in self.optimiser.param_groups:
            group["lr"] = self.recipe.learning_rate(step)
        self.network.train()
        batch = self.samples.batch(step)
        self.pending.append(train_step(self.network, self.trial, self.optimiser, batch, self.device))
        self.progress.step += 1
        if self.on_step:
            self.on_step(self.progress.step)

    def _validate(self) -> None:
        name = self.trial.task.metric
        value, loss = main_score(self.network, self.trial.model, self.validation, name, self.device)
        trained = torch.stack(self.pending).double().mean().item() if self.pending else float("nan")
        self.pending.clear()
        row = {"step": self.progress.step, "train_loss": trained, "validation_loss": loss, name: value}
        for column, number in row.items():
            self.progress.curve.setdefault(column, []).append(number)

    def _stopped(self) -> str | None:
        """Why the trial ends here: judged by its own curve and frozen constants alone."""
        curve, stop = self.progress.curve, self.recipe.stop
        trained = [loss for step, loss in zip(curve["step"], curve["train_loss"], strict=True) if step]
        if not np.isfinite([*trained, *curve["validation_loss"]]).all():
            return "diverged"
        if stop.rule == "solved" and self._solved_at() is not None:
            return "solved"
        return "budget" if self.progress.step >= self.recipe.steps else None

    def _solved_at(self) -> int | None:
        """The first of the validations in a row that reached the level, once there are enough of them."""
        stop, name = self.recipe.stop, self.trial.task.metric
        run = 0
        for index, value in enumerate(self.progress.curve[name]):
            run = run + 1 if metric(name).reached(value, stop.level) else 0
            if run == stop.checks:
                return int(self.progress.curve["step"][index - run + 1])
        return None

    def _ended(self, stopped: str | None) -> Trained:
        curve = {
            name: [number if np.isfinite(number) else None for number in numbers]
            for name, numbers in self.progress.curve.items()
        }
        outcome: dict[str, Any] = {
            "scores": [],
            "curve": curve,
            "steps": self.progress.step,
            "stopped": stopped,
            "solved_at": None,
        }
        if stopped == "diverged":
            return Trained("diverged", outcome, self.network)
        split = self.samples.split
        outcome["solved_at"] = self._solved_at() if self.recipe.stop.rule == "solved" else None
        outcome["scores"] = scores(self.network, self.trial.model, self.samples.test(split), split, self.device)
        return Trained("done", outcome, self.network)
