"""The report: one self-contained page and its figures as files, from records alone.

It needs neither torch nor the plug-ins that made the records: a study that cannot be found here is judged by the
claims its folder carries and drawn with the standard figures.
"""

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined

from fathometer import __version__
from fathometer.core.claim import Claim, Verdict
from fathometer.core.evidence import Evidence, score
from fathometer.core.files import write_whole
from fathometer.core.metrics import METRICS
from fathometer.core.record import Record
from fathometer.core.spec import SpecError, decode
from fathometer.core.study import Figure, Study
from fathometer.figures.cells import arms_of
from fathometer.figures.standard import main_metric, standard_figures
from fathometer.figures.style import metric_name
from fathometer.report.sparkline import HEIGHT, WIDTH, sparkline
from fathometer.statistics.intervals import wilson
from fathometer.statistics.judging import judge
from fathometer.storage.folder import Folder, Problem


@dataclass(frozen=True)
class Reading:
    """A folder read for telling: its study where it can be found here, its records and what they decide."""

    folder: Folder
    study: Study | None
    evidence: Evidence
    verdicts: list[Verdict]
    wanted: list[str]

    @property
    def open_count(self) -> int:
        """How many of the wanted records are missing."""
        return sum(self.evidence.get(key) is None for key in self.wanted)


def read(folder: Folder) -> Reading:
    """Reads and judges a folder."""
    evidence = folder.evidence()
    wanted = folder.plan().get("wanted", [record.key for record in evidence])
    evidence = evidence.only(wanted)
    study = study_of(folder)
    verdicts = judge(study.claims() if study else _carried_claims(folder), evidence)
    return Reading(folder, study, evidence, verdicts, wanted)


def study_of(folder: Folder) -> Study | None:
    """The folder's study; None when its code, or that of what it names, is not installed here."""
    try:
        return decode("study", folder.manifest["study"])
    except (LookupError, SpecError, ImportError):
        return None


def write_report(folder: Folder) -> Path:
    """Writes ``report/index.html`` and ``report/figures/*``; returns the page."""
    reading = read(folder)
    figures = list(reading.study.figures(reading.evidence) if reading.study else standard_figures(reading.evidence))
    page = folder.root / "report" / "index.html"
    for drawn in figures:
        for suffix, content in drawings(drawn).items():
            write_whole(page.parent / "figures" / f"{drawn.name}.{suffix}", content)
    write_whole(page, render(reading, figures).encode())
    return page


def drawings(drawn: Figure) -> dict[str, bytes]:
    """A figure as files fit for a paper, by suffix."""
    chart = {**drawn.chart, "background": "white"}
    return {
        "svg": vl_convert.vegalite_to_svg(chart).encode(),
        "pdf": vl_convert.vegalite_to_pdf(chart),
        "png": vl_convert.vegalite_to_png(chart, scale=2.0),
    }


