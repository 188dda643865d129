"""Scores: the trained network on another split of its task, by stratum."""

from pydantic import Field

from fathometer.core.trial import Finding, Probe, Subject
from fathometer.evaluation.samples import Samples
from fathometer.evaluation.scoring import scores


class Scores(Probe):
    """All scores on the first ``examples`` test examples of a split."""

    split: str
    examples: int = Field(default=1000, ge=1)

    def measure(self, subject: Subject) -> Finding:
        batch = Samples(subject.trial).test(self.split, self.examples)
        return Finding({"scores": scores(subject.network, subject.trial.model, batch, self.split, subject.device)})
