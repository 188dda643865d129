"""Golden: what a spec means must not change unless its version does.

A changed line here means old records no longer answer the question that their key asks. Raise the class's ``version``,
write the change into CHANGELOG, then run ``python tests/golden/record.py``.
"""

import json
from pathlib import Path

import pytest
from record import FILE, meanings

HELD = json.loads(Path(FILE).read_text())
NOW = meanings()


def test_every_registered_spec_is_held() -> None:
    assert HELD.keys() == NOW.keys()


@pytest.mark.parametrize("name", NOW)
def test_meaning_changes_only_with_the_version(name: str) -> None:
    held, now = HELD[name], NOW[name]
    if now["version"] == held["version"]:
        removed = {field: text for field, text in held["fields"].items() if now["fields"].get(field) != text}
        assert not removed, f"fields of {name} changed; raise its version"
        assert now.get("draws") == held.get("draws"), f"what {name} draws changed; raise its version"
        assert now["key"] == held["key"], f"the key of {name} changed; raise its version"
    else:
        pytest.fail(f"{name} has a new version: run python tests/golden/record.py and commit the file")
