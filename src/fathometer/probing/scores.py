"""Scores: the trained network on another split of its task, by stratum."""

from pydantic import Field

from fathometer.core.streams import stream
from fathometer.core.trial import Finding, Probe, Subject
from fathometer.evaluation.scoring import scores


class Scores(Probe):
    """All scores on ``examples`` fresh examples of a split."""

    split: str
    examples: int = Field(1000, ge=1)

    def measure(self, subject: Subject) -> Finding:
        task, model = subject.trial.task, subject.trial.model
        batch = task.draw(stream("test", subject.trial.seed, task.key, self.split), self.examples, self.split)
        return Finding({"scores": scores(subject.network, model, batch, self.split, subject.device)})
