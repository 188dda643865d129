"""Does copying need depth, or heads? Depth and heads on the noisy copy task, between chance and what noise allows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fathometer.core.claim import Claim
from fathometer.core.evidence import Evidence
from fathometer.core.recipe import Evaluation, Optimiser, Recipe, Schedule, Stop
from fathometer.core.spec import named
from fathometer.core.study import Figure, Scale, Study
from fathometer.core.trial import Measurement, Trial
from fathometer.design.grid import combinations
from fathometer.figures.standard import standard_figures


@dataclass(frozen=True)
class Plan:
    """The sizes of one scale."""

    lengths: tuple[int, ...]
    depths: tuple[int, ...]
    widths: tuple[int, ...]
    heads: tuple[int, ...]
    seeds: int
    recipe: Recipe
    strings: int | None = None


def _recipe(steps: int, learning_rate: float, level: float, every: int) -> Recipe:
    return Recipe(
        steps=steps,
        batch=64,
        optimiser=Optimiser(learning_rate=learning_rate),
        schedule=Schedule(warmup=50, decay="linear"),
        stop=Stop(rule="solved", level=level, checks=2),
        evaluation=Evaluation(every=every, validate_on=256, test_on=1000),
    )


PLANS: dict[Scale, Plan] = {
    "smoke": Plan((4, 8, 12), (1, 2), (64,), (1, 4), seeds=3, recipe=_recipe(1000, 3e-3, 0.98, 25)),
    "quick": Plan(
        (10, 20, 30, 40, 50), (1, 2, 4), (64,), (1, 4, 8), seeds=5, recipe=_recipe(2000, 3e-3, 0.985, 50)
    ),
    "paper": Plan(
        tuple(range(10, 101, 10)), (2, 4, 8), (128, 256, 512), (4, 8), seeds=3,
        recipe=_recipe(7800, 1e-3, 0.985, 100), strings=5000,
    ),
}  # fmt: skip


class Copy(Study):
    """Mixed lengths for every depth, width and number of heads, and one control whose delimiter stands still."""

    source = "a report on depth and heads in a modified copy task"

    @property
    def question(self) -> str:
        return "Does copying strings of mixed lengths need depth, or heads?"

    def wanted(self, evidence: Evidence) -> Sequence[Trial | Measurement]:
        return self._work

    def claims(self) -> Sequence[Claim]:
        few, many = min(self._plan.heads), max(self._plan.heads)
        shallow, deep = min(self._plan.depths), max(self._plan.depths)
        width = min(self._plan.widths)
        mixed = {"task.layout": "mixed", "model.width": width}

        def cell(depth: int, heads: int) -> dict[str, Any]:
            return mixed | {"model.depth": depth, "model.heads": heads}

        return [
            named(
                "claim", "paired_difference", identifier="heads_help_at_smallest_depth",
                statement=f"With {_layers(shallow)} of width {width}, {many} heads copy mixed lengths better than "
                f"{_heads(few)}.",
                better=cell(shallow, many), worse=cell(shallow, few),
            ),
            named(
                "claim", "paired_difference", identifier="depth_helps_with_fewest_heads",
                statement=f"With {_heads(few)} a layer, {_layers(deep)} copy mixed lengths better than "
                f"{_layers(shallow)}.",
                better=cell(deep, few), worse=cell(shallow, few),
            ),
            named(
                "claim", "paired_difference", identifier="fixed_delimiter_is_easier",
                statement=f"{_layers(shallow).capitalize()} with {_heads(few)} copies better when the delimiter always "
                f"stands at the same place than when it moves with the length.",
                better=cell(shallow, few) | {"task.layout": "fixed_split"}, worse=cell(shallow, few),
            ),
            named(
                "claim", "solve_rate", identifier="shallowest_can_learn_it",
                statement=f"{_layers(shallow).capitalize()} with {_heads(many)} learns to copy as well as the noise "
                f"allows, at least a third of the time.",
                where=cell(shallow, many), at_least=1 / 3,
            ),
            named(
                "claim", "within_limits", identifier="nothing_beats_the_noise",
                statement="No network scores above what the noise allows.",
            ),
        ]  # fmt: skip

    def figures(self, evidence: Evidence) -> Iterable[Figure]:
        return standard_figures(evidence)

    @property
    def _plan(self) -> Plan:
        return PLANS[self.scale]

    @cached_property
    def _work(self) -> list[Trial | Measurement]:
        plan = self._plan
        mixed = named("task", "copying", lengths=plan.lengths, strings=plan.strings)
        sizes = combinations({"depth": plan.depths, "width": plan.widths, "heads": plan.heads})
        still = {"depth": min(plan.depths), "width": min(plan.widths), "heads": min(plan.heads)}
        arms = [(mixed, size) for size in sizes] + [(mixed.with_(layout="fixed_split"), still)]
        work: list[Trial | Measurement] = []
        for seed in range(self.seed, self.seed + plan.seeds):
            for task, size in arms:
                model = named("model", "transformer", **size)
                trial = Trial(task=task, model=model, recipe=plan.recipe, seed=seed)
                work.append(trial)
                probes = [named("probe", "head_importance"), named("probe", "answer_attention")]
                if seed == self.seed and task is mixed:
                    probes.append(named("probe", "timing"))
                work += [Measurement(trial=trial, probe=probe) for probe in probes]
        return work


def _layers(depth: int) -> str:
    return "one layer" if depth == 1 else f"{depth} layers"


def _heads(heads: int) -> str:
    return "one head" if heads == 1 else f"{heads} heads"
