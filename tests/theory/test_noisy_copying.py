"""Exact scores of noisy copying, against every noise pattern of short strings and against the published numbers."""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, fsum, lcm, log

import numpy as np
import pytest

from fathometer.theory.noisy_copying import (
    Flips,
    best_accuracy,
    best_loss,
    best_sequence_accuracy,
    entropy_of_chance,
    free_accuracy,
    mismatch_counts,
    position_masses,
)

String = tuple[int, ...]
Cell = tuple[int, int]
Law = dict[tuple[String, String, String], Fraction]
Joint = dict[tuple[String, String, int, String], int]
States = dict[tuple[String, String], dict[int, dict[Cell, int]]]
Stratum = frozenset[Cell]
Posteriors = list[dict[int, int]]

READINGS = ("input", "target", "source", "anywhere", "both")
SHARES = (Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(1))
RATES = (Fraction(0), Fraction(1, 2), Fraction(4, 5), Fraction(1))
SIZES = ((1, 2), (1, 4), (2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (4, 2))
COUNTED = [(n, symbols, number) for n, symbols in SIZES for number in range(1, n + 1)]
RATED = [(n, symbols, rate) for n, symbols in SIZES for rate in RATES]
EVERYWHERE = frozenset(product((0, 1), repeat=2))
STRATA = {
    "all": EVERYWHERE,
    "noised=0": frozenset({(0, 0), (0, 1)}),
    "noised=1": frozenset({(1, 0), (1, 1)}),
    "flipped=0": frozenset({(0, 0), (1, 0)}),
    "flipped=1": frozenset({(0, 1), (1, 1)}),
}
LENGTHS = range(10, 101, 10)


def shifts(sites: int, symbols: int, number: int | None, rate: Fraction) -> Iterator[tuple[String, Fraction]]:
    """Every way to flip ``sites`` symbols: by how much each is shifted (0: not flipped), and how probable that is."""
    for shift in product(range(symbols), repeat=sites):
        flips = sum(by > 0 for by in shift)
        if number is None:
            chance = (rate / (symbols - 1)) ** flips * (1 - rate) ** (sites - flips)
        else:
            chance = Fraction(flips == number, comb(sites, number) * (symbols - 1) ** number)
        if chance:
            yield shift, chance


def noise(
    on: str, n: int, symbols: int, number: int | None, rate: Fraction
) -> Iterator[tuple[String, String, Fraction]]:
    """Every shift of the input and of the output of a noised string."""
    if on == "anywhere":
        for shift, chance in shifts(2 * n, symbols, number, rate):
            yield shift[:n], shift[n:], chance
    elif on == "both":
        sides = list(shifts(n, symbols, number, rate))
        for (left, chance), (right, other) in product(sides, sides):
            yield left, right, chance * other
    else:
        for shift, chance in shifts(n, symbols, number, rate):
            yield shift if on != "target" else (0,) * n, shift if on != "input" else (0,) * n, chance


@cache
def noised_law(on: str, n: int, symbols: int, number: int | None, rate: Fraction) -> Law:
    """The joint law of (visible, answers, flipped) of a noised string, over every clean string."""
    law: Law = defaultdict(Fraction)
    for left, right, chance in noise(on, n, symbols, number, rate):
        flipped = tuple(int(a > 0 or b > 0) for a, b in zip(left, right, strict=True))
        one = chance / symbols**n
        for clean in product(range(symbols), repeat=n):
            visible = tuple((c + a) % symbols for c, a in zip(clean, left, strict=True))
            answers = tuple((c + b) % symbols for c, b in zip(clean, right, strict=True))
            law[visible, answers, flipped] += one
    return law


def joint(law: Law, n: int, symbols: int, share: Fraction) -> Joint:
    """The law of (visible, answers, noised, flipped) when a share is noised, as whole numbers of a common unit."""
    clean = (1 - share) / symbols**n
    chances = {(x, x, 0, (0,) * n): clean for x in product(range(symbols), repeat=n) if clean}
    chances |= {(x, y, 1, f): share * chance for (x, y, f), chance in law.items() if share}
    unit = lcm(*{chance.denominator for chance in chances.values()})
    return {outcome: chance.numerator * (unit // chance.denominator) for outcome, chance in chances.items()}


def histories(outcomes: Joint) -> States:
    """By all that is seen before an answer: the mass of each answer by (noised, flipped)."""
    states: States = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    for (visible, answers, noised, flipped), mass in outcomes.items():
        for j, answer in enumerate(answers):
            states[visible, answers[:j]][answer][noised, flipped[j]] += mass
    return states


def posteriors(states: States, inside: Stratum) -> Posteriors:
    """In each state: the mass of each answer inside a stratum."""
    return [
        {answer: sum(mass for cell, mass in cells.items() if cell in inside) for answer, cells in answers.items()}
        for answers in states.values()
    ]


def enumerated_accuracy(states: States, within: Posteriors, aim: Posteriors) -> Fraction:
    """Token accuracy inside ``within`` of the best predictor for ``aim``; the visible symbol wins ties."""
    right, whole = 0, 0
    for (visible, seen), aimed, inside in zip(states, aim, within, strict=True):
        copy = visible[len(seen)]
        choice = max({copy: 0} | aimed, key=lambda answer: (aimed.get(answer, 0), answer == copy))
        right += inside.get(choice, 0)
        whole += sum(inside.values())
    return Fraction(right, whole)


def enumerated_loss(everywhere: Posteriors, within: Posteriors) -> float:
    """Mean nats inside ``within`` of the true conditional probabilities."""
    nats, whole = [], 0
    for every, inside in zip(everywhere, within, strict=True):
        nats += [-inside[answer] * log(Fraction(mass, sum(every.values()))) for answer, mass in every.items()]
        whole += sum(inside.values())
    return fsum(nats) / whole


def enumerated_whole(outcomes: Joint) -> Fraction:
    """How often the likeliest string, given the visible one, is right."""
    strings: dict[String, dict[String, int]] = defaultdict(lambda: defaultdict(int))
    for (visible, answers, _, _), mass in outcomes.items():
        strings[visible][answers] += mass
    return Fraction(sum(max(masses.values()) for masses in strings.values()), sum(outcomes.values()))


def enumerated_free(outcomes: Joint, n: int) -> Fraction:
    """Token accuracy of the likeliest symbol at each place, given the visible string alone."""
    places: dict[tuple[String, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for (visible, answers, _, _), mass in outcomes.items():
        for j, answer in enumerate(answers):
            places[visible, j][answer] += mass
    return Fraction(sum(max(masses.values()) for masses in places.values()), n * sum(outcomes.values()))


def compare_with_every_pattern(on: str, n: int, symbols: int, number: int | None, rate: Fraction) -> None:
    flips = Flips(on=on, number=number, rate=float(rate), symbols=symbols)
    law = noised_law(on, n, symbols, number, rate)
    for share in SHARES:
        outcomes = joint(law, n, symbols, share)
        states = histories(outcomes)
        occurring = {cell for answers in states.values() for cells in answers.values() for cell in cells}
        masses = position_masses(n, flips, float(share))
        assert masses.sum() == pytest.approx(n, abs=1e-12)
        everywhere = posteriors(states, EVERYWHERE)
        for name, within in STRATA.items():
            if not within & occurring:
                continue
            inside = posteriors(states, within)
            mask = np.array([[float((noised, flipped) in within) for flipped in (0, 1)] for noised in (0, 1)])
            found = {
                "task optimal": best_accuracy(masses, symbols, mask),
                "stratum best": best_accuracy(masses, symbols, mask, aim=mask),
                "loss": best_loss(masses, symbols, mask),
            }
            wanted = {
                "task optimal": float(enumerated_accuracy(states, inside, everywhere)),
                "stratum best": float(enumerated_accuracy(states, inside, inside)),
                "loss": enumerated_loss(everywhere, inside),
            }
            assert found == pytest.approx(wanted, abs=1e-12), (name, share)
        found = best_sequence_accuracy(n, flips, float(share)), free_accuracy(n, flips, float(share))
        wanted = float(enumerated_whole(outcomes)), float(enumerated_free(outcomes, n))
        assert found == pytest.approx(wanted, abs=1e-12), share


@pytest.mark.parametrize("on", READINGS)
@pytest.mark.parametrize(("n", "symbols", "number"), COUNTED)
def test_scores_with_a_fixed_number_of_flips_equal_those_of_every_pattern(on, n, symbols, number):
    compare_with_every_pattern(on, n, symbols, number, Fraction(1, 10))


@pytest.mark.parametrize("on", ["input", "both"])
def test_scores_with_two_flips_among_four_of_three_symbols_equal_those_of_every_pattern(on):
    compare_with_every_pattern(on, 4, 3, 2, Fraction(1, 10))


@pytest.mark.parametrize("on", READINGS)
@pytest.mark.parametrize(("n", "symbols", "rate"), RATED)
def test_scores_with_symbols_flipped_one_by_one_equal_those_of_every_pattern(on, n, symbols, rate):
    compare_with_every_pattern(on, n, symbols, None, rate)


@pytest.mark.parametrize("on", READINGS)
@pytest.mark.parametrize(("number", "rate"), [(1, Fraction(0)), (2, Fraction(0)), (None, Fraction(3, 10))])
def test_mismatch_counts_equal_those_of_every_pattern(on, number, rate):
    wanted = [Fraction(0)] * 4
    for (visible, answers, _), chance in noised_law(on, 3, 3, number, rate).items():
        wanted[sum(a != b for a, b in zip(visible, answers, strict=True))] += chance
    found = mismatch_counts(3, Flips(on=on, number=number, rate=float(rate), symbols=3))
    assert found == pytest.approx([float(chance) for chance in wanted], abs=1e-12)


@pytest.mark.parametrize(("n", "wanted"), [(20, 0.990056), (50, 0.990024), (100, 0.990012)])
def test_published_optimum_with_a_tenth_of_the_strings_noised_by_a_tenth_of_flips(n, wanted):
    masses = position_masses(n, Flips(on="input", number=n // 10, rate=0.1, symbols=10), 0.1)
    assert best_accuracy(masses, 10, np.ones((2, 2))) == pytest.approx(wanted, abs=5e-7)


def free_by_length(number, rate, on="input"):
    """Token accuracy of copying at each published length, a tenth of the strings noised."""
    return np.array([
        free_accuracy(n, Flips(on=on, number=number(n) if number else None, rate=rate, symbols=10), 0.1)
        for n in LENGTHS
    ])  # fmt: skip


@pytest.mark.parametrize("on", ["input", "target"])
def test_published_ceilings_of_one_flip(on):
    ceilings = free_by_length(lambda n: 1, 0.1, on)
    weighted = (ceilings * LENGTHS).sum() / np.sum(LENGTHS)
    found = [ceilings[0], ceilings[-1], ceilings.mean(), weighted]
    assert found == pytest.approx([0.990, 0.999, 0.9971, 0.9982], abs=5e-5)


@pytest.mark.parametrize("on", ["input", "target"])
@pytest.mark.parametrize(("number", "rate", "wanted"), [
    (lambda n: n // 10, 0.1, 0.990),
    (None, 0.1, 0.990),
    (None, 0.5, 0.950),
    (None, 1.0, 0.900),
    (lambda n: n, 1.0, 0.900),
])  # fmt: skip
def test_published_ceilings_of_rates(on, number, rate, wanted):
    assert free_by_length(number, rate, on) == pytest.approx(np.full(10, wanted), abs=1e-12)


def test_published_ceiling_when_a_first_mismatch_gives_all_flips_away():
    masses = position_masses(100, Flips(on="input", number=None, rate=1.0, symbols=10), 0.1)
    assert best_accuracy(masses, 10, np.ones((2, 2))) == pytest.approx(0.911, abs=5e-5)


@pytest.mark.parametrize("on", ["input", "target"])
@pytest.mark.parametrize(("n", "number", "rate", "wanted"), [
    (10, 1, 0.1, 0.9),
    (100, 10, 0.1, 0.9),
    (10, None, 0.1, 0.935),
    (100, None, 0.1, 0.900),
    (10, None, 1.0, 0.9),
])  # fmt: skip
def test_published_exact_match_ceilings(on, n, number, rate, wanted):
    flips = Flips(on=on, number=number, rate=rate, symbols=10)
    assert best_sequence_accuracy(n, flips, 0.1) == pytest.approx(wanted, abs=5e-4)


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
def test_published_ceiling_of_noise_on_both_sides(rate):
    wanted = 1 - 0.1 * (2 * rate - rate**2 - rate**2 / 9)
    assert free_by_length(None, rate, "both") == pytest.approx(np.full(10, wanted), abs=1e-12)


@pytest.mark.parametrize(("number", "rate"), [(3, 0.3), (None, 0.3), (10, 1.0), (None, 1.0)])
def test_noise_on_the_source_costs_nothing(number, rate):
    flips = Flips(on="source", number=number, rate=rate, symbols=10)
    masses = position_masses(10, flips, 0.1)
    accuracy, loss = best_accuracy(masses, 10, np.ones((2, 2))), best_loss(masses, 10, np.ones((2, 2)))
    assert (accuracy, best_sequence_accuracy(10, flips, 0.1), free_accuracy(10, flips, 0.1)) == pytest.approx((1, 1, 1))
    assert loss == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("n", "number", "wanted"), [(10, 1, 0.9899), (10, 2, 0.9804), (100, 10, 0.9904)])
def test_published_monte_carlo_of_flips_anywhere(n, number, wanted):
    standard_error = number / n * (0.1 * 0.9 / 40_000) ** 0.5
    found = free_accuracy(n, Flips(on="anywhere", number=number, rate=0.1, symbols=10), 0.1)
    assert found == pytest.approx(wanted, abs=4 * standard_error + 5e-5)


@pytest.mark.parametrize("on", ["input", "target"])
@pytest.mark.parametrize(("rate", "share", "wanted"), [
    (0.1, 0.1, 0.0599),
    (0.5, 0.1, 0.185),
    (1.0, 0.1, 0.226),
    (0.1, 0.0, 0.0),
])  # fmt: skip
def test_published_loss_floors(on, rate, share, wanted):
    flips = Flips(on=on, number=None, rate=rate, symbols=10)
    masses = np.concatenate([position_masses(n, flips, share) for n in LENGTHS])
    assert best_loss(masses, 10, np.ones((2, 2))) == pytest.approx(wanted, abs=5e-4 if wanted > 0.1 else 5e-5)


def test_whole_strings_of_any_length_have_an_optimum():
    flips = Flips(on="input", number=None, rate=0.001, symbols=10)
    assert best_sequence_accuracy(400, flips, 0.5) == pytest.approx(0.5 + 0.5 * 0.999**400)


def test_chance_entropy_of_ten_symbols():
    assert entropy_of_chance(10) == pytest.approx(2.3026, abs=5e-5)
