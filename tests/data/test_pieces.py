"""Pieces: cutting and joining text, the word of each piece, learning a vocabulary."""

import io
import pickle
import re
from itertools import accumulate, pairwise
from operator import methodcaller

import numpy as np
import pytest
import yaml
from preparing import LINES, ODD_TEXTS
from refusing import assert_fails
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from synmt.data.vocabulary import (
    BOS,
    EOS,
    PAD,
    SPECIALS,
    UNK,
    Vocabulary,
    Words,
    punctuation_pieces,
    word_of,
)
from synmt.data.vocabulary_training import train_vocabulary
from synmt.errors import SynmtError
from synmt.recipe.data import VocabularyRecipe


def vocabulary(**settings):
    return train_vocabulary(LINES, VocabularyRecipe(**{"size": 400, **settings}))


KINDS = """
bpe: {}
unigram: {kind: unigram}
identity: {normalization: identity}
no bytes: {byte_fallback: false, size: 150}
word: {kind: word}
"""


@pytest.fixture(scope="module", params=yaml.safe_load(KINDS).values(), ids=str)
def any_vocabulary(request):
    return vocabulary(**request.param)


def words_of(text):
    """Cut a text as parsers do: runs of letters, and every other visible character alone."""
    spans = [match.span() for match in re.finditer(r"[^\W_]+|\S", text)]
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


# cutting and joining


def test_specials_have_the_numbers_that_the_model_counts_on(any_vocabulary):
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    assert any_vocabulary.pieces(range(4)) == list(SPECIALS)


def test_a_clean_text_comes_back_from_its_pieces(any_vocabulary):
    text = "The monkey eats a banana."
    ids = any_vocabulary.encode_ids(text)
    assert any_vocabulary.decode([BOS, *ids, EOS, PAD]) == text
    assert any_vocabulary.decode(np.array(ids)) == text


def test_the_ways_to_segment_agree(any_vocabulary):
    other = any_vocabulary.encode_ids("The monkey")
    for text in [*ODD_TEXTS, "", " ", "\u200b", "\u2028"]:
        ids = any_vocabulary.encode(text).ids.tolist()
        assert any_vocabulary.encode_ids(text) == ids
        assert any_vocabulary.encode_batch([text, "The monkey", text]) == [ids, other, ids], text


def test_spans_are_in_order_and_have_every_visible_character_that_is_not_normalised_away(
    any_vocabulary,
):
    for text in ODD_TEXTS:
        spans = any_vocabulary.encode(text).spans
        assert (spans[:, 0] <= spans[:, 1]).all(), text
        assert (np.diff(spans, axis=0) >= 0).all(), text
        assert spans.min() >= 0, text
        assert spans.max() <= len(text), text
        missing = set(range(len(text))).difference(*(range(*span) for span in spans.tolist()))
        assert {text[index] for index in missing} <= {*"\x07\0\u200b", *filter(str.isspace, text)}


def test_a_special_spelt_in_a_text_is_no_special(any_vocabulary):
    assert not {PAD, BOS, EOS} & set(any_vocabulary.encode_ids("<pad> <s> </s>"))


@pytest.mark.journey
def test_blanks_are_the_same_for_all_functions_of_the_word_vocabulary():
    words = Words(["a", "b"])
    # all others are Chinese, without a character yet or for private use
    codes = *range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE0200)
    every = map(chr, codes)
    text = " ".join(f"a{character}b" for character in every)
    assert words.encode(text).ids.tolist() == words.encode_ids(text)


# the word of a piece


def spans_of(text, *, blanks=True):
    """Find the spans of the parts between `|`, perhaps without those that are blanks."""
    parts = text.split("|")
    spans = pairwise(accumulate(map(len, parts), initial=0))
    kept = [span for span, part in zip(spans, parts, strict=True) if blanks or part.strip()]
    return np.array(kept, dtype=np.int64).reshape(-1, 2)


PLACES = """
The| mon|key| eats / The| |monkey| |eats / 0 1 1 2
a| |b / a| |b / 0 1 1 / a lone blank belongs to the word that follows
a| ||||ß| d / a| |ß| |d / 0 1 1 1 1 1 2 / the last of four bytes has the character
don|'|t / do|n't / 0 1 1 / the first word of a piece has it
ab|cd / ab|   / 0 0 / text after the last word
ab /    / -1 / no word
"""


@pytest.mark.parametrize("place", PLACES.strip().splitlines())
def test_a_piece_belongs_to_the_word_of_its_first_character(place):
    pieces, words, owners, *_ = place.split(" / ")
    spans, of_words = spans_of(pieces), spans_of(words, blanks=False)
    assert " ".join(map(str, word_of(spans, of_words))) == owners


def test_every_piece_is_owned_by_the_first_word_in_it_and_owners_never_go_back(any_vocabulary):
    for text in ODD_TEXTS:
        spans, words = any_vocabulary.encode(text).spans, words_of(text)
        owners = word_of(spans, words)
        assert (owners >= 0).all(), text
        assert (np.diff(owners) >= 0).all(), text
        for (start, end), owner in zip(spans.tolist(), owners.tolist(), strict=True):
            touched = np.flatnonzero((words[:, 0] < end) & (start < words[:, 1]))
            assert not len(touched) or owner == touched[0], text


