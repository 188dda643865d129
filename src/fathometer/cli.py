"""The command line: a thin skin over the library, with the same nouns.

Heavy modules are imported at the top of the verb that needs them, so that ``fathom --help`` answers at once.
"""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from fathometer.core.study import Study
    from fathometer.laboratory import Results

app = typer.Typer(
    name="fathom",
    help="Measure what a sequence model can express, what it can learn, and how much of it a job needs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Scale(StrEnum):
    smoke = "smoke"
    quick = "quick"
    paper = "paper"


class Device(StrEnum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Format(StrEnum):
    csv = "csv"
    parquet = "parquet"
    latex = "latex"


To = Annotated[Path | None, typer.Option("--to", help="Results folder; by default one named after the question.")]
Workers = Annotated[int | None, typer.Option("--workers", min=0, help="Processes; by default one a core. 0: none.")]
OnDevice = Annotated[Device, typer.Option("--device", help="Where networks live.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The first of the seeds.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done, and what it would cost.")]
Retry = Annotated[bool, typer.Option("--retry", help="Do failed work again.")]
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A results folder.")]


def main() -> None:
    """Runs the command line; every error a user can mend is one sentence and exit code 2."""
    try:
        app()
    except (ValueError, LookupError, ImportError, OSError) as error:
        text = error.args[0] if isinstance(error, LookupError) and error.args else error
        typer.echo(f"fathom: {text}", err=True)
        sys.exit(2)


@app.command("list")
def list_() -> None:
    """List every task, model, probe, claim and study."""
    from fathometer.core import registry

    for kind in registry.FOLDERS:
        found = registry.entries(kind)
        if found:
            typer.echo({"study": "studies"}.get(kind, f"{kind}s"))
            width = max(len(entry.name) for entry in found)
            for entry in found:
                typer.echo(f"  {entry.name:<{width}}  {entry.summary}")


@app.command()
def show(name: Annotated[str, typer.Argument(metavar="NAME", help="A name that `fathom list` gives.")]) -> None:
    """Show what a name stands for: what it is, its fields, their defaults and ranges."""
    from fathometer.describing import describe

    typer.echo(describe(name))


@app.command()
def run(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="A study's name, file.py:Name, or a results folder to go on with.")
    ],
    scale: Annotated[Scale, typer.Option("--scale", help="How much to spend.")] = Scale.smoke,
    to: To = None,
    workers: Workers = None,
    seed: Seed = 0,
    device: OnDevice = Device.auto,
    dry_run: DryRun = False,
    retry: Retry = False,
) -> None:
    """Run a study, or go on with it, and write its report."""
    from fathometer.laboratory import find_study, study_in

    if Path(study).is_dir():
        _run(study_in(Path(study)), Path(study), workers, device.value, dry_run, retry)
    else:
        _run(find_study(study, scale.value, seed), to, workers, device.value, dry_run, retry)


@app.command("try")
def try_(
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task's name, or file.py:Name.")],
    words: Annotated[
        list[str],
        typer.Argument(metavar="MODEL... [SETTING=VALUE,VALUE...]...", help="Models, then settings to sweep."),
    ],
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds.")] = 3,
    to: To = None,
    workers: Workers = None,
    seed: Seed = 0,
    device: OnDevice = Device.auto,
    dry_run: DryRun = False,
    retry: Retry = False,
) -> None:
    """Try any task against any models: fathom try copying transformer depth=1,2 heads=4 --seeds 5"""
    from fathometer.studies.composing import compose

    models = [word for word in words if "=" not in word]
    given = [_setting(word) for word in words if "=" in word]
    settings = dict(given)
    for name, _ in given:
        if sum(other == name for other, _ in given) > 1:
            raise ValueError(f"{name!r} is given twice: sweep over values as in {name}=1,2")
        if name in ("seeds", "seed", "workers", "device", "to"):
            raise ValueError(f"{name!r} is an option: write --{name} {dict(given)[name][0]}")
    _run(compose(task, models, settings, seeds, seed), to, workers, device.value, dry_run, retry)


@app.command()
def status(folder: Directory) -> None:
    """Tell how far a run has come and what its records decide so far."""
    from rich.console import Console

    from fathometer.live import verdict_table
    from fathometer.report.page import read
    from fathometer.storage.folder import Folder

    reading = read(Folder(folder))
    console = Console(highlight=False, markup=False)
    failed = sum(record.status == "failed" for record in reading.evidence)
    diverged = sum(record.status == "diverged" for record in reading.evidence)
    known = len(reading.wanted) - reading.open_count
    console.print(f"{reading.folder.manifest['study']['name']}: {reading.folder.manifest.get('question', '')}")
    console.print(f"{known} of {len(reading.wanted)} records, {diverged} diverged, {failed} failed")
    _tell_problems(reading.folder.problems)
    console.print(verdict_table(reading.verdicts))


@app.command()
def report(folder: Directory) -> None:
    """Write the report of a results folder: a page and its figures as files."""
    from fathometer.laboratory import Results

    typer.echo(f"Report: {Results(folder).report()}")


@app.command()
def sql(folder: Directory, query: Annotated[str, typer.Argument(help="A SQL question.")]) -> None:
    """Ask the records in SQL. Tables: records, trials, scores, curves, limits, probes."""
    import polars as pl

    from fathometer.laboratory import Results

    with pl.Config(tbl_rows=1000, tbl_cols=100, tbl_hide_dataframe_shape=True, fmt_str_lengths=60):
        typer.echo(str(Results(folder).sql(query)))


