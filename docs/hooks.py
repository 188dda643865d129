"""Hooks: the pages that mkdocs writes from the code each time it builds the site."""

import re
from pathlib import Path
from typing import Any

import griffe
import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.main import get_command

import fathometer
from fathometer import testing
from fathometer.cli import app

EXIT_CODES = """## Exit codes

| code | meaning |
|---|---|
| 0 | all that was asked is done |
| 1 | some records failed, or `fathom doctor` found something bad |
| 2 | the request cannot be carried out; the message says why and what to do |
| 130 | stopped by the user; what is recorded is kept |
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages to those that are written by hand."""
    pages = {
        "reference/cli.md": cli_page(),
        "reference/python.md": python_page(),
        "reference/kits.md": kits_page(),
        "reference/decisions.md": decisions_page(Path(config.docs_dir) / "decisions"),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


class Doctests(griffe.Extension):
    """Sets the examples of a docstring as code: to Markdown alone ``>>>`` is a quotation."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = re.sub(r"(?ms)^>>> .*?(?=\n\n|\Z)", r"```pycon\n\g<0>\n```", obj.docstring.value)


def cli_page() -> str:
    """The help text of the command and of each of its verbs."""
    command: Any = get_command(app)
    whole = typer.Context(command, info_name="fathom")
    parts = ["# Command line", _block(command.get_help(whole))]
    for name, verb in command.commands.items():
        parts += [f"## fathom {name}", _block(verb.get_help(typer.Context(verb, info_name=name, parent=whole)))]
    return "\n\n".join([*parts, EXIT_CODES])


def python_page() -> str:
    """Every name of ``fathometer``, filled in by mkdocstrings."""
    parts = ["# Python", "What `import fathometer as fm` gives."]
    return "\n\n".join([*parts, *(f"::: fathometer.{name}" for name in fathometer.__all__)])


def kits_page() -> str:
    """Every conformance kit, filled in by mkdocstrings."""
    parts = ["# Conformance kits", "Call one on something of your own: it raises `AssertionError` at the first breach."]
    return "\n\n".join([*parts, *(f"::: fathometer.testing.{name}" for name in testing.__all__)])


def decisions_page(folder: Path) -> str:
    """A list of the decision records."""
    found = sorted(folder.glob("*.md")) if folder.is_dir() else []
    titles = [path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for path in found]
    rows = [f"* [{title}](../decisions/{path.name})" for title, path in zip(titles, found, strict=True)]
    return "\n".join(["# Decisions", "", *(rows or ["None is recorded yet."])])


def _block(text: str) -> str:
    return f"```text\n{text.strip()}\n```"
