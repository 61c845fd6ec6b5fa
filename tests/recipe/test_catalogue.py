"""Recipes by name: a person's own files first, then those that ship with synmt."""

import pytest
from shipped import PATHS, ROOT

from synmt.errors import UsageError
from synmt.recipe import catalogue
from synmt.recipe.catalogue import find_recipe, shipped_folder, shipped_recipes
from synmt.recipe.load import load_recipe

OWN = "extends: {base}\ntraining: {{seed: 77}}\n"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["nc11-pascal", "nc11-pascal.yaml"])
def test_a_name_gives_the_shipped_recipe(name):
    assert load_recipe(name) == load_recipe(ROOT / "recipes" / "nc11-pascal.yaml")


@pytest.mark.parametrize("name", ["nc11-pascal-ignore0.3", "ablations/nc11-pascal-ignore0.3"])
def test_a_recipe_in_a_folder_is_found_with_and_without_the_folder(name):
    recipe = load_recipe(name, ["training.max_steps=3"])
    assert (recipe.name, recipe.training.max_steps) == ("nc11-pascal-ignore0.3", 3)
    assert recipe.syntax.variants[0].options["ignore"] == 0.3


@pytest.mark.parametrize(
    "base", ["nc11-pascal", "nc11-pascal.yaml", "ablations/nc11-pascal-heads3"]
)
def test_a_persons_recipe_extends_a_shipped_one(tmp_path, base):
    (tmp_path / "mine.yaml").write_text(OWN.format(base=base), encoding="utf-8")
    recipe = load_recipe("mine.yaml")
    assert (recipe.name, recipe.training.seed) == ("mine", 77)
    assert recipe.training.betas == load_recipe("nc11-base").training.betas


def test_an_installed_package_has_the_recipes_inside(tmp_path, monkeypatch):
    (tmp_path / "synmt" / "recipe").mkdir(parents=True)
    (tmp_path / "synmt" / "recipes").mkdir()
    monkeypatch.setattr(catalogue, "__file__", str(tmp_path / "synmt" / "recipe" / "catalogue.py"))
    assert shipped_folder() == tmp_path / "synmt" / "recipes"


def test_what_is_neither_file_nor_name_is_not_found(tmp_path):
    (tmp_path / "folder").mkdir()
    assert find_recipe(tmp_path / "folder") is None
    assert find_recipe(tmp_path / "nc11-pascal") is None


def test_every_shipped_recipe_has_a_file_and_a_name_of_its_own():
    assert shipped_folder() == ROOT / "recipes"
    shipped = shipped_recipes()
    assert {path.name.removesuffix(".yaml") for path in shipped.values()} == PATHS.keys()
    assert len(PATHS) == len(shipped) == len(list((ROOT / "recipes").rglob("*.yaml")))
    ablation = "ablations/nc11-pascal-heads3"
    assert shipped[ablation] == ROOT / f"recipes/{ablation}.yaml"


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
nc11-pasca   ^nc11-pasca: file not found, and no recipe of this name ships with synmt\. Did you mean
nc11-pasca.yaml   ^nc11-pasca\.yaml: file not found, and no recipe .* mean 'nc11-pascal'\?$
nc11-pascal-head3   ships with synmt\. Did you mean 'ablations/nc11-pascal-heads3'\?$
ablations/nc11-pascal-head3   ships with synmt\. Did you mean 'ablations/nc11-pascal-heads3'\?$
recipes/nc11-pascal.yaml   ^recipes/nc11-pascal\.yaml: file not found\. Did you mean 'nc11-pascal'
elsewhere/zzzz.yaml   ^elsewhere/zzzz\.yaml: file not found\.$
qqqqqq   ships with synmt\. `synmt train --list` shows all names\.$
mine.yaml   ^mine\.yaml extends nc11-bas: .* ships with synmt\. Did you mean 'nc11-base'\?$
"""


@pytest.mark.parametrize("line", NOWHERE.strip().splitlines())
def test_a_recipe_that_is_nowhere_is_refused_with_the_nearest_name(tmp_path, line):
    (tmp_path / "mine.yaml").write_text(OWN.format(base="nc11-bas"), encoding="utf-8")
    name, message = line.split("   ")
    with pytest.raises(UsageError, match=message):
        load_recipe(name)
