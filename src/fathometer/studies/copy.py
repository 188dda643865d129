"""Does copying need depth, or heads? Depth and heads on the noisy copy task, between chance and what noise allows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Self

from pydantic import model_validator

from fathometer.core.claim import Claim
from fathometer.core.evidence import Evidence
from fathometer.core.model import Model
from fathometer.core.recipe import Recipe, Schedule, Stop
from fathometer.core.spec import named
from fathometer.core.study import Figure, Study
from fathometer.core.task import Task
from fathometer.core.trial import Measurement, Probe, Trial
from fathometer.design.tuned import Tuning, at_rate, tune
from fathometer.studies.copy_claims import copy_claims
from fathometer.studies.copy_figures import arm_of, copy_figures
from fathometer.studies.copy_plan import LITERAL_MODEL, PLANS, TUNING_SEEDS_FROM, Plan, Size, harder_noise

Work = list[Trial | Measurement]
Rates = tuple[float, ...]
"""The learning rate of each configuration, in the order of `_Arms.tuned`."""

ByModel = dict[tuple[str, str], float]
"""The same by the keys of task and model."""


class Copy(Study):
    """Every depth, width and number of heads in five arms: converged, fixed delimiter, fixed budget, clean, literal.

    Learning rates are chosen for each configuration first, on seeds of their own; then the arms are wanted.
    """

    source = "a report on depth and heads in a modified copy task"

    @property
    def question(self) -> str:
        return "Does copying strings of mixed lengths need depth, or heads?"

    def wanted(self, evidence: Evidence) -> Sequence[Trial | Measurement]:
        arms = _arms(PLANS[self.scale], self.seed)
        searches = arms.tune(evidence)
        rungs: Work = [rung for search in searches for rung in search.wanted]
        rates = tuple(search.rate for search in searches if search.rate is not None)
        return rungs + (arms.work(rates) if len(rates) == len(searches) else [])

    @model_validator(mode="after")
    def _seeds_are_not_those_that_choose(self) -> Self:
        if self.seed >= TUNING_SEEDS_FROM:
            raise ValueError(
                f"copy.seed = {self.seed}: seeds from {TUNING_SEEDS_FROM} up choose learning rates; take a smaller one"
            )
        return self

    def foreseen(self, evidence: Evidence) -> Sequence[Trial | Measurement]:
        arms = _arms(PLANS[self.scale], self.seed)
        searches = arms.tune(evidence)
        rungs: Work = [rung for search in searches for rung in search.wanted]
        middle = arms.plan.rates[len(arms.plan.rates) // 2]
        return rungs + arms.work(tuple(search.rate or middle for search in searches))

    def claims(self) -> Sequence[Claim]:
        return copy_claims(PLANS[self.scale])

    def arm(self, spec: Mapping[str, Any]) -> str:
        return arm_of(PLANS[self.scale], spec)

    def figures(self, evidence: Evidence) -> Iterable[Figure]:
        return copy_figures(PLANS[self.scale], evidence)


@cache
def _arms(plan: Plan, seed: int) -> "_Arms":
    return _Arms(plan, seed)


class _Arms:
    """All arms of one plan. What does not depend on the records is made once."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.plan, self.seeds = plan, range(seed, seed + plan.seeds)
        self.tuning_seeds = range(TUNING_SEEDS_FROM + seed, TUNING_SEEDS_FROM + seed + plan.tuning_seeds)
        self.mixed = plan.mixed
        self.still = self.mixed.with_(layout="fixed_split")
        self.clean = self.mixed.with_(noise={"reading": "R0"})
        self.literal = self.mixed.with_(loss="everything", strings=plan.literal_strings)
        self.models: list[Model] = [_transformer(size) for size in plan.sizes]
        self.models.append(_transformer(plan.size(plan.depths[0], plan.heads[-1]), positions={"kind": "rope"}))
        self.tuned = [(self.mixed, model) for model in self.models]
        self.tuned += [(self.still, model) for model in self.models[:-1]]
        self._worked: dict[Rates, Work] = {}

    def tune(self, evidence: Evidence) -> list[Tuning]:
        """The search for the learning rate of each configuration; a fixed delimiter takes half the steps."""
        plan = self.plan
        steps = {self.mixed.key: plan.tuning_steps, self.still.key: plan.tuning_steps // 2}
        return [
            tune(_trial(task, model, plan.converged, 0), plan.rates, self.tuning_seeds, steps[task.key], evidence)
            for task, model in self.tuned
        ]

    def work(self, rates: Rates) -> Work:
        """All that is wanted once the learning rates are known; whole rounds of seeds end one after another."""
        if rates not in self._worked:
            by_model = {(task.key, model.key): rate for (task, model), rate in zip(self.tuned, rates, strict=True)}
            self._worked[rates] = [work for seed in self.seeds for work in self._round(seed, by_model)]
        return self._worked[rates]

    def _round(self, seed: int, rates: ByModel) -> Iterator[Trial | Measurement]:
        plan, first = self.plan, seed == self.seeds[0]
        for model in self.models:
            rate = rates[self.mixed.key, model.key]
            learned = model is not self.models[-1]
            trial = at_rate(_trial(self.mixed, model, plan.converged, seed), rate)
            yield from _measured(trial, self._inside(timed=first and learned))
            if not learned:
                continue
            yield at_rate(_trial(self.still, model, plan.converged, seed), rates[self.still.key, model.key])
            trial = at_rate(_trial(self.mixed, model, plan.fixed_budget, seed), rate)
            yield from _measured(trial, self._noise(self.mixed))
            if first:
                yield from _measured(_trial(self.mixed, model, plan.untrained, seed), self._inside()[:1])
        for depth in (plan.depths[0], plan.depths[-1]):
            model = _transformer(plan.size(depth, plan.heads[-1]))
            yield at_rate(_trial(self.mixed, model, plan.watched, seed), rates[self.mixed.key, model.key])
        for size in (plan.smallest, plan.largest):
            model = _transformer(size)
            trial = at_rate(_trial(self.clean, model, plan.fixed_budget, seed), rates[self.mixed.key, model.key])
            yield from _measured(trial, self._noise(self.mixed, of_other_task=True))
            model = _transformer(size, **LITERAL_MODEL)
            yield from _measured(
                _trial(self.literal, model, plan.literal, seed),
                [*self._noise(self.literal), named("probe", "generalisation")],
            )
        yield from self._deepened(seed, rates)
        for size in plan.timed_sizes if first else ():
            yield from _measured(
                _trial(self.mixed, _transformer(size), plan.untrained, seed), [named("probe", "timing")]
            )

    def _deepened(self, seed: int, rates: ByModel) -> Iterator[Trial]:
        """The shallowest networks with idle layers on top: what they score must not change."""
        plan = self.plan
        shallow = _transformer(plan.size(plan.depths[0], plan.heads[-1]))
        rate = rates[self.mixed.key, shallow.key]
        trained = at_rate(_trial(self.mixed, shallow, plan.converged, seed), rate)
        as_it_is = trained.recipe.with_(steps=0, schedule=Schedule(), stop=Stop())
        for depth in plan.depths[1:]:
            start = named("start", "deepened", trial=trained)
            yield trained.with_(model=shallow.with_(depth=depth), recipe=as_it_is, start=start)

    def _inside(self, timed: bool = False) -> list[Probe]:
        """What is looked at inside a converged network."""
        examples = self.plan.probe_examples
        probes = [
            named("probe", "head_importance", examples=examples),
            named("probe", "head_removal", examples=examples // 2),
            named("probe", "answer_attention", examples=examples // 2),
        ]
        return probes + ([named("probe", "timing")] if timed else [])

    def _noise(self, task: Task, of_other_task: bool = False) -> list[Probe]:
        """Clean inputs, inputs that are all noised, and inputs noised harder than any trained on."""
        examples, other = self.plan.test_on, ({"task": task} if of_other_task else {})
        here = [named("probe", "scores", split=split, examples=examples, **other) for split in ("clean", "noised")]
        harder = [named("probe", "scores", split="noised", examples=examples, task=each) for each in harder_noise(task)]
        return here + harder


def _transformer(size: Size, **fields: Any) -> Model:
    return named("model", "transformer", **size, **fields)


def _trial(task: Task, model: Model, recipe: Recipe, seed: int) -> Trial:
    return Trial(task=task, model=model, recipe=recipe, seed=seed)


def _measured(trial: Trial, probes: Sequence[Probe]) -> Iterator[Trial | Measurement]:
    yield trial
    yield from (Measurement(trial=trial, probe=probe) for probe in probes)
