"""Noisy copying: the exact scores of the best predictor when what is seen and what is asked differ by flips.

A predictor of the next output sees the whole input and, under teacher forcing, all earlier answers; what matters is
how many of those answers already differed from the visible input. So the positions of one string fall into states
``(j, m)``: ``j`` answers seen, ``m`` of them mismatches. The number of flips is tracked by polynomials whose exponent
counts them; the rest is bookkeeping of probability mass.
"""

from dataclasses import dataclass
from math import comb, exp, log, log1p

import numpy as np
from numpy.typing import NDArray

Mass = NDArray[np.float64]

TIE = 1e-9
"""Relative difference below which two masses are the same number, rounded apart."""


@dataclass(frozen=True)
class Flips:
    """How noise falls on a string of ``n`` symbols that has been chosen to be noised.

    ``on``: ``input`` or ``target`` (one side, each position flipped or not), ``source`` (both sides alike),
    ``anywhere`` (among all 2n symbols), ``both`` (each side by itself). ``number`` flips are spread evenly, or with
    ``number`` None each symbol flips with probability ``rate``. A flipped symbol becomes one of the ``symbols - 1``
    others.
    """

    on: str
    number: int | None
    rate: float
    symbols: int


def position_masses(n: int, flips: Flips, share: float) -> Mass:
    """Expected mass by state, noised or not, flipped or not, match or not: shape ``(states, 2, 2, 2)``, sum ``n``.

    Last axis: 1 where the visible symbol is the answer. The states are all that a predictor can tell apart.
    """
    noised = _iid_masses(n, flips) if flips.number is None else _counted_masses(n, flips)
    masses = np.zeros((len(noised), 2, 2, 2))
    masses[:, 1] = share * noised
    for j in range(n):
        masses[_state(j, 0), 0, 0, 1] = 1 - share
    return masses[masses.sum(axis=(1, 2, 3)) > 0]


def best_accuracy(masses: Mass, symbols: int, within: Mass, aim: Mass | None = None) -> float:
    """Token accuracy inside the stratum ``within`` of the predictor that is best inside ``aim`` (default: everywhere).

    Both are 0/1 masks of shape ``(2, 2)`` over (noised, flipped). The choice in each state is to copy the visible
    symbol or to name one of the others; it copies where both are as likely.
    """
    aimed = masses * (np.ones((2, 2)) if aim is None else aim)[None, :, :, None]
    mismatch, match = aimed.sum(axis=(1, 2)).T
    copies = match >= mismatch / (symbols - 1) * (1 - TIE)
    inside = masses * within[None, :, :, None]
    mismatch, match = inside.sum(axis=(1, 2)).T
    return min(1.0, float(np.where(copies, match, mismatch / (symbols - 1)).sum() / inside.sum()))


def best_loss(masses: Mass, symbols: int, within: Mass) -> float:
    """Mean nats per answer, inside ``within``, of the predictor that states the true conditional probabilities."""
    mismatch, match = masses.sum(axis=(1, 2)).T
    whole = mismatch + match
    inside_mismatch, inside_match = (masses * within[None, :, :, None]).sum(axis=(1, 2)).T
    with np.errstate(divide="ignore"):
        nats_match = -np.log(match / whole)
        nats_mismatch = -np.log(mismatch / whole / (symbols - 1))
    total = sum(
        float((mass[mass > 0] * nats[mass > 0]).sum())
        for mass, nats in ((inside_match, nats_match), (inside_mismatch, nats_mismatch))
    )
    return total / float(inside_match.sum() + inside_mismatch.sum())


def best_sequence_accuracy(n: int, flips: Flips, share: float) -> float:
    """Probability that one fixed way of answering gets every symbol right, with or without teacher forcing.

    A predictor that has been right so far has seen what it foresaw, so it bets on a single string: the likeliest.
    """
    by_count = share * mismatch_counts(n, flips)
    by_count[0] += 1 - share
    bets = [log(mass) - log(comb(n, m)) - m * log(flips.symbols - 1) for m, mass in enumerate(by_count) if mass > 0]
    return min(1.0, exp(max(bets)))


def free_accuracy(n: int, flips: Flips, share: float) -> float:
    """Token accuracy of the best predictor that sees no answers: the mismatch is then equally likely everywhere."""
    by_count = share * mismatch_counts(n, flips)
    mismatch = float((by_count * np.arange(n + 1)).sum() / n)
    return max(1.0 - mismatch, mismatch / (flips.symbols - 1))


def mismatch_counts(n: int, flips: Flips) -> Mass:
    """Probability of 0, 1, ..., n mismatches in a noised string."""
    if flips.number is None:
        p = sum(weight for match, _, weight in _iid_types(flips) if not match)
        return np.array([_binomial(n, m, p) for m in range(n + 1)])
    algebra = _Algebra(flips)
    prefix = algebra.prefixes(n)
    whole = algebra.total(n)
    return np.array([comb(n, m) * algebra.last(prefix[n][m]) / whole if m in prefix[n] else 0.0 for m in range(n + 1)])


def entropy_of_chance(symbols: int) -> float:
    """Nats per answer of a uniform guess."""
    return log(symbols)


