"""Doctoring: whether this machine can do the work, and do it the same way twice."""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    found: str
    good: bool = True


def examine() -> list[Finding]:
    """Every check, in order; a check that breaks is itself a bad finding."""
    found: list[Finding] = []
    for what, check in CHECKS.items():
        try:
            found += [Finding(what, text, good) for text, good in check()]
        except Exception as error:
            found.append(Finding(what, f"{type(error).__name__}: {error}", good=False))
    return found


def _python() -> Iterator[tuple[str, bool]]:
    yield f"{platform.python_version()} at {sys.executable}", sys.version_info >= (3, 11)


def _torch() -> Iterator[tuple[str, bool]]:
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    yield f"{torch.__version__}, {gpu}", True


def _cores() -> Iterator[tuple[str, bool]]:
    from fathometer.execution.local import available_cores

    yield f"{len(available_cores())} usable: as many workers by default", True


def _memory() -> Iterator[tuple[str, bool]]:
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        gigabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
        yield f"{gigabytes:.1f} GiB", gigabytes >= 2
    else:
        yield "not known on this system", True


def _disk() -> Iterator[tuple[str, bool]]:
    gigabytes = shutil.disk_usage(Path.cwd()).free / 2**30
    yield f"{gigabytes:.1f} GiB free in {Path.cwd()}", gigabytes >= 1


def _charts() -> Iterator[tuple[str, bool]]:
    import vl_convert

    chart = {"data": {"values": [{"x": 1}]}, "mark": "point", "encoding": {"x": {"field": "x", "type": "quantitative"}}}
    svg = vl_convert.vegalite_to_svg(chart)
    yield f"a chart drawn in {len(svg)} bytes of SVG", svg.startswith("<svg")


def _same_twice() -> Iterator[tuple[str, bool]]:
    from fathometer.core.recipe import Recipe
    from fathometer.core.spec import named
    from fathometer.core.trial import Trial
    from fathometer.training.loop import run

    trial = Trial(
        task=named("task", "copying", lengths=(3,)),
        model=named("model", "transformer", depth=1, width=16, heads=2),
        recipe=Recipe(steps=10, batch=8),
    )
    same = run(trial).outcome == run(trial).outcome
    yield f"10 steps trained twice {'are equal' if same else 'DIFFER'}", same


CHECKS: dict[str, Callable[[], Iterator[tuple[str, bool]]]] = {
    "python": _python,
    "torch": _torch,
    "cores": _cores,
    "memory": _memory,
    "disk": _disk,
    "charts": _charts,
    "same bits twice": _same_twice,
}
