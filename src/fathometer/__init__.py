"""Fathometer measures what a sequence model can express, what it can learn, and how much of it a job needs.

>>> import fathometer as fm
>>> fm.named("task", "copying", lengths=(5, 10)).interface().length
20
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fathometer.comparing import compare
    from fathometer.core.claim import Claim, Verdict
    from fathometer.core.interface import Batch, Interface, Tokens, Vectors
    from fathometer.core.limit import Limit
    from fathometer.core.model import Model, Size
    from fathometer.core.recipe import Recipe
    from fathometer.core.spec import named
    from fathometer.core.study import Figure, Study
    from fathometer.core.task import Task
    from fathometer.core.trial import Measurement, Probe, Start, Trial
    from fathometer.laboratory import Results, estimate, run, try_
    from fathometer.reproducing import reproduce

_HOMES = {
    "comparing": ("compare",),
    "core.claim": ("Claim", "Verdict"),
    "core.interface": ("Batch", "Interface", "Tokens", "Vectors"),
    "core.limit": ("Limit",),
    "core.model": ("Model", "Size"),
    "core.recipe": ("Recipe",),
    "core.spec": ("named",),
    "core.study": ("Figure", "Study"),
    "core.task": ("Task",),
    "core.trial": ("Measurement", "Probe", "Start", "Trial"),
    "laboratory": ("Results", "estimate", "run", "try_"),
    "reproducing": ("reproduce",),
}

__all__ = [
    "Batch",
    "Claim",
    "Figure",
    "Interface",
    "Limit",
    "Measurement",
    "Model",
    "Probe",
    "Recipe",
    "Results",
    "Size",
    "Start",
    "Study",
    "Task",
    "Tokens",
    "Trial",
    "Vectors",
    "Verdict",
    "compare",
    "estimate",
    "named",
    "reproduce",
    "run",
    "try_",
]


def __getattr__(name: str) -> Any:
    """Imports what is asked for when it is asked for, so that ``import fathometer`` costs nothing."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"fathometer.{module}"), name)
    raise AttributeError(f"module 'fathometer' has no attribute {name!r}")
