"""The lens: all records of a folder as tables, for data frames and for SQL."""

import json
from collections.abc import Mapping
from typing import Any

import duckdb
import polars as pl

from fathometer.core.evidence import Evidence, flat
from fathometer.core.record import Record

TABLES = ("records", "trials", "scores", "curves", "limits", "probes")
"""What can be asked; ``key`` joins them."""


def tables(evidence: Evidence) -> dict[str, pl.DataFrame]:
    """One frame for each of `TABLES`.

    ``trials`` has a column for each setting, named like ``model.depth``; settings that are lists are JSON text.
    """
    trials = [record for record in evidence if record.kind == "trial"]
    rows: dict[str, list[dict[str, Any]]] = {
        "records": [_record_row(record) for record in evidence],
        "trials": [_trial_row(record) for record in trials],
        "scores": [
            {"key": record.key, "kind": record.kind, "trial": _trial_of(record), **row}
            for record in evidence
            for row in record.scores
        ],
        "curves": [row for record in trials for row in _curve_rows(record)],
        "limits": [
            {"key": record.key, "task": json.dumps(record.spec["task"]), **limit}
            for record in evidence.of_kind("limit")
            for limit in record.outcome.get("limits", [])
        ],
        "probes": [_probe_row(record) for record in evidence.of_kind("probe")],
    }
    return {name: pl.DataFrame(rows[name], infer_schema_length=None) for name in TABLES}


def query(evidence: Evidence, sql: str) -> pl.DataFrame:
    """The answer to a SQL question over `TABLES`. Raises ValueError with DuckDB's message when it cannot be asked."""
    connection = duckdb.connect(":memory:", config={"enable_external_access": "false"})
    try:
        for name, frame in tables(evidence).items():
            held = frame if frame.width else pl.DataFrame(schema={"key": pl.String, "trial": pl.String})
            connection.register(name, held.to_arrow())
        return connection.sql(sql).pl()
    except (duckdb.Error, AttributeError) as error:
        raise ValueError(f"DuckDB cannot answer that: {error}\nTables: {', '.join(TABLES)}.") from None
    finally:
        connection.close()


def _record_row(record: Record) -> dict[str, Any]:
    return {
        "key": record.key,
        "kind": record.kind,
        "attempt": record.attempt,
        "status": record.status,
        "digest": record.digest(),
        "seconds": record.provenance.get("seconds"),
        "reason": record.outcome.get("reason"),
        "spec": json.dumps(record.spec),
        "outcome": json.dumps(record.outcome),
        "provenance": json.dumps(record.provenance),
    }


def _trial_row(record: Record) -> dict[str, Any]:
    outcome = record.outcome
    found = {"key": record.key, "status": record.status, **_settings(record.spec)}
    for name in ("steps", "stopped", "solved_at", "parameters"):
        found[name] = outcome.get(name)
    return found | {"seconds": record.provenance.get("seconds")}


def _curve_rows(record: Record) -> list[dict[str, Any]]:
    curve: Mapping[str, list[Any]] = record.outcome.get("curve", {})
    return [
        {"key": record.key, **dict(zip(curve, values, strict=True))} for values in zip(*curve.values(), strict=True)
    ]


def _probe_row(record: Record) -> dict[str, Any]:
    return {
        "key": record.key,
        "trial": _trial_of(record),
        "probe": record.spec["probe"]["name"],
        "status": record.status,
        "outcome": json.dumps(record.outcome),
        "timing": json.dumps(record.provenance.get("timing")),
    }


def _trial_of(record: Record) -> str | None:
    return record.key if record.kind == "trial" else record.outcome.get("trial")


def _settings(form: Mapping[str, Any]) -> dict[str, Any]:
    return {
        path: json.dumps(value) if isinstance(value, list) else value
        for path, value in flat(form).items()
        if path.rsplit(".", 1)[-1] not in ("version", "path", "source")
    }
