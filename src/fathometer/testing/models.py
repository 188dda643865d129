"""What every model promises, checked on networks with random weights."""

import numpy as np
import torch
from torch import Tensor, nn

from fathometer.core.interface import Interface, Tokens
from fathometer.core.model import Model
from fathometer.core.spec import decode, encode
from fathometer.evaluation.answers import outputs


def check_model(model: Model, interface: Interface, batch: int = 3) -> None:
    """Raises AssertionError with the promise that ``model`` breaks on this interface.

    Checked: JSON round trip; weights from torch's default generator alone; output shape; examples that do not mix; no
    look ahead where the interface forbids it; partial outputs equal to the slice; every parameter reached by the
    gradient; the stated number of parameters.
    """
    again = decode("model", encode(model))
    assert again == model and again.key == model.key, f"{model!r} does not survive its JSON form"
    assert (reason := model.refusal(interface)) is None, f"the model refuses this interface: {reason}"
    network = _build(model, interface)
    for (name, one), two in zip(
        network.state_dict().items(), _build(model, interface).state_dict().values(), strict=True
    ):
        assert torch.equal(one, two), f"{name} differs between two networks built from one seed"
    network.eval()
    x = _inputs(interface, batch)
    with torch.no_grad():
        y = outputs(network, model, x)
        assert y.shape == (batch, interface.length, interface.outputs.channels), f"outputs have shape {tuple(y.shape)}"
        alone = outputs(network, model, x[1:2])
        assert torch.allclose(y[1:2], alone, atol=1e-9), "an example's output depends on the others in its batch"
        if interface.causal:
            _check_causal(network, model, interface, x, y)
        if model.partial_outputs:
            first = interface.length // 2
            part = outputs(network, model, x, first)
            assert torch.allclose(part, y[:, first:], atol=1e-9), "partial outputs differ from the slice of all outputs"
    _check_gradients(network, model, x)
    counted = sum(parameter.numel() for parameter in network.parameters())
    stated = model.size(interface).parameters
    assert counted == stated, f"size() states {stated} parameters, the network has {counted}"


def _build(model: Model, interface: Interface) -> nn.Module:
    torch.manual_seed(0)
    return model.build(interface).double()


def _inputs(interface: Interface, batch: int) -> Tensor:
    rng = np.random.default_rng(0)
    if isinstance(interface.inputs, Tokens):
        return torch.from_numpy(rng.integers(interface.inputs.vocab, size=(batch, interface.length)))
    return torch.from_numpy(rng.normal(size=(batch, interface.length, interface.inputs.dim)))


def _check_causal(network: nn.Module, model: Model, interface: Interface, x: Tensor, y: Tensor) -> None:
    for time in {interface.length // 2, interface.length - 1}:
        changed = x.clone()
        changed[:, time] += 1
        if isinstance(interface.inputs, Tokens):
            changed[:, time] %= interface.inputs.vocab
        late = (outputs(network, model, changed)[:, :time] - y[:, :time]).abs()
        assert not late.numel() or late.max() < 1e-9, f"outputs before position {time} change with the input there"


def _check_gradients(network: nn.Module, model: Model, x: Tensor) -> None:
    outputs(network, model, x).square().sum().backward()
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, f"no gradient reaches {name}"
            assert torch.isfinite(parameter.grad).all(), f"the gradient of {name} is not finite"
