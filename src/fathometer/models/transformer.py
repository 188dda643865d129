"""Transformer: attention heads and feed-forward layers on a residual stream.

With pre-norm, learned positions and a feed-forward multiple of 4 it is GPT-2, to the last digit that weights copied
over can show. Heads mix positions and nothing else does, so depth here counts rounds of looking things up.

Shapes: B batch, T time, S asked-for positions (the last S of T), D width, H heads, K head width, V outputs.
"""

from math import log
from typing import Literal, Self, cast

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from fathometer.core.interface import Interface, Tokens
from fathometer.core.model import Model, Size
from fathometer.core.spec import Spec

PositionKind = Literal["none", "learned", "sinusoidal", "rope", "alibi", "t5"]


class Positions(Spec):
    """How the network knows where a token stands.

    ``longest`` is the size of a learned table, None for the longest the task asks for. ``buckets`` and ``farthest``
    belong to the T5 relative bias.
    """

    kind: PositionKind = "learned"
    longest: int | None = Field(default=None, ge=1)
    buckets: int = Field(default=32, ge=4)
    farthest: int = Field(default=128, ge=5)


class Transformer(Model):
    """Blocks of multi-head attention and feed-forward layers. ``feedforward`` 0 leaves attention alone."""

    partial_outputs = True

    depth: int = Field(default=2, ge=0)
    width: int = Field(default=64, ge=1)
    heads: int = Field(default=4, ge=1)
    feedforward: int = Field(
        default=4, ge=0, description="hidden width of the feed-forward layer as a multiple of the width"
    )
    norm: Literal["pre", "post", "none"] = "pre"
    positions: Positions = Positions()
    causal: bool = True
    dropout: float = Field(default=0.0, ge=0, lt=1)
    tied: bool = Field(default=False, description="read out with the token embedding")

    @model_validator(mode="before")
    @classmethod
    def _positions_by_kind(cls, data: object) -> object:
        if isinstance(data, dict) and isinstance(data.get("positions"), str):
            return data | {"positions": {"kind": data["positions"]}}
        return data

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.width % self.heads:
            fits = [h for h in range(1, self.width + 1) if self.width % h == 0]
            raise ValueError(
                f"transformer.heads = {self.heads} does not divide width = {self.width}: "
                f"take heads from {', '.join(map(str, fits))}, or another width"
            )
        if self.positions.kind == "rope" and (self.width // self.heads) % 2:
            raise ValueError(
                f"transformer.positions = rope turns pairs of numbers, and width / heads = "
                f"{self.width // self.heads} is odd: change width or heads"
            )
        near = self.positions.buckets // (2 if self.causal else 4)
        if self.positions.kind == "t5" and self.positions.farthest <= near:
            raise ValueError(
                f"transformer.positions.farthest = {self.positions.farthest} lies within the {near} nearest distances, "
                f"which have a bucket each: raise it, or lower positions.buckets"
            )
        return self

    def refusal(self, interface: Interface) -> str | None:
        longest = self.positions.longest
        if self.positions.kind == "learned" and longest is not None and longest < interface.length:
            return (
                f"transformer.positions.longest = {longest} is shorter than the task's longest sequence of "
                f"{interface.length}: raise it, or leave it out to fit the task"
            )
        if interface.causal and not self.causal:
            return (
                "transformer.causal = False lets the network see inputs that hold its own targets on this task: "
                "set causal = True"
            )
        if self.tied and interface.inputs != interface.outputs:
            return (
                f"transformer.tied = True needs equal inputs and outputs, and this task has {interface.inputs!r} and "
                f"{interface.outputs!r}: set tied = False"
            )
        if self.tied and not isinstance(interface.inputs, Tokens):
            return "transformer.tied = True needs tokens, and this task gives vectors: set tied = False"
        return None

    def build(self, interface: Interface) -> "TransformerNetwork":
        return TransformerNetwork(self, interface)

    def size(self, interface: Interface) -> Size:
        d, length, outputs = self.width, interface.length, interface.outputs.channels
        tokens_in = isinstance(interface.inputs, Tokens)
        embedding = interface.inputs.channels * d + (0 if tokens_in else d)
        positions = {
            "learned": (self.positions.longest or length) * d,
            "t5": self.positions.buckets * self.heads,
        }.get(self.positions.kind, 0)
        hidden = self.feedforward * d
        norms = (2 if hidden else 1) * (2 * d if self.norm != "none" else 0)
        layer = 4 * d * d + 4 * d + (2 * d * hidden + hidden + d if hidden else 0) + norms
        head = (0 if self.tied else outputs * d) + (2 * d if self.norm == "pre" else 0)
        dense = self.depth * (4 * d * d + 2 * d * hidden) + outputs * d + (0 if tokens_in else embedding - d)
        keys_seen = length / 2 if self.causal else length
        return Size(
            parameters=embedding + positions + self.depth * layer + head,
            state=2 * self.depth * d * length,
            flops=2.0 * dense + 4.0 * self.depth * d * keys_seen,
        )


class Heads(nn.Module):
    """The output of each head before the heads are mixed. Does nothing: a place for probes to look and to gate."""

    def forward(self, z_BSHK: Tensor) -> Tensor:
        return z_BSHK


class Attention(nn.Module):
    """Multi-head attention of the last S positions over all T."""

    def __init__(self, spec: Transformer) -> None:
        super().__init__()
        self.heads, self.causal, self.dropout = spec.heads, spec.causal, spec.dropout
        self.kind = spec.positions.kind
        self.qkv = nn.Linear(spec.width, 3 * spec.width)
        self.by_head = Heads()
        self.out = nn.Linear(spec.width, spec.width)

    def forward(self, x_BTD: Tensor, bias_HTT: Tensor | None, first: int = 0) -> Tensor:
        q_BHSK, k_BHTK, v_BHTK = self._project(x_BTD, first)
        plain = bias_HTT is None and first == 0
        z_BHSK = F.scaled_dot_product_attention(
            q_BHSK,
            k_BHTK,
            v_BHTK,
            attn_mask=None if plain else self._mask(bias_HTT, first, x_BTD),
            is_causal=plain and self.causal,
            dropout_p=self.dropout if self.training else 0.0,
        )
        return self.out(self.by_head(z_BHSK.transpose(1, 2)).flatten(2))

    def weights(self, x_BTD: Tensor, bias_HTT: Tensor | None) -> Tensor:
        """The attention map of every head, ``(B, H, T, T)``: what `forward` uses without ever forming it."""
        q_BHTK, k_BHTK, _ = self._project(x_BTD, 0)
        scores = q_BHTK @ k_BHTK.transpose(2, 3) / q_BHTK.shape[3] ** 0.5
        mask = self._mask(bias_HTT, 0, x_BTD)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
        return scores.softmax(dim=3)

    def _project(self, x_BTD: Tensor, first: int) -> tuple[Tensor, Tensor, Tensor]:
        batch, time, width = x_BTD.shape
        shape = (batch, -1, self.heads, width // self.heads)
        if first == 0:
            q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(x_BTD).chunk(3, dim=2))
        else:
            weight, bias = self.qkv.weight, self.qkv.bias
            q = F.linear(x_BTD[:, first:], weight[:width], bias[:width]).view(shape).transpose(1, 2)
            both = F.linear(x_BTD, weight[width:], bias[width:]).chunk(2, dim=2)
            k, v = (part.view(shape).transpose(1, 2) for part in both)
        if self.kind == "rope":
            angles = _angles(time, width // self.heads, x_BTD)
            q, k = _rotate(q, angles[first:]), _rotate(k, angles)
        return q, k, v

    def _mask(self, bias_HTT: Tensor | None, first: int, like: Tensor) -> Tensor | None:
        time = like.shape[1]
        past = torch.ones(time, time, dtype=torch.bool, device=like.device).tril() if self.causal else None
        if bias_HTT is None:
            return None if past is None else past[first:]
        biased = bias_HTT if past is None else bias_HTT.masked_fill(~past, float("-inf"))
        return biased[:, first:]


class Block(nn.Module):
    """Attention and feed-forward, each with its residual."""

    def __init__(self, spec: Transformer) -> None:
        super().__init__()
        hidden = spec.feedforward * spec.width
        self.norm = spec.norm
        self.attention = Attention(spec)
        self.attention_norm = _norm(spec)
        self.feedforward = (
            nn.Sequential(nn.Linear(spec.width, hidden), nn.GELU(approximate="tanh"), nn.Linear(hidden, spec.width))
            if hidden
            else None
        )
        self.feedforward_norm = _norm(spec) if hidden else None
        self.dropout = nn.Dropout(spec.dropout)

    def forward(self, x_BTD: Tensor, bias_HTT: Tensor | None, first: int = 0) -> Tensor:
        x_BSD = x_BTD[:, first:]
        normed = self.attention_norm(x_BTD) if self.norm == "pre" else x_BTD
        x_BSD = x_BSD + self.dropout(self.attention(normed, bias_HTT, first))
        if self.norm == "post":
            x_BSD = self.attention_norm(x_BSD)
        if self.feedforward is None or self.feedforward_norm is None:
            return x_BSD
        normed = self.feedforward_norm(x_BSD) if self.norm == "pre" else x_BSD
        x_BSD = x_BSD + self.dropout(self.feedforward(normed))
        return self.feedforward_norm(x_BSD) if self.norm == "post" else x_BSD


class TransformerNetwork(nn.Module):
    """``(B, T)`` tokens or ``(B, T, dim)`` vectors to ``(B, S, V)`` outputs of the positions from ``first`` on."""

    def __init__(self, spec: Transformer, interface: Interface) -> None:
        super().__init__()
        tokens_in = isinstance(interface.inputs, Tokens)
        size_in, size_out = interface.inputs.channels, interface.outputs.channels
        self.spec = spec
        self.embed = nn.Embedding(size_in, spec.width) if tokens_in else nn.Linear(size_in, spec.width)
        longest = spec.positions.longest or interface.length
        learned, relative = spec.positions.kind == "learned", spec.positions.kind == "t5"
        self.positions = nn.Embedding(longest, spec.width) if learned else None
        self.relative = nn.Embedding(spec.positions.buckets, spec.heads) if relative else None
        self.blocks = nn.ModuleList(Block(spec) for _ in range(spec.depth))
        self.norm = _norm(spec) if spec.norm == "pre" else nn.Identity()
        self.head = nn.Linear(spec.width, size_out, bias=False)
        self.dropout = nn.Dropout(spec.dropout)
        _initialise(self)
        if spec.tied:
            self.head.weight = cast(nn.Parameter, self.embed.weight)

    def forward(self, x: Tensor, first: int = 0) -> Tensor:
        x_BTD = self.embed(x)
        time = x_BTD.shape[1]
        if self.positions is not None:
            if time > self.positions.num_embeddings:
                raise ValueError(
                    f"This transformer has learned positions for {self.positions.num_embeddings} tokens and was given "
                    f"{time}: set positions.longest, or positions that need no table (rope, alibi, t5, sinusoidal)."
                )
            x_BTD = x_BTD + self.positions.weight[:time]
        elif self.spec.positions.kind == "sinusoidal":
            x_BTD = x_BTD + _sinusoids(time, self.spec.width, x_BTD)
        x_BTD = self.dropout(x_BTD)
        bias_HTT = self._bias(time, x_BTD)
        for depth, block in enumerate(self.blocks, start=1):
            x_BTD = block(x_BTD, bias_HTT, first if depth == len(self.blocks) else 0)
        skipped = first if not len(self.blocks) else 0
        return self.head(self.norm(x_BTD[:, skipped:]))

    def _bias(self, time: int, like: Tensor) -> Tensor | None:
        if self.relative is not None:
            positions = self.spec.positions
            buckets = t5_buckets(time, positions.buckets, positions.farthest, self.spec.causal).to(like.device)
            return self.relative(buckets).permute(2, 0, 1)
        if self.spec.positions.kind == "alibi":
            steps = torch.arange(time, device=like.device)
            distance = (steps[:, None] - steps[None, :]).abs()
            return (-alibi_slopes(self.spec.heads).to(like)[:, None, None] * distance).to(like.dtype)
        return None


def alibi_slopes(heads: int) -> Tensor:
    """Press, Smith & Lewis 2022: 2^(-8/n), 2^(-16/n), ...; for n no power of two, filled from the next one."""
    power = 1 << (heads.bit_length() - 1)
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    slopes += [2 ** (-8 * (i + 1) / (2 * power)) for i in range(0, 2 * (heads - power), 2)]
    return torch.tensor(slopes, dtype=torch.float64)


def t5_buckets(time: int, buckets: int, farthest: int, causal: bool) -> Tensor:
    """Raffel et al. 2020: near distances have a bucket each, far ones share buckets that widen geometrically."""
    steps = torch.arange(time)
    offset = steps[None, :] - steps[:, None]
    base = torch.zeros_like(offset)
    if causal:
        distance = (-offset).clamp(min=0)
    else:
        buckets //= 2
        base = (offset > 0).long() * buckets
        distance = offset.abs()
    exact = buckets // 2
    far = exact + (
        torch.log(distance.clamp(min=1).float() / exact) / log(farthest / exact) * (buckets - exact)
    ).long().clamp(max=buckets - 1 - exact)
    return base + torch.where(distance < exact, distance, far)


def _angles(time: int, head_width: int, like: Tensor) -> Tensor:
    frequency = 10_000.0 ** (-torch.arange(0, head_width, 2, device=like.device).to(like.dtype) / head_width)
    return torch.arange(time, device=like.device).to(like.dtype)[:, None] * frequency


def _rotate(x_BHTK: Tensor, angles: Tensor) -> Tensor:
    """Su et al. 2021 in the half-split layout: number i turns with number i + K/2."""
    one, two = x_BHTK.chunk(2, dim=3)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=3)


def _sinusoids(time: int, width: int, like: Tensor) -> Tensor:
    angles = _angles(time, width + width % 2, like)
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, :width]


def _norm(spec: Transformer) -> nn.Module:
    return nn.Identity() if spec.norm == "none" else nn.LayerNorm(spec.width)


def _initialise(network: TransformerNetwork) -> None:
    """GPT-2's: normal with deviation 0.02, smaller by sqrt(2 depth) where a layer writes to the residual stream."""
    residual = (2 * max(1, network.spec.depth)) ** -0.5
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() == 2:
            writes = name.endswith(("out.weight", "feedforward.2.weight"))
            nn.init.normal_(parameter, std=0.02 * (residual if writes else 1.0))
