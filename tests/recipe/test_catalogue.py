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


def test_every_shipped_recipe_has_its_file_as_its_name():
    assert shipped_folder() == ROOT / "recipes"
    assert sorted(path.stem for path in shipped_recipes().values()) == sorted(
        path.stem for path in (ROOT / "recipes").rglob("*.yaml")
    )
    assert (
        shipped_recipes()["ablations/nc11-pascal-heads3"]
        == ROOT / "recipes/ablations/nc11-pascal-heads3.yaml"
    )


@pytest.mark.parametrize("name", ["nc11-pascal", "nc11-pascal.yaml"])
def test_a_name_gives_the_shipped_recipe(name):
    assert load_recipe(name) == load_recipe(ROOT / "recipes" / "nc11-pascal.yaml")


@pytest.mark.parametrize("name", ["nc11-pascal-ignore0.3", "ablations/nc11-pascal-ignore0.3"])
def test_a_recipe_in_a_folder_is_found_with_and_without_the_folder(name):
    recipe = load_recipe(name, ["training.max_steps=3"])
    assert (recipe.name, recipe.training.max_steps) == ("nc11-pascal-ignore0.3", 3)
    assert recipe.syntax.variants[0].options["ignore"] == 0.3


def test_no_two_shipped_recipes_have_one_name_so_that_a_bare_name_is_enough():
    assert len({path.stem for path in PATHS.values()}) == len(shipped_recipes())


@pytest.mark.parametrize("own", ["nc11-pascal", "nc11-pascal.yaml"])
def test_a_file_comes_before_a_shipped_recipe(tmp_path, own):
    (tmp_path / own).write_text(
        "source: en\ntarget: de\ncorpus: {name: controlled}\n", encoding="utf-8"
    )
    assert load_recipe("nc11-pascal").corpus.name == "controlled"


def test_a_folder_of_the_same_name_hides_no_recipe(tmp_path):
    (tmp_path / "nc11-pascal").mkdir()
    assert load_recipe("nc11-pascal").corpus.name == "nc11"


@pytest.mark.parametrize(
    "base", ["nc11-pascal", "nc11-pascal.yaml", "ablations/nc11-pascal-heads3"]
)
def test_a_persons_recipe_extends_a_shipped_one(tmp_path, base):
    (tmp_path / "mine.yaml").write_text(OWN.format(base=base), encoding="utf-8")
    recipe = load_recipe("mine.yaml")
    assert (recipe.name, recipe.training.seed) == ("mine", 77)
    assert recipe.training.betas == load_recipe("nc11-base").training.betas


def test_what_lies_beside_a_recipe_is_extended_before_a_shipped_one(tmp_path):
    (tmp_path / "nc11-base.yaml").write_text(
        "source: en\ntarget: de\ncorpus: {folder: mine}\n", encoding="utf-8"
    )
    (tmp_path / "mine.yaml").write_text(OWN.format(base="nc11-base"), encoding="utf-8")
    assert load_recipe("mine").corpus.folder is not None


def test_a_recipe_may_have_the_name_of_the_shipped_one_that_it_extends(tmp_path):
    (tmp_path / "nc11-pascal.yaml").write_text(OWN.format(base="nc11-pascal"), encoding="utf-8")
    recipe = load_recipe("nc11-pascal")
    assert (recipe.training.seed, recipe.corpus.name) == (77, "nc11")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "nc11-pasca",
            r"^nc11-pasca: file not found, and no recipe of this name ships with synmt\. Did you "
            r"mean 'nc11-pa",
        ),
        (
            "nc11-pasca.yaml",
            r"^nc11-pasca\.yaml: file not found, and no recipe of this .* Did you mean "
            r"'nc11-pascal'\?$",
        ),
        ("nc11-pascal-head3", r"ships with synmt\. Did you mean 'ablations/nc11-pascal-heads3'\?$"),
        (
            "ablations/nc11-pascal-head3",
            r"ships with synmt\. Did you mean 'ablations/nc11-pascal-heads3'\?$",
        ),
        (
            "recipes/nc11-pascal.yaml",
            r"^recipes/nc11-pascal\.yaml: file not found\. Did you mean 'nc11-pascal'\?$",
        ),
        ("elsewhere/zzzz.yaml", r"^elsewhere/zzzz\.yaml: file not found\.$"),
        ("qqqqqq", r"ships with synmt\. `synmt train --list` shows all names\.$"),
    ],
)
def test_a_recipe_that_is_nowhere_is_refused_with_the_nearest_name(given, said):
    with pytest.raises(UsageError, match=said):
        load_recipe(given)


def test_a_base_that_is_nowhere_names_the_recipe_that_extends_it(tmp_path):
    (tmp_path / "mine.yaml").write_text(OWN.format(base="nc11-bas"), encoding="utf-8")
    with pytest.raises(
        UsageError,
        match=r"^mine\.yaml extends nc11-bas: .* ships with synmt\. Did you mean 'nc11-base'\?$",
    ):
        load_recipe("mine.yaml")


def test_an_installed_package_has_the_recipes_inside(tmp_path, monkeypatch):
    (tmp_path / "synmt" / "recipe").mkdir(parents=True)
    (tmp_path / "synmt" / "recipes").mkdir()
    monkeypatch.setattr(catalogue, "__file__", str(tmp_path / "synmt" / "recipe" / "catalogue.py"))
    assert shipped_folder() == tmp_path / "synmt" / "recipes"


def test_what_is_neither_file_nor_name_is_not_found(tmp_path):
    (tmp_path / "folder").mkdir()
    assert find_recipe(tmp_path / "folder") is None
    assert find_recipe(tmp_path / "nc11-pascal") is None
