"""The recipes of runs on a page."""

from __future__ import annotations

import yaml
from pages import Reader
from small_run import PASCAL, make_run

from synmt.analysis.run_facts import page_with_recipes
from synmt.recipe.load import check_recipe
from synmt.reporting.values import Report


def test_each_run_has_its_recipe_below_the_analyses(tmp_path):
    runs = [make_run(tmp_path / "plain", parser=False), make_run(tmp_path / "reader", PASCAL)]
    read = Reader(
        page_with_recipes(
            [Report(title="", parts=[], runs=[run.folder for run in runs])] * 2, ["synmt"]
        )
    )
    assert read.text["summary", ""] == ["Recipe of plain", "Recipe of reader"]
    for run, text in zip(runs, read.text["pre", ""], strict=False):
        assert check_recipe(yaml.safe_load(text), where="") == run.recipe()
