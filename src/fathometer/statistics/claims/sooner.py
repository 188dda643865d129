"""Sooner: one configuration solves its task in fewer steps than another on the same seeds, unsolved ones included."""

from statistics import median
from typing import Any

from pydantic import Field

from fathometer.core.claim import Claim, Decision, Verdict
from fathometer.core.evidence import Evidence
from fathometer.core.record import Record
from fathometer.statistics.intervals import clopper_pearson

ALPHA = 0.05

METHOD = "share of paired seeds solved in fewer steps, exact one-sided limits at 95%; two unsolved trials are a tie"


class Sooner(Claim):
    """In more than ``at_least`` of the paired seeds, ``sooner`` solves in fewer steps than ``later``.

    A trial that ended unsolved took longer than any that solved, however many steps it had; where neither solved, or
    both took the same steps, the pair is a tie and does not count. A diverged trial has not solved.
    """

    sooner: dict[str, Any]
    later: dict[str, Any]
    at_least: float = Field(default=0.5, gt=0, lt=1)

    def judge(self, evidence: Evidence) -> Verdict:
        sides = [self._by_seed(evidence, where) for where in (self.sooner, self.later)]
        seeds = sorted(sides[0].keys() & sides[1].keys())
        keys = tuple(side[seed].key for seed in seeds for side in sides)
        steps = [(_steps(sides[0][seed]), _steps(sides[1][seed])) for seed in seeds]
        wins, losses = sum(one < other for one, other in steps), sum(one > other for one, other in steps)
        if not wins + losses:
            sentence = f"{len(seeds)} seeds ended on both sides, and none tells them apart."
            would = "pairs of seeds of which at least one side solves"
            return self.verdict("inconclusive", sentence, METHOD, 0, would_decide=would, records=keys)
        shown = clopper_pearson(wins, wins + losses, level=1 - 2 * ALPHA)
        decision: Decision = "inconclusive"
        if shown.low > self.at_least:
            decision = "supported"
        elif shown.high < self.at_least:
            decision = "refuted"
        ties = f" ({len(steps) - wins - losses} ties)" if wins + losses < len(steps) else ""
        sentence = (
            f"Sooner in {wins} of {wins + losses} pairs of seeds{ties}: a share between {shown.low:.0%} and "
            f"{shown.high:.0%} (90%, exact); median steps {_told([s for s, _ in steps])} against "
            f"{_told([s for _, s in steps])}."
        )
        would = self._would_decide(wins, losses) if decision == "inconclusive" else ""
        return self.verdict(decision, sentence, METHOD, wins + losses, shown, would, keys)

    def prospect(self, planned: Evidence) -> str:
        n = len(self._by_seed(planned, self.sooner).keys() & self._by_seed(planned, self.later).keys())
        needed = (
            [w for w in range(n + 1) if clopper_pearson(w, n, level=1 - 2 * ALPHA).low > self.at_least] if n else []
        )
        return f"{n} pairs of seeds: " + (
            f"sooner in {needed[0]} of them supports it" if needed else "too few to support it"
        )

    def _by_seed(self, evidence: Evidence, where: dict[str, Any]) -> dict[int, Record]:
        found: dict[int, Record] = {}
        for trial in evidence.trials(where):
            if trial.spec["recipe"]["stop"]["rule"] != "solved":
                continue  # nothing says when it had solved
            if trial.spec["seed"] in found:
                raise ValueError(f"Claim {self.identifier}: {where} selects two trials of seed {trial.spec['seed']}.")
            found[trial.spec["seed"]] = trial
        return found

    def _would_decide(self, wins: int, losses: int) -> str:
        for more in range(1, 1000):
            if clopper_pearson(wins + more, wins + losses + more, level=1 - 2 * ALPHA).low > self.at_least:
                return f"{more} more pairs of seeds, all solved sooner, would support it"
        return "more than 1000 further pairs of seeds"


def _steps(trial: Record) -> float:
    solved = trial.outcome.get("solved_at")
    return float("inf") if solved is None else float(solved)


def _told(steps: list[float]) -> str:
    middle = median(steps)
    return "unsolved" if middle == float("inf") else f"{middle:.0f}"