# learning


def test_a_vocabulary_is_always_the_same_from_the_same_lines():
    for kind in ("word", "unigram"):
        assert vocabulary(kind=kind).to_bytes() == vocabulary(kind=kind).to_bytes()


def test_a_vocabulary_survives_storing_and_pickling(any_vocabulary, tmp_path):
    any_vocabulary.save(tmp_path, "shared")
    for copy in (Vocabulary.load(tmp_path, "shared"), pickle.loads(pickle.dumps(any_vocabulary))):
        for get in (methodcaller("to_bytes"), len, methodcaller("encode_ids", "The monkey 😀")):
            assert get(copy) == get(any_vocabulary)


def test_training_is_silent(capfd):
    vocabulary()
    assert capfd.readouterr() == ("", "")


# lines that SentencePiece skips, signs that it turns into blanks or removes, and an own symbol
ODD_LINES = [
    *ODD_TEXTS,
    "x" * 70_000 + " eats",
    "ж" * 40_000,
    "a \u2585 b",
    "the\u2581monkey eats\u3000it",
    "\x01",
    "<TR> monkey <TR>x x<TR>",
    "",
]


@pytest.mark.parametrize("normalization", ["nmt_nfkc", "nfkc", "identity"])
@pytest.mark.parametrize("symbols", [(), ("<TR>",)])
def test_bpe_learns_from_words_what_sentencepiece_learns_from_lines(normalization, symbols):
    odd = [line if "nmt" in normalization else line.replace("\t", " ") for line in ODD_LINES]
    settings = VocabularyRecipe(size=700, normalization=normalization, character_coverage=1.0)
    model, lines = io.BytesIO(), LINES[:300] + odd
    SentencePieceTrainer.Train(
        sentence_iterator=iter(lines),
        model_writer=model,
        normalization_rule_name=normalization,
        user_defined_symbols=["\u2581" + symbol for symbol in symbols],
        **yaml.safe_load(TWIN),
    )
    twin = SentencePieceProcessor(model_proto=model.getvalue())
    learned = train_vocabulary(lines, settings, symbols)
    assert learned.pieces(range(700)) == [twin.id_to_piece(number) for number in range(700)]


TWIN = """
{model_type: bpe, vocab_size: 700, byte_fallback: true, character_coverage: 1.0,
 pad_id: 0, unk_id: 1, bos_id: 2, eos_id: 3, max_sentence_length: 65536, minloglevel: 2}
"""


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_the_parts_of_a_text_may_have_several_lines(kind):
    settings = VocabularyRecipe(size=400, kind=kind)
    blocks = ("\n".join(LINES[first : first + 7]) for first in range(0, len(LINES), 7))
    learned = train_vocabulary(blocks, settings)
    assert learned.to_bytes() == vocabulary(kind=kind).to_bytes()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_an_empty_text_has_no_vocabulary(kind):
    assert_fails(
        "cannot learn 8000 pieces from this text",
        train_vocabulary,
        ["", "  "],
        VocabularyRecipe(kind=kind, size=8000),
    )


@pytest.mark.parametrize("name", ["shared.model", "shared.words", "nothing"])
def test_a_broken_or_missing_vocabulary_is_named(tmp_path, name):
    for stored in (b"", b"nonsense", b"a\nb\n", b"\xff\xfe"):
        (tmp_path / name).write_bytes(stored)
        assert_fails(
            r"shared\..*Restore the folder from a copy", Vocabulary.load, tmp_path, "shared"
        )


def test_bpe_that_asks_for_too_few_or_too_many_pieces_is_told_how_many_work():
    assert_fails(r"vocabulary\.size: .* learn 100 pieces .*smaller than", vocabulary, size=100)
    with pytest.raises(SynmtError, match=r"cannot learn 8000 pieces .* <= \d+") as caught:
        vocabulary(size=8000)
    most = int(caught.value.what.split("<= ")[1].split(".")[0])
    assert len(vocabulary(size=most)) == most


def test_rare_words_are_unknown():
    words = train_vocabulary(["a a b", "c c c"], VocabularyRecipe(kind="word", min_frequency=2))
    assert words.pieces(words.encode_ids("a b c")) == ["a", "<unk>", "c"]
    assert words.pieces([4, 5]) == ["c", "a"]


# with and without a blank before them, spelled in bytes or after a lone blank, and no specials
@pytest.mark.parametrize(
    ("pieces", "expected"),
    [("the . ▁, <0x0A> -- ▁a", ". ▁, --"), ("<0x3F> <0x41> <0xC3> ▁", "<0x3F> ▁"), ("", "")],
)
def test_the_pieces_of_punctuation_are_found(pieces, expected):
    words = Words(pieces.split())
    assert words.pieces(punctuation_pieces(words)) == expected.split()
