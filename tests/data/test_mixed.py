"""Mixed encoder and parse2seq: linearised trees as sources, what a too long one loses, translating
with and without."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from refusing import assert_refused
from resolving import resolved
from small import MONKEY, random_tree, small_recipe
from task_texts import corpus_of, lines, recipe_of
from tiny import succeed, write_corpus, write_lines, write_recipe

from synmt.analysis.forward_passes import run_forward
from synmt.analysis.robustness.conditions import check_translator
from synmt.data.corpus import PreparedCorpus
from synmt.data.prepare import prepare
from synmt.data.task_corpus import (
    bracket_units,
    with_bracketings,
    with_trees,
    without_filters,
)
from synmt.data.vocabulary import word_of
from synmt.data.vocabulary_training import train_vocabulary
from synmt.decode.alignment import whitespace_words
from synmt.decode.inputs import segment, segment_tree
from synmt.decode.loaded_model import check_ensemble
from synmt.decode.translator import Translator
from synmt.recipe.data import VocabularyRecipe
from synmt.run_folder import Run
from synmt.syntax.controls import UNCHANGED, Control
from synmt.syntax.parse import Parse
from synmt.syntax.trees import linearise_with_words
from synmt.training.tree_sources import tree_requirements

pytestmark = pytest.mark.journey

TWINS = [
    "(root (nsubj (det the ) boy ) sleeps )",
    "(root (nsubj he ) eats )",
    "(root a (dep b (dep c (dep d (dep e (dep f ) ) ) ) ) )",
]
PLAIN = ["the boy sleeps", "he eats", "a b c d e f"]
TARGETS = ["der Junge schläft", "er isst", "x"]
NOTHING = Parse([], np.zeros((0, 2), int), np.zeros(0, int), [])
MIXED = {"mixed": "dependencies"}
ONLY = {**MIXED, "mixed_only": True}


def recursive(parse, word):
    """Write a word between its dependents, by the definition."""
    below = [child for child, parent in enumerate(parse.parents) if parent == word != child]
    inside = [*(recursive(parse, child) for child in below if child < word), parse.words[word]]
    inside += [recursive(parse, child) for child in below if child > word]
    return f"({parse.relations[word]} {' '.join(inside)} )"


def test_a_word_stands_between_its_left_and_right_dependents():
    expected = "(root (nsubj (det The ) monkey ) eats (obj (det a ) banana ) )"
    assert linearise_with_words(MONKEY).text == expected == recursive(MONKEY, 2)
    nothing = linearise_with_words(NOTHING)
    assert (nothing.text, nothing.spans.shape) == ("", (0, 2))


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_are_written_as_defined(seed):
    parse = random_tree(1 + seed % 7, np.random.default_rng(seed))
    root = int(np.flatnonzero(parse.parents == np.arange(len(parse)))[0])
    assert linearise_with_words(parse).text == recursive(parse, root)


LINE = "The monkey eats a banana"
VOCABULARY = train_vocabulary(
    [linearise_with_words(MONKEY).text, LINE, "monkey banana eats The a"] * 3,
    VocabularyRecipe(size=300),
    [f"({relation}" for relation in sorted({*MONKEY.relations})],
)


def monkey_line(parse=MONKEY, most=100, control=UNCHANGED):
    return segment_tree(0, LINE, parse, VOCABULARY, most, control)


@pytest.mark.parametrize("parents", ["1 2 2 4 2", "3 2 2 2 2"], ids=["projective", "crossing"])
def test_pieces_of_words_cover_their_characters_and_brackets_nothing(parents):
    parse = replace(MONKEY, parents=np.array(parents.split(), dtype=int))
    source = monkey_line(parse)
    pieces = VOCABULARY.pieces(source.example.source.tolist())
    assert "".join(pieces).replace("▁", " ").strip() == linearise_with_words(parse).text
    spans = source.spans.tolist()
    for piece, (start, end) in zip(pieces, spans, strict=True):
        bracket = piece[:2] in ("▁(", "▁)", ")")
        assert LINE[start:end] == ("" if bracket else piece.replace("▁", ""))
    assert "".join(LINE[start:end] for start, end in sorted(spans)) == LINE.replace(" ", "")
    # an alignment finds the words of the line
    assert {*word_of(source.spans, whitespace_words(LINE)).tolist()} == {0, 1, 2, 3, 4}


def test_a_long_tree_is_truncated_and_a_line_without_a_tree_is_read_as_it_is():
    source, short = monkey_line(), monkey_line(most=5)
    assert short.example.source.tolist() == source.example.source.tolist()[:5]
    assert (short.spans.tolist(), short.dropped) == (source.spans.tolist()[:5], len(source) - 5)
    plain = segment(0, LINE, None, VOCABULARY, 100).example.source
    for tree in (None, NOTHING):
        assert np.array_equal(monkey_line(tree).example.source, plain)


def test_a_control_changes_the_tree_that_is_read():
    ids = monkey_line(control=Control("right")).example.source.tolist()
    assert VOCABULARY.decode(ids).startswith("(root The (nsubj monkey")


@pytest.fixture
def made(tmp_path):
    """Make the text of a task from the corpus, and its recipe."""
    corpus_of(tmp_path)
    corpus = resolved(folder=tmp_path)

    def make(tasks=MIXED, *trees, **sections):
        recipe = recipe_of(tmp_path, tasks=tasks, **sections)
        paths = (tmp_path / "trees.conllu", tmp_path / "made", *trees)
        return recipe, with_trees(recipe, corpus, *paths)

    return make


def prepared(recipe, corpus, folder):
    prepare(without_filters(recipe), corpus, folder)
    return PreparedCorpus.open(folder)


def test_every_pair_is_there_with_its_plain_and_its_linearised_source(made, tmp_path):
    recipe, corpus = made()
    assert lines(corpus.train.source) == PLAIN + TWINS
    assert lines(corpus.train.target) == TARGETS * 2
    original = resolved(folder=tmp_path)
    assert (corpus.valid, corpus.test) == (original.valid, original.test)
    assert bracket_units(recipe, corpus) == ("(dep", "(det", "(nsubj", "(root")
    # pairs are filtered by their plain source
    _, corpus = made(filters={"max_words": 5})
    assert lines(corpus.train.source) == PLAIN[:2] + TWINS[:2]


def test_parse2seq_has_linearised_sources_only(made, tmp_path):
    first, valid = (tmp_path / "trees.conllu").read_text().split("\n\n")[0], tmp_path / "v.conllu"
    corpora = []
    for text in (first, first.replace("det", "obj")):
        valid.write_text(f"{text}\n\n")
        _, corpus = made(ONLY, valid)
        assert (lines(corpus.train.source), lines(corpus.train.target)) == (TWINS, TARGETS)
        corpora.append(lines(corpus.valid.source))
    assert corpora == [TWINS[:1], [TWINS[0].replace("det", "obj")]]
    assert made()[1].train.source != corpus.train.source


def test_a_linearised_source_that_is_too_long_is_left_out_alone_and_counted(made, tmp_path):
    vocabulary = {"kind": "word", "size": 50, "byte_fallback": False}
    recipe, corpus = made(filters={"max_pieces": 10}, vocabulary=vocabulary)
    data = prepared(recipe, corpus, tmp_path / "prepared")
    rows = data.split("train").rows(range(5))
    decode = data.vocabularies[0].decode
    assert [decode(row.source.tolist()) for row in rows] == PLAIN + TWINS[:2]
    assert data.facts["splits"]["train"]["reasons"]["too long (pieces)"] == 1


@pytest.mark.parametrize("joint", [True, False])
def test_brackets_are_units_of_the_source_vocabulary(joint, made, tmp_path):
    # `(det` is there three times, but no other vocabulary would have it in one piece
    vocabulary = {"kind": "bpe", "size": 290, "joint": joint}
    recipe, corpus = made(vocabulary=vocabulary, model={"embeddings": "separate"})
    source, target = prepared(recipe, corpus, tmp_path / "prepared").vocabularies
    ids = source.encode_ids(TWINS[0])
    assert [piece for piece in source.pieces(ids) if "(" in piece] == ["▁(root", "▁(nsubj", "▁(det"]
    assert source.decode(ids) == TWINS[0]
    assert (len(target.encode_ids("(root")) == 1) == joint


def test_given_bracketings_are_sources_as_they_are(tmp_path):
    corpus_of(tmp_path)
    given = ["(ROOT (S (NP the boy ) (VP sleeps ) ) )", "", "(ROOT a b )"]
    write_lines(tmp_path / "train.en.brackets", given)
    corpus = resolved(folder=tmp_path)
    recipe = recipe_of(tmp_path, tasks={"mixed": "bracketings"})
    made = with_bracketings(recipe, corpus, tmp_path / "made")
    assert lines(made.train.source) == [*PLAIN, given[0], given[2]]
    assert lines(made.train.target) == [*TARGETS, TARGETS[0], TARGETS[2]]
    assert bracket_units(recipe, made) == ("(NP", "(ROOT", "(S", "(VP")
    (tmp_path / "train.en.brackets").unlink()
    corpus = resolved(folder=tmp_path)
    assert_refused(
        r"no bracketings, but tasks\.mixed needs them",
        with_bracketings,
        recipe,
        corpus,
        tmp_path / "made",
    )


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ({"parsing": "dependencies", "mixed": "dependencies"}, "use either `parsing` or `mixed`"),
        ({"mixed_only": True}, "`mixed_only` needs `mixed: dependencies`"),
        ({"mixed": "bracketings", "mixed_only": True}, "`mixed_only` needs `mixed: dependencies`"),
    ],
)
def test_tasks_that_exclude_each_other_are_refused(tasks, message):
    assert_refused(message, small_recipe, tasks=tasks)


def test_a_weighted_text_and_a_variant_that_wants_trees_are_refused(tmp_path):
    assert_refused(
        r"`tasks\.mixed` needs a training text without weights",
        small_recipe,
        tasks=MIXED,
        corpus={"train": [{"id": "multi30k", "weight": 2}], "valid": "multi30k"},
    )
    recipe = small_recipe(tasks=MIXED, syntax={"variants": [{"name": "pascal"}]})
    assert_refused(
        r"tasks\.mixed puts trees .* so variants find no trees", tree_requirements, recipe
    )
    assert not tree_requirements(small_recipe(tasks=MIXED))["source"].to_run
    only = tree_requirements(small_recipe(tasks=ONLY, parser={"control": "random"}))["source"]
    assert only.to_run
    assert only.as_text


@pytest.mark.parametrize("tasks", [MIXED, ONLY], ids=["mixed", "parse2seq"])
def test_it_trains_and_translates_raw_text(tasks, tmp_path, monkeypatch, caplog):
    corpus, reads_trees = write_corpus(tmp_path / "corpus"), tasks == ONLY
    sections = {"syntax": {"variants": []}, "decoding": {"beam_size": 1}, "parser": {"workers": 1}}
    write_recipe(tmp_path / "mixed.yaml", corpus, tasks=tasks, **sections)

    def train(*options):
        done = succeed("train", "mixed.yaml", *options, cwd=tmp_path)
        return (done.stdout + done.stderr).decode()

    assert "parse the source" in train("--dry-run")
    train()
    assert "to do" not in train("--dry-run")
    run = Run(tmp_path / "runs" / "mixed")
    text, expected = lines(corpus / "test.en"), run.folder / "tests/test/hypothesis.txt"
    translator = Translator.load(run, parse_cache=False, device="cpu")
    assert translator.reads_trees == (run.info()["parser"] is not None) == reads_trees
    if not reads_trees:
        monkeypatch.setattr("synmt.parsing.parser.StanzaParser.parse", None)
    with caplog.at_level(logging.WARNING, "synmt"):
        assert [one.text for one in translator.translate(text)] == lines(expected)
    assert "parser is not the one" not in caplog.text
    if not reads_trees:
        return
    [[source]] = translator.source_batches(text[:1], translator.trees(text[:1]))
    assert translator.source.decode(source.example.source.tolist()).startswith("(root ")
    for check in (
        lambda: next(run_forward(translator, text[:1])),
        lambda: check_translator(translator, "x"),
        translator.check_other_trees,
    ):
        assert_refused("this model reads linearised trees", check)
    other = replace(translator.models[0], parser={"model": "another"})
    assert_refused(
        "linearised trees differ from those of a",
        check_ensemble,
        [translator.models[0], other],
        ["a", "b"],
    )
