"""Power law: over several configurations, one quantity grows as another to a given power."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from pydantic import Field
from scipy import stats

from fathometer.core.claim import Claim, Decision, Verdict
from fathometer.core.evidence import Evidence, at
from fathometer.core.record import Record

METHOD = "least squares of logarithms over configurations, 95% t interval of the slope"


class PowerLaw(Claim):
    """``y`` grows as ``x`` to the power ``exponent``, within ``tolerance``, over what ``probe`` found by configuration.

    ``x`` and ``y`` are paths into the probe's records, such as ``provenance.timing.eval_runtime``. Supported when the
    95% interval of the slope of log y on log x lies within ``tolerance`` of ``exponent``, refuted when it lies outside.
    """

    probe: str
    where: dict[str, Any] = Field(default_factory=dict)
    x: str
    y: str
    exponent: float = 1.0
    tolerance: float = Field(default=0.15, gt=0)
    least: int = Field(default=4, ge=3, description="fewest configurations that say anything")

    def judge(self, evidence: Evidence) -> Verdict:
        points = [(record.key, *self._point(record)) for record in evidence.probes(self.probe, self.where)]
        points = [point for point in points if point[1] is not None and point[2] is not None]
        xs = np.log(np.array([x for _, x, _ in points], dtype=float))
        if len(points) < self.least or np.ptp(xs) == 0:
            would = f"{self.least} configurations of different size"
            sentence = f"{len(points)} configurations have been measured."
            return self.verdict("inconclusive", sentence, METHOD, len(points), would_decide=would)
        ys = np.log(np.array([y for _, _, y in points], dtype=float))
        fit: Any = stats.linregress(xs, ys)
        half = float(stats.t.ppf(0.975, len(points) - 2) * fit.stderr)
        slope, low, high = float(fit.slope), float(fit.slope) - half, float(fit.slope) + half
        decision: Decision = "inconclusive"
        if self.exponent - self.tolerance <= low and high <= self.exponent + self.tolerance:
            decision = "supported"
        elif high < self.exponent - self.tolerance or low > self.exponent + self.tolerance:
            decision = "refuted"
        sentence = (
            f"Over a range of {np.exp(np.ptp(xs)):.0f} in size the power is {slope:.2f} (95% from {low:.2f} to "
            f"{high:.2f}, r = {fit.rvalue:.2f}); the claim needs {self.exponent:g}, give or take {self.tolerance:g}."
        )
        would = "more configurations, or a wider range of sizes" if decision == "inconclusive" else ""
        keys = tuple(key for key, _, _ in points)
        return self.verdict(decision, sentence, METHOD, len(points), (slope, low, high), would, keys)

    def prospect(self, planned: Evidence) -> str:
        return f"{len(planned.probes(self.probe, self.where))} configurations"

    def _point(self, record: Record) -> tuple[Any, Any]:
        form: Mapping[str, Any] = asdict(record)
        return at(form, self.x), at(form, self.y)
