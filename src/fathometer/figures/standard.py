"""Standard figures: what any sweep shows. Scores between their limits, learning curves, heads, speed."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from fathometer.core.evidence import Evidence, at
from fathometer.core.record import Record
from fathometer.core.study import Figure
from fathometer.figures.cells import Labels, cell_labels
from fathometer.figures.heads import attention_against_score, head_importance
from fathometer.figures.style import (
    HEIGHT,
    LIMIT_DASHES,
    LIMIT_GREYS,
    LIMIT_NAMES,
    WIDTH,
    figure,
    frame,
    metric_name,
    metric_scale,
    score_rows,
)


def standard_figures(evidence: Evidence) -> Iterator[Figure]:
    """Every figure that the records at hand can fill."""
    trials = [trial for trial in evidence.trials() if trial.scores]
    if not trials:
        return
    metric = main_metric(trials)
    yield scores_by_cell(evidence, trials, metric)
    for stratum in numeric_strata(trials):
        yield scores_by_stratum(evidence, trials, metric, stratum)
    yield learning_curves(trials, metric)
    measured = evidence.probes("head_importance")
    if measured:
        yield head_importance(cell_labels(trials), measured)
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


def scores_by_cell(evidence: Evidence, trials: Sequence[Record], metric: str, labels: Labels | None = None) -> Figure:
    """One point a seed, the mean a bar, limits as marks."""
    labels = labels or cell_labels(trials)
    points = [
        {"cell": labels[trial.key], "seed": trial.spec["seed"], "score": row["value"], "key": trial.key}
        for trial in trials
        for row in score_rows(trial, metric, "all")
    ]
    marks = _limit_rows(evidence, trials, labels, metric, ["all"])
    order = list(dict.fromkeys(labels.values()))
    y = alt.Y("cell:N", sort=order, title=None, axis=alt.Axis(labelLimit=260))
    x = alt.X("score:Q", title=metric_name(metric), scale=metric_scale(metric))
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
    return figure("scores", f"{metric_name(metric).capitalize()} of every configuration", caption, chart, _keys(trials))


def scores_by_stratum(
    evidence: Evidence, trials: Sequence[Record], metric: str, stratum: str, labels: Labels | None = None
) -> Figure:
    """The mean over seeds by level of a stratum, one line a cell, with its limits."""
    labels = labels or cell_labels(trials)
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
    y = alt.Y("mean(score):Q", title=metric_name(metric), scale=metric_scale(metric))
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
    return figure(f"scores_by_{stratum}", title, caption, chart, _keys(trials))


def learning_curves(trials: Sequence[Record], metric: str, labels: Labels | None = None) -> Figure:
    """The validation score over the steps, one line a trial."""
    labels = labels or cell_labels(trials)
    rows = [
        {"cell": labels[t.key], "seed": t.spec["seed"], "step": step, "score": value, "key": t.key}
        for t in trials
        for step, value in zip(t.outcome["curve"]["step"], t.outcome["curve"].get(metric, []), strict=False)
        if value is not None
    ]
    chart = alt.Chart(frame(rows)).mark_line(strokeWidth=1.6, opacity=0.85).encode(
        x=alt.X("step:Q", title="step"),
        y=alt.Y("score:Q", title=f"validation {metric_name(metric)}", scale=metric_scale(metric)),
        color=alt.Color("cell:N", title=None, sort=list(dict.fromkeys(labels.values()))),
        detail="key:N",
        tooltip=["cell:N", "seed:Q", "step:Q", alt.Tooltip("score:Q", format=".4f")],
    ).properties(width=WIDTH, height=HEIGHT)  # fmt: skip
    caption = "One line a seed. A line that ends early was stopped because it had solved the task."
    return figure("learning_curves", "Learning curves", caption, chart, _keys(trials))


def speeds(trials: Sequence[Record], timed: Sequence[Record], labels: Labels | None = None) -> Figure:
    """Training and evaluation speed from the exclusive timing probes."""
    labels = labels or cell_labels(trials)
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


def _keys(trials: Sequence[Record]) -> list[str]:
    return [trial.key for trial in trials]


def _limit_rows(
    evidence: Evidence, trials: Sequence[Record], labels: Labels, metric: str, strata: Sequence[str]
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
