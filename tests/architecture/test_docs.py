"""The pages of ``docs/``: complete, true to the code, and every example in them runs."""

import ast
import re
import runpy
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from typer.main import get_command

import fathometer
from fathometer import cli, testing
from fathometer.core import registry
from fathometer.core.claim import Claim
from fathometer.core.evidence import Evidence
from fathometer.core.interface import Interface, Tokens
from fathometer.core.model import Model
from fathometer.core.recipe import Evaluation, Recipe
from fathometer.core.record import SCHEMA
from fathometer.core.spec import Spec, named
from fathometer.core.study import Figure, Scale, Study
from fathometer.core.task import Task
from fathometer.core.trial import Measurement, Trial
from fathometer.design.grid import grid
from fathometer.execution import local
from fathometer.execution.driver import complete
from fathometer.execution.inline import InlineExecutor
from fathometer.laboratory import Results, run
from fathometer.report.page import drawings
from fathometer.storage.lens import TABLES, tables
from fathometer.studies.copy_plan import PLANS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if page.parent.name != "decisions"]
VERBS: dict[str, Any] = get_command(cli.app).commands
PAGE_OF = {"task": "tasks/{}.md", "model": "models/{}.md", "study": "studies/{}.md"}
SECTION_OF = {"probe": "probes.md", "claim": "claims.md", "start": "starts.md"}
ENTRIES = [
    entry for kind in registry.FOLDERS for entry in registry.entries(kind) if entry.module.startswith("fathometer.")
]
HEADINGS = ["What it does", "Why", "Example"]
TOKENS = Interface(inputs=Tokens(vocab=5), outputs=Tokens(vocab=5), length=7, causal=True)


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    title: str
    text: str


class Command(NamedTuple):
    """A line after ``$`` in a console block, and the first line of what is shown below it."""

    words: list[str]
    shown: str


class Everything(Study):
    """A few steps of training, and every probe: records to try the questions of the pages on."""

    @property
    def question(self) -> str:
        return "Do the questions in the pages have answers?"

    def wanted(self, evidence: Evidence) -> Sequence[Trial | Measurement]:
        recipe = Recipe(steps=4, batch=4, evaluation=Evaluation(every=2, validate_on=16, test_on=64))
        task = named("task", "copying", lengths=(2, 3, 4))
        models = [named("model", "transformer", depth=depth, width=8, heads=2) for depth in (1, 2)]
        names = ("head_importance", "head_removal", "answer_attention", "generalisation", "timing")
        probes = [named("probe", name) for name in names]
        probes.append(named("probe", "scores", split="noised", examples=64))
        trials = grid([task], models, [recipe], range(2))
        return [*trials, *(Measurement(trial=trial, probe=probe) for trial in trials for probe in probes)]

    def claims(self) -> Sequence[Claim]:
        return [named("claim", "within_limits", identifier="within", statement="No score is too good.")]

    def figures(self, evidence: Evidence) -> Iterable[Figure]:
        return []


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(Everything(), to=tmp_path_factory.mktemp("docs") / "results", workers=0)


