"""The table of `synmt train --list`: what it says of each recipe, and which recipes some words
choose."""

import re

import pytest
from shipped import PATHS, ROOT

from synmt.training.recipe_list import list_recipes, recipe_table

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory):
    """Make an empty folder for texts; the cache is empty too."""
    folder = tmp_path_factory.mktemp("list")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_CACHE", str(folder / "cache"))
        patch.setenv("SYNMT_DATA", str(folder / "data"))
        yield folder / "data"


@pytest.fixture(scope="module")
def everything(data):
    """List all recipes."""
    return list_recipes()


@pytest.fixture(scope="module")
def entries(everything):
    """List all recipes by the names of their files."""
    return by_name(everything)


def by_name(listed):
    return {entry.name.rpartition("/")[2]: entry for entry in listed}


def test_every_recipe_has_the_figure_that_the_page_of_recipes_gives(entries):
    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    reported = dict(
        re.findall(r"^\| \[`(.+?)`\]\(.+?\) \|.*\| (.*?) \|$", page, flags=re.MULTILINE)
    )
    assert entries.keys() == PATHS.keys()
    for name, figure in reported.items():
        assert entries[name].reported == figure.replace("–", ""), name


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("nc11-base", "transformer"),
        ("nc11-pascal", "pascal"),
        ("nc11-multitask", "transformer + multi-task"),
        ("multi30k-lstm", "lstm"),
        ("multi30k-sa", "latent_tree"),
        ("multi30k-dbsa-both", "dbsa"),
        ("multi30k-mixture", "pascal + dependency_distribution + relative + dbsa"),
        ("multi30k-pascal-random", "pascal (random)"),
        ("multi30k-pascal-rewired50", "pascal (rewired)"),
    ],
)
def test_the_system_is_named_as_in_recipes(entries, name, system):
    assert entries[name].system == system


def test_the_corpus_has_its_languages_and_the_papers_number_of_pairs(entries):
    nc11, multi30k = entries["nc11-deen-pascal"], entries["multi30k-tiny"]
    assert (nc11.corpus, nc11.pairs) == ("nc11 de-en", 238_843)
    assert (multi30k.corpus, multi30k.pairs) == ("multi30k en-de", 29_000)
    assert recipe_table([nc11]).rows == [
        ["nc11-deen-pascal", "pascal", "nc11 de-en", 238_843, "27.4", "missing"]
    ]


def test_words_choose_recipes_by_name_system_corpus_and_comment_in_any_case(everything):
    russian = [entry for entry in everything if entry.matches(["sa-nmt", "UN Russian"])]
    assert list_recipes(["sa-nmt", "UN Russian"]) == russian
    assert by_name(russian).keys() == {
        f"un-ruar-sa{end}" for end in ("", "-separate", "-1set", "-hard")
    }
    chosen = [entry for entry in everything if entry.matches(["PASCAL", "wmt17-ende-pascal"])]
    assert {entry.system for entry in chosen} == {"pascal"}
    assert not any(entry.matches(["no such words"]) for entry in everything)


def test_the_order_is_that_of_the_names_with_ablations_last(everything):
    names = [entry.name for entry in everything]
    first = next(index for index, name in enumerate(names) if "/" in name)
    assert names[:first] == sorted(names[:first])
    assert names[first:] == sorted(names[first:])
    assert all(name.startswith("ablations/") for name in names[first:])


def test_a_text_is_there_when_all_its_files_are(entries, data):
    folder = data / "nc11"
    folder.mkdir(parents=True)
    files = [
        f"{split}.{language}"
        for split in ("train", "newstest2015", "newstest2016")
        for language in ("en", "de")
    ]
    assert entries["nc11-base"].missing == tuple(files)
    for file in files[:-1]:
        (folder / file).touch()
    assert by_name(list_recipes(["nc11-base"]))["nc11-base"].missing == (files[-1],)
    (folder / f"{files[-1]}.gz").touch()
    assert by_name(list_recipes(["nc11-base"]))["nc11-base"].missing == ()