@app.command()
def export(
    folder: Directory,
    form: Annotated[Format, typer.Option("--as", help="File format.")] = Format.csv,
    to: Annotated[Path | None, typer.Option("--to", help="Where to; by default DIR/export.")] = None,
) -> None:
    """Write the tables as files: all of them as csv or parquet, the scores by configuration as latex."""
    from fathometer.laboratory import Results
    from fathometer.storage.exporting import export as export_tables

    for path in export_tables(Results(folder).evidence(), form.value, to or folder / "export"):
        typer.echo(str(path))


@app.command()
def reproduce(
    folder: Directory,
    sample: Annotated[int, typer.Option("--sample", min=1, help="How many trials to do again.")] = 5,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Which ones: another seed, another sample.")] = 0,
    tolerance: Annotated[
        float, typer.Option("--tolerance", min=0, help="How far an accuracy may differ on another kind of machine.")
    ] = 0.02,
    workers: Workers = None,
    device: OnDevice = Device.auto,
) -> None:
    """Train some trials of a results folder again and compare: bit for bit, or within a tolerance."""
    from collections import Counter

    from fathometer.reproducing import reproduce as do_again

    repeats = do_again(folder, sample, seed, tolerance, workers, device.value)
    for repeat in repeats:
        gap = "" if repeat.gap is None else f", largest difference {repeat.gap:.4f}"
        remark = f": {repeat.remark}" if repeat.remark else ""
        typer.echo(f"{repeat.key[:8]}  {repeat.agreement}{gap}{remark}")
    counts = Counter(repeat.agreement for repeat in repeats)
    typer.echo(f"{len(repeats)} trials done again: {', '.join(f'{n} {what}' for what, n in counts.items())}")
    if counts["different"] + counts["not run"]:
        raise typer.Exit(1)


@app.command()
def diff(
    before: Annotated[Path, typer.Argument(metavar="A", help="A results folder.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="Another.")],
) -> None:
    """Compare two results folders: verdicts, scores by configuration, and trials that both hold."""
    from rich.console import Console

    from fathometer.comparing import compare
    from fathometer.live import comparison_tables

    console = Console(highlight=False, markup=False)
    for part in comparison_tables(compare(before, after)):
        console.print(part)


@app.command()
def doctor() -> None:
    """Check this machine: versions, cores, memory, disk, GPU, charts, and that equal trials give equal bits."""
    from fathometer.doctoring import examine

    findings = examine()
    for finding in findings:
        typer.echo(f"{'ok  ' if finding.good else 'BAD '} {finding.what}: {finding.found}")
    if not all(finding.good for finding in findings):
        raise typer.Exit(1)


def _run(study: "Study", to: Path | None, workers: int | None, device: str, dry_run: bool, retry: bool) -> None:
    from rich.console import Console

    from fathometer import laboratory
    from fathometer.live import LiveView, duration, verdict_table

    console = Console(highlight=False, markup=False)
    if dry_run:
        cost = laboratory.estimate(study, to, workers, device)
        console.print(f"{study.name}: {study.question}")
        console.print(f"{cost.wanted} records wanted; {cost.open_trials} trials still to train")
        console.print(f"{cost.flops:.2e} FLOPs, nominal")
        hours = cost.seconds * cost.workers / 3600
        console.print(
            f"about {duration(cost.seconds)} of work here if nothing stops early, {hours:.1f} core-hours "
            f"(from a short rehearsal)"
        )
        for statement, prospect in cost.prospects:
            console.print(f"\n{statement}", style="bold")
            console.print(f"  {prospect}")
        return
    folder = laboratory.open_folder(study, to)
    for problem in folder.removed:
        console.print(f"Set aside: {problem.path.name}: {problem.reason}. It will be done again.", style="yellow")
    console.print(f"{study.question}\nResults go to {folder.root}", soft_wrap=True)
    try:
        with LiveView(study, console) as view:
            results = laboratory.run(
                study, to=folder.root, workers=workers, device=device, retry=retry, notify=view.update
            )
    except KeyboardInterrupt:
        known = len(folder.evidence())
        console.print(f"Stopped. {known} records are safe; the same command goes on from there.")
        raise typer.Exit(130) from None
    console.print(verdict_table(results.verdicts()))
    console.print(f"Report: {results.report()}", soft_wrap=True)
    _exit_on_failures(results)


def _exit_on_failures(results: "Results") -> None:
    failed = [record for record in results.evidence() if record.status == "failed"]
    for record in failed:
        typer.echo(f"failed: {record.kind} {record.key}: {record.outcome.get('reason', '')}", err=True)
    if failed:
        typer.echo(f"{len(failed)} records failed; --retry does them again.", err=True)
        raise typer.Exit(1)


def _tell_problems(problems: list[Any]) -> None:
    for problem in problems:
        typer.echo(f"not read: {problem.path}: {problem.reason}", err=True)


def _setting(word: str) -> tuple[str, list[Any]]:
    name, _, text = word.partition("=")
    return name, [_value(part) for part in _split(text)]


def _split(text: str) -> list[str]:
    """Splits at commas that stand outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _value(text: str) -> Any:
    """JSON where it is JSON (numbers, lists, true, null), else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    main()
