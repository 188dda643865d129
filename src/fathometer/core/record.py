"""Record: what is kept of a piece of work, readable without the code that made it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from fathometer.core.spec import digest

VERSION = 1
"""The version of the record format and of the results folder."""

Status = Literal["done", "diverged", "failed"]

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Fathometer record",
    "description": "The result of one trial, probe or limit sheet. Immutable, named by its content key.",
    "type": "object",
    "required": ["key", "kind", "attempt", "status", "spec", "outcome", "provenance", "version", "digest", "checksum"],
    "additionalProperties": False,
    "properties": {
        "key": {"type": "string", "pattern": "^[0-9a-f]{24}$", "description": "content address of spec"},
        "kind": {"enum": ["trial", "probe", "limit"]},
        "attempt": {"type": "integer", "minimum": 0, "description": "0, and one more for each asked-for retry"},
        "status": {"enum": ["done", "diverged", "failed"]},
        "spec": {"type": "object", "description": "the whole question, defaults included"},
        "outcome": {
            "type": "object",
            "description": "deterministic: equal on every run of the same spec on the same kind of machine",
            "required": ["scores"],
            "properties": {
                "scores": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["split", "stratum", "metric", "value", "n"],
                        "additionalProperties": False,
                        "properties": {
                            "split": {"type": "string"},
                            "stratum": {"type": "string", "description": "all, or name=value"},
                            "metric": {"type": "string"},
                            "value": {"type": "number"},
                            "n": {"type": "integer", "description": "positions or examples averaged over"},
                        },
                    },
                },
                "error": {"type": "string", "description": "of a failed record: the traceback"},
            },
        },
        "provenance": {"type": "object", "description": "what may differ between runs: seconds, machine, versions"},
        "version": {"const": VERSION},
        "digest": {"type": "string", "description": "SHA-256 of key, kind, attempt, status, spec and outcome"},
        "checksum": {"type": "string", "description": "SHA-256 of all of the above: a damaged file is noticed"},
    },
}
"""The JSON schema of a record, as written to disk."""


class RecordError(ValueError):
    """A record that cannot be trusted; the message says why."""


@dataclass(frozen=True)
class Record:
    """One attempt at one piece of work."""

    key: str
    kind: str
    attempt: int
    status: Status
    spec: Mapping[str, Any]
    outcome: Mapping[str, Any]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    version: int = VERSION

    def digest(self) -> str:
        """Over everything but the provenance: equal for equal results, wherever and whenever they were found."""
        return digest({name: value for name, value in asdict(self).items() if name not in ("provenance", "version")})

    def to_json(self) -> str:
        """The text of the record's file."""
        whole = asdict(self) | {"digest": self.digest()}
        return json.dumps(whole | {"checksum": digest(whole)}, indent=1, allow_nan=False) + "\n"

    @property
    def scores(self) -> list[dict[str, Any]]:
        """The rows of scores; none for a failed record."""
        return list(self.outcome.get("scores", []))


def from_json(text: str) -> Record:
    """The record in a file's text. Raises RecordError when it is truncated, edited or from a newer version."""
    try:
        data = json.loads(text, parse_constant=_refuse)
    except (json.JSONDecodeError, RecursionError, UnicodeError) as error:
        raise RecordError(f"it is not whole JSON ({error})") from None
    if not isinstance(data, dict):
        raise RecordError(f"it holds {type(data).__name__}, not an object")
    if isinstance(data.get("version"), int) and data["version"] > VERSION:
        raise RecordError(f"it was written by a newer Fathometer (record version {data['version']}, known {VERSION})")
    properties = SCHEMA["properties"]
    if set(data) != set(properties):
        odd = sorted(set(data) ^ set(properties))
        raise RecordError(f"it lacks or adds {', '.join(odd)}")
    types: dict[str, type] = {"key": str, "kind": str, "attempt": int, "status": str, "version": int}
    types |= {"digest": str, "checksum": str}
    types |= {"spec": dict, "outcome": dict, "provenance": dict}
    for name, kind in types.items():
        if not isinstance(data[name], kind) or isinstance(data[name], bool):
            raise RecordError(f"its {name!r} is {type(data[name]).__name__}, not {kind.__name__}")
    for name in ("kind", "status"):
        if data[name] not in properties[name]["enum"]:
            raise RecordError(f"its {name!r} is {data[name]!r}, not one of {', '.join(properties[name]['enum'])}")
    checksum, written = data.pop("checksum"), data["digest"]
    if digest(data) != checksum:
        raise RecordError("its checksum does not match its content: it was edited or damaged after it was written")
    record = Record(**{name: value for name, value in data.items() if name != "digest"})
    if record.digest() != written:
        raise RecordError("its digest does not match its content: it was edited or damaged after it was written")
    return record


def _refuse(constant: str) -> None:
    raise RecordError(f"it holds {constant}, which is no JSON number")
