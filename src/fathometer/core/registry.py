"""The registry: a name is a file in a kind's folder, an entry point, ``package.module:Name`` or ``file.py:Name``.

Nothing is imported until it is asked for by name, so listing what exists costs no torch import.
"""

import ast
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from fathometer.core.naming import camel_case, nearest

FOLDERS = {
    "task": "fathometer.tasks",
    "model": "fathometer.models",
    "start": "fathometer.starts",
    "probe": "fathometer.probing",
    "claim": "fathometer.statistics.claims",
    "study": "fathometer.studies",
}
"""The package whose files are the registry of each kind."""


@dataclass(frozen=True)
class Entry:
    """One registered name, described without importing it."""

    name: str
    kind: str
    summary: str
    module: str
    class_name: str


@dataclass(frozen=True)
class Origin:
    """Where a class comes from: the name that finds it again, and for a plain file its hash."""

    name: str
    source: str | None = None
    path: str | None = None


def entries(kind: str) -> list[Entry]:
    """Every name of this kind that ships with the package or is offered by an installed one."""
    found = {entry.name: entry for entry in _folder_entries(kind)}
    for point in entry_points(group="fathometer.studies" if kind == "study" else f"fathometer.{kind}s"):
        package = point.dist.name if point.dist else point.module
        found.setdefault(point.name, Entry(point.name, kind, f"from the package {package}", point.module, point.attr))
    return sorted(found.values(), key=lambda entry: entry.name)


def find(kind: str, name: str, path: str | None = None) -> type:
    """The class of this kind that ``name`` stands for; ``path`` overrides where a plain file is looked for."""
    if ":" in name:
        module_name, class_name = name.rsplit(":", 1)
        if module_name.endswith(".py"):
            return _from_file(Path(path or module_name), class_name)
        return _attribute(_module(module_name), class_name)
    return _registered(kind, name)


@cache
def _registered(kind: str, name: str) -> type:
    """Cached, since a study names its models thousands of times."""
    for entry in entries(kind):
        if entry.name == name:
            return _attribute(importlib.import_module(entry.module), entry.class_name)
    raise LookupError(
        f"There is no {kind} named {name!r}: {nearest(name, (entry.name for entry in entries(kind)))} "
        f"A {kind} of your own is named as package.module:Name or file.py:Name."
    )


def origin(cls: type) -> Origin:
    """The name under which a worker on another machine finds this class again."""
    own = cls.__dict__.get("_origin")
    if own is not None:
        return own
    package, _, stem = cls.__module__.rpartition(".")
    if package in FOLDERS.values() and camel_case(stem) == cls.__name__:
        return Origin(stem)
    return Origin(f"{cls.__module__}:{cls.__qualname__}")


def file_hash(path: Path) -> str:
    """The part of a key that stands for the content of a user's file and of the files beside it that it imports."""
    content = hashlib.sha256()
    for source in local_sources(path):
        content.update(source.read_bytes())
    return content.hexdigest()[:16]


def local_sources(path: Path) -> list[Path]:
    """The file, then every file of its folder that it imports, directly or through another, in the order found."""
    found, open_files = [path], [path]
    while open_files:
        for name in _imported(open_files.pop(0)):
            for source in (path.parent / f"{name}.py", *sorted((path.parent / name).glob("**/*.py"))):
                if source.is_file() and source not in found:
                    found.append(source)
                    open_files.append(source)
    return found


def _imported(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            names += [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module.split(".")[0])
    return names


def _folder_entries(kind: str) -> Iterator[Entry]:
    package = FOLDERS.get(kind)
    spec = importlib.util.find_spec(package) if package else None
    folders = (spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        for file in sorted(Path(folder).glob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            class_name = camel_case(file.stem)
            if any(isinstance(node, ast.ClassDef) and node.name == class_name for node in tree.body):
                summary = (ast.get_docstring(tree) or "").strip().split("\n")[0]
                yield Entry(file.stem, kind, summary, f"{package}.{file.stem}", class_name)


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise LookupError(
                f"There is no module {name!r} to import: install its package, or name a file as path/to/file.py:Name."
            ) from None
        raise


@cache
def _load_file(path: Path, digest: str) -> ModuleType:
    module_name = f"fathometer_file_{path.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # the file may import its neighbours
    spec.loader.exec_module(module)
    for name, value in vars(module).items():
        if isinstance(value, type) and value.__module__ == module_name:
            value._origin = Origin(f"{path.name}:{name}", digest, str(path))
    return module


def _from_file(path: Path, class_name: str) -> type:
    if not path.is_file():
        raise LookupError(f"There is no file {str(path)!r}: give its path relative to {Path.cwd()}.")
    digest = file_hash(path)
    return _attribute(_load_file(path.resolve(), digest), class_name)


def _attribute(module: ModuleType, class_name: str) -> type:
    found = getattr(module, class_name, None)
    if isinstance(found, type):
        return found
    where = getattr(module, "__file__", None) or module.__name__
    classes = [name for name, value in vars(module).items() if isinstance(value, type)]
    raise LookupError(f"{where} has no class {class_name!r}: {nearest(class_name, classes)}")
