"""Where corpora are found: by name, in a folder, by their files; fetched, checked, or asked for."""

import functools
from pathlib import Path

import pytest
from test_architecture import MODULES, imports_of

from synmt.corpora.controlled import corpus as controlled
from synmt.corpora.known import KNOWN_CORPORA
from synmt.corpora.resolve import resolve_corpus
from synmt.errors import UsageError
from synmt.recipe.corpus import CorpusRecipe, SplitFiles


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Keep the machine's own corpora and cache out of the tests."""
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SYNMT_DATA", raising=False)
    monkeypatch.delenv("SYNMT_OFFLINE", raising=False)


def write(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("a\n")


def test_a_known_corpus_is_taken_from_the_data_folder_before_the_cache(tmp_path, monkeypatch):
    for folder in (tmp_path / "data" / "tanaka-enja", tmp_path / "cache" / "corpora" / "tanaka-enja"):
        write(folder, "train.en", "train.ja.gz", "dev.en", "dev.ja")
    cached = resolve_corpus(CorpusRecipe(name="tanaka-enja"), "en", "ja")
    assert cached.train.source == tmp_path / "cache" / "corpora" / "tanaka-enja" / "train.en"
    monkeypatch.setenv("SYNMT_DATA", str(tmp_path / "data"))
    found = resolve_corpus(CorpusRecipe(name="tanaka-enja"), "en", "ja")
    folder = tmp_path / "data" / "tanaka-enja"
    assert found.train == SplitFiles(source=folder / "train.en", target=folder / "train.ja.gz")
    assert found.valid.source.name == "dev.en"


@pytest.mark.parametrize("name", [name for name in KNOWN_CORPORA if name != "controlled"])
def test_every_known_corpus_works_in_both_directions(name, tmp_path, monkeypatch):
    known = KNOWN_CORPORA[name]
    splits = ("train", known.valid, *known.test)
    write(tmp_path / name, *(f"{split}.{language}" for split in splits for language in known.languages))
    monkeypatch.setenv("SYNMT_DATA", str(tmp_path))
    first, second = known.languages[:2]
    there, back = (resolve_corpus(CorpusRecipe(name=name), *pair) for pair in ((first, second), (second, first)))
    assert there.train.source == back.train.target
    assert there.valid.target == back.valid.source
    assert tuple(back.test) == known.test


@pytest.mark.parametrize(
    ("corpus", "pair", "message"),
    [
        ({"name": "multi3k"}, ("en", "de"), "Did you mean 'multi30k'"),
        ({"name": "multi30k"}, ("en", "ja"), r"multi30k has no pair .* Any two of en, de, fr"),
        ({"name": "multi30k"}, ("en", "en"), r"multi30k has no pair .* Any two of en, de, fr"),
        ({"folder": Path("nowhere")}, ("en", "de"), "nowhere: the folder"),
    ],
    ids=["unknown name", "unknown language", "one language", "missing folder"],
)
def test_a_corpus_that_is_not_there_is_refused(corpus, pair, message):
    with pytest.raises(UsageError, match=message):
        resolve_corpus(CorpusRecipe(**corpus), *pair)


# the controlled corpus


def test_the_controlled_corpus_is_made_once_with_gold_trees_and_labels(monkeypatch):
    small = functools.partial(controlled.generate, train=9, valid=3, test=8)
    monkeypatch.setattr(controlled, "generate", small)
    corpus = resolve_corpus(CorpusRecipe(name="controlled"), "en", "de")
    assert len(corpus.train.source.read_text().splitlines()) == 9
    assert corpus.train.source_parses.read_text().count("# text = ") == 9
    assert corpus.test["test"].labels.read_text().count("\n") == 8 + 1
    monkeypatch.setattr(controlled, "generate", lambda: pytest.fail("made twice"))
    assert resolve_corpus(CorpusRecipe(name="controlled"), "en", "de") == corpus
    back = resolve_corpus(CorpusRecipe(name="controlled"), "de", "en")
    assert back.train.source == corpus.train.target
    assert back.train.source_parses is None


# folders and files


@pytest.mark.parametrize("valid", ["valid", "val", "dev"])
def test_a_folder_has_its_splits_by_name(tmp_path, valid):
    folder = tmp_path / "my corpus"
    names = ["train.en.gz", "train.de", f"{valid}.en", f"{valid}.de", "test.en", "test.de", "test_2.en", "test_2.de"]
    write(folder, *names, "train.en.conllu", "test_2.labels.tsv")
    corpus = resolve_corpus(CorpusRecipe(folder=folder), "en", "de")
    assert corpus.name == "my_corpus"
    assert corpus.train.source_parses == folder / "train.en.conllu"
    assert corpus.valid.target == folder / f"{valid}.de"
    assert list(corpus.test) == ["test", "test_2"]
    assert corpus.test["test_2"].labels == folder / "test_2.labels.tsv"


def test_a_folder_without_some_files_names_all_of_them(tmp_path):
    write(tmp_path / "mine", "train.en", "test.en")
    with pytest.raises(UsageError) as caught:
        resolve_corpus(CorpusRecipe(folder=tmp_path / "mine"), "en", "de")
    for name in ("train.de", "valid.en", "valid.de", "test.de"):
        assert f"no {name} and no {name}.gz" in str(caught.value)


def test_files_that_are_missing_are_named_all_at_once(tmp_path):
    write(tmp_path, "a.en", "a.de")
    good = SplitFiles(source=tmp_path / "a.en", target=tmp_path / "a.de")
    bad = SplitFiles(source=tmp_path / "b.en", target=tmp_path / "a.de", source_parses=tmp_path / "b.conllu")
    recipe = CorpusRecipe(train=good, valid=good, test={"news": bad})
    with pytest.raises(UsageError) as caught:
        resolve_corpus(recipe, "en", "de")
    assert "b.en: the file of corpus.test.news.source is missing" in str(caught.value)
    assert "b.conllu: the file of corpus.test.news.source_parses is missing" in str(caught.value)
    assert resolve_corpus(CorpusRecipe(train=good, valid=good), "en", "de").train == good


def test_translation_imports_no_downloads():
    modules, waiting = set(), ["synmt.decode.translator"]
    while waiting:
        name = waiting.pop()
        if name not in modules and name in MODULES:
            modules.add(name)
            waiting += imports_of(MODULES[name])
    assert "synmt.data.tasks" in modules
    assert not modules & {"synmt.corpora.resolve", "synmt.data.encoding", "synmt.corpora.download"}
