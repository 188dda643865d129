"""Readings: one number a seed, from a trial's scores, its curve or a probe on its network."""

from collections.abc import Mapping, Sequence
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from fathometer.core.evidence import Evidence, at
from fathometer.core.metrics import is_counted
from fathometer.core.record import Record
from fathometer.core.spec import Spec
from fathometer.statistics.intervals import log_odds


class Value(NamedTuple):
    """What one seed gave: the key of its record, the number, and over how many answers it is a mean."""

    key: str
    value: float
    n: int


class Reading(Spec):
    """Which number: of the trials that ``where`` selects, or of what ``probe`` found on them.

    ``strata`` are averaged with equal weight. ``fluctuation`` is read off a trial's curve.
    """

    where: dict[str, Any] = Field(default_factory=dict)
    metric: str = "token_accuracy"
    strata: tuple[str, ...] = ("all",)
    probe: dict[str, Any] | None = Field(default=None, description="settings of the probe, its name among them")

    def by_seed(self, evidence: Evidence) -> dict[int, Value]:
        """By seed, what was read. Raises ValueError when several trials of one seed are selected."""
        found: dict[int, Value] = {}
        for record, seed in self._records(evidence):
            value = self._value(record)
            if value is None:
                continue
            if seed in found:
                raise ValueError(f"{self.where} selects more than one trial of seed {seed}.")
            found[seed] = value
        return found

    def seeds(self, planned: Evidence) -> set[int]:
        """The seeds at which there will be something to read."""
        return {seed for _, seed in self._records(planned)}

    def _records(self, evidence: Evidence) -> list[tuple[Record, int]]:
        if self.probe is None:
            return [(trial, trial.spec["seed"]) for trial in evidence.trials(self.where)]
        asked = {f"probe.{path}": value for path, value in self.probe.items() if path != "name"}
        found = evidence.probes(str(self.probe["name"]), self.where, ("done", "diverged"))
        return [
            (record, record.spec["trial"]["seed"])
            for record in found
            if all(at(record.spec, path) == value for path, value in asked.items())
        ]

    def _value(self, record: Record) -> Value | None:
        """None where there is nothing to read; a network that diverged has answered nothing right."""
        if self.metric in CURVES and record.kind == "trial":
            value = CURVES[self.metric](record.outcome.get("curve", {}))
            return None if value is None else Value(record.key, value, 0)
        rows = [row for row in record.scores if row["metric"] == self.metric and row["stratum"] in self.strata]
        split = rows[0]["split"] if rows else None
        rows = [row for row in rows if row["split"] == split]
        if len(rows) == len(self.strata):
            return Value(record.key, float(np.mean([r["value"] for r in rows])), sum(r["n"] for r in rows))
        if record.status == "diverged" and is_counted(self.metric):
            asked = "recipe.evaluation.test_on" if record.kind == "trial" else "probe.examples"
            return Value(record.key, 0.0, int(at(record.spec, asked)))
        return None


def fluctuation(curve: Mapping[str, Sequence[float | None]]) -> float | None:
    """How much the training loss jumps about its own trend, as a share of it; None for a curve too short to tell.

    The root mean square of the second differences of its logarithm, over sqrt(6): for independent noise about a
    straight line this is the noise's deviation. A bend that takes only a few points counts as well, so the curve must
    be read often enough for its trend to be slow.
    """
    losses = [loss for loss in curve.get("train_loss", []) if loss is not None and loss > 0]
    if len(losses) < 5:
        return None
    bends = np.diff(np.log(losses), n=2)
    return float(np.sqrt(np.mean(bends**2) / 6))


CURVES = {"fluctuation": fluctuation}
"""What can be read off a learning curve."""


class Effect(NamedTuple):
    """A number on the scale of a claim, with the variance that counting so few answers leaves in it."""

    value: float
    variance: float


def on_scale(read: Value, scale: str, counts: bool) -> Effect:
    """The number as ``odds`` (log odds of a rate), ``ratio`` (its logarithm) or ``difference`` (itself).

    The variance is that of a share of right answers, half a count away from 0 and 1; none is known of other numbers.
    """
    if scale == "ratio" and read.value <= 0:
        raise ValueError(f"A ratio needs numbers above 0, and {read.key} gave {read.value}.")
    value = read.value
    if scale == "odds":
        value = log_odds(read.value, read.n)
    elif scale == "ratio":
        value = log(read.value)
    if not counts:
        return Effect(value, 0.0)
    rate = (read.value * read.n + 0.5) / (read.n + 1)
    spread = rate * (1 - rate) / read.n
    slope = {"odds": 1 / (rate * (1 - rate)), "ratio": 1 / rate}.get(scale, 1.0)
    return Effect(value, slope**2 * spread)


def widened(half: float, variances: Sequence[float], weights: Sequence[float], seeds: int) -> float:
    """The half-width of an interval over seeds, no narrower than the numbers of answers behind it allow."""
    each = sum(weight**2 * variance for weight, variance in zip(weights, variances, strict=True))
    return max(half, 1.96 * sqrt(each) / seeds)
