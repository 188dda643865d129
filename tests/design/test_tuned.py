"""Tuned: the planted optimum is found, the edge rule holds, and nothing depends on the order of arrival."""

from collections.abc import Callable, Iterator
from math import log10

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathometer.core.evidence import Evidence
from fathometer.core.recipe import Recipe, Stop
from fathometer.core.record import Record, Status
from fathometer.core.spec import encode, named
from fathometer.core.trial import Trial
from fathometer.design.tuned import Tuning, at_rate, tune

TRIAL = Trial(
    task=named("task", "copying", lengths=(2,)),
    model=named("model", "transformer"),
    recipe=Recipe(steps=900, stop=Stop(rule="solved")),
)
RATES = (1e-3, 3e-3, 1e-2)

Loss = Callable[[float, int], float | None]
"""What a rung ends with, by learning rate and seed; None when it diverges."""


def ended(rung: Trial, loss: Loss) -> Record:
    value = loss(rung.recipe.optimiser.learning_rate, rung.seed)
    status: Status = "diverged" if value is None else "done"
    return Record(
        rung.key, "trial", 0, status, encode(rung), {"scores": [], "curve": {"validation_loss": [9.0, value]}}
    )


def searched(loss: Loss, rates: tuple[float, ...] = RATES) -> Iterator[Tuning]:
    """The search as a driver sees it: every state up to the choice."""
    evidence = Evidence()
    while True:
        found = tune(TRIAL, rates, (100, 101, 102), steps=300, evidence=evidence)
        yield found
        if found.rate is not None:
            return
        evidence = Evidence(ended(rung, loss) for rung in found.wanted)


def bowl(best: float) -> Loss:
    return lambda rate, seed: (log10(rate) - log10(best)) ** 2 + 0.001 * seed


def test_the_best_rate_inside_the_grid_is_chosen() -> None:
    *_, last = searched(bowl(3e-3))
    assert last.rate == 3e-3
    assert {rung.recipe.optimiser.learning_rate for rung in last.wanted} == set(RATES)
    assert {rung.seed for rung in last.wanted} == {100, 101, 102}
    assert {(rung.recipe.steps, rung.recipe.stop.rule) for rung in last.wanted} == {(300, "never")}


@pytest.mark.parametrize(
    ("best", "chosen", "tried"), [(3e-2, 3.33e-2, 5), (1e-1, 1.11e-1, 5), (1e-5, 1.11e-4, 5), (1e-2, 1e-2, 4)]
)
def test_a_winner_at_the_edge_widens_the_grid_twice_at_most(best: float, chosen: float, tried: int) -> None:
    *_, last = searched(bowl(best))
    assert last.rate == pytest.approx(chosen)
    assert len({rung.recipe.optimiser.learning_rate for rung in last.wanted}) == tried


def test_a_median_is_not_moved_by_one_seed_that_diverges() -> None:
    *_, last = searched(lambda rate, seed: None if rate == 3e-3 and seed == 100 else bowl(3e-3)(rate, seed))
    assert last.rate == 3e-3
    *_, last = searched(lambda rate, seed: None if rate >= 3e-3 else bowl(1e-3)(rate, seed), rates=(1e-4, 1e-3, 3e-3))
    assert last.rate == 1e-3


def test_a_rung_that_failed_is_done_again_before_anything_is_chosen() -> None:
    first = next(searched(bowl(3e-3)))
    records = [ended(rung, bowl(3e-3)) for rung in first.wanted]
    failed = Record(records[0].key, "trial", 0, "failed", records[0].spec, {"scores": []})
    found = tune(TRIAL, RATES, (100, 101, 102), 300, Evidence([failed, *records[1:]]))
    assert (found.rate, found.wanted) == (None, first.wanted)


def test_a_tie_goes_to_the_smaller_rate() -> None:
    *_, last = searched(lambda rate, seed: 1.0 if rate in (3e-3, 1e-2) else 2.0)
    assert last.rate == 3e-3


def test_one_rate_leaves_nothing_to_choose() -> None:
    assert tune(TRIAL, (1e-3,), (1,), 10, Evidence()) == Tuning((), 1e-3)


@pytest.mark.parametrize("rates", [(), (1e-2, 1e-3), (1e-3, 1e-3)])
def test_a_grid_that_does_not_grow_is_refused(rates: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="give learning rates that grow"):
        tune(TRIAL, rates, (1,), 10, Evidence())


@given(st.randoms(), st.integers(0, 9))
def test_what_is_wanted_is_the_same_in_whatever_order_rungs_end(luck: object, known: int) -> None:
    first = next(searched(bowl(3e-3)))
    records = [ended(rung, bowl(3e-3)) for rung in first.wanted]
    luck.shuffle(records)  # type: ignore[attr-defined]
    some = tune(TRIAL, RATES, (100, 101, 102), 300, Evidence(records[:known]))
    assert some.wanted == first.wanted
    assert (some.rate is None) == (known < len(records))


def test_another_rate_changes_nothing_else() -> None:
    assert at_rate(TRIAL, 7e-3).recipe.optimiser.learning_rate == 7e-3
    assert at_rate(at_rate(TRIAL, 7e-3), 1e-3) == TRIAL
