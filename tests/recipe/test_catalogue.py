"""Recipes by name: a person's own files first, then those that ship with synmt."""

import pytest
from refusing import assert_refused
from shipped import PATHS, ROOT

from synmt.recipe.catalogue import shipped_folder, shipped_recipes
from synmt.recipe.load import load_recipe

OWN = "extends: {base}\ntraining: {{seed: 77}}\n"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("folder", ["", "ablations/"])
@pytest.mark.parametrize("ending", ["", ".yaml"])
def test_a_recipe_is_given_or_extended_by_the_name_of_a_shipped_one(tmp_path, folder, ending):
    base = f"{folder}nc11-pascal-heads3{ending}"
    shipped = load_recipe(ROOT / "recipes/ablations/nc11-pascal-heads3.yaml")
    assert load_recipe(base) == shipped
    (tmp_path / "mine.yaml").write_text(OWN.format(base=base), encoding="utf-8")
    recipe = load_recipe("mine.yaml")
    assert (recipe.name, recipe.training.seed) == ("mine", 77)
    assert recipe.syntax == shipped.syntax


def test_every_shipped_recipe_has_a_file_and_a_name_of_its_own():
    assert shipped_folder() == ROOT / "recipes"
    shipped = shipped_recipes()
    assert {path.name.removesuffix(".yaml") for path in shipped.values()} == PATHS.keys()
    assert len(PATHS) == len(shipped) == len(list((ROOT / "recipes").rglob("*.yaml")))


MINE = "source: en\ntarget: de\ncorpus: {name: controlled}\n"


def test_a_file_comes_before_a_shipped_recipe_and_a_folder_does_not(tmp_path):
    (tmp_path / "nc11-pascal").mkdir()
    assert load_recipe("nc11-pascal").corpus.name == "nc11"
    (tmp_path / "nc11-pascal.yaml").write_text(MINE, encoding="utf-8")
    assert load_recipe("nc11-pascal").corpus.name == "controlled"
    # also where another one extends it
    (tmp_path / "mine.yaml").write_text(OWN.format(base="nc11-pascal"), encoding="utf-8")
    assert load_recipe("mine").corpus.name == "controlled"
    # and it may extend the shipped recipe that has its name
    (tmp_path / "nc11-pascal.yaml").write_text(OWN.format(base="nc11-pascal"), encoding="utf-8")
    recipe = load_recipe("nc11-pascal")
    assert (recipe.training.seed, recipe.corpus.name) == (77, "nc11")


NOWHERE = r"""
nc11-pasca   ^there is no file or shipped recipe 'nc11-pasca'\. Did you mean 'nc11-pascal'\?$
nc11-pasca.yaml   recipe 'nc11-pasca\.yaml'\. Did you mean 'nc11-pascal'\?$
ablations/nc11-pascal-head3   Did you mean 'nc11-pascal-heads3'\?$
recipes/nc11-pascal.yaml   Did you mean 'nc11-pascal'\?$
qqqqqq   `synmt train --list` shows all names\.?$
mine.yaml   ^mine\.yaml: extends: .* 'nc11-bas'\. Did you mean 'nc11-base'\?$
"""


@pytest.mark.parametrize("line", NOWHERE.strip().splitlines())
def test_a_recipe_that_is_nowhere_is_refused_with_the_nearest_name(tmp_path, line):
    (tmp_path / "mine.yaml").write_text(OWN.format(base="nc11-bas"), encoding="utf-8")
    name, message = line.split("   ")
    assert_refused(message, load_recipe, name)
