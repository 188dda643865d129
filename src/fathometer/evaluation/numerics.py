"""Numerics: devices, precision and the settings under which equal trials give equal bits."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from fathometer.core.interface import Array

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def pick_device(wanted: str) -> str:
    """``auto`` is the GPU where there is one. Raises ValueError for a device that is not there."""
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError("There is no CUDA device on this machine: use --device cpu, or auto.")
    if wanted not in ("cpu", "cuda"):
        raise ValueError(f"There is no device {wanted!r}: use auto, cpu or cuda.")
    return wanted


@contextmanager
def steady() -> Iterator[None]:
    """One thread, deterministic kernels, no denormals, and torch's random state left as it was found."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.set_flush_denormal(True)
    try:
        with torch.random.fork_rng():
            yield
    finally:
        torch.set_flush_denormal(False)
        torch.use_deterministic_algorithms(deterministic)
        torch.set_num_threads(threads)


def tensor(array: Array, device: str, dtype: torch.dtype = torch.float32) -> Tensor:
    """The array on the device: tokens as they are, real numbers in the asked precision."""
    found = torch.from_numpy(np.ascontiguousarray(array))
    return found.to(device=device, dtype=dtype if found.is_floating_point() else None)
