"""Exporting: the tables as files that other programs read."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from fathometer.core.evidence import Evidence, cells, flat
from fathometer.core.files import write_whole
from fathometer.core.record import Record
from fathometer.core.spec import canonical
from fathometer.storage.lens import tables


def export(evidence: Evidence, form: str, to: Path) -> list[Path]:
    """Writes every table that has rows as ``csv`` or ``parquet``, or one ``latex`` table of scores by configuration."""
    if form == "latex":
        path = to / "scores.tex"
        write_whole(path, latex(evidence).encode())
        return [path]
    to.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, table in tables(evidence).items():
        if not table.height:
            continue
        path = to / f"{name}.{form}"
        if form == "csv":
            table.write_csv(path)
        else:
            table.write_parquet(path)
        written.append(path)
    return written


def latex(evidence: Evidence) -> str:
    """Mean, lowest and highest score over seeds of every configuration, as a booktabs table."""
    trials = evidence.trials()
    scored = [trial for trial in trials if trial.scores]
    if not scored:
        raise ValueError("There are no finished trials to tabulate yet.")
    metric = scored[0].scores[0]["metric"]
    settings = _varying(trials)
    head = [name.rsplit(".", 1)[-1].replace("_", " ") for name in settings]
    head += ["seeds", "diverged", metric.replace("_", " "), "range"]
    lines = [rf"\begin{{tabular}}{{{'l' * len(settings)}rrrl}}", r"\toprule", _row(head), r"\midrule"]
    for group in cells(trials).values():
        values = [row["value"] for t in group for row in t.scores if _main(row, metric)]
        spec = flat(group[0].spec)
        own = [str(spec.get(name, "")) for name in settings]
        told = [f"{fmean(values):.4f}", f"{min(values):.4f}--{max(values):.4f}"] if values else ["--", "--"]
        diverged = sum(trial.status == "diverged" for trial in group)
        lines.append(_row([*own, str(len(group)), str(diverged), *told]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _main(row: dict[str, object], metric: str) -> bool:
    return row["metric"] == metric and row["stratum"] == "all"


def _varying(trials: Sequence[Record]) -> list[str]:
    forms = [flat(trial.spec) for trial in trials]
    paths = dict.fromkeys(path for form in forms for path in form)
    hidden = ("seed", "path", "source", "version")
    return [
        path
        for path in paths
        if path.rsplit(".", 1)[-1] not in hidden and len({canonical(form.get(path)) for form in forms}) > 1
    ]


def _row(cells_: Sequence[str]) -> str:
    escaped = ("".join(rf"\{c}" if c in "&%$#_{}" else c for c in text) for text in cells_)
    return " & ".join(escaped) + r" \\"
