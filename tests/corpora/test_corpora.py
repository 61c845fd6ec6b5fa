"""Where corpora are found: by name, in a folder, by their files; fetched, checked, or asked for."""

import functools
import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from cases import cases
from corpus_server import come_online
from preparing import recipe_of
from refusing import assert_refused
from resolving import resolved
from test_architecture import MODULES, imports_of

from synmt.controlled import corpus as controlled
from synmt.corpora.known import SplitPlan
from synmt.corpora.known_text import KnownText
from synmt.training.tree_sources import TreeRequirements, all_given_trees


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Keep the machine's own corpora and cache out of the tests."""
    come_online(monkeypatch, tmp_path / "cache")


def write(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(gzip.compress(b"a\n") if name.endswith("gz") else b"a\n")


NOT_THERE = """
name => multi3k => de => Did you mean 'multi30k'
name => multi30k => ja => multi30k has no language pair .* Any two of en, de, fr
name => multi30k => en => multi30k has no language pair .* Any two of en, de, fr
folder => nowhere => de => nowhere: corpus.folder: there is no such folder
"""


@pytest.mark.parametrize(("kind", "name", "target", "message"), cases(NOT_THERE))
def test_a_corpus_that_is_not_there_is_refused(kind, name, target, message):
    assert_refused(
        message,
        resolved,
        "en",
        target,
        **{kind: name},
    )


# fetching


def test_an_entity_that_is_a_line_end_leaves_one_line():
    source = SimpleNamespace(pairs=lambda _: [("a&#10;b &NewLine;c", "A&amp;B"), ("d&#13;", "D")])
    plan = SplitPlan(splits=("train",), sources=(source,), clean=(("unescaped",),))
    assert [pair for _, pair in plan.pairs(("en", "de"))] == [("a b c", "A&B"), ("d", "D")]


# the controlled corpus


def make_small(patch):
    """Make the controlled corpus a small one."""
    small = functools.partial(controlled.generate, train=9, valid=3, test=8)
    patch.setattr(controlled, "generate", small)
    small_hard = functools.partial(controlled.generate_hard, size=2)
    patch.setattr(controlled, "generate_hard", small_hard)


def test_the_controlled_corpus_is_made_once_with_gold_trees_and_labels(monkeypatch):
    make_small(monkeypatch)
    corpus = resolved(name="controlled")
    assert corpus.train.source_parses.read_text().count("# text = ") == 9
    assert corpus.test["test"].labels.read_text().count("\n") == 8 + 1
    monkeypatch.setattr(controlled, "generate", lambda: pytest.fail("made twice"))
    assert resolved(name="controlled") == corpus
    back = resolved("de", "en", name="controlled").train
    assert (back.source, back.source_parses) == (corpus.train.target, None)


def test_your_own_part_of_the_controlled_corpus_wins_and_the_rest_is_generated(
    monkeypatch, tmp_path
):
    make_small(monkeypatch)
    monkeypatch.setenv("SYNMT_DATA", str(tmp_path))
    write(tmp_path / "controlled", "train.en", "train.de")
    corpus = resolved(name="controlled")
    # the generated trees are those of the generated text
    parses = corpus.train.source_parses, corpus.valid.source_parses is None
    assert (corpus.train.source.parent, *parses) == (tmp_path / "controlled", None, False)


def test_the_controlled_corpus_is_made_by_one_process_while_others_wait(monkeypatch):
    make_small(monkeypatch)
    begun, looked, made = threading.Barrier(2), threading.local(), []
    missing, small = KnownText.missing, controlled.generate

    def look_together(self):
        names = missing(self)
        if not hasattr(looked, "once"):
            looked.once = begun.wait(timeout=20)
        return names

    def find(_):
        return resolved(name="controlled")

    monkeypatch.setattr(controlled, "generate", lambda **settings: made.append(1) or small())
    monkeypatch.setattr(KnownText, "missing", look_together)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(find, range(2))
    assert (first == second, made) == (True, [1])


@pytest.mark.parametrize("train", [None, "controlled", {"id": "controlled", "lines": 5}])
def test_trees_of_a_known_corpus_are_gold_trees_however_it_is_named(train, monkeypatch):
    make_small(monkeypatch)
    text = {"train": train, "valid": "controlled", "test": ["controlled"]}
    text = text if train else {"name": "controlled"}
    recipe, gold = recipe_of(corpus=text), recipe_of(corpus=text, parser={"control": "gold"})
    corpus = resolved(**text)
    needs = TreeRequirements(to_run=True, to_learn=False)
    assert all_given_trees(recipe, corpus, "source", needs) == {}
    if isinstance(train, dict):
        without = r"mix-.*train\.en: parser\.control is gold, but this text comes without"
        assert_refused(without, all_given_trees, gold, corpus, "source", needs)
    else:
        assert set(all_given_trees(gold, corpus, "source", needs)) == {"train", "valid", "test"}


# folders and files


@pytest.mark.parametrize("valid", ["valid", "val", "dev"])
def test_a_folder_has_its_splits_by_name(tmp_path, valid):
    folder = tmp_path / "my corpus"
    names = f"""train.en train.de.gz {valid}.en {valid}.de test.en test.de test_2.en test_2.de
        train.en.conllu test_2.labels.tsv"""
    write(folder, *names.split())
    corpus = resolved(folder=folder)
    assert (corpus.name, list(corpus.test)) == ("my_corpus", ["test", "test_2"])
    assert (corpus.train.source_parses, corpus.test["test_2"].labels, corpus.valid.target) == tuple(
        folder / name for name in ("train.en.conllu", "test_2.labels.tsv", f"{valid}.de")
    )


def test_a_folder_of_one_language_says_which_side_a_file_is(tmp_path):
    write(tmp_path / "mine", *["train.source.en", "train.target.en", "test.source.en"])
    assert_refused(
        r"valid\.source\.en and valid\.target\.en must be there",
        resolved,
        "en",
        "en",
        folder=tmp_path / "mine",
    )
    write(tmp_path / "mine", "valid.source.en", "valid.target.en", "test.target.en")
    corpus = resolved("en", "en", folder=tmp_path / "mine")
    assert list(corpus.test) == ["test"]
    assert corpus.train.target.name == "train.target.en"


def test_files_that_are_missing_are_named_all_at_once(tmp_path):
    write(tmp_path, "a.en", "a.de")
    good = {"source": tmp_path / "a.en", "target": tmp_path / "a.de"}
    bad = good | {"source": tmp_path / "b.en", "source_parses": tmp_path / "b.conllu"}
    for end, key in (("en", "source"), ("conllu", "source_parses")):
        message = rf"b\.{end}: the file of corpus\.test\.news\.{key} is missing"
        assert_refused(message, resolved, train=good, valid=good, test={"news": bad})


def test_translation_builds_no_corpus():
    modules, waiting = set(), ["synmt.decode.translator"]
    while waiting:
        name = waiting.pop()
        if name not in modules and name in MODULES:
            modules.add(name)
            waiting += imports_of(MODULES[name])
    assert "synmt.data.task_corpus" in modules
    assert not modules & {"synmt.corpora.resolve", "synmt.data.encoding"}
