"""The transformer against other implementations; causality, partial outputs, size and errors."""

from collections.abc import Callable, Iterator
from functools import partial
from math import cos, sin, sqrt
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.t5.modeling_t5 import T5Attention

from fathometer.core.interface import Interface, Tokens, Vectors
from fathometer.core.model import Size
from fathometer.core.spec import SpecError
from fathometer.evaluation.numerics import steady
from fathometer.models import transformer
from fathometer.models.transformer import Attention, PositionKind, Positions, Transformer, TransformerNetwork

KINDS = get_args(PositionKind)
NORMS = ("pre", "post", "none")
LENGTH = 9
TOKENS = Interface(inputs=Tokens(vocab=7), outputs=Tokens(vocab=7), length=LENGTH, causal=True)
VECTORS = Interface(inputs=Vectors(dim=3), outputs=Vectors(dim=2), length=LENGTH, causal=False)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that compete for cores make networks this small fifty times slower."""
    with steady():
        yield


def randomise(network: nn.Module, std: float = 0.4) -> None:
    """Normal values in every parameter, so that no bias, gain or table is at its harmless initial value."""
    torch.manual_seed(1)
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=std)


def random_network(spec: Transformer, interface: Interface = TOKENS) -> TransformerNetwork:
    network = spec.build(interface).double().eval()
    randomise(network)
    return network


def random_tokens(batch: int = 3, time: int = LENGTH, vocab: int = 7) -> Tensor:
    return torch.randint(vocab, (batch, time), generator=torch.Generator().manual_seed(2))


def bias_of(spec: Transformer, time: int) -> tuple[TransformerNetwork, Tensor]:
    """A network and the bias that its attention is given."""
    network, seen = random_network(spec.with_(depth=1)), []
    network.blocks[0].attention.register_forward_pre_hook(lambda module, given: seen.append(given[1]))
    network(random_tokens(1, time))
    return network, seen[0]


def from_gpt2(theirs: GPT2LMHeadModel) -> dict[str, Tensor]:
    """The weights under our names; their Conv1D keeps its matrices transposed."""
    names = {
        "ln_1": "attention_norm", "attn.c_attn": "attention.qkv", "attn.c_proj": "attention.out",
        "ln_2": "feedforward_norm", "mlp.c_fc": "feedforward.0", "mlp.c_proj": "feedforward.2",
    }  # fmt: skip
    state = theirs.state_dict()
    weights = {"embed.weight": state["transformer.wte.weight"], "positions.weight": state["transformer.wpe.weight"]}
    weights |= {"head.weight": state["lm_head.weight"]}
    for part in ("weight", "bias"):
        weights[f"norm.{part}"] = state[f"transformer.ln_f.{part}"]
        for layer in range(theirs.config.n_layer):
            for their_name, our_name in names.items():
                value = state[f"transformer.h.{layer}.{their_name}.{part}"]
                weights[f"blocks.{layer}.{our_name}.{part}"] = value.T if value.dim() == 2 else value
    return weights


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_with_weights_copied_over_it_is_hugging_faces_gpt2(dtype: torch.dtype, tolerance: float) -> None:
    config = GPT2Config(
        vocab_size=11, n_positions=16, n_embd=24, n_layer=3, n_head=4, activation_function="gelu_new",
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    theirs = GPT2LMHeadModel(config).to(dtype).eval()
    randomise(theirs, std=0.3)
    interface = Interface(inputs=Tokens(vocab=11), outputs=Tokens(vocab=11), length=16, causal=True)
    ours = Transformer(depth=3, width=24, heads=4, tied=True).build(interface).to(dtype).eval()
    ours.load_state_dict(from_gpt2(theirs))
    x = random_tokens(4, 16, vocab=11)
    expected = theirs(x).logits
    assert expected.std() > 0.5
    torch.testing.assert_close(ours(x), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_with_weights_copied_over_it_is_torchs_encoder(norm: str, causal: bool) -> None:
    width = 12
    layer = nn.TransformerEncoderLayer(
        width, nhead=3, dim_feedforward=2 * width, dropout=0.0, batch_first=True, norm_first=norm == "pre",
        activation=partial(nn.functional.gelu, approximate="tanh"), dtype=torch.float64,
    )  # fmt: skip
    last = nn.LayerNorm(width, dtype=torch.float64) if norm == "pre" else None
    theirs = nn.TransformerEncoder(layer, 3, norm=last, enable_nested_tensor=False).eval()
    randomise(theirs)
    weights = {"embed.weight": torch.eye(width), "embed.bias": torch.zeros(width), "head.weight": torch.eye(width)}
    names = {
        "self_attn.in_proj_": "attention.qkv.", "self_attn.out_proj.": "attention.out.", "linear1.": "feedforward.0.",
        "linear2.": "feedforward.2.", "norm1.": "attention_norm.", "norm2.": "feedforward_norm.", "layers.": "blocks.",
    }  # fmt: skip
    for name, value in theirs.state_dict().items():
        for their_name, our_name in names.items():
            name = name.replace(their_name, our_name)
        weights[name] = value
    sides = Vectors(dim=width)
    interface = Interface(inputs=sides, outputs=sides, length=8, causal=causal)
    spec = Transformer(depth=3, width=width, heads=3, feedforward=2, norm=norm, positions="none", causal=causal)
    ours = spec.build(interface).double().eval()
    ours.load_state_dict(weights)
    x = torch.randn(5, 8, width, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    mask = nn.Transformer.generate_square_subsequent_mask(8, dtype=torch.float64) if causal else None
    torch.testing.assert_close(ours(x), theirs(x, mask=mask), rtol=0, atol=1e-10)


def attend(q: Tensor, k: Tensor, bias: Tensor | float) -> Tensor:
    """The causal attention map, formed step by step."""
    future = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).triu(1)
    return (q @ k.mT / sqrt(q.shape[3]) + bias).masked_fill(future, float("-inf")).softmax(dim=3)


def queries_and_keys(attention: Attention, x: Tensor) -> tuple[Tensor, Tensor]:
    q, k, _ = attention.qkv(x).view(*x.shape[:2], 3, attention.heads, -1).permute(2, 0, 3, 1, 4)
    return q, k


def test_rope_turns_queries_and_keys_as_llama_does() -> None:
    heads, head_width, time = 2, 6, 20
    attention = Attention(Transformer(width=heads * head_width, heads=heads, positions="rope")).double()
    randomise(attention)
    x = torch.randn(2, time, heads * head_width, dtype=torch.float64)
    frequencies = 10_000 ** -(torch.arange(0, head_width, 2, dtype=torch.float64) / head_width)
    angles = (torch.arange(time)[:, None] * frequencies).repeat(1, 2)[None]
    llama = LlamaRotaryEmbedding(LlamaConfig(hidden_size=heads * head_width, num_attention_heads=heads))
    for found, expected in zip((angles.cos(), angles.sin()), llama(x, torch.arange(time)[None]), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    turned = apply_rotary_pos_emb(*queries_and_keys(attention, x), angles.cos(), angles.sin())
    torch.testing.assert_close(attention.weights(x, None), attend(*turned, 0.0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["alibi", "t5"])
def test_a_bias_is_added_to_the_scores_of_its_head(kind: PositionKind) -> None:
    network, bias = bias_of(Transformer(width=6, heads=3, positions=kind), LENGTH)
    attention, x = network.blocks[0].attention, torch.randn(2, LENGTH, 6, dtype=torch.float64)
    expected = attend(*queries_and_keys(attention, x), bias)
    torch.testing.assert_close(attention.weights(x, bias), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("heads", [*range(1, 18), 24, 32])
def test_alibi_slopes_are_blooms(heads: int) -> None:
    bloom = build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), heads, torch.float32)[:, 0, 1]
    torch.testing.assert_close(transformer.alibi_slopes(heads).float(), bloom, rtol=1e-6, atol=0)


@pytest.mark.parametrize("heads", [4, 6])
def test_alibi_bias_is_blooms_up_to_a_constant_a_row(heads: int) -> None:
    bloom = build_alibi_tensor(torch.ones(1, LENGTH, dtype=torch.long), heads, torch.float64)
    _, bias = bias_of(Transformer(width=2 * heads, heads=heads, positions="alibi"), LENGTH)
    difference = bias - bloom
    past = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    spread = (difference - difference.diagonal(dim1=1, dim2=2)[:, :, None]).masked_fill(~past, 0.0)
    assert spread.abs().max() < 1e-6
    assert (bias.diagonal(dim1=1, dim2=2) == 0).all()
    assert torch.equal(bias, bias.mT)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (16, 64), (8, 20), (4, 5)])
def test_t5_buckets_are_t5s(buckets: int, farthest: int, causal: bool) -> None:
    steps = torch.arange(300)
    expected = T5Attention._relative_position_bucket(steps[None, :] - steps[:, None], not causal, buckets, farthest)
    assert torch.equal(transformer.t5_buckets(300, buckets, farthest, causal), expected)


@pytest.mark.parametrize(("causal", "farthest"), [(True, 16), (True, 10), (False, 8), (False, 5)])
def test_t5_refuses_a_farthest_distance_within_the_exact_buckets(causal: bool, farthest: int) -> None:
    with pytest.raises(SpecError, match="farthest"):
        Transformer(positions=Positions(kind="t5", buckets=32, farthest=farthest), causal=causal)


@pytest.mark.parametrize("causal", [True, False])
def test_t5_bias_is_the_table_looked_up_by_bucket(causal: bool) -> None:
    positions = Positions(kind="t5", buckets=4, farthest=5)
    network, bias = bias_of(Transformer(width=6, heads=3, positions=positions, causal=causal), LENGTH)
    buckets = transformer.t5_buckets(LENGTH, 4, 5, causal)
    for head, i, j in [(0, 0, 0), (1, 8, 0), (2, 3, 7), (0, 5, 4)]:
        assert bias[head, i, j] == network.relative.weight[buckets[i, j], head]


def positions_alone(kind: PositionKind, width: int) -> TransformerNetwork:
    """A network without layers whose output is what it adds for the position."""
    interface = Interface(inputs=Vectors(dim=1), outputs=Vectors(dim=width), length=LENGTH, causal=True)
    network = Transformer(depth=0, width=width, heads=1, norm="none", positions=kind).build(interface).double()
    network.load_state_dict(network.state_dict() | {"head.weight": torch.eye(width)})
    return network


@pytest.mark.parametrize("width", [6, 5])
def test_sinusoidal_positions_are_the_formula_of_the_next_even_width(width: int) -> None:
    found = positions_alone("sinusoidal", width)(torch.zeros(1, 50, 1, dtype=torch.float64))[0]
    angles = [[t / 10_000 ** (2 * (i // 2) / 6) for i in range(width)] for t in range(50)]
    expected = [[cos(angle) if i % 2 else sin(angle) for i, angle in enumerate(row)] for row in angles]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_later_inputs_change_earlier_outputs_exactly_when_not_causal(kind: PositionKind, norm: str) -> None:
    x, changed = random_tokens(), random_tokens()
    changed[:, 4:] = (changed[:, 4:] + 1) % 7
    for causal in (True, False):
        spec = Transformer(width=8, heads=2, feedforward=2, norm=norm, positions=kind, causal=causal)
        network = random_network(spec, TOKENS.with_(causal=causal))
        difference = (network(x) - network(changed)).abs().amax(dim=2)
        assert (difference[:, 4:] > 1e-6).all()
        assert (difference[:, :4] < 1e-12).all() if causal else (difference[:, :4] > 1e-6).all()


@pytest.mark.parametrize("kind", KINDS)
def test_order_is_seen_exactly_when_there_are_positions(kind: PositionKind) -> None:
    network = random_network(Transformer(width=8, heads=2, positions=kind, causal=False), TOKENS.with_(causal=False))
    x, shuffle = random_tokens(), torch.tensor([3, 1, 8, 0, 2, 7, 5, 6, 4])
    difference = (network(x)[:, shuffle] - network(x[:, shuffle])).abs().max()
    assert difference < 1e-12 if kind == "none" else difference > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_examples_of_a_batch_do_not_see_each_other(kind: PositionKind) -> None:
    network, x = random_network(Transformer(width=8, heads=2, positions=kind)), random_tokens(5)
    one_by_one = torch.cat([network(row[None]) for row in x])
    torch.testing.assert_close(network(x), one_by_one, rtol=0, atol=1e-12)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_first_gives_a_slice_of_all_outputs_with_its_gradients(kind: PositionKind, norm: str, depth: int) -> None:
    x = random_tokens()
    for causal, feedforward in ((True, 2), (False, 0)):
        spec = Transformer(depth=depth, width=8, heads=2, feedforward=feedforward, norm=norm, positions=kind)
        network = random_network(spec.with_(causal=causal), TOKENS.with_(causal=causal))
        parameters = list(network.parameters())
        for first in (0, 1, 5, LENGTH - 1):
            full, part = network(x)[:, first:], network(x, first=first)
            assert full.abs().max() > 0.1
            torch.testing.assert_close(part, full, rtol=0, atol=1e-12)
            slopes = [torch.autograd.grad(y.sin().sum(), parameters, materialize_grads=True) for y in (part, full)]
            torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-10)


def test_dropout_acts_in_training_only() -> None:
    spec = Transformer(width=8, heads=2, dropout=0.5)
    network, x = random_network(spec), random_tokens()
    without = random_network(spec.with_(dropout=0.0))
    assert torch.equal(network(x), without(x))
    network.train()
    assert not torch.equal(network(x), network(x))


def test_building_is_deterministic_given_the_seed() -> None:
    states = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        states.append(Transformer(positions="t5").build(TOKENS).state_dict())
    one, same, other = states
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["embed.weight"], other["embed.weight"])


def test_fresh_weights_are_spread_as_in_gpt2() -> None:
    torch.manual_seed(0)
    network = Transformer(depth=3, width=96).build(TOKENS.with_(inputs=Tokens(vocab=100), length=100))
    for name, parameter in network.named_parameters():
        if parameter.dim() == 1:
            assert (parameter == (0.0 if name.endswith("bias") else 1.0)).all()
        else:
            to_residual = name.endswith(("attention.out.weight", "feedforward.2.weight"))
            expected = 0.02 / sqrt(6) if to_residual else 0.02
            assert parameter.std().item() == pytest.approx(expected, rel=0.1 if "head" in name else 0.05), name


@st.composite
def specs(draw: Callable) -> tuple[Transformer, Interface]:
    """A network of any form and an interface that it takes."""
    heads, tied = draw(st.integers(1, 3)), draw(st.booleans())
    sides = st.one_of(st.builds(Tokens, vocab=st.integers(2, 9)), st.builds(Vectors, dim=st.integers(1, 5)))
    inputs = draw(st.builds(Tokens, vocab=st.integers(2, 9)) if tied else sides)
    length, causal = draw(st.integers(1, 12)), draw(st.booleans())
    longest, buckets = draw(st.none() | st.integers(length, length + 5)), draw(st.sampled_from([4, 8, 32]))
    positions = Positions(kind=draw(st.sampled_from(KINDS)), longest=longest, buckets=buckets)
    spec = Transformer(
        depth=draw(st.integers(0, 3)), width=heads * draw(st.sampled_from([2, 4])), heads=heads,
        feedforward=draw(st.integers(0, 4)), norm=draw(st.sampled_from(NORMS)), positions=positions,
        causal=causal or draw(st.booleans()), tied=tied,
    )  # fmt: skip
    return spec, Interface(inputs=inputs, outputs=inputs if tied else draw(sides), length=length, causal=causal)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(specs())
def test_size_counts_the_parameters_that_are_built(drawn: tuple[Transformer, Interface]) -> None:
    spec, interface = drawn
    assert spec.refusal(interface) is None
    built = sum(parameter.numel() for parameter in spec.build(interface).parameters())
    assert spec.size(interface).parameters == built


def test_size_is_what_a_hand_count_gives() -> None:
    causal = Transformer(depth=2, width=8, heads=2, feedforward=4)
    interface = Interface(inputs=Tokens(vocab=12), outputs=Tokens(vocab=12), length=20, causal=True)
    # multiply-adds a layer: queries, keys, values 192, output 64, feed-forward 256 + 256; half of 20 keys twice 8 each
    assert causal.size(interface) == Size(
        parameters=96 + 160 + 2 * (16 + 216 + 72 + 16 + 288 + 264) + 16 + 96,
        state=2 * 2 * 8 * 20,
        flops=2 * (2 * (192 + 64 + 512) + 8 * 12) + 2 * (2 * 10 * (8 + 8)),
    )
    both_ways = Transformer(depth=1, width=4, heads=1, feedforward=0, norm="none", positions="none", causal=False)
    interface = Interface(inputs=Vectors(dim=3), outputs=Vectors(dim=2), length=6, causal=False)
    # in 3 x 4, queries, keys, values 48, output 16, out 4 x 2; all 6 keys
    assert both_ways.size(interface) == Size(
        parameters=16 + 60 + 20 + 8, state=2 * 4 * 6, flops=2 * (12 + 48 + 16 + 8) + 2 * 6 * (4 + 4)
    )


@pytest.mark.parametrize("interface", [TOKENS, VECTORS])
@pytest.mark.parametrize("feedforward", [0, 3])
def test_dense_flops_are_those_that_torch_counts(interface: Interface, feedforward: int) -> None:
    spec = Transformer(depth=2, width=8, heads=2, feedforward=feedforward, causal=interface.causal)
    vectors = torch.zeros(1, LENGTH, 3)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        spec.build(interface)(vectors if interface is VECTORS else random_tokens(1))
    counted = counter.get_flop_counts()["Global"]
    dense = sum(counted.get(op, 0) for op in (torch.ops.aten.addmm, torch.ops.aten.mm))
    keys = LENGTH / 2 if interface.causal else LENGTH
    assert spec.size(interface).flops == dense / LENGTH + 2 * 2 * (2 * keys * 8)


def test_a_kind_alone_stands_for_its_positions() -> None:
    short, long = Transformer(positions="rope"), Transformer(positions=Positions(kind="rope"))
    assert short == long
    assert short.key == long.key
    assert Transformer().with_(positions="rope") == long
    assert Transformer(positions="learned").key == Transformer().key


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"width": 12, "heads": 5}, r"heads = 5 does not divide width = 12: take heads from 1, 2, 3, 4, 6, 12, or"),
        ({"width": 6, "heads": 2, "positions": "rope"}, r"rope turns pairs of numbers, and width / heads = 3 is odd"),
        ({"positions": "rotary"}, r"kind = 'rotary': input should be .*'rope'"),
    ],
)
def test_fields_that_do_not_fit_each_other_are_refused_with_the_fix(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Transformer(**fields)


LOOKS_AHEAD = "causal = False lets the network see inputs that hold its own targets"
TOO_SHORT = "positions.longest = 5 is shorter than the task's longest sequence of 9"


@pytest.mark.parametrize(
    ("spec", "interface", "reason"),
    [
        (Transformer(positions=Positions(longest=5)), TOKENS, TOO_SHORT),
        (Transformer(positions=Positions(longest=LENGTH)), TOKENS, None),
        (Transformer(positions=Positions(kind="rope", longest=5)), TOKENS, None),
        (Transformer(causal=False), TOKENS, LOOKS_AHEAD),
        (Transformer(causal=False), VECTORS, None),
        (Transformer(tied=True), VECTORS.with_(outputs=Vectors(dim=3)), "tied = True needs tokens"),
        (Transformer(tied=True), VECTORS, "tied = True needs equal inputs and outputs"),
        (Transformer(tied=True), TOKENS.with_(outputs=Tokens(vocab=8)), "tied = True needs equal inputs and outputs"),
        (Transformer(tied=True), TOKENS, None),
    ],
)
def test_interfaces_that_do_not_fit_are_refused(spec: Transformer, interface: Interface, reason: str | None) -> None:
    refusal = spec.refusal(interface)
    assert refusal is None if reason is None else reason in (refusal or "")


@pytest.mark.parametrize("kind", KINDS)
def test_only_learned_positions_end(kind: PositionKind) -> None:
    network = random_network(Transformer(width=8, heads=2, positions=kind))
    if kind == "learned":
        with pytest.raises(ValueError, match=r"learned positions for 9 tokens and was given 10: set positions.longest"):
            network(random_tokens(1, LENGTH + 1))
    else:
        assert network(random_tokens(1, LENGTH + 1)).isfinite().all()
