"""Power law: over several configurations, one quantity grows as another to a given power."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from pydantic import Field
from scipy import stats

from fathometer.core.claim import Claim, Decision, Verdict
from fathometer.core.evidence import Evidence, at
from fathometer.core.record import Record

METHOD = "least squares of logarithms over sizes, 95% t interval of the slope"


class PowerLaw(Claim):
    """``y`` grows as ``x`` to the power ``exponent``, within ``tolerance``, over the sizes that ``probe`` measured.

    ``x`` and ``y`` are paths into the probe's records, such as ``provenance.timing.eval_runtime``. Supported when the
    95% interval of the slope of log y on log x lies within ``tolerance`` of ``exponent``, refuted when it lies outside.
    """

    probe: str
    where: dict[str, Any] = Field(default_factory=dict)
    x: str
    y: str
    exponent: float = 1.0
    tolerance: float = Field(default=0.15, gt=0)
    least: int = Field(default=4, ge=3, description="fewest different sizes that say anything")

    def judge(self, evidence: Evidence) -> Verdict:
        records = evidence.probes(self.probe, self.where)
        sizes = self._sizes(records)
        keys = tuple(record.key for record in records)
        if len(sizes) < self.least:
            would = f"{self.least} different sizes"
            sentence = f"{len(sizes)} different sizes have been measured."
            return self.verdict("inconclusive", sentence, METHOD, len(sizes), would_decide=would, records=keys)
        xs = np.log(np.array(list(sizes)))
        ys = np.array([np.mean(np.log(values)) for values in sizes.values()])
        fit: Any = stats.linregress(xs, ys)
        half = float(stats.t.ppf(0.975, len(sizes) - 2) * fit.stderr)
        slope, low, high = float(fit.slope), float(fit.slope) - half, float(fit.slope) + half
        decision: Decision = "inconclusive"
        if self.exponent - self.tolerance <= low and high <= self.exponent + self.tolerance:
            decision = "supported"
        elif high < self.exponent - self.tolerance or low > self.exponent + self.tolerance:
            decision = "refuted"
        sentence = (
            f"Over {len(sizes)} sizes and a range of {np.exp(np.ptp(xs)):.0f} the power is {slope:.2f} (95% from "
            f"{low:.2f} to {high:.2f}, r = {fit.rvalue:.2f}); the claim needs {self.exponent:g}, give or take "
            f"{self.tolerance:g}."
        )
        would = "more configurations, or a wider range of sizes" if decision == "inconclusive" else ""
        return self.verdict(decision, sentence, METHOD, len(sizes), (slope, low, high), would, keys)

    def prospect(self, planned: Evidence) -> str:
        return f"{len(planned.probes(self.probe, self.where))} measurements; it needs {self.least} different sizes"

    def _sizes(self, records: Sequence[Record]) -> dict[float, list[float]]:
        """The measurements at each size: several at one size are one point."""
        sizes: dict[float, list[float]] = {}
        for record in records:
            form: Mapping[str, Any] = asdict(record)
            x, y = at(form, self.x), at(form, self.y)
            if x is not None and y is not None:
                sizes.setdefault(float(x), []).append(float(y))
        return sizes
