"""Limits: what could be scored at all in a stratum, and by what right we say so."""

from typing import Literal

from pydantic import Field

from fathometer.core.spec import Spec

LimitKind = Literal["chance", "shortcut", "task_optimal", "stratum_best"]
LimitSource = Literal["exact", "bound", "constructed", "estimated"]


class Limit(Spec):
    """One limit of one metric in one stratum of one split, with its interval and its source.

    ``chance`` knows only the set of answers; ``shortcut`` is the best of a named class of cheap predictors;
    ``task_optimal`` is what the best predictor for the whole task scores here; ``stratum_best`` is the best possible
    by a predictor that cares for this stratum alone. They may cross: none is a fence, each is a mark to read by.
    """

    split: str
    stratum: str
    metric: str
    kind: LimitKind
    value: float
    low: float
    high: float
    source: LimitSource
    by: str = Field(description="the predictor or the argument that gives this value")
