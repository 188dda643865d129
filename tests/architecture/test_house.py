"""The house rules that a machine can check: the README's tree is true, files and functions are small."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "fathometer"
FILES = sorted(SOURCE.rglob("*.py"))


def _tree() -> Iterator[tuple[Path, str]]:
    """Every path that the README's tree names, with its line."""
    block = (ROOT / "README.md").read_text().split("## The tree")[1].split("```")[1]
    above: list[str] = []
    for line in filter(str.strip, block.splitlines()):
        depth = (len(line) - len(line.lstrip())) // 2
        name = line.split()[0]
        above = [*above[:depth], name]
        yield ROOT.joinpath(*above), line


def test_the_readme_s_tree_is_on_disk() -> None:
    for path, line in _tree():
        assert path.exists(), line
        assert path.is_dir() == line.split()[0].endswith("/"), line
        assert len(line.split()) > 2, f"no word on {line}"


def test_the_disk_is_in_the_readme_s_tree() -> None:
    named = {path.relative_to(ROOT).as_posix() for path, _ in _tree()}
    parts = {
        path.relative_to(ROOT).as_posix()
        for path in SOURCE.iterdir()
        if (path.is_dir() and (path / "__init__.py").exists()) or path.suffix == ".py"
    }
    assert parts - {"src/fathometer/__init__.py"} <= named
    top = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    generated = {"README.md", "site", "results", "build", "dist", "src"}
    assert {name.split("/")[0] for name in named} >= top - generated


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_files_and_functions_are_small_and_say_what_they_are_for(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= 400
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "no sentence on what the file is for"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 60, node.name
            public = not node.name.startswith("_") and node.col_offset == 0
            assert not public or ast.get_docstring(node), f"{node.name} has no contract"


def test_no_file_is_named_for_nothing() -> None:
    vague = {"utils", "common", "helpers", "base", "manager", "misc", "v2", "new"}
    assert not [path for path in FILES if path.stem in vague]


def test_nothing_is_imported_inside_functions_but_where_startup_matters() -> None:
    light = {"cli.py", "laboratory.py", "doctoring.py"}
    for path in FILES:
        if path.name in light:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                inner = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
                assert not inner, f"{path.name}: {node.name} imports"


def test_every_test_asserts_something() -> None:
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                text = ast.unparse(node)
                assert re.search(r"\bassert|raises|check_|compare_|assert_close", text), f"{path.name}: {node.name}"


def test_pins_cover_every_dependency() -> None:
    pins = {
        line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    wanted = re.findall(
        r'^\s+"([A-Za-z0-9_-]+)(?:\[\w+\])?>=', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE
    )
    assert len(wanted) > 15
    assert {name.lower() for name in wanted} <= pins
