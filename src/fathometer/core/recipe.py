"""Recipe: how to train. Everything that may change a result and is neither task, model nor start."""

from math import cos, pi
from typing import Literal, Self

from pydantic import Field, model_validator

from fathometer.core.spec import Spec


class Optimiser(Spec):
    """AdamW with decoupled weight decay; ``clip`` bounds the norm of the whole gradient, None leaves it."""

    method: Literal["adamw"] = "adamw"
    learning_rate: float = Field(default=1e-3, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    betas: tuple[float, float] = (0.9, 0.98)
    clip: float | None = Field(default=1.0, gt=0)


class Schedule(Spec):
    """The learning rate over the steps: linear warm-up, then ``decay`` to zero at the last step."""

    warmup: int = Field(default=0, ge=0)
    decay: Literal["none", "linear", "cosine"] = "none"


class Stop(Spec):
    """When to stop before the last step, by the trial's own validation curve alone.

    ``solved`` stops once the task's metric has reached ``level`` at ``checks`` validations in a row.
    """

    rule: Literal["never", "solved"] = "never"
    level: float = 0.99
    checks: int = Field(default=2, ge=1)


class Evaluation(Spec):
    """How often a trial is validated, and on how many examples it is validated and, once, tested."""

    every: int = Field(default=50, ge=1)
    validate_on: int = Field(default=256, ge=1)
    test_on: int = Field(default=1000, ge=1)


class Recipe(Spec):
    """Steps of ``batch`` examples. ``grouped`` puts examples of like length into one batch to save padding."""

    steps: int = Field(default=1000, ge=0)
    batch: int = Field(default=64, ge=1)
    grouped: bool = True
    optimiser: Optimiser = Optimiser()
    schedule: Schedule = Schedule()
    stop: Stop = Stop()
    evaluation: Evaluation = Evaluation()
    precision: Literal["float32", "float64"] = "float32"

    @model_validator(mode="after")
    def _warm_up_ends(self) -> Self:
        if self.schedule.warmup > self.steps:
            raise ValueError(
                f"a warm-up of {self.schedule.warmup} steps does not end within {self.steps} steps: "
                f"lower schedule.warmup or raise steps"
            )
        return self

    def learning_rate(self, step: int) -> float:
        """The learning rate of step 0, 1, ..., ``steps - 1``."""
        peak, warmup = self.optimiser.learning_rate, self.schedule.warmup
        if step < warmup:
            return peak * (step + 1) / warmup
        done = (step - warmup) / max(1, self.steps - warmup)
        if self.schedule.decay == "linear":
            return peak * (1 - done)
        if self.schedule.decay == "cosine":
            return peak * (1 + cos(pi * done)) / 2
        return peak
