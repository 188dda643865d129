"""Copying: repeat a string of symbols after a delimiter, with flips that nobody announces.

Two layers are the textbook answer (copy, then match), yet when the delimiter always stands at the same place one
attention head with the right positions does it alone: the layout, not the copying, is what can ask for depth.

Reference: the modified copy task (lengths 10..100, ten symbols, a tenth of the strings noised), read exactly.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from fathometer.core.interface import Array, Batch, Interface, Tokens
from fathometer.core.limit import Limit, LimitKind, LimitSource
from fathometer.core.spec import Spec
from fathometer.core.streams import stream
from fathometer.core.task import Task
from fathometer.statistics.intervals import wilson
from fathometer.theory import adversaries, noisy_copying

PAD = 0

SIDES = {"R1": "input", "R2": "target", "R3": "source", "R4": "anywhere", "R5": "both"}
"""What is flipped, by reading of "noise"."""

EVERYWHERE = np.ones((2, 2))
STRATA = {
    "all": EVERYWHERE,
    "noised=0": np.array([[1, 1], [0, 0]]),
    "noised=1": np.array([[0, 0], [1, 1]]),
    "flipped=0": np.array([[1, 0], [1, 0]]),
    "flipped=1": np.array([[0, 1], [0, 1]]),
}
"""Strata as masks over (noised, flipped)."""


class Noise(Spec):
    """Which strings are noised and how.

    Readings: R0 nothing; R1 the input is flipped and the target clean; R2 the target is flipped; R3 the source is
    flipped before it is copied; R4 flips fall anywhere in input and output; R5 on both sides independently. A ``share``
    of the strings is noised. ``fixed`` flips ``max(1, round(rate * n))`` symbols, ``each`` flips every symbol with
    probability ``rate``. A flipped symbol always changes.
    """

    reading: Literal["R0", "R1", "R2", "R3", "R4", "R5"] = "R1"
    share: float = Field(default=0.1, ge=0, le=1)
    rate: float = Field(default=0.1, ge=0, le=1)
    count: Literal["fixed", "each"] = "fixed"


class Copying(Task):
    """``x_1 .. x_n # y_1 .. y_n`` with x uniform and y = x before noise; n is one of ``lengths``, balanced.

    Layout ``mixed`` puts the delimiter right after the string, ``fixed_split`` pads the string so that it always
    stands at the same place. The loss covers the output half or ``everything``; scores count the output half.
    ``strings`` is the number of training strings that exist for each length (a tenth of them is kept for validation),
    None for fresh strings at every step. Strings of ``unseen_lengths`` make the split ``longer``.
    """

    lengths: tuple[int, ...] = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    symbols: int = Field(default=10, ge=2)
    layout: Literal["mixed", "fixed_split"] = "mixed"
    noise: Noise = Noise()
    loss: Literal["output", "everything"] = "output"
    strings: int | None = Field(default=None, ge=2)
    ends: bool = Field(
        default=False, description="mark the beginning and the end of each sequence by a token of its own"
    )
    unseen_lengths: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _lengths_make_sense(self) -> Self:
        everything = self.lengths + self.unseen_lengths
        if not self.lengths or min(self.lengths) < 1:
            raise ValueError(f"copying.lengths = {self.lengths}: give at least one length, each at least 1")
        if min(everything) < 1:
            raise ValueError(f"copying.unseen_lengths = {self.unseen_lengths}: each length must be at least 1")
        if len(set(everything)) < len(everything):
            raise ValueError(
                f"copying.lengths = {self.lengths}, unseen_lengths = {self.unseen_lengths}: "
                f"each length may be named once, seen or unseen"
            )
        return self

    def interface(self) -> Interface:
        vocab = self.symbols + 2 + 2 * self.ends
        longest = max(self.lengths + self.unseen_lengths)
        return Interface(
            inputs=Tokens(vocab=vocab),
            outputs=Tokens(vocab=vocab),
            length=2 * longest + 2 * self.ends,
            causal=True,
        )

    def splits(self) -> tuple[str, ...]:
        noisy = ("clean", "noised") if self.noise.reading != "R0" else ()
        return ("in_distribution", *noisy, *(("longer",) if self.unseen_lengths else ()))

    def training_set(self) -> int | None:
        return None if self.strings is None else self.strings * len(self.lengths)

    def draw(self, rng: np.random.Generator, n: int, split: str) -> Batch:
        if n < 1:
            raise ValueError(f"copying was asked to draw {n} examples: ask for one or more.")
        lengths = np.array(self._lengths_of(split))
        row_lengths = lengths[(np.arange(n) + rng.integers(len(lengths))) % len(lengths)]
        clean = rng.integers(1, self.symbols + 1, (n, int(lengths.max())))
        noised = self._choose_noised(rng, row_lengths, split)
        left, right = self._choose_flips(rng, row_lengths, noised)
        visible = self._flip(rng, clean, left)
        answers = visible if self.noise.reading == "R3" else self._flip(rng, clean, right)
        return self._lay_out(visible, answers, row_lengths, noised, left | right)

    def limits(self, split: str) -> Sequence[Limit]:
        share = self._share(split)
        masses = {n: noisy_copying.position_masses(n, self._law(n), share) for n in self._lengths_of(split)}
        strata = self._strata(split, masses)
        return [*self._chance(split, strata), *self._shortcuts(split), *self._optima(split, strata, masses)]

    def _lengths_of(self, split: str) -> tuple[int, ...]:
        if split not in self.splits():
            raise ValueError(f"copying has no split {split!r}; it has {', '.join(self.splits())}.")
        return self.unseen_lengths if split == "longer" else self.lengths

    def _share(self, split: str) -> float:
        if self.noise.reading == "R0" or split == "clean":
            return 0.0
        return 1.0 if split == "noised" else self.noise.share

    def _choose_noised(self, rng: np.random.Generator, row_lengths: Array, split: str) -> Array:
        """A fixed share of the rows of each length, without replacement; a fraction of a row is settled by lot."""
        noised = np.zeros(len(row_lengths), dtype=bool)
        for length in np.unique(row_lengths):
            rows = np.flatnonzero(row_lengths == length)
            wanted = self._share(split) * len(rows)
            number = int(wanted + 1e-9) + (rng.random() < wanted - int(wanted + 1e-9))
            noised[rng.permutation(rows)[:number]] = True
        return noised

    def _flips(self, length: int) -> int:
        return min(length, max(1, round(self.noise.rate * length)))

    def _choose_flips(self, rng: np.random.Generator, row_lengths: Array, noised: Array) -> tuple[Array, Array]:
        """Which symbols flip on the input side and on the output side, each ``(n, longest)``."""
        shape = (len(row_lengths), int(row_lengths.max(initial=1)))
        valid = np.arange(shape[1]) < row_lengths[:, None]
        nothing = np.zeros(shape, dtype=bool)
        side = SIDES.get(self.noise.reading)
        if side is None or not noised.any():
            return nothing, nothing
        both_valid = np.concatenate([valid, valid], axis=1)
        if side == "anywhere":
            chosen = self._choose_sites(rng, both_valid, row_lengths)
        else:
            chosen = np.concatenate([self._choose_sites(rng, valid, row_lengths) for _ in range(2)], axis=1)
        left, right = np.split(chosen & noised[:, None], 2, axis=1)
        return (nothing if side == "target" else left), (right if side in ("target", "anywhere", "both") else nothing)

    def _choose_sites(self, rng: np.random.Generator, valid: Array, row_lengths: Array) -> Array:
        lots = rng.random(valid.shape)
        if self.noise.count == "each":
            return valid & (lots < self.noise.rate)
        numbers = np.array([self._flips(int(length)) for length in row_lengths])
        ranks = np.where(valid, lots, 2.0).argsort(axis=1).argsort(axis=1)
        return valid & (ranks < numbers[:, None])

    def _flip(self, rng: np.random.Generator, symbols: Array, where: Array) -> Array:
        shifts = rng.integers(1, self.symbols, symbols.shape)
        flipped = (symbols - 1 + shifts) % self.symbols + 1
        return np.where(np.pad(where, ((0, 0), (0, symbols.shape[1] - where.shape[1]))), flipped, symbols)

    def _lay_out(self, visible: Array, answers: Array, row_lengths: Array, noised: Array, flipped: Array) -> Batch:
        n, first = len(visible), int(self.ends)
        delimiter, begin, end = self.symbols + 1, self.symbols + 2, self.symbols + 3
        longest = max(self.lengths + self.unseen_lengths)
        splits_at = first + (row_lengths if self.layout == "mixed" else np.full(n, longest))
        whole = splits_at + 1 + row_lengths + first
        tokens = np.full((n, int(whole.max())), PAD)
        rows, columns = np.nonzero(np.arange(visible.shape[1]) < row_lengths[:, None])
        tokens[rows, first + columns] = visible[rows, columns]
        tokens[np.arange(n), splits_at] = delimiter
        tokens[rows, splits_at[rows] + 1 + columns] = answers[rows, columns]
        if self.ends:
            tokens[:, 0] = begin
            tokens[np.arange(n), whole - 1] = end
        scored = np.zeros((n, tokens.shape[1] - 1), dtype=bool)
        scored[rows, splits_at[rows] + columns] = True
        sources = np.full(scored.shape, -1)
        sources[rows, splits_at[rows] + columns] = first + columns
        is_answer = (np.arange(tokens.shape[1] - 1) >= splits_at[:, None]) | (self.loss == "everything")
        strata: dict[str, Array] = {"length": row_lengths}
        if self.noise.reading != "R0":
            flipped_at = np.zeros(scored.shape, dtype=np.int64)
            flipped_at[rows, splits_at[rows] + columns] = flipped[rows, columns]
            strata |= {"noised": noised.astype(np.int64), "flipped": flipped_at}
        inside = np.arange(scored.shape[1]) < whole[:, None] - 1
        return Batch(
            inputs=np.where(inside, tokens[:, :-1], PAD),
            targets=tokens[:, 1:],
            trained=(tokens[:, 1:] != PAD) & is_answer,
            scored=scored,
            lengths=whole - 1,
            fed=np.pad(scored, ((0, 0), (1, 0)))[:, :-1] & inside,
            sources=sources,
            strata=strata,
        )

    def _chance(self, split: str, strata: Sequence[str]) -> list[Limit]:
        """A uniform guess among the symbols."""
        lengths = self._lengths_of(split)
        rows: list[Limit] = []
        for stratum in strata:
            inside = [int(stratum.split("=")[1])] if stratum.startswith("length=") else lengths
            whole = float(np.mean([self.symbols**-n for n in inside]))
            rows += [
                self._limit(split, stratum, metric, "chance", value, "exact", "a uniform guess among the symbols")
                for metric, value in {
                    "token_accuracy": 1 / self.symbols,
                    "free_token_accuracy": 1 / self.symbols,
                    "free_sequence_accuracy": whole,
                    "sequence_accuracy": whole,
                    "loss": noisy_copying.entropy_of_chance(self.symbols),
                }.items()
                if "flipped" not in stratum or "sequence" not in metric
            ]
        return rows

    def _shortcuts(self, split: str) -> list[Limit]:
        """The best shallow adversary of each stratum, fitted on one draw of the generator and scored on another."""
        fit = self.draw(stream("limit", 0, self.key, split, "fit"), 4000, split)
        test = self.draw(stream("limit", 0, self.key, split, "score"), 4000, split)
        best = adversaries.best_shortcuts(fit, test, {"symbols not yet answered": self._left_over})
        rows: list[Limit] = []
        for stratum, (name, right, n) in best.items():
            value, low, high = wilson(right, n)
            rows.append(
                Limit(
                    split=split, stratum=stratum, metric="token_accuracy", kind="shortcut", value=value, low=low,
                    high=high, source="estimated", by=name,
                )
            )  # fmt: skip
        return rows

    def _left_over(self, fit: Batch, test: Batch) -> Array:
        """The symbol seen before the delimiter that is most in excess of what has been answered: order ignored."""
        one_hot = np.eye(self.interface().inputs.channels)[test.inputs]
        after = np.cumsum(test.inputs == self.symbols + 1, axis=1) > 0
        source = (one_hot * ~after[:, :, None]).sum(axis=1, keepdims=True)
        answered = np.cumsum(one_hot * after[:, :, None], axis=1)
        return (source - answered)[:, :, 1 : self.symbols + 1].argmax(axis=2) + 1

    def _optima(self, split: str, strata: Sequence[str], masses: Mapping[int, Array]) -> list[Limit]:
        """Exact scores of the best predictor for the task and, by stratum, of the best for the stratum alone."""
        together = np.concatenate(list(masses.values()))
        rows: list[Limit] = []
        for stratum in strata:
            inside = masses[int(stratum.split("=")[1])] if stratum.startswith("length=") else together
            within = STRATA.get(stratum, EVERYWHERE)
            optimal = noisy_copying.best_accuracy(inside, self.symbols, within)
            best = noisy_copying.best_accuracy(inside, self.symbols, within, aim=within)
            loss = noisy_copying.best_loss(inside, self.symbols, within)
            by = "the posterior of the noise given the earlier answers"
            rows += [
                self._limit(split, stratum, "token_accuracy", "task_optimal", optimal, "exact", by),
                self._limit(split, stratum, "token_accuracy", "stratum_best", best, "exact", by),
                self._limit(split, stratum, "loss", "task_optimal", loss, "exact", by),
            ]
        return rows + self._whole_string_optima(split)

    def _whole_string_optima(self, split: str) -> list[Limit]:
        lengths, share = np.array(self._lengths_of(split)), self._share(split)
        whole = np.array([noisy_copying.best_sequence_accuracy(n, self._law(n), share) for n in lengths])
        free = np.array([noisy_copying.free_accuracy(n, self._law(n), share) for n in lengths])
        by_stratum = {f"length={n}": np.flatnonzero(lengths == n) for n in lengths} | {"all": np.arange(len(lengths))}
        rows: list[Limit] = []
        for stratum, of in by_stratum.items():
            exact = float(whole[of].mean())
            token = float((free[of] * lengths[of]).sum() / lengths[of].sum())
            rows += [
                self._limit(
                    split, stratum, "sequence_accuracy", "task_optimal", exact, "exact", "the likeliest string"
                ),
                self._limit(
                    split, stratum, "free_sequence_accuracy", "task_optimal", exact, "exact", "the likeliest string"
                ),
                self._limit(
                    split, stratum, "free_token_accuracy", "task_optimal", token, "exact", "copy what is visible"
                ),
            ]
        return rows

    def _law(self, length: int) -> noisy_copying.Flips:
        side = SIDES.get(self.noise.reading, "input")
        number = self._flips(length) if self.noise.count == "fixed" else None
        return noisy_copying.Flips(on=side, number=number, rate=self.noise.rate, symbols=self.symbols)

    def _strata(self, split: str, masses: Mapping[int, Array]) -> list[str]:
        """The strata that can occur."""
        lengths = [f"length={n}" for n in self._lengths_of(split)]
        if self.noise.reading == "R0":
            return ["all", *lengths]
        mass = sum(states.sum(axis=(0, 3)) for states in masses.values())
        return [*lengths, *(name for name, within in STRATA.items() if (mass * within).sum() > 0)]

    def _limit(
        self, split: str, stratum: str, metric: str, kind: LimitKind, value: float, source: LimitSource, by: str
    ) -> Limit:
        return Limit(
            split=split, stratum=stratum, metric=metric, kind=kind, value=value, low=value, high=value, source=source,
            by=by,
        )  # fmt: skip
