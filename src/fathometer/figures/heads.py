"""Heads: which ones matter, which can go, and which look at the answer."""

from collections.abc import Sequence
from statistics import mean
from typing import Any

import altair as alt
import numpy as np

from fathometer.core.record import Record
from fathometer.core.study import Figure
from fathometer.figures.cells import Labels, cell_labels
from fathometer.figures.style import HEIGHT, UNIT, WIDTH, figure, frame, metric_name, metric_scale, score_rows


def head_importance(labels: Labels, measured: Sequence[Record]) -> Figure:
    """The importance of every head beside the largest of its network, sorted, mean over seeds."""
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
        color=alt.Color("importance:Q", title="of the largest", scale=alt.Scale(scheme="tealblues", domain=UNIT)),
        tooltip=["cell:N", "rank:O", alt.Tooltip("importance:Q", format=".3f"), "seeds:Q"],
    ).properties(width=WIDTH, height=max(90, 30 * len(order)))  # fmt: skip
    caption = (
        "Mean absolute derivative of an example's loss by the gate of each head, beside the largest of the network. "
        "Pale heads could be redundant; only removing them would show it."
    )
    return figure("head_importance", "Which heads matter", caption, chart, [record.key for record in measured])


def attention_against_score(
    trials: Sequence[Record],
    looked: Sequence[Record],
    metric: str,
    labels: Labels | None = None,
    strata: Sequence[str] = ("all",),
) -> Figure:
    """How well the best head looks at the answer, against the score, one point a network and stratum."""
    labels = labels or cell_labels(trials)
    by_key = {trial.key: trial for trial in trials}
    rows = [
        {
            "cell": labels[trial.key],
            "seed": trial.spec["seed"],
            "stratum": stratum,
            "attention": float(np.max(_attention(record, stratum))),
            "score": row["value"],
        }
        for record in looked
        if (trial := by_key.get(record.outcome["trial"])) is not None
        for stratum in strata
        for row in score_rows(trial, metric, stratum)
    ]
    score = alt.Tooltip("score:Q", format=".4f")
    chart = alt.Chart(frame(rows)).mark_circle(size=70, opacity=0.7).encode(
        x=alt.X("attention:Q", title="attention of the best head to the answer", scale=alt.Scale(domain=UNIT)),
        y=alt.Y("score:Q", title=metric_name(metric), scale=metric_scale(metric)),
        color=alt.Color("cell:N", title=None, sort=list(dict.fromkeys(labels.values()))),
        tooltip=["cell:N", "seed:Q", "stratum:N", alt.Tooltip("attention:Q", format=".3f"), score],
    ).properties(width=WIDTH, height=HEIGHT)  # fmt: skip
    where = "over all lengths" if tuple(strata) == ("all",) else "a point for each network and stratum"
    caption = f"Mean attention, {where}, of the one head that looks most at the position holding the answer."
    title = "Does a single head do the copying?"
    return figure("answer_attention", title, caption, chart, [record.key for record in looked])


