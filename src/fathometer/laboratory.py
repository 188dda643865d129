"""The laboratory: run a study or try a task, and read what came out. What the command line does, as five lines."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fathometer.core import registry
from fathometer.core.claim import Verdict
from fathometer.core.evidence import Evidence
from fathometer.core.naming import nearest
from fathometer.core.spec import encode
from fathometer.core.study import Figure, Scale, Study
from fathometer.core.trial import Trial
from fathometer.figures.standard import standard_figures
from fathometer.report.page import command_line, read, study_of, write_report
from fathometer.storage.folder import Folder
from fathometer.storage.lens import TABLES, query, tables
from fathometer.studies.composing import compose

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from fathometer.execution.driver import State


class Results:
    """A results folder, read again at every question, so that it shows a run under way as it stands."""

    def __init__(self, to: Path | str) -> None:
        self.folder = Folder(Path(to))

    @property
    def study(self) -> Study | None:
        """The study that asked; None when its code is not installed here."""
        return study_of(self.folder)

    def evidence(self) -> Evidence:
        """All records."""
        return self.folder.evidence()

    def verdicts(self) -> list[Verdict]:
        """What the records say of each claim."""
        return read(self.folder).verdicts

    def table(self, name: str) -> "pl.DataFrame":
        """One of the tables ``records``, ``trials``, ``scores``, ``curves``, ``limits``, ``probes``."""
        if name not in TABLES:
            raise LookupError(f"There is no table {name!r}: {nearest(name, TABLES)}")
        return tables(self.evidence())[name]

    def trials(self) -> "pl.DataFrame":
        """A row a trial: its settings and how it ended. ``.to_pandas()`` makes it a pandas frame."""
        return self.table("trials")

    def scores(self) -> "pl.DataFrame":
        """A row a score, joined to the settings of its trial."""
        found = self.table("scores")
        return found.join(self.trials(), left_on="trial", right_on="key", how="left") if found.height else found

    def sql(self, question: str) -> "pl.DataFrame":
        """The answer to a SQL question over the tables."""
        return query(self.evidence(), question)

    def figures(self) -> dict[str, Figure]:
        """Every figure of the study, by name."""
        study, evidence = self.study, self.evidence()
        drawn = study.figures(evidence) if study else standard_figures(evidence)
        return {figure.name: figure for figure in drawn}

    def draw(self, name: str) -> "alt.Chart":
        """A figure as an Altair chart, which a notebook shows."""
        import altair as alt

        found = self.figures()
        if name not in found:
            raise LookupError(f"There is no figure {name!r}: {nearest(name, found)}")
        return alt.Chart.from_dict(found[name].chart)

    def report(self) -> Path:
        """Writes the report; returns its page."""
        return write_report(self.folder)


@dataclass(frozen=True)
class Cost:
    """What a run would cost: how many records are wanted and open, and the open trials' nominal work and time.

    ``prospects`` are the study's claims, each with what it could decide on the trials that are foreseen.
    """

    wanted: int
    open_trials: int
    flops: float
    seconds: float
    workers: int
    prospects: list[tuple[str, str]]


def run(
    study: Study | str,
    scale: Scale = "smoke",
    to: Path | str | None = None,
    *,
    seed: int = 0,
    workers: int | None = None,
    device: str = "auto",
    retry: bool = False,
    notify: "Callable[[State], None] | None" = None,
) -> Results:
    """Runs a study, or goes on with it, until all that it wants is known.

    ``workers`` counts processes, one a core by default; 0 runs everything in this process. ``retry`` tries failed
    work again.
    """
    from fathometer.evaluation.numerics import pick_device
    from fathometer.execution.driver import drive
    from fathometer.execution.inline import InlineExecutor
    from fathometer.execution.local import LocalExecutor, available_cores

    asked = find_study(study, scale, seed)
    device = pick_device(device)
    if workers is None:
        workers = len(available_cores()) if device == "cpu" else 1
    if workers < 0:
        raise ValueError(f"workers = {workers}: give 0 to run in this process, or the number of processes.")
    folder = open_folder(asked, to)
    executor = LocalExecutor(folder.root, workers, device) if workers else InlineExecutor(folder.root, device)
    try:
        drive(asked, folder, executor, retry, notify)
    finally:
        executor.close()
    return Results(folder.root)


def try_(
    task: str, *models: str, seeds: int = 3, seed: int = 0, to: Path | str | None = None, workers: int | None = None,
    device: str = "auto", retry: bool = False, notify: "Callable[[State], None] | None" = None, **settings: Any,
) -> Results:  # fmt: skip
    """Any task against any models; a setting given as a list is swept.

    Dots in a setting's name become double underscores: ``optimiser__learning_rate=[1e-3, 3e-3]``.
    """
    values = {
        name.replace("__", "."): list(value) if isinstance(value, list) else [value] for name, value in settings.items()
    }
    study = compose(task, models, values, seeds, seed)
    return run(study, to=to, workers=workers, device=device, retry=retry, notify=notify)


def estimate(study: Study, to: Path | str | None = None, workers: int | None = None, device: str = "auto") -> Cost:
    """What is still to be done, and how long this machine would take if nothing stopped early.

    The time rests on a rehearsal of some of the work, with all workers at once; nothing is recorded.
    """
    from fathometer.evaluation.numerics import pick_device
    from fathometer.execution.estimate import estimated_seconds, open_work, prospects
    from fathometer.execution.local import available_cores

    device = pick_device(device)
    if workers is None:
        workers = len(available_cores()) if device == "cpu" else 1
    workers = max(1, workers)
    root = Path(to) if to else default_folder(study)
    evidence = Folder(root).evidence() if root.exists() else Evidence()
    wanted, work = open_work(study, evidence)
    trials = [each for each in work if isinstance(each, Trial)]
    seconds = estimated_seconds(work, workers, device) if work else 0.0
    flops = sum(trial.flops() for trial in trials)
    return Cost(wanted, len(trials), flops, seconds, workers, prospects(study, evidence))


def find_study(study: Study | str, scale: Scale = "smoke", seed: int = 0) -> Study:
    """The study of this name at this scale; a study that is one already stays as it is."""
    if isinstance(study, Study):
        return study
    cls = registry.find("study", study)
    if not issubclass(cls, Study):
        raise ValueError(f"{study!r} is {cls.__name__}, which is no fathometer.Study.")
    return cls(scale=scale, seed=seed)


def study_in(root: Path) -> Study:
    """The study that a results folder belongs to. Raises ValueError when its code is not installed here."""
    study = study_of(Folder(root))
    if study is None:
        raise ValueError(f"The study of {root} cannot be run here: install or bring back the code that it names.")
    return study


def default_folder(study: Study) -> Path:
    """Where the results of a study go when nobody says: the same place for the same question."""
    name = study.name.rsplit(":", 1)[-1]
    if name == "trying":
        return Path("results") / f"try-{study.key[:8]}"
    return Path("results") / (f"{name}-{study.scale}" + (f"-seed{study.seed}" if study.seed else ""))


def open_folder(study: Study, to: Path | str | None = None) -> Folder:
    """The study's results folder, made when it is new; what cannot be trusted in it is set aside and named.

    A study that cannot be planned raises its error before anything is written.
    """
    root = Path(to) if to else default_folder(study)
    study.wanted(Evidence())
    manifest = {
        "key": study.key,
        "study": encode(study),
        "question": study.question,
        "source": study.source,
        "claims": [encode(claim) for claim in study.claims()],
        "command": command_line(study, root),
    }
    folder = Folder.create(root, manifest)
    folder.check_writable()
    folder.set_aside()
    return folder
