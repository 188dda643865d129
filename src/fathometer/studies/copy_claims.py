"""What the study of copying decides: the hypotheses H1 to H9 of its source, and what turned out to matter instead.

Endpoints are fixed here. Whether a network learns it, and how soon, is asked of the arm that trains until solved;
accuracies, drops and fluctuations are compared in the arm that trains every network for the same few steps.
"""

from collections.abc import Sequence
from typing import Any

from fathometer.core.claim import Claim
from fathometer.core.spec import encode, named
from fathometer.statistics.claims.contrast import Term
from fathometer.statistics.readings import Reading
from fathometer.studies.copy_plan import LITERAL, Plan, Size

Where = dict[str, Any]

NOISED, CLEAN = {"name": "scores", "split": "noised", "task": None}, {"name": "scores", "split": "clean", "task": None}

DROP = 0.05
"""Smallest drop in accuracy of interest: five points."""

ODDS = 0.5
"""Smallest change of interest in log odds: a factor of 1.6."""


def copy_claims(plan: Plan) -> list[Claim]:
    """All claims that a plan of this size can put to the test, in the order of their numbers."""
    of = _Claims(plan)
    h1 = [of.depth_pays_less_and_less()] if len(plan.depths) > 2 else []
    return [
        *h1, *of.heads_and_lengths(), of.size_matters_for_long_strings(), *of.noise(), of.plateau_of_heads(),
        *of.convergence(), of.time_is_linear_in_size(), of.larger_overfits_less(), of.depth_contains(), *of.found(),
        named(
            "claim", "within_limits", identifier="nothing_beats_the_noise",
            statement="No network scores above what the noise allows.",
        ),
    ]  # fmt: skip


