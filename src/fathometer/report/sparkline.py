"""Sparkline: a learning curve small enough for a table."""

from collections.abc import Sequence

WIDTH, HEIGHT = 110, 24


def sparkline(steps: Sequence[float], values: Sequence[float | None], low: float, high: float) -> str:
    """The points of an SVG polyline from the first step to the last, ``low`` at the bottom and ``high`` on top."""
    points = [(step, value) for step, value in zip(steps, values, strict=False) if value is not None]
    if not points:
        return ""
    last = max(step for step, _ in points) or 1
    span = (high - low) or 1
    shares = [(step / last, (min(max(value, low), high) - low) / span) for step, value in points]
    return " ".join(f"{1 + (WIDTH - 2) * x:.1f},{HEIGHT - 2 - (HEIGHT - 4) * y:.1f}" for x, y in shares)
