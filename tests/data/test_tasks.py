"""Multi-task data: what the texts hold, what is refused, and that a multi-task run translates
without a parser."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
from task_texts import PAIRS, TREES, corpus_of, lines, recipe_of
from tiny import fail, succeed, write_corpus, write_recipe

from synmt.corpora.resolve import resolve
from synmt.data.corpus import PreparedCorpus
from synmt.data.prepare import prepare
from synmt.data.task_corpus import with_bracketings, with_trees, without_filters
from synmt.data.tasks import PARSING, TRANSLATION, tagged
from synmt.data.vocabulary_training import train_vocabulary
from synmt.decode.inputs import segment
from synmt.errors import SynmtError, UsageError
from synmt.recipe.corpus import CorpusRecipe
from synmt.recipe.data import VocabularyRecipe
from synmt.training.tree_sources.requirements import tree_requirements

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
    filtered = made(filters={"max_words": 5})
    assert [line[:4] for line in lines(filtered.train.source)] == [*["<TR>"] * 2, *["<PA>"] * 2]
    assert len(lines(filtered.train.target)) == 4
    controlled = made(parser={"control": "right"})
    assert controlled.train.target != first.train.target
    assert lines(controlled.train.target)[5] == lines(first.train.target)[5]
    assert lines(first.train.target)[4] == "(root (nsubj ) )"


def test_a_validation_source_that_is_too_long_keeps_its_last_tag(tmp_path, made):
    recipe = recipe_of(tmp_path, filters={"max_pieces": 4}, parser={"workers": 1})
    prepare(without_filters(recipe), made(), tmp_path / "prepared")
    data = PreparedCorpus.open(tmp_path / "prepared")
    [row] = data.split("valid").rows([0])
    assert data.vocabularies[0].decode(row.source.tolist()) == "<TR> the boy <TR>"


def test_trees_that_a_task_does_not_have_are_refused(tmp_path, made):
    dbsa = {"name": "dbsa", "side": "target", "layers": [1]}
    for variant in ({"name": "pascal"}, dbsa):
        recipe = recipe_of(tmp_path, syntax={"variants": [variant]})
        message = f"parses into the target, so {variant['name']} finds no trees.*Use either"
        with pytest.raises(UsageError, match=message):
            tree_requirements(recipe)
    recipe_of(tmp_path)
    message = " ".join(fail(2, "prepare", "multi.yaml", "--trees", cwd=tmp_path).split())
    assert "tasks.parsing: the source text contains task tags" in message


def test_given_bracketings_are_taken_as_they_are(tmp_path):
    corpus_of(tmp_path)
    with gzip.open(tmp_path / "train.en.brackets.gz", "wt", encoding="utf-8") as stream:
        stream.write("(ROOT (S (NP ) ) )\n\n(ROOT )\n")
    corpus = resolve(CorpusRecipe(folder=tmp_path), "en", "de")
    made = with_bracketings(recipe_of(tmp_path), corpus, tmp_path / "made")
    assert lines(made.train.target)[3:] == ["(ROOT (S (NP ) ) )", "(ROOT )"]
    assert lines(made.train.source)[3:] == ["<PA> the boy sleeps <PA>", "<PA> a b c d e f <PA>"]


def test_bracketings_that_are_missing_or_too_few_are_named(tmp_path):
    corpus = corpus_of(tmp_path)
    with pytest.raises(
        UsageError, match=r"the training text has no bracketings.*train\.en\.brackets"
    ):
        with_bracketings(recipe_of(tmp_path), corpus, tmp_path / "made")
    (tmp_path / "train.en.brackets").write_text("(ROOT )\n", encoding="utf-8")
    corpus = resolve(CorpusRecipe(folder=tmp_path), "en", "de")
    with pytest.raises(SynmtError, match=r"has 1 lines, but the training text has 3"):
        with_bracketings(recipe_of(tmp_path), corpus, tmp_path / "made")


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_a_tag_is_one_piece(kind):
    text = [tagged(source, tag) for source, _ in PAIRS for tag in (TRANSLATION, PARSING)]
    settings = VocabularyRecipe(kind=kind, size=50, byte_fallback=False)
    vocabulary = train_vocabulary(text, settings, (TRANSLATION, PARSING))
    [translation], [parsing] = (vocabulary.encode_ids(tag) for tag in (TRANSLATION, PARSING))
    assert translation != parsing
    ids = vocabulary.encode_ids(tagged("he eats", TRANSLATION))
    assert (ids[0], ids[-1]) == (translation, translation)
    assert "TR" not in vocabulary.decode(ids[1:-1])


def test_a_source_that_is_truncated_keeps_its_last_tag():
    text = [tagged(source, TRANSLATION) for source, _ in PAIRS]
    vocabulary = train_vocabulary(text, VocabularyRecipe(kind="word", size=50), (TRANSLATION,))
    found = segment(0, "a b c d e f", None, vocabulary, 4, task=TRANSLATION)
    assert vocabulary.decode(found.example.source.tolist()) == "<TR> a b <TR>"
    assert found.dropped == 4
    assert np.array_equal(found.example.source, vocabulary.encode("<TR> a b <TR>").ids)


def test_a_multi_task_run_trains_and_translates_without_a_parser(tmp_path, monkeypatch):
    corpus = write_corpus(tmp_path / "corpus")
    write_recipe(
        tmp_path / "multi.yaml",
        corpus,
        tasks={"parsing": "dependencies"},
        syntax={"variants": []},
        decoding={"beam_size": 1},
    )
    succeed("train", "multi.yaml", cwd=tmp_path)
    monkeypatch.setattr("synmt.parsing.parser.StanzaParser.parse", None)
    text = (corpus / "test.en").read_text(encoding="utf-8")
    again = succeed("translate", "--beam-size", "1", text=text, cwd=tmp_path)
    assert again.stdout == (tmp_path / "runs/multi/tests/test/hypothesis.txt").read_bytes()
    assert (tmp_path / "runs/multi/tests/test/source.txt").read_text(encoding="utf-8") == text