def _state(j: int, m: int) -> int:
    return j * (j + 1) // 2 + m


def _iid_types(flips: Flips) -> list[tuple[int, int, float]]:
    """(match, flipped, probability) of one position when every symbol flips by itself."""
    p, other = flips.rate, 1 / (flips.symbols - 1)
    if flips.on in ("input", "target"):
        return [(1, 0, 1 - p), (0, 1, p)]
    if flips.on == "source":
        return [(1, 0, 1 - p), (1, 1, p)]
    return [(1, 0, (1 - p) ** 2), (0, 1, 2 * p * (1 - p)), (1, 1, p * p * other), (0, 1, p * p * (1 - other))]


def _binomial(n: int, m: int, p: float) -> float:
    """Probability of ``m`` in ``n``, by logarithms where the factors leave the range of floats."""
    if p in (0.0, 1.0):
        return float(m == n * p)
    return exp(log(comb(n, m)) + m * log(p) + (n - m) * log1p(-p))


def _iid_masses(n: int, flips: Flips) -> Mass:
    types = _iid_types(flips)
    p = sum(weight for match, _, weight in types if not match)
    masses = np.zeros((_state(n, 0), 2, 2))
    for j in range(n):
        for m in range(j + 1):
            reached = _binomial(j, m, p)
            for match, flipped, weight in types:
                masses[_state(j, m), flipped, match] += reached * weight
    return masses


def _counted_masses(n: int, flips: Flips) -> Mass:
    algebra = _Algebra(flips)
    prefix, rest, whole = algebra.prefixes(n), algebra.rests(n), algebra.total(n)
    masses = np.zeros((_state(n, 0), 2, 2))
    for j in range(n):
        for m, seen in prefix[j].items():
            for match, flipped, power, weight in algebra.types:
                mass = algebra.last(algebra.times(seen, [(power, weight)]), rest[n - j - 1])
                masses[_state(j, m), flipped, match] += comb(j, m) * mass / whole
    return masses


class _Algebra:
    """Truncated polynomials in one or two variables that count flips on each independent side."""

    def __init__(self, flips: Flips) -> None:
        assert flips.number is not None
        other = 1 / (flips.symbols - 1)
        tables = {
            "input": [(1, 0, (0, 0), 1.0), (0, 1, (1, 0), 1.0)],
            "target": [(1, 0, (0, 0), 1.0), (0, 1, (1, 0), 1.0)],
            "source": [(1, 0, (0, 0), 1.0), (1, 1, (1, 0), 1.0)],
            "anywhere": [
                (1, 0, (0, 0), 1.0),
                (0, 1, (1, 0), 2.0),
                (1, 1, (2, 0), other),
                (0, 1, (2, 0), 1 - other),
            ],
            "both": [
                (1, 0, (0, 0), 1.0),
                (0, 1, (1, 0), 1.0),
                (0, 1, (0, 1), 1.0),
                (1, 1, (1, 1), other),
                (0, 1, (1, 1), 1 - other),
            ],
        }
        self.types: list[tuple[int, int, tuple[int, int], float]] = tables[flips.on]
        self.shape = (flips.number + 1, flips.number + 1 if flips.on == "both" else 1)
        self.on, self.number = flips.on, flips.number

    def total(self, n: int) -> float:
        """The number of equally likely ways to flip."""
        sites = 2 * n if self.on == "anywhere" else n
        return float(comb(sites, self.number) ** (2 if self.on == "both" else 1))

    def times(self, polynomial: Mass, factor: list[tuple[tuple[int, int], float]]) -> Mass:
        """The product with a sparse factor, cut at the number of flips."""
        product = np.zeros(self.shape)
        rows, columns = self.shape
        for (i, k), weight in factor:
            if i < rows and k < columns:
                product[i:, k:] += weight * polynomial[: rows - i, : columns - k]
        return product

    def last(self, first: Mass, second: Mass | None = None) -> float:
        """The coefficient at exactly the number of flips, of one polynomial or of a product."""
        return float(first[-1, -1] if second is None else (first * second[::-1, ::-1]).sum())

    def prefixes(self, n: int) -> list[dict[int, Mass]]:
        """For ``j`` = 0..n seen answers, by mismatches ``m``: the weight of one such prefix (zero weights left out)."""
        one = np.zeros(self.shape)
        one[0, 0] = 1.0
        table = [{0: one}]
        match = [(power, weight) for is_match, _, power, weight in self.types if is_match]
        mismatch = [(power, weight) for is_match, _, power, weight in self.types if not is_match]
        for j in range(n):
            row = {m: self.times(seen, match) for m, seen in table[j].items()}
            row[j + 1] = self.times(table[j][j], mismatch) if j in table[j] else np.zeros(self.shape)
            table.append({m: seen for m, seen in row.items() if seen.any()})
        return table

    def rests(self, n: int) -> list[Mass]:
        """The weight of ``r`` = 0..n positions of which nothing is known."""
        one = np.zeros(self.shape)
        one[0, 0] = 1.0
        table = [one]
        anything = [(power, weight) for _, _, power, weight in self.types]
        for _ in range(n):
            table.append(self.times(table[-1], anything))
        return table
