"""What the study of copying trains at each scale: sizes, arms, recipes and probes. Its claims are in `copy_claims`."""

from dataclasses import dataclass
from typing import Any

from fathometer.core.recipe import Evaluation, Optimiser, Recipe, Schedule, Stop
from fathometer.core.spec import named
from fathometer.core.study import Scale
from fathometer.core.task import Task
from fathometer.design.grid import combinations

Size = dict[str, int]

TUNING_SEEDS_FROM = 10_000
"""Seeds that choose learning rates stand far from those that are compared."""

LITERAL = Recipe(
    batch=8,
    grouped=False,
    optimiser=Optimiser(learning_rate=5e-5, betas=(0.9, 0.999), weight_decay=0.0, clip=1.0),
    schedule=Schedule(warmup=0, decay="linear"),
)
"""The defaults of the script that the report built on, but for the number of steps."""

LITERAL_MODEL: dict[str, Any] = {"dropout": 0.1, "tied": True}

HARDER_NOISE = (0.3, 0.5)
"""Rates of flipping that no network was trained on."""


def harder_noise(task: Task) -> list[Task]:
    """The same task with more flips in each noised string."""
    return [task.with_(noise={"rate": rate}) for rate in HARDER_NOISE]


@dataclass(frozen=True)
class Plan:
    """One scale. Depths, widths and heads grow; ``many_heads`` goes beyond the grid's heads, on the middle depth."""

    lengths: tuple[int, ...]
    short: tuple[int, ...]
    long: tuple[int, ...]
    depths: tuple[int, ...]
    widths: tuple[int, ...]
    heads: tuple[int, ...]
    many_heads: int
    seeds: int
    batch: int
    steps: int
    budget: int
    level: float
    every: int
    closely: int
    test_on: int
    rates: tuple[float, ...]
    tuning_steps: int
    tuning_seeds: int
    strings: int | None
    literal_strings: int
    epochs: int
    probe_examples: int
    timed_widths: tuple[int, ...]

    @property
    def sizes(self) -> list[Size]:
        """The grid, and the one size beyond it."""
        return [*combinations({"depth": self.depths, "width": self.widths, "heads": self.heads}), self.beyond]

    @property
    def beyond(self) -> Size:
        """The middle depth with more heads than the grid has."""
        return self.size(self.depths[len(self.depths) // 2], self.many_heads)

    @property
    def smallest(self) -> Size:
        return self.size(self.depths[0], self.heads[0])

    @property
    def largest(self) -> Size:
        return {"depth": self.depths[-1], "width": self.widths[-1], "heads": self.heads[-1]}

    def size(self, depth: int, heads: int) -> Size:
        """At the smallest width."""
        return {"depth": depth, "width": self.widths[0], "heads": heads}

    @property
    def mixed(self) -> Task:
        """The task of every arm but for what the arm changes."""
        return named("task", "copying", lengths=self.lengths, strings=self.strings)

    @property
    def converged(self) -> Recipe:
        """Trains until solved; the learning rate is yet to be chosen."""
        return self._recipe(self.steps, Stop(rule="solved", level=self.level, checks=2))

    @property
    def fixed_budget(self) -> Recipe:
        """Trains for the same few steps whatever comes of it: what accuracies are compared on."""
        return self._recipe(self.budget, Stop())

    @property
    def watched(self) -> Recipe:
        """The fixed budget, validated so often that the curve shows how the loss jumps and not only how it falls."""
        return self.fixed_budget.with_(evaluation=self.fixed_budget.evaluation.with_(every=self.closely))

    @property
    def untrained(self) -> Recipe:
        """No step at all."""
        return Recipe(steps=0, batch=self.batch, evaluation=self.converged.evaluation)

    @property
    def timed_sizes(self) -> list[Size]:
        """Sizes over a wide range of cost, for timings alone."""
        return combinations({"depth": self.depths, "width": self.timed_widths, "heads": (4,)})

    @property
    def literal(self) -> Recipe:
        """The defaults of the report's script for its number of epochs over the finite set."""
        kept = round(0.9 * self.literal_strings * len(self.lengths))
        evaluation = Evaluation(every=4 * self.every, validate_on=256, test_on=self.test_on)
        return LITERAL.with_(steps=self.epochs * kept // LITERAL.batch, evaluation=evaluation)

    def _recipe(self, steps: int, stop: Stop) -> Recipe:
        return Recipe(
            steps=steps,
            batch=self.batch,
            optimiser=Optimiser(learning_rate=self.rates[0]),
            schedule=Schedule(warmup=min(50, steps // 4), decay="linear"),
            stop=stop,
            evaluation=Evaluation(every=self.every, validate_on=256, test_on=self.test_on),
        )


PLANS: dict[Scale, Plan] = {
    "smoke": Plan(
        lengths=(4, 8, 12), short=(4,), long=(12,), depths=(1, 2), widths=(64,), heads=(1, 4), many_heads=8, seeds=3,
        batch=64, steps=1000, budget=150, level=0.98, every=25, closely=5, test_on=1000,
        rates=(3e-3,), tuning_steps=100, tuning_seeds=1, strings=None,
        literal_strings=500, epochs=3, probe_examples=300, timed_widths=(32, 64, 128),
    ),
    "quick": Plan(
        lengths=(10, 20, 30, 40, 50), short=(10, 20), long=(40, 50), depths=(1, 2, 4), widths=(64,), heads=(1, 4, 8),
        many_heads=16, seeds=5, batch=32, steps=3000, budget=500, level=0.985, every=50, closely=5, test_on=1000,
        rates=(1e-3, 3e-3, 1e-2), tuning_steps=400, tuning_seeds=2, strings=None,
        literal_strings=5000, epochs=3, probe_examples=1000, timed_widths=(32, 64, 128),
    ),
    "paper": Plan(
        lengths=tuple(range(10, 101, 10)), short=(10, 20), long=(80, 90, 100), depths=(2, 4, 8),
        widths=(128, 256, 512), heads=(4, 8), many_heads=16, seeds=5, batch=64, steps=7800, budget=1500, level=0.985,
        every=100, closely=10, test_on=10_000, rates=(3e-4, 1e-3, 3e-3), tuning_steps=1200, tuning_seeds=3,
        strings=5000,
        literal_strings=5000, epochs=3, probe_examples=10_000, timed_widths=(128, 256, 512),
    ),
}  # fmt: skip
