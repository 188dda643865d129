"""Specs: strictness, keys, the JSON round trip and what errors say."""

import json
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from fathometer.core.recipe import Recipe, Schedule
from fathometer.core.spec import KEY_LENGTH, Spec, SpecError, canonical, decode, digest, encode, named
from fathometer.core.trial import Trial
from fathometer.models.transformer import Transformer
from fathometer.tasks.copying import Copying, Noise


def test_key_is_the_digest_of_what_differs_from_the_defaults() -> None:
    form = {"lengths": [5], "name": "copying", "noise": {"share": 0.2}}
    assert Copying(lengths=(5,), noise=Noise(share=0.2)).key == digest(form)[:KEY_LENGTH]


def test_a_new_field_with_a_default_orphans_no_key() -> None:
    class Before(Spec):
        depth: int = 1

    class After(Spec):
        depth: int = 1
        colour: str = "none"

    assert Before(depth=3).key == After(depth=3).key != After(depth=3, colour="red").key


def test_a_new_version_changes_the_key_and_refuses_old_forms() -> None:
    class Thing(Spec):
        version: ClassVar[int] = 2
        depth: int = 1

    class ThingBefore(Spec):
        depth: int = 1

    assert Thing().key != ThingBefore().key
    with pytest.raises(SpecError, match="written at version 1 and is now at version 2"):
        Thing(**encode(ThingBefore()))


def test_int_for_float_is_the_same_question() -> None:
    assert Noise(share=1).key == Noise(share=1.0).key


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4, unique=True),
    share=st.floats(0, 1),
    layout=st.sampled_from(["mixed", "fixed_split"]),
    depth=st.integers(0, 4),
    steps=st.integers(1, 10**6),
    seed=st.integers(0, 2**31),
)
def test_json_round_trip_keeps_value_and_key(
    lengths: list[int], share: float, layout: str, depth: int, steps: int, seed: int
) -> None:
    trial = Trial(
        task=named("task", "copying", lengths=tuple(lengths), layout=layout, noise={"share": share}),
        model=Transformer(depth=depth, positions={"kind": "rope"}),
        recipe=Recipe(steps=steps, schedule=Schedule(decay="cosine")),
        seed=seed,
    )
    for defaults in (True, False):
        again = Trial(**json.loads(json.dumps(encode(trial, defaults=defaults))))
        assert again == trial
        assert again.key == trial.key


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_canonical_text_does_not_depend_on_order(value: Any) -> None:
    text = canonical(value)
    assert canonical(json.loads(text)) == text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lenghts": (5,)}, "copying has no field 'lenghts' .* did you mean 'lengths'"),
        ({"symbols": 1}, "copying.symbols = 1: input should be greater than or equal to 2"),
        ({"symbols": "4"}, "copying.symbols = '4': takes a whole number"),
        ({"symbols": True}, "copying.symbols = True"),
        ({"noise": {"share": 1.5}}, "share = 1.5"),
        ({"noise": {"shaer": 0.1}}, "Noise has no field 'shaer' .* did you mean 'share'"),
        ({"noise": {"share": float("nan")}}, "share = nan"),
        ({"layout": "mixd"}, "layout = 'mixd': input should be 'mixed' or 'fixed_split'"),
        ({"lengths": ()}, "give at least one length"),
        ({"lengths": (5, 5)}, "each length may be named once"),
    ],
)
def test_bad_values_are_named_with_the_fix(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Copying(**fields)


def test_specs_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Copying().symbols = 3


def test_with_changes_are_validated() -> None:
    assert Copying().with_(symbols=4).symbols == 4
    with pytest.raises(SpecError, match=r"symbols = 0"):
        Copying().with_(symbols=0)


def test_decode_wants_a_name_of_the_right_kind() -> None:
    with pytest.raises(SpecError, match="needs a 'name'"):
        decode("task", {"lengths": [3]})
    with pytest.raises(LookupError, match="no task named 'transformer'"):
        decode("task", {"name": "transformer"})
    with pytest.raises(SpecError, match="is not a task"):
        decode("task", {"name": "fathometer.models.transformer:Transformer"})


def test_missing_fields_are_named() -> None:
    class Needy(Spec):
        depth: int = Field()

    with pytest.raises(SpecError, match="Needy needs a value for 'depth'"):
        Needy()


def test_impossible_pairs_are_refused_when_the_trial_is_written() -> None:
    with pytest.raises(SpecError, match=r"positions.longest = 4 is shorter"):
        Trial(task=Copying(lengths=(5,)), model=Transformer(positions={"kind": "learned", "longest": 4}))
