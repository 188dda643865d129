"""The registry: folders, files, modules and entry points, and what unknown names are told."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from fathometer.core import registry
from fathometer.core.spec import SpecError, decode, encode, named

MY_TASK = '''
"""A task of one's own."""
from fathometer.tasks.copying import Copying

class Mine(Copying):
    """Copying, renamed."""
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my_task.py"
    path.write_text(MY_TASK)
    return path


def test_the_folder_is_the_registry() -> None:
    assert [entry.name for entry in registry.entries("task")] == ["copying"]
    assert registry.entries("model")[0].summary.startswith("Transformer:")


def test_a_file_can_be_named_where_a_name_is_taken(file: Path) -> None:
    task = named("task", f"{file}:Mine", lengths=(3,))
    form = encode(task)
    assert (form["name"], form["path"]) == ("my_task.py:Mine", str(file))
    assert decode("task", form) == task
    assert "path" not in encode(task, defaults=False)


def test_the_key_of_a_file_s_class_follows_its_content_not_its_place(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "my_task.py"
    elsewhere.parent.mkdir()
    elsewhere.write_text(MY_TASK)
    key = named("task", f"{file}:Mine").key
    assert named("task", f"{elsewhere}:Mine").key == key
    elsewhere.write_text(MY_TASK + "\n# changed\n")
    assert named("task", f"{elsewhere}:Mine").key != key


def test_a_changed_file_is_not_run_under_its_old_key(file: Path) -> None:
    form = encode(named("task", f"{file}:Mine"))
    file.write_text(MY_TASK + "\n# changed\n")
    with pytest.raises(SpecError, match="has changed since this spec was written"):
        decode("task", form)


def test_a_module_can_be_named() -> None:
    assert registry.find("task", "fathometer.tasks.copying:Copying") is registry.find("task", "copying")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("copyng", "no task named 'copyng': did you mean 'copying'"),
        ("nowhere.py:Net", "no file 'nowhere.py'"),
        ("no_such_module:Net", "no module 'no_such_module'"),
        ("fathometer.tasks.copying:Copyng", "no class 'Copyng': did you mean 'Copying'"),
    ],
)
def test_unknown_names_get_the_nearest_right_one(name: str, message: str) -> None:
    with pytest.raises(LookupError, match=message):
        registry.find("task", name)


def test_an_import_error_inside_a_user_s_file_is_not_hidden(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import surely_not_installed\n")
    with pytest.raises(ModuleNotFoundError, match="surely_not_installed"):
        registry.find("task", f"{path}:Net")


def test_installed_packages_offer_names_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("recopying", "fathometer.tasks.copying:Copying", "fathometer.tasks")
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == point.group else [])
    assert "recopying" in [entry.name for entry in registry.entries("task")]
    assert registry.find("task", "recopying").__name__ == "Copying"
