"""Standard figures: what any sweep shows. Scores between their limits, learning curves, heads, speed."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from fathometer.core.evidence import Evidence, at
from fathometer.core.metrics import METRICS
from fathometer.core.record import Record
from fathometer.core.study import Figure
from fathometer.figures.cells import cell_labels
from fathometer.figures.style import HEIGHT, LIMIT_DASHES, LIMIT_GREYS, LIMIT_NAMES, WIDTH, figure, frame, metric_name

_UNIT = [0, 1]


def standard_figures(evidence: Evidence) -> Iterator[Figure]:
    """Every figure that the records at hand can fill."""
    trials = [trial for trial in evidence.trials() if trial.scores]
    if not trials:
        return
    metric = main_metric(trials)
    yield scores_by_cell(evidence, trials, metric)
    for stratum in numeric_strata(trials):
        yield scores_by_stratum(evidence, trials, metric, stratum)
    yield learning_curves(evidence, trials, metric)
    measured = evidence.probes("head_importance")
    if measured:
        yield head_importance(trials, measured)
    looked = evidence.probes("answer_attention")
    if looked:
        yield attention_against_score(trials, looked, metric)
    timed = [record for record in evidence.probes("timing") if "timing" in record.provenance]
    if timed:
        yield speeds(trials, timed)


def main_metric(trials: Sequence[Record]) -> str:
    """The metric that trials were validated by: the first of their scores."""
    return str(trials[0].scores[0]["metric"])


def numeric_strata(trials: Sequence[Record]) -> list[str]:
    """Strata with more than two numbered levels, such as lengths."""
    names: dict[str, set[str]] = {}
    for trial in trials:
        for row in trial.scores:
            name, _, value = row["stratum"].partition("=")
            if value:
                names.setdefault(name, set()).add(value)
    return [name for name, values in names.items() if len(values) > 2 and all(v.isdigit() for v in values)]


def scores_by_cell(evidence: Evidence, trials: Sequence[Record], metric: str) -> Figure:
    """One point a seed, the mean a bar, limits as marks."""
    labels = cell_labels(trials)
    points = [
        {"cell": labels[trial.key], "seed": trial.spec["seed"], "score": row["value"], "key": trial.key}
        for trial in trials
        for row in _rows(trial, metric, "all")
    ]
    marks = _limit_rows(evidence, trials, labels, metric, ["all"])
    order = list(dict.fromkeys(labels.values()))
    y = alt.Y("cell:N", sort=order, title=None, axis=alt.Axis(labelLimit=260))
    x = alt.X("score:Q", title=metric_name(metric), scale=_scale(metric))
    seeds = alt.Chart(frame(points)).mark_circle(size=70, opacity=0.8).encode(
        x=x, y=y, color=alt.Color("cell:N", sort=order, legend=None),
        tooltip=["cell:N", "seed:Q", alt.Tooltip("score:Q", format=".4f"), "key:N"],
    )  # fmt: skip
    mean = alt.Chart(frame(points)).mark_tick(thickness=3, size=16).encode(
        x=alt.X("mean(score):Q"), y=y, color=alt.Color("cell:N", sort=order, legend=None)
    )  # fmt: skip
    limits = alt.Chart(frame(marks)).mark_tick(size=26, thickness=2).encode(
        x=alt.X("value:Q"), y=y, tooltip=["limit:N", alt.Tooltip("value:Q", format=".4f"), "by:N", "source:N"],
        color=alt.Color("limit:N", title="limits", scale=alt.Scale(domain=_limit_names(), range=LIMIT_GREYS)),
    )  # fmt: skip
    chart = (
        alt.layer(limits, mean, seeds)
        .resolve_scale(color="independent")
        .properties(width=WIDTH, height=max(120, 34 * len(order)))
    )
    caption = "Each dot is a seed, the coloured bar their mean; grey marks are what chance, the best shallow shortcut "
    caption += "and the best possible predictor score."
    diverged = sum(trial.status == "diverged" for trial in evidence.trials())
    if diverged:
        caption += f" {diverged} diverged trials have no score and are not drawn; claims count them as failures."
    return figure("scores", f"{metric_name(metric).capitalize()} of every configuration", caption, chart, labels)


def scores_by_stratum(evidence: Evidence, trials: Sequence[Record], metric: str, stratum: str) -> Figure:
    """The mean over seeds by level of a stratum, one line a cell, with its limits."""
    labels = cell_labels(trials)
    rows: list[dict[str, Any]] = []
    levels: list[str] = []
    for trial in trials:
        for row in trial.scores:
            name, _, value = row["stratum"].partition("=")
            if row["metric"] == metric and name == stratum:
                levels.append(row["stratum"])
                rows.append(
                    {"cell": labels[trial.key], "level": int(value), "score": row["value"], "seed": trial.spec["seed"]}
                )
    marks = _limit_rows(evidence, trials, labels, metric, list(dict.fromkeys(levels)))
    x = alt.X("level:Q", title=stratum, axis=alt.Axis(values=sorted({row["level"] for row in rows})))
    y = alt.Y("mean(score):Q", title=metric_name(metric), scale=_scale(metric))
    color = alt.Color("cell:N", title=None, sort=list(dict.fromkeys(labels.values())))
    base = alt.Chart(frame(rows)).encode(x=x, color=color)
    lines = base.mark_line(strokeWidth=2.2).encode(y=y)
    seeds = base.mark_circle(size=34, opacity=0.55).encode(
        y=alt.Y("score:Q"), tooltip=["cell:N", "seed:Q", "level:Q", alt.Tooltip("score:Q", format=".4f")]
    )
    limits = alt.Chart(frame(marks)).mark_line(color="#888", strokeWidth=1.6).encode(
        x=x, y=alt.Y("mean(value):Q"), strokeDash=_limit_dash()
    )  # fmt: skip
    chart = alt.layer(limits, lines, seeds).properties(width=WIDTH, height=HEIGHT)
    title = f"{metric_name(metric).capitalize()} by {stratum}"
    caption = f"Lines are means over seeds, dots single seeds, grey lines the limits of each {stratum}."
    return figure(f"scores_by_{stratum}", title, caption, chart, labels)


def learning_curves(evidence: Evidence, trials: Sequence[Record], metric: str) -> Figure:
    """The validation score over the steps, one line a trial."""
    labels = cell_labels(trials)
    rows = [
        {"cell": labels[t.key], "seed": t.spec["seed"], "step": step, "score": value, "key": t.key}
        for t in trials
        for step, value in zip(t.outcome["curve"]["step"], t.outcome["curve"].get(metric, []), strict=False)
        if value is not None
    ]
    chart = alt.Chart(frame(rows)).mark_line(strokeWidth=1.6, opacity=0.85).encode(
        x=alt.X("step:Q", title="step"),
        y=alt.Y("score:Q", title=f"validation {metric_name(metric)}", scale=_scale(metric)),
        color=alt.Color("cell:N", title=None, sort=list(dict.fromkeys(labels.values()))),
        detail="key:N",
        tooltip=["cell:N", "seed:Q", "step:Q", alt.Tooltip("score:Q", format=".4f")],
    ).properties(width=WIDTH, height=HEIGHT)  # fmt: skip
    caption = "One line a seed. A line that ends early was stopped because it had solved the task."
    return figure("learning_curves", "Learning curves", caption, chart, labels)


def head_importance(trials: Sequence[Record], measured: Sequence[Record]) -> Figure:
    """The importance of every head beside the largest of its network, sorted, mean over seeds."""
    labels = cell_labels(trials)
    sums: dict[tuple[str, int], list[float]] = {}
    for record in measured:
        cell = labels.get(record.outcome["trial"])
        values = sorted((v for layer in record.outcome["importance"] for v in layer), reverse=True)
        if cell is None or not values or values[0] <= 0:
            continue
        for rank, value in enumerate(values, start=1):
            sums.setdefault((cell, rank), []).append(value / values[0])
    rows = [
        {"cell": cell, "rank": rank, "importance": sum(values) / len(values), "seeds": len(values)}
        for (cell, rank), values in sums.items()
    ]
    order = [cell for cell in dict.fromkeys(labels.values()) if any(row["cell"] == cell for row in rows)]
    chart = alt.Chart(frame(rows)).mark_rect().encode(
        x=alt.X("rank:O", title="head, most important first", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("cell:N", sort=order, title=None, axis=alt.Axis(labelLimit=260)),
        color=alt.Color("importance:Q", title="of the largest", scale=alt.Scale(scheme="tealblues", domain=_UNIT)),
        tooltip=["cell:N", "rank:O", alt.Tooltip("importance:Q", format=".3f"), "seeds:Q"],
    ).properties(width=WIDTH, height=max(90, 30 * len(order)))  # fmt: skip
    caption = (
        "Mean absolute derivative of an example's loss by the gate of each head, beside the largest of the network. "
        "Pale heads could be redundant; only removing them would show it."
    )
    return figure("head_importance", "Which heads matter", caption, chart, [record.key for record in measured])


def attention_against_score(trials: Sequence[Record], looked: Sequence[Record], metric: str) -> Figure:
    """How well the best head looks at the answer, against the score."""
    labels = cell_labels(trials)
    by_key = {trial.key: trial for trial in trials}
    rows = [
        {
            "cell": labels[trial.key],
            "seed": trial.spec["seed"],
            "attention": max(max(layer) for layer in record.outcome["attention"]),
            "score": row["value"],
        }
        for record in looked
        if (trial := by_key.get(record.outcome["trial"])) is not None
        for row in _rows(trial, metric, "all")
    ]
    chart = alt.Chart(frame(rows)).mark_circle(size=80, opacity=0.8).encode(
        x=alt.X("attention:Q", title="attention of the best head to the answer", scale=alt.Scale(domain=_UNIT)),
        y=alt.Y("score:Q", title=metric_name(metric), scale=_scale(metric)),
        color=alt.Color("cell:N", title=None, sort=list(dict.fromkeys(labels.values()))),
        tooltip=["cell:N", "seed:Q", alt.Tooltip("attention:Q", format=".3f"), alt.Tooltip("score:Q", format=".4f")],
    ).properties(width=WIDTH, height=HEIGHT)  # fmt: skip
    caption = "Mean attention, over all lengths, of the one head that looks most at the position holding the answer."
    title = "Does a single head do the copying?"
    return figure("answer_attention", title, caption, chart, [record.key for record in looked])


def speeds(trials: Sequence[Record], timed: Sequence[Record]) -> Figure:
    """Training and evaluation speed from the exclusive timing probes."""
    labels = cell_labels(trials)
    rows = [
        {
            "cell": labels.get(record.outcome["trial"], at(record.spec, "trial.model.name")),
            "what": what,
            "speed": record.provenance["timing"][field],
        }
        for record in timed
        for what, field in (
            ("training", "train_samples_per_second"),
            ("evaluation", "eval_samples_per_second"),
        )
    ]
    chart = alt.Chart(frame(rows)).mark_bar().encode(
        x=alt.X("speed:Q", title="sequences a second"),
        y=alt.Y("cell:N", title=None, sort=list(dict.fromkeys(labels.values())), axis=alt.Axis(labelLimit=260)),
        yOffset=alt.YOffset("what:N", sort=["training", "evaluation"]),
        color=alt.Color("what:N", title=None, sort=["training", "evaluation"]),
        tooltip=["cell:N", "what:N", alt.Tooltip("speed:Q", format=",.0f")],
    ).properties(width=WIDTH, height=max(120, 44 * len({row["cell"] for row in rows})))  # fmt: skip
    caption = "Medians, each measured with the machine to itself. They hold for this machine only."
    return figure("speed", "Speed", caption, chart, [record.key for record in timed])


def _rows(trial: Record, metric: str, stratum: str) -> list[dict[str, Any]]:
    return [row for row in trial.scores if row["metric"] == metric and row["stratum"] == stratum]


def _limit_rows(
    evidence: Evidence, trials: Sequence[Record], labels: dict[str, str], metric: str, strata: Sequence[str]
) -> list[dict[str, Any]]:
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for trial in trials:
        for limit in evidence.limits(trial):
            if limit["metric"] != metric or limit["stratum"] not in strata or limit["kind"] not in LIMIT_DASHES:
                continue
            level = limit["stratum"].partition("=")[2]
            rows[labels[trial.key], limit["stratum"], limit["kind"]] = {
                "cell": labels[trial.key],
                "limit": LIMIT_NAMES[limit["kind"]],
                "value": limit["value"],
                "by": limit["by"],
                "source": limit["source"],
            } | ({"level": int(level)} if level.isdigit() else {})
    return list(rows.values())


def _limit_names() -> list[str]:
    return [LIMIT_NAMES[kind] for kind in LIMIT_DASHES]


def _limit_dash() -> alt.StrokeDash:
    scale = alt.Scale(domain=_limit_names(), range=list(LIMIT_DASHES.values()))
    return alt.StrokeDash("limit:N", title="limits", scale=scale)


def _scale(metric: str) -> alt.Scale:
    counted = metric in METRICS and METRICS[metric].counted
    return alt.Scale(domain=_UNIT) if counted else alt.Scale(zero=False)
