"""Where corpora are found: by name, in a folder, by their files; fetched, checked, or asked for."""

import functools
import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from test_architecture import MODULES, imports_of

from synmt.controlled import corpus as controlled
from synmt.corpora.known import KNOWN_CORPORA, KnownCorpus, PublicSource, SplitPlan
from synmt.corpora.known_text import KnownText, known_text
from synmt.corpora.resolve import resolve
from synmt.errors import SynmtError, UsageError
from synmt.recipe.corpus import CorpusRecipe, SplitFiles
from synmt.recipe.load import check_recipe
from synmt.training.tree_sources.requirements import TreeRequirements, all_given_trees


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Keep the machine's own corpora and cache out of the tests."""
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SYNMT_DATA", raising=False)
    monkeypatch.delenv("SYNMT_OFFLINE", raising=False)


def made_of(train, val, **more):
    """Describe a corpus of two files for each language."""
    plans = [
        SplitPlan(splits=(split,), sources=(PublicSource(archive=(address,)),), **more)
        for split, address in (("train", train), ("val", val))
    ]
    return KnownCorpus(
        languages=("en", "de"), origin="a test", plans=tuple(plans), valid="val", test=()
    )


@pytest.fixture
def public(tmp_path, monkeypatch):
    """Make a small corpus public under an address of the local disk."""
    folder = tmp_path / "public"
    folder.mkdir()
    for name in ("train.en", "train.de", "val.en", "val.de"):
        (folder / f"{name}.gz").write_bytes(gzip.compress(f"{name}\n".encode()))
    monkeypatch.setitem(
        KNOWN_CORPORA,
        "public",
        made_of(f"{folder.as_uri()}/train.{{}}.gz", f"{folder.as_uri()}/val.{{}}.gz"),
    )
    return folder


