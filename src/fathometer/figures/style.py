"""Style: what all figures share, on screen and on paper."""

from collections.abc import Iterable
from typing import Any

import altair as alt

from fathometer.core.metrics import METRICS
from fathometer.core.record import Record
from fathometer.core.study import Figure

WIDTH, HEIGHT = 620, 300

UNIT = [0, 1]
"""The axis of a share."""

PALETTE = ["#3b7dd8", "#e07b39", "#2a9d78", "#b5548f", "#8a6fd1", "#b58900", "#5f7f95", "#d1495b"]
"""Colours that read on white and on near-black, and apart for colour-blind readers."""

LIMIT_DASHES = {"task_optimal": [1, 0], "shortcut": [6, 3], "chance": [2, 3]}
"""The limits that figures show, and their line."""

LIMIT_GREYS = ["#66707d", "#8b949f", "#a9b1bb"]

LIMIT_NAMES = {"task_optimal": "best possible", "shortcut": "best shortcut", "chance": "chance"}


def metric_name(metric: str) -> str:
    """A metric as an axis title."""
    return METRICS[metric].title if metric in METRICS else metric.replace("_", " ")


def figure(name: str, title: str, caption: str, chart: Any, records: Iterable[str]) -> Figure:
    """A chart in the house style, with the records it was drawn from."""
    styled = (
        chart.configure(background="transparent", font="Helvetica, Arial, sans-serif")
        .configure_view(stroke=None)
        .configure_axis(grid=True, gridOpacity=0.35, domainOpacity=0.6, labelFontSize=12, titleFontSize=12)
        .configure_legend(labelFontSize=12, titleFontSize=12, labelLimit=320, orient="bottom", columns=3)
        .configure_range(category=PALETTE)
    )
    return Figure(name, title, caption, styled.to_dict(), tuple(dict.fromkeys(records)))


def frame(rows: list[dict[str, Any]]) -> alt.Data:
    """Rows as a chart's inline data."""
    return alt.Data(values=rows)


def metric_scale(metric: str) -> alt.Scale:
    """From 0 to 1 for what lies there, else as the data fall."""
    return alt.Scale(domain=UNIT) if metric in METRICS and METRICS[metric].share else alt.Scale(zero=False)


def score_rows(record: Record, metric: str, stratum: str) -> list[dict[str, Any]]:
    """The scores of one metric in one stratum, one for each split that has it."""
    return [row for row in record.scores if row["metric"] == metric and row["stratum"] == stratum]
