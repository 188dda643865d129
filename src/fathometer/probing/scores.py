"""Scores: the trained network on another split of its task, by stratum."""

from pydantic import Field

from fathometer.core.task import Task
from fathometer.core.trial import Finding, Probe, Subject
from fathometer.evaluation.samples import Samples
from fathometer.evaluation.scoring import scores


class Scores(Probe):
    """All scores on the first ``examples`` test examples of a split, of the trial's own task or of ``task``.

    Another task must ask and answer in the same form: what a network makes of noise that it was not trained on.
    """

    split: str
    examples: int = Field(default=1000, ge=1)
    task: Task | None = None

    def measure(self, subject: Subject) -> Finding:
        trial = subject.trial
        if self.task is not None:
            if self.task.interface() != trial.task.interface():
                raise ValueError(
                    f"{self.task!r} and the task trained on, {trial.task!r}, differ in their interface: "
                    f"this network cannot be asked it."
                )
            trial = trial.with_(task=self.task)
        batch = Samples(trial).test(self.split, self.examples)
        return Finding({"scores": scores(subject.network, subject.trial.model, batch, self.split, subject.device)})
