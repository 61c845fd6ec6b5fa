"""Multi-task data: what the texts hold, what is refused, and that a multi-task run translates
without a parser."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
from tiny import synmt, write_corpus, write_recipe

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
from synmt.recipe.load import load_recipe
from synmt.training.tree_sources.requirements import tree_requirements

pytestmark = pytest.mark.journey

PAIRS = [("the boy sleeps", "der Junge schläft"), ("he eats", "er isst"), ("a b c d e f", "x")]
TREES = """\
1\tthe\t_\t_\t_\t_\t2\tdet\t_\t_
2\tboy\t_\t_\t_\t_\t3\tnsubj\t_\t_
3\tsleeps\t_\t_\t_\t_\t0\troot\t_\t_

1\the\t_\t_\t_\t_\t2\tnsubj\t_\t_
2\teats\t_\t_\t_\t_\t0\troot\t_\t_

""" + "".join(
    f"{n}\t{w}\t_\t_\t_\t_\t{n - 1}\t{'root' if n == 1 else 'dep'}\t_\t_\n"
    for n, w in enumerate("abcdef", 1)
)


def corpus_of(folder):
    for split, pairs in (("train", PAIRS), ("valid", PAIRS[:1])):
        for side, language in enumerate(("en", "de")):
            (folder / f"{split}.{language}").write_text(
                "".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8"
            )
    (folder / "trees.conllu").write_text(f"{TREES}\n", encoding="utf-8")
    return resolve(CorpusRecipe(folder=folder), "en", "de")


def recipe_of(folder, **sections):
    (folder / "data").mkdir(exist_ok=True)
    sections = {"tasks": {"parsing": "dependencies"}, "syntax": {"variants": []}, **sections}
    return load_recipe(write_recipe(folder / "multi.yaml", folder, **sections))


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_both_sides_can_be_of_one_language(tmp_path):
    corpus = replace(corpus_of(tmp_path), target="en")
    made = with_trees(recipe_of(tmp_path), corpus, tmp_path / "trees.conllu", tmp_path / "made")
    assert lines(made.train.source)[0] == "<TR> the boy sleeps <TR>"
    assert lines(made.train.target)[0] == "der Junge schläft"


def test_every_source_is_there_twice_between_its_tags(tmp_path):
    corpus = corpus_of(tmp_path)
    made = with_trees(recipe_of(tmp_path), corpus, tmp_path / "trees.conllu", tmp_path / "made")
    assert lines(made.train.source) == [
        "<TR> the boy sleeps <TR>",
        "<TR> he eats <TR>",
        "<TR> a b c d e f <TR>",
        "<PA> the boy sleeps <PA>",
        "<PA> he eats <PA>",
        "<PA> a b c d e f <PA>",
    ]
    assert lines(made.train.target) == [
        "der Junge schläft",
        "er isst",
        "x",
        "(root (nsubj (det ) ) )",
        "(root (nsubj ) )",
        "(root (dep (dep (dep (dep (dep ) ) ) ) ) )",
    ]
    assert lines(made.valid.source) == ["<TR> the boy sleeps <TR>"]
    assert made.valid.target == corpus.valid.target
    assert made.test == corpus.test


def test_pairs_are_filtered_as_translations_and_their_parses_with_them(tmp_path):
    recipe = recipe_of(tmp_path, filters={"max_words": 5})
    made = with_trees(recipe, corpus_of(tmp_path), tmp_path / "trees.conllu", tmp_path / "made")
    assert [line[:4] for line in lines(made.train.source)] == ["<TR>", "<TR>", "<PA>", "<PA>"]
    assert len(lines(made.train.target)) == 4


def test_the_texts_are_made_once_and_again_for_other_trees(tmp_path):
    corpus, recipe = corpus_of(tmp_path), recipe_of(tmp_path)
    first, second = (
        with_trees(recipe, corpus, tmp_path / "trees.conllu", tmp_path / "made") for _ in range(2)
    )
    assert first == second
    (tmp_path / "other.conllu").write_text(f"{TREES.replace('nsubj', 'obj')}\n", encoding="utf-8")
    other = with_trees(recipe, corpus, tmp_path / "other.conllu", tmp_path / "made")
    assert other.train.source != first.train.source
    assert lines(first.train.target)[4] == "(root (nsubj ) )"


def test_a_control_changes_the_parses_that_are_learnt(tmp_path):
    corpus = corpus_of(tmp_path)
    recipe = recipe_of(tmp_path, parser={"control": "right"})
    made = with_trees(recipe, corpus, tmp_path / "trees.conllu", tmp_path / "made")
    assert lines(made.train.target)[3:5] == ["(root (nsubj (det ) ) )", "(root (nsubj ) )"]
    first = with_trees(recipe_of(tmp_path), corpus, tmp_path / "trees.conllu", tmp_path / "made")
    assert first.train.target != made.train.target


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
    settings = VocabularyRecipe(
        kind=kind, size=300 if kind == "bpe" else 100, byte_fallback=kind == "bpe"
    )
    vocabulary = train_vocabulary(text, settings, (TRANSLATION, PARSING))
    ids = vocabulary.encode_ids(tagged("he eats", TRANSLATION))
    assert ids[0] == ids[-1] == vocabulary.encode_ids(TRANSLATION)[0]
    assert vocabulary.encode_ids(TRANSLATION) != vocabulary.encode_ids(PARSING)
    assert len(vocabulary.encode_ids(PARSING)) == 1
    assert "TR" not in vocabulary.decode(ids[1:-1])


def test_a_source_that_is_truncated_keeps_its_last_tag():
    text = [tagged(source, TRANSLATION) for source, _ in PAIRS]
    vocabulary = train_vocabulary(text, VocabularyRecipe(kind="word", size=50), (TRANSLATION,))
    found = segment(0, "a b c d e f", None, vocabulary, 4, task=TRANSLATION)
    assert vocabulary.decode(found.example.source.tolist()) == "<TR> a b <TR>"
    assert found.dropped == 4
    assert np.array_equal(found.example.source, vocabulary.encode("<TR> a b <TR>").ids)


@pytest.mark.parametrize(
    "variant", [{"name": "pascal"}, {"name": "dbsa", "side": "target", "layers": [1]}]
)
def test_a_variant_that_wants_trees_is_refused_beside_tasks(tmp_path, variant):
    recipe = recipe_of(tmp_path, syntax={"variants": [variant]})
    with pytest.raises(
        UsageError, match=r"parses into the target, so (pascal|dbsa) finds no trees.*Use either"
    ):
        tree_requirements(recipe)


def test_sides_of_different_length_are_named_before_they_are_paired(tmp_path):
    corpus_of(tmp_path)
    (tmp_path / "train.de").write_text("nur eine\n", encoding="utf-8")
    recipe_of(tmp_path)
    done = synmt("prepare", "multi.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "train.en has 3 lines" in " ".join(done.stderr.decode().split())


def test_a_multi_task_run_trains_and_translates_without_a_parser(tmp_path, monkeypatch):
    corpus = write_corpus(tmp_path / "corpus")
    write_recipe(
        tmp_path / "multi.yaml",
        corpus,
        tasks={"parsing": "dependencies"},
        syntax={"variants": []},
        decoding={"beam_size": 1},
    )
    done = synmt("train", "multi.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    monkeypatch.setattr("synmt.parsing.parser.StanzaParser.parse", None)
    text = (corpus / "test.en").read_text(encoding="utf-8")
    again = synmt("translate", "--beam-size", "1", text=text, cwd=tmp_path)
    assert again.returncode == 0, again.stderr.decode()
    assert again.stdout == (tmp_path / "runs/multi/tests/test/hypothesis.txt").read_bytes()
    assert (tmp_path / "runs/multi/tests/test/source.txt").read_text(encoding="utf-8") == text


def test_a_validation_source_that_is_too_long_keeps_its_last_tag(tmp_path):
    corpus_of(tmp_path)
    recipe = recipe_of(tmp_path, filters={"max_pieces": 4}, parser={"workers": 1})
    corpus = resolve(CorpusRecipe(folder=tmp_path), "en", "de")
    made = with_trees(recipe, corpus, tmp_path / "trees.conllu", tmp_path / "made")
    prepare(without_filters(recipe), made, tmp_path / "prepared")
    data = PreparedCorpus.open(tmp_path / "prepared")
    assert (
        data.vocabularies[0].decode(data.split("valid").rows([0])[0].source.tolist())
        == "<TR> the boy <TR>"
    )


def test_trees_of_tagged_text_are_not_asked_for(tmp_path):
    corpus_of(tmp_path)
    recipe_of(tmp_path)
    done = synmt("prepare", "multi.yaml", "--trees", cwd=tmp_path)
    assert done.returncode == 2
    assert "tasks.parsing: the source text contains task tags" in " ".join(
        done.stderr.decode().split()
    )
