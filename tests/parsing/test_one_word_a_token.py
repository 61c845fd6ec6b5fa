"""Parses of words: each word between spaces is one word of the tree, wherever it is in the line."""

from __future__ import annotations

import numpy as np
import pytest

from synmt.parsing.cache import CachedParser
from synmt.parsing.parser import StanzaParser
from synmt.recipe.data import ParserRecipe, TextRecipe
from synmt.syntax.trees import is_tree
from synmt.tokenization.word_tokenizer import WordTokenizer

pytestmark = pytest.mark.journey

LINES = [
    "He said , &quot; Do n't stop ! &quot; ( twice ) .",
    "A well @-@ known e-mail of AT&amp;T costs 3,000.5 dollars .",
    "See http : / / a.b / c . Then go . Then stop .",
    "😀 👍 🏽 \u200d и русский 今日は 日本語",
    "the cat 's tail",
    ". . . ?",
    "x",
    "",
]


@pytest.fixture(scope="module")
def parser():
    return StanzaParser("en", device="cpu", arcs=True, pretokenized=True)


@pytest.fixture(scope="module")
def parses(parser):
    return parser.parse(LINES)


def test_every_word_between_spaces_is_one_word_of_the_tree(parses):
    for line, parse in zip(LINES, parses, strict=True):
        words = [line[start:end] for start, end in parse.spans.tolist()]
        assert parse.words == words == line.split()
        assert is_tree(parse.parents)
        # the parser sees the characters that the tokenizer has escaped
        marks = [
            tag for word, tag in zip(words, parse.tags, strict=True) if word in ("&quot;", "@-@")
        ]
        assert set(marks) <= {"PUNCT"}


def test_a_line_alone_has_the_same_tree(parser, parses):
    for line, parse in zip(LINES, parses, strict=True):
        alone = parser.parse([line])[0]
        assert np.array_equal(alone.parents, parse.parents)
        assert alone.relations == parse.relations


def test_words_and_raw_text_never_share_trees(parser):
    raw = StanzaParser("en", device="cpu", arcs=True)
    assert parser.identity == {**raw.identity, "pretokenized": True}
    assert parser.fingerprint != raw.fingerprint
    assert CachedParser(parser).path != CachedParser(raw).path
    again = StanzaParser.from_identity(parser.identity, "cpu")
    assert (again.pretokenized, again.fingerprint) == (True, parser.fingerprint)


def test_stanza_s_tokenizer_splits_lines_wherever_they_are_in_a_batch():
    pytest.importorskip("sacremoses")
    one = WordTokenizer(TextRecipe(tokenizer="stanza"), "en", ParserRecipe())
    lines = ["The monkey, well, eats.", "", "It costs 3,000.5 dollars.", "a" * 1200, "\u00a0 x"]
    cut = one.tokenize_lines(lines)
    assert cut == ["The monkey , well , eats .", "", "It costs 3,000.5 dollars .", "a" * 1200, "x"]
    assert [one.tokenize(line) for line in lines] == cut
    assert [one.join(words) for words in cut[:3]] == lines[:3]
    assert "en/tokenize/compact.pt" in one.identity["files"]