def attention_by_head(labels: Labels, looked: Sequence[Record], stratum: str) -> Figure:
    """The attention of each head to the answer, by level of a stratum; the heads of each network in their order."""
    rows: list[dict[str, Any]] = []
    for record in looked:
        levels = [name for name in record.outcome["attention_by_stratum"] if name.startswith(f"{stratum}=")]
        rows += [
            {
                "head": f"{labels[record.outcome['trial']]}: layer {layer}, head {head}",
                "level": int(name.partition("=")[2]),
                "attention": attention,
            }
            for name in levels
            for layer, heads in enumerate(_attention(record, name), start=1)
            for head, attention in enumerate(heads, start=1)
        ]
    order = list(dict.fromkeys(row["head"] for row in rows))
    chart = alt.Chart(frame(rows)).mark_rect().encode(
        x=alt.X("level:O", title=stratum, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("head:N", sort=order, title=None, axis=alt.Axis(labelLimit=260)),
        color=alt.Color("attention:Q", title="attention", scale=alt.Scale(scheme="tealblues", domain=UNIT)),
        tooltip=["head:N", "level:O", alt.Tooltip("attention:Q", format=".3f")],
    ).properties(width=WIDTH, height=max(90, 18 * len(order)))  # fmt: skip
    caption = f"Mean attention of each head of one network, by {stratum}, to the position that holds the answer."
    title = f"Which head copies which {stratum}"
    return figure("attention_by_head", title, caption, chart, [record.key for record in looked])


def redundancy_curve(labels: Labels, measured: Sequence[Record], untrained: Labels, before: Sequence[Record]) -> Figure:
    """The share of heads whose importance is below a part of the largest, over that part; before training dashed."""
    rows = [
        {"cell": names[record.outcome["trial"]], "below": below, "share": share, "when": when}
        for names, records, when in ((labels, measured, "trained"), (untrained, before, "before training"))
        for record in records
        for below, share in _redundancy(record)
    ]
    chart = alt.Chart(frame(rows)).mark_line(strokeWidth=2).encode(
        x=alt.X("below:Q", title="part of the largest importance", scale=alt.Scale(type="log"), axis=_FEW_TICKS),
        y=alt.Y("mean(share):Q", title="share of heads below it", scale=alt.Scale(domain=UNIT)),
        color=alt.Color("cell:N", title=None, sort=list(dict.fromkeys(labels.values()))),
        strokeDash=alt.StrokeDash("when:N", title=None, sort=["trained", "before training"]),
    ).properties(width=WIDTH, height=HEIGHT)  # fmt: skip
    caption = (
        "Importance is the mean absolute derivative of an example's loss by the gate of a head. Means over seeds; "
        "dashed, one network of the kind before its first step."
    )
    keys = [record.key for record in (*measured, *before)]
    return figure("redundancy", "How many heads look idle", caption, chart, keys)


def removal_curves(labels: Labels, removed: Sequence[Record]) -> Figure:
    """Accuracy as heads are removed, least important first; dotted, in random order."""
    rows = [
        {
            "cell": labels[record.outcome["trial"]],
            "removed": count / record.outcome["removed"][-1],
            "accuracy": mean(curve[place] for curve in record.outcome["accuracy"][order]),
            "order": order,
        }
        for record in removed
        for order in ("least important first", "in random order")
        for place, count in enumerate(record.outcome["removed"])
        if record.outcome["accuracy"][order]
    ]
    chart = alt.Chart(frame(rows)).mark_line(strokeWidth=2, point={"size": 18}).encode(
        x=alt.X("removed:Q", title="share of heads removed", scale=alt.Scale(domain=UNIT)),
        y=alt.Y("mean(accuracy):Q", title="token accuracy", scale=alt.Scale(domain=UNIT)),
        color=alt.Color("cell:N", title=None, sort=list(dict.fromkeys(labels.values()))),
        strokeDash=alt.StrokeDash("order:N", title="removed", sort=["least important first", "in random order"]),
    ).properties(width=WIDTH, height=HEIGHT)  # fmt: skip
    caption = "Means over seeds. A removed head puts out zero; nothing is trained again."
    keys = [record.key for record in removed]
    return figure("head_removal", "What is left as heads are removed", caption, chart, keys)


def removable(labels: Labels, removed: Sequence[Record], strata: Sequence[str]) -> Figure:
    """The share of heads that can go without losing a point of accuracy, in some strata."""
    rows = [
        {"cell": labels[record.outcome["trial"]], "stratum": stratum.replace("=", " "), "share": row["value"]}
        for record in removed
        for stratum in strata
        for row in score_rows(record, "removable", stratum)
    ]
    names = [stratum.replace("=", " ") for stratum in strata]
    cells = list(dict.fromkeys(labels.values()))
    base = alt.Chart(frame(rows)).encode(
        y=alt.Y("cell:N", sort=cells, title=None, axis=alt.Axis(labelLimit=260)),
        yOffset=alt.YOffset("stratum:N", sort=names),
        color=alt.Color("stratum:N", title=None, sort=names),
    )
    share = alt.X("share:Q", title="share of heads that can go", scale=alt.Scale(domain=UNIT))
    means = base.mark_tick(thickness=3, size=9).encode(x=alt.X("mean(share):Q"))
    chart = alt.layer(base.mark_circle(size=40, opacity=0.6).encode(x=share), means)
    chart = chart.properties(width=WIDTH, height=max(120, 16 * len(names) * len(cells)))
    caption = (
        "The largest share of heads that can be removed, least important first, without accuracy falling by more than "
        "a point. Dots are seeds, bars their mean."
    )
    return figure("removable_heads", "How many heads are idle", caption, chart, [record.key for record in removed])


_FEW_TICKS = alt.Axis(values=[0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1])


def _attention(record: Record, stratum: str) -> list[list[float]]:
    outcome = record.outcome
    return outcome["attention"] if stratum == "all" else outcome["attention_by_stratum"][stratum]


def _redundancy(record: Record) -> list[tuple[float, float]]:
    """Points of the share of heads below a part of the largest."""
    values = np.array([value for layer in record.outcome["importance"] for value in layer])
    parts = np.logspace(-3, 0, 25)
    return [(float(part), float((values < part * values.max()).mean())) for part in parts]
