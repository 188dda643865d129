"""Records: readable without the code, and never trusted when damaged."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathometer.core.record import SCHEMA, Record, RecordError, from_json

ROW = {"split": "test", "stratum": "all", "metric": "token_accuracy", "value": 0.5, "n": 10}
RECORD = Record("0" * 24, "trial", 0, "done", {"seed": 0}, {"scores": [ROW]}, {"seconds": 1.0})


def test_a_record_survives_its_file_and_fits_its_schema() -> None:
    text = RECORD.to_json()
    assert from_json(text) == RECORD
    jsonschema.validate(json.loads(text), SCHEMA)


def test_provenance_is_not_part_of_the_digest() -> None:
    other = Record(**{**RECORD.__dict__, "provenance": {"seconds": 2.0}})
    assert other.digest() == RECORD.digest()
    assert Record(**{**RECORD.__dict__, "attempt": 1}).digest() != RECORD.digest()


@given(st.integers(0, len(RECORD.to_json()) - 2))
def test_every_truncation_is_noticed(cut: int) -> None:
    with pytest.raises(RecordError):
        from_json(RECORD.to_json()[:cut])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outcome": {"scores": [ROW | {"value": 0.9}]}}, "edited or damaged"),
        ({"status": "fine"}, "'status' is 'fine', not one of done, diverged, failed"),
        ({"kind": "dream"}, "'kind' is 'dream'"),
        ({"attempt": "1"}, "'attempt' is str, not int"),
        ({"version": 2}, "newer Fathometer"),
        ({"extra": 1}, "lacks or adds extra"),
    ],
)
def test_hand_edits_are_noticed_and_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        from_json(json.dumps(json.loads(RECORD.to_json()) | change))


@given(st.text() | st.binary().map(lambda b: b.decode("latin1")))
def test_any_text_gives_a_record_or_a_clear_error(text: str) -> None:
    with pytest.raises(RecordError, match="it "):
        from_json(text)
