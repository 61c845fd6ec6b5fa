"""The table of `synmt train --list`: what it says of each recipe, and which recipes some words choose."""

import re

import pytest
from shipped import PATHS, ROOT

from synmt.training.recipe_list import COLUMNS, list_recipes

pytestmark = pytest.mark.journey


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SYNMT_DATA", str(tmp_path / "data"))


def named(*words):
    return {entry.name.rpartition("/")[2]: entry for entry in list_recipes(words)}


def test_every_recipe_has_the_figure_that_the_page_of_recipes_gives():
    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    reported = dict(re.findall(r"^\| \[`(.+?)`\]\(.+?\) \|.*\| (.*?) \|$", page, flags=re.MULTILINE))
    entries = named()
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
def test_the_system_is_named_as_in_recipes(name, system):
    assert named(name)[name].system == system


def test_the_corpus_has_its_languages_and_the_papers_number_of_pairs():
    nc11, multi30k = named("nc11-deen-pascal")["nc11-deen-pascal"], named("multi30k-tiny")["multi30k-tiny"]
    assert (nc11.corpus, nc11.pairs) == ("nc11 de-en", 238_843)
    assert (multi30k.corpus, multi30k.pairs) == ("multi30k en-de", 29_000)
    assert nc11.row() == ["nc11-deen-pascal", "pascal", "nc11 de-en", "238,843", "27.4", "to do"]


def test_words_choose_recipes_by_name_system_corpus_and_comment_in_any_case():
    assert set(named("sa-nmt", "UN Russian")) == {f"un-ruar-sa{end}" for end in ("", "-separate", "-1set", "-hard")}
    assert all(entry.system == "pascal" for entry in named("PASCAL", "wmt17-ende-pascal").values())
    assert not named("no such words")


def test_the_order_is_that_of_the_names_with_ablations_last():
    names = [entry.name for entry in list_recipes()]
    first = next(index for index, name in enumerate(names) if "/" in name)
    assert names[:first] == sorted(names[:first])
    assert names[first:] == sorted(names[first:])
    assert all(name.startswith("ablations/") for name in names[first:])


def test_a_text_is_there_when_all_its_files_are(tmp_path):
    folder = tmp_path / "data" / "nc11"
    folder.mkdir(parents=True)
    files = [f"{split}.{language}" for split in ("train", "newstest2015", "newstest2016") for language in ("en", "de")]
    for file in files[:-1]:
        (folder / file).touch()
    assert named("nc11-base")["nc11-base"].missing == (files[-1],)
    (folder / f"{files[-1]}.gz").touch()
    assert named("nc11-base")["nc11-base"].row()[-1] == "there"
    assert len(COLUMNS) == len(named("nc11-base")["nc11-base"].row())
