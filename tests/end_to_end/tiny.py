"""A study of seconds, for tests that need a whole run: two sizes, two seeds, every kind of record."""

from collections.abc import Iterable, Sequence

from fathometer.core.claim import Claim
from fathometer.core.evidence import Evidence
from fathometer.core.recipe import Evaluation, Optimiser, Recipe
from fathometer.core.spec import named
from fathometer.core.study import Figure, Study
from fathometer.core.trial import Measurement, Trial
from fathometer.figures.standard import standard_figures

RECIPE = Recipe(
    steps=60,
    batch=16,
    optimiser=Optimiser(learning_rate=1e-2),
    evaluation=Evaluation(every=10, validate_on=32, test_on=64),
)


class Tiny(Study):
    """Copying of two and three symbols by one or two layers."""

    steps: int = 60

    @property
    def question(self) -> str:
        return "Is <b>anything</b> lost & found?"

    def wanted(self, evidence: Evidence) -> Sequence[Trial | Measurement]:
        work: list[Trial | Measurement] = []
        for seed in range(self.seed, self.seed + 2):
            for depth in (1, 2):
                trial = Trial(
                    task=named("task", "copying", lengths=(2, 3, 4)),
                    model=named("model", "transformer", depth=depth, width=16, heads=2),
                    recipe=RECIPE.with_(steps=self.steps),
                    seed=seed,
                )
                work += [trial, Measurement(trial=trial, probe=named("probe", "head_importance"))]
        work.append(Measurement(trial=trial, probe=named("probe", "timing", repeats=1)))
        return work

    def claims(self) -> Sequence[Claim]:
        return [
            named("claim", "within_limits", identifier="limits", statement="Nothing <i>beats</i> the limits."),
            named(
                "claim", "paired_difference", identifier="depth", statement="Depth helps.",
                better={"model.depth": 2}, worse={"model.depth": 1},
            ),
        ]  # fmt: skip

    def figures(self, evidence: Evidence) -> Iterable[Figure]:
        return standard_figures(evidence)