class _Claims:
    """The claims of one plan, by what they are about."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.few, self.many = plan.heads[0], plan.heads[-1]
        self.shallow, self.deep = plan.depths[0], plan.depths[-1]
        self.short, self.long = ([f"length={n}" for n in lengths] for lengths in (plan.short, plan.long))

    def depth_pays_less_and_less(self) -> Claim:
        first, second, third = self.plan.depths[:3]
        weights = {first: -1.0, second: 2.0, third: -1.0}
        return named(
            "claim", "contrast", identifier="h1_depth_pays_less_and_less",
            statement=f"H1. On short strings, going from {first} to {second} layers gains more than going from "
            f"{second} to {third}.",
            terms=tuple(
                self._term(weight, self._budget(self.plan.size(depth, self.many)), self.short)
                for depth, weight in weights.items()
            ),
            matters=ODDS, told="In odds of a right answer the first step gains more than the second by",
        )  # fmt: skip

    def heads_and_lengths(self) -> list[Claim]:
        middle = self.plan.depths[len(self.plan.depths) // 2]
        many, few = (self._budget(self.plan.size(middle, heads)) for heads in (self.many, self.few))
        converged = self._converged(self.plan.size(middle, self.many))
        removal = {"name": "head_removal"}
        return [
            named(
                "claim", "contrast", identifier="h2_heads_help_long_strings",
                statement=f"H2. On long strings, {_layers(middle)} with {self.many} heads copy better than with "
                f"{_heads(self.few)}.",
                terms=(self._term(1, many, self.long), self._term(-1, few, self.long)), matters=ODDS,
                told="The odds of a right answer change by",
            ),
            named(
                "claim", "contrast", identifier="h2_heads_help_long_strings_more_than_short",
                statement=f"H2. With {_layers(middle)}, {self.many} heads instead of {self.few} gain more on long "
                "strings than on short ones.",
                terms=(
                    self._term(1, many, self.long), self._term(-1, few, self.long),
                    self._term(-1, many, self.short), self._term(1, few, self.short),
                ),
                matters=ODDS, told="The gain in odds on long strings is that on short ones times",
            ),
            named(
                "claim", "contrast", identifier="h2_heads_are_redundant_on_short_strings",
                statement=f"H2. In networks of {_layers(middle)} and {self.many} heads, trained until solved or out of "
                "steps, more heads can be removed for short strings than for long ones.",
                terms=(
                    self._term(1, converged, self.short, "removable", removal),
                    self._term(-1, converged, self.long, "removable", removal),
                ),
                scale="difference", matters=DROP, told="The share of heads that can go is larger by",
            ),
        ]  # fmt: skip

    def size_matters_for_long_strings(self) -> Claim:
        large, small = self._budget(self.plan.largest), self._budget(self.plan.smallest)
        told = f"{self._told(self.plan.largest)} instead of {self._told(self.plan.smallest)}"
        return named(
            "claim", "contrast", identifier="h3_size_matters_for_long_strings",
            statement=f"H3. {told} gains more on long strings "
            "than on short ones.",
            terms=(
                self._term(1, large, self.long), self._term(-1, small, self.long),
                self._term(-1, large, self.short), self._term(1, small, self.short),
            ),
            matters=ODDS, told="The gain in odds on long strings is that on short ones times",
        )  # fmt: skip

    def noise(self) -> list[Claim]:
        small, large = self._budget(self.plan.smallest), self._budget(self.plan.largest)
        sizes = f"{self._told(self.plan.smallest)} than with {self._told(self.plan.largest)}"
        trained = [self._clean_trained(size) for size in (self.plan.smallest, self.plan.largest)]
        asked = {**CLEAN, "task": encode(self.plan.mixed)}
        drops = [(1, small, CLEAN), (-1, small, NOISED), (-1, large, CLEAN), (1, large, NOISED)]
        across = [(1, trained[0], asked), (-1, small, CLEAN), (-1, trained[1], asked), (1, large, CLEAN)]
        return [
            named(
                "claim", "contrast", identifier="h4_noisy_inputs_hurt_less",
                statement=f"H4. Noised inputs cost more accuracy with {sizes}.",
                terms=tuple(self._term(w, where, probe=probe) for w, where, probe in drops),
                scale="difference", matters=DROP, told="From clean to noised strings the smaller loses more by",
            ),
            named(
                "claim", "contrast", identifier="h4_noisy_inputs_hurt_less_relatively",
                statement=f"H4. Noised inputs cost a larger share of the accuracy with {sizes}.",
                terms=tuple(self._term(w, where, probe=probe) for w, where, probe in drops),
                scale="ratio", matters=DROP, told="What clean strings score over noised ones is larger by",
            ),
            named(
                "claim", "contrast", identifier="h4_noisy_training_hurts_less",
                statement=f"H4. Training on noised strings costs more accuracy on clean ones with {sizes}.",
                terms=tuple(self._term(w, where, probe=probe) for w, where, probe in across),
                scale="difference", matters=DROP, told="From clean to noisy training the smaller loses more by",
            ),
        ]  # fmt: skip

    def plateau_of_heads(self) -> Claim:
        beyond = self.plan.beyond
        within = {**beyond, "heads": self.many}
        return named(
            "claim", "contrast", identifier="h5_heads_reach_a_plateau",
            statement=f"H5. On short strings, {beyond['heads']} heads gain nothing worth having over {self.many}, with "
            f"{_layers(beyond['depth'])}.",
            terms=(self._term(1, self._budget(beyond), self.short), self._term(-1, self._budget(within), self.short)),
            expects="none", matters=ODDS, told="The odds of a right answer change by",
        )  # fmt: skip

    def convergence(self) -> list[Claim]:
        deep, shallow = (self.plan.size(depth, self.many) for depth in (self.deep, self.shallow))
        a_deep, a_shallow = self._told(deep), self._told(shallow)
        watched = {"recipe.evaluation.every": self.plan.closely}
        fluctuation = [
            self._term(weight, self._budget(size) | watched, metric="fluctuation")
            for weight, size in ((1, shallow), (-1, deep))
        ]
        return [
            named(
                "claim", "sooner", identifier="h6_deeper_converges_sooner",
                statement=f"H6. A network of {a_deep} solves it in fewer steps than one of {a_shallow}.",
                sooner=self._converged(deep), later=self._converged(shallow),
            ),
            named(
                "claim", "contrast", identifier="h6_deeper_is_steadier",
                statement=f"H6. The training loss fluctuates more with {a_shallow} than with {a_deep}.",
                terms=tuple(fluctuation), scale="ratio", matters=0.1, told="It fluctuates more by",
            ),
        ]  # fmt: skip

    def time_is_linear_in_size(self) -> Claim:
        return named(
            "claim", "power_law", identifier="h7_evaluation_time_is_linear_in_size",
            statement="H7. The time of an evaluation grows in proportion to the size of the network, in operations.",
            probe="timing", where={"recipe.steps": 0}, x="outcome.flops_per_step", y="provenance.timing.eval_runtime",
        )  # fmt: skip

    def larger_overfits_less(self) -> Claim:
        gap = {"name": "generalisation"}
        small, large = (self._literal(size) for size in (self.plan.smallest, self.plan.largest))
        a_small, a_large = self._told(self.plan.smallest), self._told(self.plan.largest)
        return named(
            "claim", "contrast", identifier="h8_larger_overfits_less",
            statement=f"H8. With the source's own defaults, the gap between the loss on test strings and on those "
            f"trained on is wider with {a_small} than with {a_large}.",
            terms=(
                self._term(1, small, metric="loss_gap", probe=gap),
                self._term(-1, large, metric="loss_gap", probe=gap),
            ),
            scale="difference", matters=0.01, told="The gap is wider, in nats, by",
        )  # fmt: skip

    def depth_contains(self) -> Claim:
        return named(
            "claim", "equal_scores", identifier="h9_depth_contains",
            statement="H9. What a depth can express a greater depth can: a trained network under layers of zero weight "
            "scores as it did.",
            where={"start.name": "deepened"},
        )  # fmt: skip

    def found(self) -> list[Claim]:
        """What the source did not ask."""
        one = self.plan.size(self.shallow, self.many)
        few = self.plan.size(self.shallow, self.few)
        deep_few = self.plan.size(self.deep, self.few)
        alone = {**self.plan.beyond, "heads": self.few}
        least = "at least half" if self._rate == 1 / 2 else "at least a third"
        with_one, with_few = self._told(one), self._told(few)
        still = self._converged(few) | {"task.layout": "fixed_split"}
        rope = self._converged(one) | {"model.positions.kind": "rope"}
        return [
            named(
                "claim", "solve_rate", identifier="heads_alone_suffice",
                statement=f"A network of {with_one} learns mixed lengths as well as the noise allows, {least} of "
                "the time.",
                where=self._converged(one), at_least=self._rate,
            ),
            named(
                "claim", "contrast", identifier="heads_buy_more_than_depth",
                statement=f"After the same few steps, {with_one} copies better than {self._told(deep_few)}.",
                terms=(self._term(1, self._budget(one)), self._term(-1, self._budget(deep_few))), matters=ODDS,
                told="The odds of a right answer change by",
            ),
            named(
                "claim", "sooner", identifier="learned_positions_solve_it_sooner",
                statement=f"A network of {with_one} solves it in fewer steps with learned positions than with "
                "rotary ones.",
                sooner=self._converged(one), later=rope,
            ),
            named(
                "claim", "solve_rate", identifier="fixed_delimiter_is_learnt_by_the_smallest",
                statement=f"A network of {with_few} learns it where the delimiter always stands at the same place, "
                f"{least} of the time.",
                where=still, at_least=self._rate,
            ),
            named(
                "claim", "sooner", identifier="fixed_delimiter_is_easier",
                statement=f"A network of {with_few} solves it in fewer steps where the delimiter always stands at the "
                "same place.",
                sooner=still, later=self._converged(few),
            ),
            named(
                "claim", "sooner", identifier="many_heads_are_a_burden_where_one_suffices",
                statement=f"Where the delimiter always stands at the same place, {self._told(alone)} solves it in "
                f"fewer steps than {self._told(self.plan.beyond)}.",
                sooner=self._converged(alone) | {"task.layout": "fixed_split"},
                later=self._converged(self.plan.beyond) | {"task.layout": "fixed_split"},
            ),
            named(
                "claim", "paired_difference", identifier="own_recipe_beats_the_defaults",
                statement=f"A network of {self._told(self.plan.largest)} copies better trained until solved or out of "
                "steps than trained by the source's own defaults.",
                better=self._converged(self.plan.largest), worse=self._literal(self.plan.largest), matters=ODDS,
            ),
        ]  # fmt: skip

    @property
    def _rate(self) -> float:
        """What unanimous seeds can support: half the time takes five of them, a third of the time three."""
        return 1 / 2 if self.plan.seeds >= 5 else 1 / 3

    def _term(
        self, weight: float, where: Where, strata: Sequence[str] = ("all",), metric: str = "token_accuracy",
        probe: dict[str, Any] | None = None,
    ) -> Term:  # fmt: skip
        reading = Reading(where=where, metric=metric, strata=tuple(strata), probe=probe)
        return Term(weight=float(weight), reading=reading)

    def _told(self, size: Size) -> str:
        """A size as the claims name it; the width where widths vary."""
        width = f" of width {size['width']}" if len(self.plan.widths) > 1 else ""
        return f"{_layers(size['depth'])}{width} with {_heads(size['heads'])}"

    def _mixed(self, size: Size) -> Where:
        return {f"model.{name}": value for name, value in size.items()} | {
            "task.layout": "mixed", "task.loss": "output", "task.noise.reading": "R1",
            "model.positions.kind": "learned", "start": None,
        }  # fmt: skip

    def _converged(self, size: Size) -> Where:
        return self._mixed(size) | {"recipe.stop.rule": "solved"}

    def _budget(self, size: Size) -> Where:
        every = {"recipe.evaluation.every": self.plan.every}
        return self._mixed(size) | {"recipe.steps": self.plan.budget, "recipe.stop.rule": "never"} | every

    def _clean_trained(self, size: Size) -> Where:
        return self._budget(size) | {"task.noise.reading": "R0"}

    def _literal(self, size: Size) -> Where:
        sizes = {f"model.{name}": value for name, value in size.items()}
        return sizes | {"task.loss": "everything", "recipe.batch": LITERAL.batch}


def _layers(depth: int) -> str:
    return "one layer" if depth == 1 else f"{depth} layers"


def _heads(heads: int) -> str:
    return "one head" if heads == 1 else f"{heads} heads"
