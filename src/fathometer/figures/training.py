"""Training: losses over the steps and at their end, when trials solved, and how learning rates were chosen."""

from collections.abc import Sequence

import altair as alt

from fathometer.core.evidence import at
from fathometer.core.record import Record
from fathometer.core.study import Figure
from fathometer.figures.cells import Labels
from fathometer.figures.style import HEIGHT, UNIT, WIDTH, figure, frame

LOSSES = {"train_loss": "training", "validation_loss": "validation"}


def loss_curves(trials: Sequence[Record], labels: Labels) -> Figure:
    """Training and validation loss over the steps, means over seeds."""
    rows = [
        {"cell": labels[trial.key], "step": step, "loss": value, "on": name}
        for trial in trials
        for column, name in LOSSES.items()
        for step, value in zip(trial.outcome["curve"]["step"], trial.outcome["curve"][column], strict=True)
        if value is not None and value > 0
    ]
    chart = alt.Chart(frame(rows)).mark_line(strokeWidth=1.8).encode(
        x=alt.X("step:Q", title="step"),
        y=alt.Y("mean(loss):Q", title="loss (nats)", scale=alt.Scale(type="log")),
        color=alt.Color("cell:N", title=None, sort=list(dict.fromkeys(labels.values()))),
        strokeDash=alt.StrokeDash("on:N", title=None, sort=list(LOSSES.values())),
    ).properties(width=WIDTH, height=HEIGHT)  # fmt: skip
    caption = "Means over the seeds that have come so far. The training loss is the mean since the last validation."
    return figure("losses", "Loss over the steps", caption, chart, [trial.key for trial in trials])


def last_losses(trials: Sequence[Record], labels: Labels) -> Figure:
    """Training and validation loss at the end, by configuration."""
    rows = [
        {"cell": labels[trial.key], "on": name, "loss": trial.outcome["curve"][column][-1]}
        for trial in trials
        for column, name in LOSSES.items()
        if trial.outcome["curve"][column][-1] is not None
    ]
    cells = list(dict.fromkeys(labels.values()))
    chart = alt.Chart(frame(rows)).mark_circle(size=46, opacity=0.75).encode(
        x=alt.X("loss:Q", title="loss (nats)", scale=alt.Scale(type="log")),
        y=alt.Y("cell:N", sort=cells, title=None, axis=alt.Axis(labelLimit=260)),
        yOffset=alt.YOffset("on:N", sort=list(LOSSES.values())),
        color=alt.Color("on:N", title=None, sort=list(LOSSES.values())),
        tooltip=["cell:N", "on:N", alt.Tooltip("loss:Q", format=".4f")],
    ).properties(width=WIDTH, height=max(120, 30 * len(cells)))  # fmt: skip
    caption = "One dot a seed, at the last step. The training loss is the mean since the validation before."
    return figure("last_losses", "Loss at the end", caption, chart, [trial.key for trial in trials])


def solved_share(trials: Sequence[Record], labels: Labels) -> Figure:
    """The share of seeds that had solved the task, over the steps."""
    cells: dict[str, list[Record]] = {}
    for trial in trials:
        cells.setdefault(labels[trial.key], []).append(trial)
    rows: list[dict[str, object]] = []
    for cell, members in cells.items():
        last = max(trial.spec["recipe"]["steps"] for trial in members)
        solved = sorted(at for trial in members if (at := trial.outcome.get("solved_at")) is not None)
        rows += [{"cell": cell, "step": 0, "share": 0.0}]
        rows += [{"cell": cell, "step": step, "share": (i + 1) / len(members)} for i, step in enumerate(solved)]
        rows += [{"cell": cell, "step": last, "share": len(solved) / len(members)}]
    chart = alt.Chart(frame(rows)).mark_line(interpolate="step-after", strokeWidth=2.2, opacity=0.85).encode(
        x=alt.X("step:Q", title="step"),
        y=alt.Y("share:Q", title="share of seeds that have solved it", scale=alt.Scale(domain=UNIT)),
        color=alt.Color("cell:N", title=None, sort=list(dict.fromkeys(labels.values()))),
        tooltip=["cell:N", "step:Q", alt.Tooltip("share:Q", format=".2f")],
    ).properties(width=WIDTH, height=HEIGHT)  # fmt: skip
    caption = "A curve that ends below 1 leaves seeds that had not solved it when their steps ran out."
    return figure("steps_to_solve", "Steps until solved", caption, chart, [trial.key for trial in trials])


def learning_rates(rungs: Sequence[Record], labels: Labels) -> Figure:
    """What each learning rate came to in the short trials that it was chosen by."""
    rows = [
        {
            "cell": labels[rung.key],
            "rate": at(rung.spec, "recipe.optimiser.learning_rate"),
            "loss": rung.outcome["curve"]["validation_loss"][-1],
        }
        for rung in rungs
        if rung.status == "done"
    ]
    base = alt.Chart(frame(rows)).encode(
        x=alt.X("rate:Q", title="learning rate", scale=alt.Scale(type="log")),
        color=alt.Color("cell:N", title=None, sort=list(dict.fromkeys(labels.values()))),
    )
    loss = alt.Y("loss:Q", title="validation loss at the end (nats)", scale=alt.Scale(type="log"))
    lines = base.mark_line(strokeWidth=2).encode(y=alt.Y("median(loss):Q"))
    chart = alt.layer(lines, base.mark_circle(size=36, opacity=0.6).encode(y=loss))
    caption = "Lines are medians over seeds, dots single seeds, which take part in nothing else."
    keys = [rung.key for rung in rungs]
    chart = chart.properties(width=WIDTH, height=HEIGHT)
    return figure("learning_rates", "How learning rates were chosen", caption, chart, keys)