def render(reading: Reading, figures: Sequence[Figure]) -> str:
    """The page as text."""
    environment = Environment(
        loader=PackageLoader("fathometer.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    study, evidence = reading.folder.manifest["study"], reading.evidence
    trials = [record for record in evidence if record.kind == "trial"]
    rows = _trial_rows(reading.study, evidence, trials)
    return environment.get_template("page.html").render(
        title=study["name"],
        scale=study.get("scale", ""),
        question=reading.folder.manifest.get("question", ""),
        source=reading.folder.manifest.get("source", ""),
        command=reading.folder.manifest.get("command", ""),
        study_missing=reading.study is None,
        verdicts=reading.verdicts,
        figures=figures,
        charts=_script_json({figure.name: figure.chart for figure in figures}),
        rows=rows,
        arms=any(row["arm"] for row in rows),
        metric=metric_name(main_metric(_scored(trials))) if _scored(trials) else "score",
        failures=[record for record in evidence if record.status != "done"],
        problems=reading.folder.problems,
        limits=_limit_rows(evidence),
        provenance=_provenance(evidence),
        counts=_counts(evidence, reading),
        places={record.key: _place(record) for record in evidence},
        spark={"width": WIDTH, "height": HEIGHT},
        runtime=_runtime(),
        version=__version__,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def command_line(study: Study, to: Path) -> str:
    """The command that does, or goes on with, this run: by the study's name where that says it all."""
    if study != type(study).model_construct(scale=study.scale, seed=study.seed) or ":" in study.name:
        return shlex.join(["fathom", "run", str(to)])
    words = ["fathom", "run", study.name, "--scale", study.scale, "--to", str(to)]
    return shlex.join(words + (["--seed", str(study.seed)] if study.seed else []))


def _carried_claims(folder: Folder) -> list[Claim]:
    claims: list[Claim] = []
    for form in folder.manifest.get("claims", []):
        try:
            claims.append(decode("claim", form))
        except (LookupError, SpecError):
            folder.problems.append(Problem(folder.root, f"the claim {form.get('name')!r} is not known here"))
    return claims


@cache
def _runtime() -> str:
    """The chart runtime as one script, fit to stand inside a page."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def _script_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _place(record: Record) -> str:
    """Where a record is shown: its row on the page, else its file."""
    return f"#t-{record.key}" if record.kind == "trial" else _file(record)


def _file(record: Record) -> str:
    return f"../records/{record.key[:2]}/{record.key}.{record.attempt}.json"


def _scored(trials: Iterable[Record]) -> list[Record]:
    return [trial for trial in trials if trial.scores]


def _trial_rows(study: Study | None, evidence: Evidence, trials: Sequence[Record]) -> list[dict[str, Any]]:
    scored = _scored(trials)
    metric = main_metric(scored) if scored else ""
    places = {
        key: (arm, place, label)
        for arm, members in arms_of(trials, study).items()
        for place, (key, label) in enumerate(members.items())
    }
    rows: list[dict[str, Any]] = []
    for trial in trials:
        value = score(trial, metric) if trial.scores else None
        curve = trial.outcome.get("curve", {})
        ceiling = _ceiling(evidence, trial, metric)
        rows.append(
            {
                "key": trial.key,
                "arm": places[trial.key][0],
                "cell": places[trial.key][2],
                "seed": trial.spec["seed"],
                "status": trial.status,
                "score": value,
                "interval": _interval(trial, metric),
                "ceiling": ceiling,
                "steps": trial.outcome.get("steps"),
                "solved_at": trial.outcome.get("solved_at"),
                "seconds": trial.provenance.get("seconds"),
                "parameters": trial.outcome.get("parameters"),
                "spark": sparkline(curve.get("step", []), curve.get(metric, []), 0.0, _top(metric, curve)),
                "file": _file(trial),
                "scores": trial.scores,
            }
        )
    return sorted(rows, key=lambda row: places[row["key"]])


def _interval(trial: Record, metric: str) -> str:
    for row in trial.scores:
        if row["metric"] == metric and row["stratum"] == "all" and METRICS[metric].counted:
            _, low, high = wilson(round(row["value"] * row["n"]), row["n"])
            return f"{low:.4f} to {high:.4f} on {row['n']} answers (95%)"
    return ""


def _top(metric: str, curve: dict[str, list[float | None]]) -> float:
    """The top of a sparkline: 1 for a share, else the largest value."""
    if metric in METRICS and METRICS[metric].counted:
        return 1.0
    return max((value for value in curve.get(metric, []) if value is not None), default=1.0)


def _ceiling(evidence: Evidence, trial: Record, metric: str) -> float | None:
    for limit in evidence.limits(trial):
        if (limit["kind"], limit["metric"], limit["stratum"]) == ("task_optimal", metric, "all"):
            return limit["value"]
    return None


def _limit_rows(evidence: Evidence) -> list[dict[str, Any]]:
    sheets = [record for record in evidence.of_kind("limit") if record.status == "done"]
    return [
        {"task": sheet.spec["task"]["name"], "file": _file(sheet), **limit}
        for sheet in sheets
        for limit in sheet.outcome["limits"]
    ]


def _provenance(evidence: Evidence) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for record in evidence:
        for name, value in record.provenance.items():
            if name not in ("seconds", "timing", "flops"):
                found.setdefault(name, set()).add(str(value))
    return {name: sorted(values) for name, values in sorted(found.items())}


def _counts(evidence: Evidence, reading: Reading) -> dict[str, Any]:
    statuses = [record.status for record in evidence if record.kind == "trial"]
    return {
        "trials": len(statuses),
        "done": statuses.count("done"),
        "diverged": statuses.count("diverged"),
        "failed": sum(record.status == "failed" for record in evidence),
        "open": reading.open_count,
        "seconds": sum(record.provenance.get("seconds", 0) for record in evidence),
    }
