"""Grid: every combination of some settings, each at every seed, in one fixed order."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from fathometer.core.model import Model
from fathometer.core.recipe import Recipe
from fathometer.core.task import Task
from fathometer.core.trial import Trial


def combinations(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every choice of one value from each axis; the last axis turns fastest.

    >>> combinations({"depth": [1, 2], "heads": [4]})
    [{'depth': 1, 'heads': 4}, {'depth': 2, 'heads': 4}]
    """
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def grid(
    tasks: Sequence[Task], models: Sequence[Model], recipes: Sequence[Recipe], seeds: Sequence[int]
) -> list[Trial]:
    """Every task with every model and every recipe at every seed; the seed turns slowest, so that whole rounds end."""
    return [
        Trial(task=task, model=model, recipe=recipe, seed=seed)
        for seed, task, model, recipe in product(seeds, tasks, models, recipes)
    ]
