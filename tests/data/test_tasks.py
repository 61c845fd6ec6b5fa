"""Multi-task data: what the texts hold, what is refused, and that a multi-task run translates
without a parser."""

import gzip
from dataclasses import replace

import pytest
from refusing import assert_fails, assert_refused
from resolving import resolved
from task_texts import PAIRS, TREES, corpus_of, lines, recipe_of
from tiny import succeed, write_corpus, write_lines

from synmt.data.corpus import PreparedCorpus
from synmt.data.prepare import prepare
from synmt.data.task_corpus import (
    TRANSLATION,
    tagged,
    with_bracketings,
    with_trees,
    without_filters,
)
from synmt.data.vocabulary_training import train_vocabulary
from synmt.decode.inputs import segment
from synmt.recipe.data import VocabularyRecipe
from synmt.training.tree_sources import tree_requirements

pytestmark = pytest.mark.journey


@pytest.fixture
def made(tmp_path):
    """Make the text of a task; gives a function from sections of the recipe to its texts."""
    corpus = corpus_of(tmp_path)

    def make(trees="trees.conllu", corpus=corpus, **sections):
        recipe = recipe_of(tmp_path, **sections)
        return with_trees(recipe, corpus, tmp_path / trees, tmp_path / "made")

    return make


@pytest.mark.parametrize("target", ["de", "en"])
def test_every_source_is_there_twice_between_its_tags(tmp_path, made, target):
    corpus = replace(corpus_of(tmp_path), target=target)
    texts = made(corpus=corpus)
    sources, targets = zip(*PAIRS, strict=True)
    tagged_twice = [tagged(line, tag) for tag in ("<TR>", "<PA>") for line in sources]
    assert lines(texts.train.source) == tagged_twice
    assert lines(texts.train.target) == [
        *targets,
        "(root (nsubj (det ) ) )",
        "(root (nsubj ) )",
        "(root (dep (dep (dep (dep (dep ) ) ) ) ) )",
    ]
    assert lines(texts.valid.source) == ["<TR> the boy sleeps <TR>"]
    assert (texts.valid.target, texts.test) == (corpus.valid.target, corpus.test)


def test_texts_are_made_once_and_again_for_other_trees_filters_and_controls(tmp_path, made):
    first, second = made(), made()
    assert first == second
    (tmp_path / "other.conllu").write_text(TREES.replace("nsubj", "obj"), encoding="utf-8")
    assert lines(made("other.conllu").train.target)[4] == "(root (obj ) )"
    filtered = made(filters={"max_words": 5}).train
    assert [line[:4] for line in lines(filtered.source)] == [*["<TR>"] * 2, *["<PA>"] * 2]
    assert len(lines(filtered.target)) == 4
    controlled = made(parser={"control": "right"}).train.target
    assert controlled != first.train.target
    assert lines(controlled)[5] == lines(first.train.target)[5]


def test_a_validation_source_that_is_too_long_keeps_its_last_tag(tmp_path, made):
    recipe = recipe_of(tmp_path, filters={"max_pieces": 4}, parser={"workers": 1})
    prepare(without_filters(recipe), made(), tmp_path / "prepared")
    data = PreparedCorpus.open(tmp_path / "prepared")
    [row] = data.split("valid").rows([0])
    assert data.vocabularies[0].decode(row.source.tolist()) == "<TR> the boy <TR>"


@pytest.mark.parametrize("name", ["pascal", "dbsa"])
def test_trees_that_a_task_does_not_have_are_refused(tmp_path, made, name):
    dbsa = {"side": "target", "layers": [1]} if name == "dbsa" else {}
    recipe = recipe_of(tmp_path, syntax={"variants": [{"name": name, **dbsa}]})
    message = "puts trees or tags into the text, so variants find no trees.*Use either"
    assert_refused(message, tree_requirements, recipe)


def test_given_bracketings_are_taken_as_they_are_and_named_if_missing_or_too_few(tmp_path):
    def bracketed():
        corpus = resolved(folder=tmp_path)
        return with_bracketings(recipe_of(tmp_path), corpus, tmp_path / "made").train

    corpus_of(tmp_path)
    message = r"the training text has no bracketings.*train\.en\.brackets"
    assert_refused(message, bracketed)
    path = write_lines(tmp_path / "train.en.brackets", ["(ROOT )"])
    assert_fails(r"has 1 lines, but the training text has 3", bracketed)
    path.unlink()
    packed = gzip.compress(b"(ROOT (S (NP ) ) )\n\n(ROOT )\n")
    (tmp_path / "train.en.brackets.gz").write_bytes(packed)
    made = bracketed()
    assert lines(made.target)[3:] == ["(ROOT (S (NP ) ) )", "(ROOT )"]
    assert lines(made.source)[3:] == ["<PA> the boy sleeps <PA>", "<PA> a b c d e f <PA>"]


def test_a_source_that_is_truncated_keeps_its_last_tag():
    text = [tagged(source, TRANSLATION) for source, _ in PAIRS]
    vocabulary = train_vocabulary(text, VocabularyRecipe(kind="word", size=50), (TRANSLATION,))
    found = segment(0, "a b c d e f", None, vocabulary, 4, tags=(TRANSLATION, TRANSLATION))
    assert found.example.source.tolist() == vocabulary.encode_ids("<TR> a b <TR>")
    assert found.dropped == 4


def test_a_multi_task_run_trains_and_translates_without_a_parser(tmp_path, monkeypatch):
    text = write_corpus(tmp_path / "corpus") / "test.en"
    recipe_of(tmp_path, corpus={"folder": str(text.parent)}, decoding={"beam_size": 1})
    succeed("train", "multi.yaml", cwd=tmp_path)
    monkeypatch.setattr("synmt.parsing.parser.StanzaParser.parse", None)
    again = succeed("translate", text=text.read_bytes(), cwd=tmp_path)
    tested = tmp_path / "runs/multi/tests/test"
    assert again.stdout == (tested / "hypothesis.txt").read_bytes()
    assert (tested / "source.txt").read_bytes() == text.read_bytes()
