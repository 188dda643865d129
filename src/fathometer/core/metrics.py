"""Metrics: what each score means, which way is better, and whether it counts right answers."""

from dataclasses import dataclass

from fathometer.core.naming import nearest


@dataclass(frozen=True)
class Metric:
    """``counted``: a share of right answers, so that binomial intervals and log odds make sense.

    ``share``: it lies between 0 and 1, so that differences are told in points.
    """

    title: str
    counted: bool
    lower_is_better: bool = False
    share: bool = False

    def reached(self, value: float, level: float, tolerance: float = 0.0) -> bool:
        """Whether a score is as good as a level, but for a tolerance."""
        return value <= level + tolerance if self.lower_is_better else value >= level - tolerance


METRICS = {
    "token_accuracy": Metric("token accuracy", counted=True, share=True),
    "sequence_accuracy": Metric("whole sequences right", counted=True, share=True),
    "free_token_accuracy": Metric("token accuracy, running free", counted=True, share=True),
    "free_sequence_accuracy": Metric("whole sequences right, running free", counted=True, share=True),
    **{
        f"redundancy({part})": Metric(f"share of heads below {part} of the largest", counted=False, share=True)
        for part in (0.01, 0.05, 0.1)
    },
    "removable": Metric("share of heads that can go", counted=False, share=True),
    "answer_attention": Metric("attention of the best head to the answer", counted=False, share=True),
    "loss": Metric("loss (nats)", counted=False, lower_is_better=True),
    "loss_gap": Metric("loss on test minus trained-on examples (nats)", counted=False, lower_is_better=True),
    "nmse": Metric("normalised squared error", counted=False, lower_is_better=True),
}


def metric(name: str) -> Metric:
    """The metric of this name. Raises LookupError for one that nothing knows."""
    if name not in METRICS:
        raise LookupError(f"There is no metric {name!r}: {nearest(name, METRICS)}")
    return METRICS[name]


def is_counted(name: str) -> bool:
    """Whether this is a share of right answers."""
    return name in METRICS and METRICS[name].counted


def counted(name: str) -> str:
    """The name again. Raises ValueError when the metric counts no right answers, or is not known."""
    if not is_counted(name):
        known = ", ".join(each for each, about in METRICS.items() if about.counted)
        raise ValueError(f"{name!r} does not count right answers, and this claim needs a metric that does: {known}")
    return name
