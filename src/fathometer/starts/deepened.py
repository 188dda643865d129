"""Deepened: a trained transformer with more layers that do nothing, so that it computes what it did before.

It shows that whatever a depth can express, a greater depth can: a layer that writes nothing to the residual stream
leaves it as it is. Nothing follows for what training finds.
"""

from collections.abc import Mapping

from fathometer.core.interface import Array, Interface
from fathometer.core.model import Model
from fathometer.core.trial import Start, Trial
from fathometer.models.transformer import Transformer

WRITERS = ("attention.out.weight", "attention.out.bias", "feedforward.2.weight", "feedforward.2.bias")
"""What a block writes to the residual stream with."""


class Deepened(Start):
    """The weights that ``trial`` ended with, under further layers whose writing weights are zero."""

    trial: Trial

    def source(self) -> Trial:
        return self.trial

    def refusal(self, model: Model) -> str | None:
        shallow = self.trial.model
        if not (isinstance(model, Transformer) and isinstance(shallow, Transformer)):
            return f"deepened knows the layers of transformers alone, not {model!r} on {shallow!r}: take transformers"
        if model.with_(depth=shallow.depth) != shallow or model.depth < shallow.depth:
            return f"deepened adds layers and changes nothing else, and {model!r} does not so extend {shallow!r}"
        if model.norm == "post":
            return "a post-norm layer that writes nothing still normalises: deepened needs norm = pre or none"
        return None

    def weights(self, model: Model, interface: Interface, trained: Mapping[str, Array]) -> Mapping[str, Array]:
        fresh = model.build(interface).state_dict()
        given = {name: array.detach().numpy() for name, array in fresh.items()}
        idle = {name: array * 0 for name, array in given.items() if name.endswith(WRITERS)}
        return {**given, **idle, **trained}