@pytest.fixture
def desk(tmp_path: Path, results: Results, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder with results in it, as the pages assume."""
    (tmp_path / "results").mkdir()
    for name in ("copy-smoke", "first"):
        (tmp_path / "results" / name).symlink_to(results.folder.root)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_shown(verb: str) -> None:
    shown = {command.words[1] for page in PAGES for command in commands(page) if command.words[0] == "fathom"}
    assert verb in shown, f"no console block of docs/ shows `fathom {verb}`"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.kind}-{entry.name}")
def test_every_name_is_described(entry: registry.Entry) -> None:
    text = description(entry)
    found = [heading for heading in re.findall(r"(?m)^#{2,3} (.*)$", text) if heading in HEADINGS]
    assert found == HEADINGS, f"the {entry.kind} {entry.name} is described under {found}, not {HEADINGS}"
    example = text.partition(" Example\n")[2]
    assert "```" in example, f"the example of the {entry.kind} {entry.name} shows none"


@pytest.mark.parametrize(
    "entry", [entry for entry in ENTRIES if entry.name != "copy"], ids=lambda entry: f"{entry.kind}-{entry.name}"
)
def test_every_field_and_default_is_described(entry: registry.Entry) -> None:
    check_fields(description(entry), registry.find(entry.kind, entry.name))


def test_every_field_of_a_recipe_is_described() -> None:
    check_fields((DOCS / "studies" / "trying.md").read_text(), Recipe)


def test_every_page_is_in_the_navigation() -> None:
    listed = set(leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert {str(page.relative_to(DOCS)) for page in PAGES} <= listed


def test_the_reference_has_every_verb_name_and_kit() -> None:
    hooks = runpy.run_path(str(DOCS / "hooks.py"))
    assert [verb for verb in VERBS if f"## fathom {verb}\n" not in hooks["cli_page"]()] == []
    assert [name for name in fathometer.__all__ if f"::: fathometer.{name}" not in hooks["python_page"]()] == []
    assert [name for name in testing.__all__ if f"::: fathometer.testing.{name}" not in hooks["kits_page"]()] == []


def test_every_field_of_a_record_is_described() -> None:
    text = (DOCS / "records.md").read_text()
    score = SCHEMA["properties"]["outcome"]["properties"]["scores"]["items"]["properties"]
    for name in [*SCHEMA["properties"], *score]:
        assert f"\n| `{name}` |" in text, f"docs/records.md has no row for the field {name!r}"


def test_every_table_and_column_is_described(results: Results) -> None:
    text = (DOCS / "records.md").read_text()
    for name, frame in tables(results.evidence()).items():
        row = re.search(rf"(?m)^\| `{name}` \| [^|]* \| (.*) \|$", text)
        assert row, f"docs/records.md has no row for the table {name!r}"
        known = set(re.findall(r"`(\w+)`", row[1]))
        columns = {
            column for column in frame.columns if "." not in column and column not in ("start", "token_accuracy")
        }
        assert columns == known, f"docs/records.md tells other columns of {name} than there are"
    assert set(TABLES) == set(tables(results.evidence()))


def test_everything_in_a_results_folder_is_described(results: Results) -> None:
    text = (DOCS / "records.md").read_text()
    for path in results.folder.root.iterdir():
        assert f"| `{path.name}{'/' if path.is_dir() else ''}` |" in text


def test_the_sizes_and_claims_of_copy_are_those_of_its_code() -> None:
    text = (DOCS / "studies" / "copy.md").read_text()
    columns = [sizes_of_copy(scale) for scale in PLANS]
    for name in columns[0]:
        row = " | ".join(str(column[name]) for column in columns)
        assert f"| {name} | {row} |" in text
    for claim in named("study", "copy", scale="quick").claims():
        assert re.search(rf"(?m)^\| `{claim.identifier}` \|.*`{claim.name}`", text), claim.identifier


def test_what_the_page_of_copy_says_came_out_is_what_the_gallery_says() -> None:
    text = (DOCS / "studies" / "copy.md").read_text()
    gallery = Results(ROOT / "gallery" / "copy-quick")
    for verdict in gallery.verdicts():
        assert f"| {verdict.decision} | {verdict.statement} {verdict.sentence} |" in text, verdict.claim
    for name in re.findall(r"!\[[^]]*\]\(copy-quick/(\w+)\.svg\)", text):
        drawn = drawings(gallery.figures()[name])["svg"].decode()
        held = (DOCS / "studies" / "copy-quick" / f"{name}.svg").read_text()
        assert len(marks(held)) > 10
        assert marks(held) == marks(drawn), f"{name} is not drawn from these records"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_blocks_run(
    page: Path, desk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks, models and studies pass their kit; other files run, without worker processes to save their start."""
    monkeypatch.setattr(local, "LocalExecutor", lambda root, workers, device: InlineExecutor(root, device))
    found = blocks(page)
    files = {block.title: block.text for block in found if block.language == "python" and block.title}
    printed = {block.title: block.text for block in found if block.title.endswith(" prints")}
    for block in found:
        if block.language == "python":
            compile(block.text, f"{page.name}: {block.title or 'a fragment'}", "exec")
    for title, text in files.items():
        (desk / title).write_text(text)
    for title, text in files.items():
        if classes := specs_in(title, text):
            for cls in classes:
                check_with_its_kit(cls)
        else:
            capsys.readouterr()
            runpy.run_path(title, run_name="__main__")
            shown = printed.pop(f"{title} prints", None)
            assert shown in (None, capsys.readouterr().out), f"{title} prints something else than {page.name} shows"
    assert not printed, f"{page.name} shows the output of files that it does not have: {', '.join(printed)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_are_understood(page: Path, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `fathom` command is carried out, but for the training."""
    monkeypatch.setattr(cli, "_run", lambda study, *_: study.wanted(Evidence()))
    for block in blocks(page):
        if block.language == "python" and block.title:
            (desk / block.title).write_text(block.text)
    for command in commands(page):
        if command.words[0] == "make":
            check_target(command.words[1])
        elif command.words[0] == "fathom":
            carry_out(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_questions_have_answers(page: Path, results: Results) -> None:
    for block in blocks(page):
        if block.language == "sql":
            answer = results.sql(block.text)
            assert answer.height or "status <> 'done'" in block.text, f"no rows: {block.text}"


def marks(svg: str) -> list[str]:
    """What the marks of a drawing say of their data: unlike their places, no matter of fonts."""
    return sorted(re.findall(r'aria-label="([^"]*)" role="graphics-symbol"', svg))


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page."""
    found = re.findall(r'(?ms)^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$', page.read_text())
    return [Block(*groups) for groups in found]


def commands(page: Path) -> Iterator[Command]:
    """All commands of a page's console blocks."""
    for block in blocks(page):
        if block.language == "console":
            for part in re.split(r"(?m)^\$ ", block.text)[1:]:
                line, _, output = part.partition("\n")
                yield Command(shlex.split(line), output.partition("\n")[0])


def carry_out(command: Command) -> None:
    """Runs a command in this process; where the page shows an error, it must be that one."""

    def go() -> None:
        get_command(cli.app)(args=command.words[1:], prog_name="fathom", standalone_mode=False)

    if not command.shown.startswith("fathom: "):
        go()
        return
    with pytest.raises((ValueError, LookupError)) as raised:
        go()
    assert f"fathom: {raised.value.args[0]}" == command.shown


def sizes_of_copy(scale: Scale) -> dict[str, Any]:
    """What a scale of the study `copy` takes, as its page tells it."""
    plan, work = PLANS[scale], complete(named("study", "copy", scale=scale).foreseen(Evidence()))
    axes = {name: ", ".join(map(str, getattr(plan, name))) for name in ("lengths", "depths", "widths", "heads")}
    return axes | {
        "heads beyond": f"{plan.many_heads} at depth {plan.beyond['depth']}",
        "seeds": plan.seeds,
        "batch": plan.batch,
        "steps at most": plan.steps,
        "solved at": plan.level,
        "fixed budget": plan.budget,
        "learning rates": ", ".join(f"{rate:g}" for rate in plan.rates),
        "tried for": f"{plan.tuning_steps} steps, {plan.tuning_seeds} seeds" if len(plan.rates) > 1 else "not tried",
        "strings a length": plan.strings or "fresh",
        "literal arm": f"{plan.literal.steps} steps, {plan.literal_strings} strings a length",
        "trials": sum(isinstance(each, Trial) for each in work),
        "records in all": len(work),
    }


def check_target(target: str) -> None:
    makefile = ROOT / "Makefile"
    if makefile.exists():
        assert re.search(rf"(?m)^{target}:", makefile.read_text()), f"the Makefile has no target {target}"


def description(entry: registry.Entry) -> str:
    """What the pages say of a registered name."""
    if entry.kind in PAGE_OF:
        page = DOCS / PAGE_OF[entry.kind].format(entry.name)
        assert page.exists(), f"the {entry.kind} {entry.name} has no page {page.relative_to(ROOT)}"
        return page.read_text()
    page = DOCS / SECTION_OF[entry.kind]
    assert page.exists(), f"the {entry.kind} {entry.name} has no section, since {page.relative_to(ROOT)} is missing"
    section = re.search(rf"(?ms)^## {entry.name}\n(.*?)(?=^## |\Z)", page.read_text())
    assert section, f"{page.relative_to(ROOT)} has no section {entry.name}"
    return section[1]


def check_fields(text: str, cls: type) -> None:
    for path, default in fields(cls):
        row = re.search(rf"(?m)^\| `{re.escape(path)}` \| (.*?) \| \S", text)
        assert row, f"the field {path!r} has no row"
        assert default in (None, row[1].strip("`")), f"the default of {path} is {default}, and the page says {row[1]}"


def fields(cls: type[Spec], prefix: str = "") -> Iterator[tuple[str, str | None]]:
    """Every field by its path with its default as text; None where the page may say it in its own words."""
    for name, field in cls.model_fields.items():
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, Spec) and nested.model_fields and not field.is_required():
            yield from fields(nested, f"{prefix}{name}.")
        elif field.is_required():
            yield f"{prefix}{name}", "required"
        else:
            default = field.get_default(call_default_factory=True)
            yield f"{prefix}{name}", None if name == "recipes" else repr(default)


def specs_in(title: str, text: str) -> list[type[Spec]]:
    """The tasks, models and studies of a file."""
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    found = [registry.find("task", f"{title}:{name}") for name in names]
    return [cls for cls in found if issubclass(cls, Task | Model | Study)]


def check_with_its_kit(cls: Any) -> None:
    spec = cls()
    if isinstance(spec, Task):
        testing.check_task(spec)
    elif isinstance(spec, Model):
        testing.check_model(spec, TOKENS)
    else:
        assert spec.wanted(Evidence()) == spec.wanted(Evidence())
        assert spec.claims()


def leaves(nav: Any) -> Iterator[str]:
    """The pages of a navigation."""
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from leaves(each)
