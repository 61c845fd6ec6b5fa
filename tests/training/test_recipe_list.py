"""The table of `synmt train --list`: what it says of each recipe, and which recipes some words
choose."""

import re

import pytest
from shipped import PATHS, ROOT, rows

from synmt.training.recipe_list import recipe_table

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory):
    """Make an empty folder for texts; the cache is empty too."""
    folder = tmp_path_factory.mktemp("list")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_CACHE", str(folder / "cache"))
        patch.setenv("SYNMT_DATA", str(folder / "data"))
        yield folder / "data"


def by_name(*words):
    """List the rows of recipes by the names of their files."""
    rows = (dict(zip(COLUMNS, row, strict=True)) for row in recipe_table(words).rows)
    return {row["recipe"].rpartition("/")[2]: row for row in rows}


COLUMNS = ("recipe", "system", "corpus", "pairs", "reported", "text")


@pytest.fixture(scope="module")
def entries(data):
    return by_name()


def test_every_recipe_has_the_figure_that_the_page_of_recipes_gives(entries):
    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    reported = dict(
        re.findall(r"^\| \[`(.+?)`\]\(.+?\) \|.*\| (.*?) \|$", page, flags=re.MULTILINE)
    )
    assert entries.keys() == PATHS.keys()
    for name, figure in reported.items():
        assert (entries[name]["reported"] or "") == figure.replace("–", ""), name


def test_the_corpus_has_its_languages_and_the_papers_number_of_pairs(entries):
    nc11, multi30k = entries["nc11-deen-pascal"], entries["multi30k-tiny"]
    assert [*nc11.values()] == [
        *("nc11-deen-pascal", "pascal", "nc11 de-en", 238_843, "27.4", "missing"),
    ]
    assert (multi30k["corpus"], multi30k["pairs"]) == ("multi30k en-de", 29_000)


SYSTEMS = """
nc11-base transformer
nc11-pascal pascal
nc11-multitask transformer + multi-task
multi30k-lstm lstm
multi30k-sa latent_tree
multi30k-dbsa-both dbsa
multi30k-mixture pascal + dependency_distribution + relative + dbsa
multi30k-pascal-random pascal (random)
multi30k-pascal-rewired50 pascal (rewired)
"""


def test_the_system_is_named_as_in_recipes(entries):
    for name, system in rows(SYSTEMS, cells=2):
        assert entries[name]["system"] == system


def test_words_choose_recipes_by_name_system_corpus_and_comment_in_any_case(data):
    endings = ("", "-separate", "-1set", "-hard")
    assert by_name("sa-nmt", "UN Russian").keys() == {f"un-ruar-sa{end}" for end in endings}
    assert {row["system"] for row in by_name("PASCAL", "wmt17-ende-pa").values()} == {"pascal"}
    assert not by_name("no such words")


def test_the_order_is_that_of_the_names_with_ablations_last(entries):
    names = [entry["recipe"] for entry in entries.values()]
    assert names == sorted(names, key=lambda name: ("/" in name, name))
    assert all(name.startswith("ablations/") for name in names if "/" in name)


def test_a_text_is_there_when_all_its_files_are(data, monkeypatch):
    # the table of one recipe, seven times
    only = {"nc11-base": PATHS["nc11-base"]}
    monkeypatch.setattr("synmt.training.recipe_list.shipped_recipes", lambda: only)
    (data / "nc11").mkdir(parents=True)
    files = "train.en train.de newstest2015.en newstest2015.de newstest2016.en newstest2016.de.gz"
    for file in files.split():
        assert by_name("nc11-base")["nc11-base"]["text"] == "missing"
        (data / "nc11" / file).touch()
    assert by_name("nc11-base")["nc11-base"]["text"] == "local"
