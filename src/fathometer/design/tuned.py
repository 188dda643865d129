"""Tuned: a configuration's learning rate, chosen on validation data by short trials of seeds used nowhere else."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from fathometer.core.evidence import Evidence
from fathometer.core.recipe import Stop
from fathometer.core.trial import Trial


@dataclass(frozen=True)
class Tuning:
    """How a search stands: the short trials it wants so far, and the winner once all of them are known."""

    wanted: tuple[Trial, ...]
    rate: float | None


def at_rate(trial: Trial, rate: float) -> Trial:
    """The same trial with another learning rate."""
    optimiser = trial.recipe.optimiser.with_(learning_rate=rate)
    return trial.with_(recipe=trial.recipe.with_(optimiser=optimiser))


def tune(
    trial: Trial, rates: Sequence[float], seeds: Sequence[int], steps: int, evidence: Evidence, extensions: int = 2
) -> Tuning:
    """The learning rate at which short trials of this configuration end with the lowest validation loss.

    ``rates`` is a log grid, smallest first; each is tried at all ``seeds`` for ``steps`` steps that nothing stops
    early, and the median over seeds (of two, the mean) counts; a tie goes to the smaller rate. A winner at an end of
    the grid extends it by its own ratio, at most ``extensions`` times. A diverged trial counts as infinite. With one
    rate there is nothing to choose and nothing is wanted. A rung is an ordinary trial, so what is chosen here was
    chosen on ``steps`` steps: a configuration that wakes up late may be served badly by it.
    """
    if list(rates) != sorted(set(rates)) or not rates:
        raise ValueError(f"rates = {tuple(rates)}: give learning rates that grow, each once.")
    if len(rates) == 1:
        return Tuning((), rates[0])
    short = trial.with_(recipe=trial.recipe.with_(steps=steps, stop=Stop()))
    grid = list(rates)
    for left in range(extensions, -1, -1):
        rungs = {rate: [at_rate(short, rate).with_(seed=seed) for seed in seeds] for rate in grid}
        wanted = tuple(rung for rate in grid for rung in rungs[rate])
        losses = {rate: _median_loss(rungs[rate], evidence) for rate in grid}
        known = {rate: loss for rate, loss in losses.items() if loss is not None}
        if len(known) < len(grid):
            return Tuning(wanted, None)
        best = min(grid, key=lambda rate: (known[rate], rate))
        if left and best == grid[0]:
            grid.insert(0, _rounded(grid[0] ** 2 / grid[1]))
        elif left and best == grid[-1]:
            grid.append(_rounded(grid[-1] ** 2 / grid[-2]))
        else:
            return Tuning(wanted, best)
    raise AssertionError("the last round returns")


def _median_loss(rungs: Sequence[Trial], evidence: Evidence) -> float | None:
    """None until every seed has ended; a rung that failed must be done again before anything is chosen."""
    records = [evidence.get(rung.key) for rung in rungs]
    losses: list[float] = []
    for record in records:
        if record is None or record.status == "failed":
            return None
        curve = record.outcome.get("curve", {}).get("validation_loss", [])
        losses.append(curve[-1] if record.status == "done" and curve else float("inf"))
    return median(losses)


def _rounded(rate: float) -> float:
    """To three digits, so that extending a grid gives numbers one can read."""
    return float(f"{rate:.3g}")
