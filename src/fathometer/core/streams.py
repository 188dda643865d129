"""Streams: every random number comes from a stream named by its purpose, a seed and a task.

A stream never depends on the model or the recipe, so different models see the same data and comparisons are paired.
A stream of steps is hashed by the step, so a resumed trial needs no stored generator state.
"""

import hashlib
from typing import Literal

import numpy as np

Purpose = Literal["init", "train", "validate", "test", "instance", "dropout", "probe", "limit"]


def seed_of(purpose: Purpose, seed: int, *index: str | int) -> int:
    """63 bits that stand for this stream: what seeds a generator of another library."""
    text = "/".join(["fathometer", purpose, str(seed), *map(str, index)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def stream(purpose: Purpose, seed: int, *index: str | int) -> np.random.Generator:
    """A fresh generator at the start of this stream.

    >>> stream("test", 0, "copying").integers(10, size=4).tolist()
    [9, 2, 1, 8]
    """
    return np.random.default_rng(seed_of(purpose, seed, *index))
