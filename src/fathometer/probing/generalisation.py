"""Generalisation: the loss on examples that were trained on beside the loss on fresh ones."""

from pydantic import Field

from fathometer.core.trial import Finding, Probe, Subject
from fathometer.evaluation.answers import answer
from fathometer.evaluation.samples import LOOKAHEAD, Samples


class Generalisation(Probe):
    """Mean loss at scored positions on the first examples trained on, at least ``examples``, and on test examples.

    Batches may hold examples of like length, so whole turns of batches are taken, which hold all lengths alike. Both
    are measured on the trained network without dropout, so the gap, test minus trained on, is the network's own and not
    the training's. Where data are fresh at every step the gap has no reason to differ from zero.
    """

    examples: int = Field(default=1000, ge=1)

    def measure(self, subject: Subject) -> Finding:
        trial, samples = subject.trial, Samples(subject.trial)
        if not trial.recipe.steps:
            raise ValueError("A trial of 0 steps was trained on nothing, so nothing tells what it learnt by heart.")
        turns = -(-self.examples // (trial.recipe.batch * LOOKAHEAD))
        seen = [samples.batch(step) for step in range(min(turns * LOOKAHEAD, trial.recipe.steps))]
        rows: list[dict[str, object]] = []
        means: list[float] = []
        for split, parts in (("trained_on", seen), (samples.split, [samples.test(samples.split, self.examples)])):
            losses = [answer(subject.network, trial.model, part, subject.device).loss[part.scored] for part in parts]
            number = sum(len(loss) for loss in losses)
            means.append(float(sum(loss.sum() for loss in losses) / number))
            rows.append({"split": split, "stratum": "all", "metric": "loss", "value": means[-1], "n": number})
        gap = {"split": samples.split, "stratum": "all", "metric": "loss_gap", "value": means[1] - means[0]}
        return Finding({"scores": [*rows, gap | {"n": rows[1]["n"]}]})
