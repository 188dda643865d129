"""Checkpoints: a trial in mid-training as one file, written whole, resumed bit for bit."""

import json
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from fathometer.core.files import write_whole


@dataclass
class Progress:
    """How far a trial has come, at a validation: steps done and the curve up to here."""

    step: int = 0
    curve: dict[str, list[float]] = field(default_factory=dict)


class Checkpoint:
    """One trial's checkpoint file, written at most every so many seconds and for at most a share of the time."""

    def __init__(self, path: Path, every: float = 10.0, share: float = 0.05) -> None:
        self.path, self.every, self.share = path, every, share
        self._written = time.monotonic()

    def due(self) -> bool:
        """Whether enough time has passed since the last write."""
        return time.monotonic() - self._written >= self.every

    def save(self, network: nn.Module, optimiser: torch.optim.Optimizer, progress: Progress) -> None:
        """Replaces the file."""
        started = time.monotonic()
        tensors = {
            f"network/{name}": value.detach().contiguous().clone() for name, value in network.state_dict().items()
        }
        for index, state in optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser/{index}/{name}": value.detach().clone() for name, value in state.items()}
        with suppress(OSError):  # training goes on; a folder that takes no more says so at the record
            write_whole(self.path, save(tensors, {"progress": json.dumps(asdict(progress))}))
        self._written = time.monotonic()
        self.every = max(self.every, (self._written - started) / self.share)

    def load(self, network: nn.Module, optimiser: torch.optim.Optimizer) -> Progress | None:
        """Puts network and optimiser back; None, with both untouched, when there is no whole file."""
        try:
            with safe_open(self.path, framework="pt") as file:
                progress = Progress(**json.loads((file.metadata() or {})["progress"]))
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (FileNotFoundError, SafetensorError, KeyError, ValueError, TypeError):
            return None
        state: dict[int, dict[str, Tensor]] = {}
        weights: dict[str, Any] = {}
        for name, value in tensors.items():
            part, _, rest = name.partition("/")
            if part == "network":
                weights[rest] = value
            else:
                index, _, what = rest.partition("/")
                state.setdefault(int(index), {})[what] = value
        network.load_state_dict(weights)
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
        return progress

    def discard(self) -> None:
        """Removes the file once its trial has ended."""
        self.path.unlink(missing_ok=True)
