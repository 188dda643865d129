"""Timing: how fast a network trains and answers with the machine to itself."""

import time
from statistics import median

from pydantic import Field

from fathometer.core.trial import Finding, Probe, Subject
from fathometer.evaluation.answers import answer
from fathometer.evaluation.samples import Samples
from fathometer.training.rehearsal import rehearse


class Timing(Probe):
    """Sequences a second in training and in evaluation: medians of ``repeats`` after a warm-up pass.

    Only meaningful alone on the machine, so it runs when all other work has ended. The seconds are in the record's
    provenance, since they differ from run to run.
    """

    exclusive = True

    repeats: int = Field(default=5, ge=1)

    def measure(self, subject: Subject) -> Finding:
        trial = subject.trial
        pace = rehearse(trial, subject.device, rounds=self.repeats)
        batch = Samples(trial).test(trial.task.splits()[0])
        answer(subject.network, trial.model, batch, subject.device)
        seconds: list[float] = []
        for _ in range(self.repeats):
            start = time.perf_counter()
            answer(subject.network, trial.model, batch, subject.device)
            seconds.append(time.perf_counter() - start)
        timing = {
            "train_samples_per_second": trial.recipe.batch / pace.step,
            "eval_samples_per_second": len(batch) / median(seconds),
            "eval_runtime": median(seconds),
        }
        outcome = {
            "scores": [],
            "batch": trial.recipe.batch,
            "eval_examples": len(batch),
            "flops_per_step": trial.flops_a_step(),
        }
        return Finding(outcome, timing)