def write(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("a\n")


def test_a_known_corpus_is_taken_from_the_data_folder_before_the_cache(tmp_path, monkeypatch):
    for folder in (
        tmp_path / "data" / "tanaka-enja",
        tmp_path / "cache" / "corpora" / "tanaka-enja",
    ):
        write(folder, "train.en", "train.ja.gz", "dev.en", "dev.ja")
    cached = resolve(CorpusRecipe(name="tanaka-enja"), "en", "ja")
    assert cached.train.source == tmp_path / "cache" / "corpora" / "tanaka-enja" / "train.en"
    monkeypatch.setenv("SYNMT_DATA", str(tmp_path / "data"))
    found = resolve(CorpusRecipe(name="tanaka-enja"), "en", "ja")
    folder = tmp_path / "data" / "tanaka-enja"
    assert found.train == SplitFiles(source=folder / "train.en", target=folder / "train.ja.gz")
    assert found.valid.source.name == "dev.en"


@pytest.mark.parametrize("name", [name for name in KNOWN_CORPORA if name != "controlled"])
def test_every_known_corpus_works_in_both_directions(name, tmp_path, monkeypatch):
    known = KNOWN_CORPORA[name]
    splits = ("train", known.valid, *known.test)
    write(
        tmp_path / name,
        *(f"{split}.{language}" for split in splits for language in known.languages),
    )
    monkeypatch.setenv("SYNMT_DATA", str(tmp_path))
    first, second = known.languages[:2]
    there, back = (
        resolve(CorpusRecipe(name=name), *pair) for pair in ((first, second), (second, first))
    )
    assert there.train.source == back.train.target
    assert there.valid.target == back.valid.source
    assert tuple(back.test) == known.test


def test_only_the_files_that_are_missing_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    write(
        tmp_path / "nc11",
        "train.en",
        "train.de",
        "newstest2015.en",
        "newstest2015.de",
        "newstest2016.en",
    )
    monkeypatch.setenv("SYNMT_DATA", str(tmp_path))
    with pytest.raises(SynmtError, match=r"your own newstest2016\.de, plain") as caught:
        resolve(CorpusRecipe(name="nc11"), "en", "de")
    assert "1 file of the corpus nc11 cannot be downloaded" in str(caught.value)


@pytest.mark.parametrize(
    ("corpus", "pair", "message"),
    [
        ({"name": "multi3k"}, ("en", "de"), "Did you mean 'multi30k'"),
        (
            {"name": "multi30k"},
            ("en", "ja"),
            r"multi30k has no language pair .* Any two of en, de, fr",
        ),
        (
            {"name": "multi30k"},
            ("en", "en"),
            r"multi30k has no language pair .* Any two of en, de, fr",
        ),
        (
            {"folder": Path("nowhere")},
            ("en", "de"),
            "nowhere: corpus.folder: there is no such folder",
        ),
    ],
    ids=["unknown name", "unknown language", "one language", "missing folder"],
)
def test_a_corpus_that_is_not_there_is_refused(corpus, pair, message):
    with pytest.raises(UsageError, match=message):
        resolve(CorpusRecipe(**corpus), *pair)


# fetching


def test_a_public_corpus_is_fetched_once(public, tmp_path):
    corpus = resolve(CorpusRecipe(name="public"), "de", "en")
    cache = tmp_path / "cache" / "corpora" / "public"
    assert corpus.train.source.read_bytes() == b"train.de\n"
    assert sorted(path.name for path in cache.iterdir()) == [
        "train.de",
        "train.en",
        "val.de",
        "val.en",
    ]
    for path in public.iterdir():
        path.unlink()
    assert resolve(CorpusRecipe(name="public"), "de", "en") == corpus


def test_an_entity_that_is_a_line_end_leaves_one_line(public, monkeypatch):
    (public / "dev.en").write_text("a&#10;b &NewLine;c\nd&#13;\n")
    (public / "dev.de").write_text("A&amp;B\nD\n")
    address = f"{public.as_uri()}/dev.{{}}"
    monkeypatch.setitem(KNOWN_CORPORA, "told", made_of(address, address, clean=(("unescaped",),)))
    corpus = resolve(CorpusRecipe(name="told"), "en", "de")
    assert (corpus.train.source.read_text(), corpus.train.target.read_text()) == (
        "a b c\nd\n",
        "A&B\nD\n",
    )


# the controlled corpus


def test_the_controlled_corpus_is_made_once_with_gold_trees_and_labels(monkeypatch):
    small = functools.partial(controlled.generate, train=9, valid=3, test=8)
    monkeypatch.setattr(controlled, "generate", small)
    corpus = resolve(CorpusRecipe(name="controlled"), "en", "de")
    assert len(corpus.train.source.read_text().splitlines()) == 9
    assert corpus.train.source_parses.read_text().count("# text = ") == 9
    assert corpus.test["test"].labels.read_text().count("\n") == 8 + 1
    monkeypatch.setattr(controlled, "generate", lambda: pytest.fail("made twice"))
    assert resolve(CorpusRecipe(name="controlled"), "en", "de") == corpus
    back = resolve(CorpusRecipe(name="controlled"), "de", "en")
    assert back.train.source == corpus.train.target
    assert back.train.source_parses is None


def test_your_own_part_of_the_controlled_corpus_wins_and_the_rest_is_generated(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(
        controlled, "generate", functools.partial(controlled.generate, train=9, valid=3, test=8)
    )
    monkeypatch.setenv("SYNMT_DATA", str(tmp_path))
    write(tmp_path / "controlled", "train.en", "train.de")
    corpus = resolve(CorpusRecipe(name="controlled"), "en", "de")
    assert corpus.train.source == tmp_path / "controlled" / "train.en"
    # the generated trees are those of the generated text
    assert corpus.train.source_parses is None
    assert corpus.valid.source_parses.read_text().count("# text = ") == 3


def test_the_controlled_corpus_is_made_by_one_process_while_others_wait(monkeypatch):
    begun, missing, looked = threading.Barrier(2), KnownText.missing, threading.local()
    made = []

    def look_together(self):
        names = missing(self)
        if not hasattr(looked, "once"):
            looked.once = begun.wait(timeout=20)
        return names

    def generate():
        made.append(1)
        return small()

    def find(_):
        text = known_text("controlled", ("en", "de"), ("train",))
        if not text.is_done():
            text.run()
        return text.files("train")

    small = functools.partial(controlled.generate, train=9, valid=3, test=8)
    monkeypatch.setattr(controlled, "generate", generate)
    monkeypatch.setattr(KnownText, "missing", look_together)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(find, range(2))
    assert first == second
    assert len(made) == 1


@pytest.mark.parametrize("train", [None, "controlled", {"id": "controlled", "lines": 5}])
def test_trees_of_a_known_corpus_are_gold_trees_however_it_is_named(train, monkeypatch):
    small = functools.partial(controlled.generate, train=9, valid=3, test=8)
    monkeypatch.setattr(controlled, "generate", small)
    text = (
        {"train": train, "valid": "controlled", "test": ["controlled"]}
        if train
        else {"name": "controlled"}
    )
    values = {"name": "r", "source": "en", "target": "de", "corpus": text}
    recipe = check_recipe(values, where="r.yaml")
    gold = check_recipe({**values, "parser": {"control": "gold"}}, where="r.yaml")
    corpus = resolve(recipe.corpus, "en", "de")
    needs = TreeRequirements(to_run=True, to_learn=False)
    assert all_given_trees(recipe, corpus, "source", needs) == {}
    if isinstance(train, dict):
        with pytest.raises(
            UsageError,
            match=r"mix-.*train\.en: parser\.control is gold, but this text comes without",
        ):
            all_given_trees(gold, corpus, "source", needs)
    else:
        assert set(all_given_trees(gold, corpus, "source", needs)) == {"train", "valid", "test"}


# folders and files


@pytest.mark.parametrize("valid", ["valid", "val", "dev"])
def test_a_folder_has_its_splits_by_name(tmp_path, valid):
    folder = tmp_path / "my corpus"
    names = [
        "train.en.gz",
        "train.de",
        f"{valid}.en",
        f"{valid}.de",
        "test.en",
        "test.de",
        "test_2.en",
        "test_2.de",
    ]
    write(folder, *names, "train.en.conllu", "test_2.labels.tsv")
    (folder / "train.en.gz").write_bytes(gzip.compress(b"a\n"))
    corpus = resolve(CorpusRecipe(folder=folder), "en", "de")
    assert corpus.name == "my_corpus"
    assert corpus.train.source_parses == folder / "train.en.conllu"
    assert corpus.valid.target == folder / f"{valid}.de"
    assert list(corpus.test) == ["test", "test_2"]
    assert corpus.test["test_2"].labels == folder / "test_2.labels.tsv"


def test_a_folder_of_one_language_says_which_side_a_file_is(tmp_path):
    write(
        tmp_path / "mine",
        "train.source.en",
        "train.target.en",
        "dev.source.en",
        "dev.target.en",
        "test.source.en",
    )
    with pytest.raises(
        UsageError, match=r"mine: neither test\.target\.en nor test\.target\.en\.gz is there"
    ):
        resolve(CorpusRecipe(folder=tmp_path / "mine"), "en", "en")
    write(tmp_path / "mine", "test.target.en")
    corpus = resolve(CorpusRecipe(folder=tmp_path / "mine"), "en", "en")
    assert list(corpus.test) == ["test"]
    assert corpus.train.target.name == "train.target.en"


def test_a_folder_without_some_files_names_all_of_them(tmp_path):
    write(tmp_path / "mine", "train.en", "test.en")
    with pytest.raises(UsageError) as caught:
        resolve(CorpusRecipe(folder=tmp_path / "mine"), "en", "de")
    for name in ("train.de", "valid.en", "valid.de", "test.de"):
        assert f"neither {name} nor {name}.gz is there" in str(caught.value)


def test_files_that_are_missing_are_named_all_at_once(tmp_path):
    write(tmp_path, "a.en", "a.de")
    good = SplitFiles(source=tmp_path / "a.en", target=tmp_path / "a.de")
    bad = SplitFiles(
        source=tmp_path / "b.en", target=tmp_path / "a.de", source_parses=tmp_path / "b.conllu"
    )
    recipe = CorpusRecipe(train=good, valid=good, test={"news": bad})
    with pytest.raises(UsageError) as caught:
        resolve(recipe, "en", "de")
    assert "b.en: the file of corpus.test.news.source is missing" in str(caught.value)
    assert "b.conllu: the file of corpus.test.news.source_parses is missing" in str(caught.value)
    assert resolve(CorpusRecipe(train=good, valid=good), "en", "de").train == good


def test_translation_builds_no_corpus():
    modules, waiting = set(), ["synmt.decode.translator"]
    while waiting:
        name = waiting.pop()
        if name not in modules and name in MODULES:
            modules.add(name)
            waiting += imports_of(MODULES[name])
    assert "synmt.data.tasks" in modules
    assert not modules & {"synmt.corpora.resolve", "synmt.data.encoding"}
