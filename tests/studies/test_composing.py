"""Composing: names and loose settings become a study, or an error that says what was meant."""

from typing import Any

import pytest

from fathometer.studies.composing import compose


def test_settings_find_their_place() -> None:
    study = compose(
        "copying",
        ["transformer"],
        {"depth": [1, 2], "heads": [4], "lengths": [[3, 5]], "share": [0.2], "learning_rate": [1e-3, 3e-3]},
        seeds=2,
    )
    assert [model.depth for model in study.models] == [1, 2]
    assert study.tasks[0].noise.share == 0.2
    assert [recipe.optimiser.learning_rate for recipe in study.recipes] == [1e-3, 3e-3]
    assert study.question == "How well does transformer learn copying?"


def test_full_paths_and_shorthands_work() -> None:
    study = compose("copying", ["transformer"], {"model.positions": ["rope"], "task.noise.reading": ["R0"]})
    assert study.models[0].positions.kind == "rope"
    assert study.tasks[0].noise.reading == "R0"


def test_every_combination_is_tried_at_every_seed() -> None:
    study = compose("copying", ["transformer"], {"depth": [1, 2], "width": [16, 32], "steps": [10, 20]}, seeds=3)
    assert len(study.wanted(None)) == 2 * 2 * 2 * 3


@pytest.mark.parametrize(
    ("models", "settings", "message"),
    [
        (["transformer"], {"dept": [1]}, "Nothing here has a setting 'dept': did you mean 'depth'"),
        (["transformer"], {"kind": ["rop"]}, r"Positions.kind = 'rop': input should be"),
        ([], {}, "Which model is to try 'copying'"),
        (["transformr"], {}, "no model named 'transformr': did you mean 'transformer'"),
        (["transformer"], {"heads": [3]}, "heads = 3 does not divide width = 64"),
        (["transformer"], {"positions": ["rope"], "positions.longest": [9]}, "were both given"),
        (["fathometer.tasks.copying:Copying"], {}, "is a task, and a model is needed here"),
        (["torch.nn:Linear"], {}, "a model is needed here"),
    ],
)
def test_mistakes_are_named(models: list[str], settings: dict[str, list[Any]], message: str) -> None:
    with pytest.raises((LookupError, ValueError), match=message):
        compose("copying", models, settings)
