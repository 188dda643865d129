"""Any task against any models, without a study of one's own: what ``fathom try`` runs."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from pydantic import Field

from fathometer.core.claim import Claim
from fathometer.core.evidence import Evidence
from fathometer.core.metrics import metric
from fathometer.core.model import Model
from fathometer.core.recipe import Recipe
from fathometer.core.spec import named
from fathometer.core.study import Figure, Study
from fathometer.core.task import Task
from fathometer.core.trial import Measurement, Trial
from fathometer.design.grid import grid
from fathometer.figures.standard import standard_figures


class Trying(Study):
    """Every task with every model at ``seeds`` seeds, trained by every recipe; the scores between their limits."""

    tasks: tuple[Task, ...] = Field(min_length=1)
    models: tuple[Model, ...] = Field(min_length=1)
    recipes: tuple[Recipe, ...] = Field(default=(Recipe(),), min_length=1)
    seeds: int = Field(default=3, ge=1)

    @property
    def question(self) -> str:
        tasks = sorted({task.name for task in self.tasks})
        models = sorted({model.name for model in self.models})
        return f"How well {'does' if len(models) == 1 else 'do'} {_list(models)} learn {_list(tasks)}?"

    def wanted(self, evidence: Evidence) -> Sequence[Trial | Measurement]:
        return self._trials

    def claims(self) -> Sequence[Claim]:
        counted = sorted({task.metric for task in self.tasks if metric(task.metric).counted})
        return [
            named(
                "claim", "within_limits", identifier=f"{name}_within_limits", metric=name,
                statement="No network scores above what the task allows.",
            )
            for name in counted
        ]  # fmt: skip

    def figures(self, evidence: Evidence) -> Iterable[Figure]:
        return standard_figures(evidence)

    @cached_property
    def _trials(self) -> list[Trial]:
        return grid(self.tasks, self.models, self.recipes, range(self.seed, self.seed + self.seeds))


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
