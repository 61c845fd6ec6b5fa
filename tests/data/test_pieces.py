"""Pieces: cutting and joining text, the word of each piece, learning a vocabulary."""

import io
import pickle
import sys
from unittest.mock import Mock

import numpy as np
import pytest
from preparing import LINES, ODD_TEXTS
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
    straddles,
    word_of,
)
from synmt.data.vocabulary_training import (
    add_counts,
    count_words,
    train_on_counts,
    train_vocabulary,
)
from synmt.errors import SynmtError
from synmt.recipe.data import VocabularyRecipe


def vocabulary(**settings) -> Vocabulary:
    return train_vocabulary(LINES, VocabularyRecipe(**{"size": 400, **settings}))


KINDS = {
    "bpe": {},
    "unigram": {"kind": "unigram"},
    "identity": {"normalization": "identity"},
    "no bytes": {"byte_fallback": False, "size": 150},
    "word": {"kind": "word"},
}


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS)
def any_vocabulary(request) -> Vocabulary:
    return vocabulary(**request.param)


def words_of(text: str) -> np.ndarray:
    """Cut a text as parsers do: runs of letters, and every other visible character alone."""
    spans, start = [], None
    for index, character in enumerate([*text, " "]):
        if start is not None and not character.isalnum():
            spans.append((start, index))
            start = None
        if character.isalnum():
            start = index if start is None else start
        elif not character.isspace():
            spans.append((index, index + 1))
    return np.array(sorted(spans), dtype=np.int64).reshape(-1, 2)


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
    texts = [*ODD_TEXTS, "", " ", "\u200b", "\u2028"]
    ids = {text: any_vocabulary.encode(text).ids.tolist() for text in texts}
    assert {text: any_vocabulary.encode_ids(text) for text in texts} == ids
    other = any_vocabulary.encode_ids("The monkey")
    for text in texts:
        assert any_vocabulary.encode_batch([text, "The monkey", text]) == [
            ids[text],
            other,
            ids[text],
        ], text


def test_spans_are_in_order_and_inside_the_text(any_vocabulary):
    for text in ODD_TEXTS:
        spans = any_vocabulary.encode(text).spans
        assert (spans[:, 0] <= spans[:, 1]).all(), text
        assert (np.diff(spans, axis=0) >= 0).all(), text
        assert spans.min() >= 0, text
        assert spans.max() <= len(text), text


def test_every_visible_character_is_in_a_piece_unless_the_vocabulary_normalises_it_away(
    any_vocabulary,
):
    for text in ODD_TEXTS:
        spans = any_vocabulary.encode(text).spans
        covered = {index for start, end in spans.tolist() for index in range(start, end)}
        missing = {
            text[index]
            for index in range(len(text))
            if index not in covered and not text[index].isspace()
        }
        assert missing <= {"\x07", "\x00", "\u200b"}, text


def test_a_special_spelt_in_a_text_is_no_special(any_vocabulary):
    ids = any_vocabulary.encode_ids("<pad> <s> </s>")
    assert not {PAD, BOS, EOS} & set(ids)


@pytest.mark.journey
def test_blanks_are_the_same_for_all_functions_of_the_word_vocabulary():
    words = Words(["a", "b"])
    every = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    text = " ".join(f"a{character}b" for character in every)
    assert words.encode(text).ids.tolist() == words.encode_ids(text)


# the word of a piece


def spans_of(text, *, blanks=True):
    """Find the spans of the parts between `|`, perhaps without those that are blanks."""
    parts = text.split("|")
    ends = np.cumsum([len(part) for part in parts])
    spans = [(end - len(part), end) for part, end in zip(parts, ends, strict=True)]
    kept = [span for span, part in zip(spans, parts, strict=True) if blanks or part.strip()]
    return np.array(kept, dtype=np.int64).reshape(-1, 2)


@pytest.mark.parametrize(
    ("pieces", "words", "owners", "straddling"),
    [
        ("The| mon|key| eats", "The| |monkey| |eats", "0 1 1 2", "0 0 0 0"),
        # a lone blank belongs to the word that follows
        ("a| |b", "a| |b", "0 1 1", "0 0 0"),
        # four bytes of one character, the last of which has it
        ("a| ||||ß| d", "a| |ß| |d", "0 1 1 1 1 1 2", "0 0 0 0 0 0 0"),
        # the first word of a piece has it
        ("don|'|t", "do|n't", "0 1 1", "1 0 0"),
        # text after the last word
        ("ab|cd", "ab|  ", "0 0", "0 0"),
        ("ab", "  ", "-1", "0"),
    ],
)
def test_a_piece_belongs_to_the_word_of_its_first_character(pieces, words, owners, straddling):
    spans, of_words = spans_of(pieces), spans_of(words, blanks=False)
    assert " ".join(map(str, word_of(spans, of_words))) == owners
    if len(of_words):
        assert " ".join(map(str, straddles(spans, of_words).astype(int))) == straddling


def test_every_piece_is_owned_by_the_first_word_in_it_and_owners_never_go_back(any_vocabulary):
    for text in ODD_TEXTS:
        spans, words = any_vocabulary.encode(text).spans, words_of(text)
        owners = word_of(spans, words)
        assert (owners >= 0).all(), text
        assert (np.diff(owners) >= 0).all(), text
        for (start, end), owner in zip(spans.tolist(), owners.tolist(), strict=True):
            touched = [
                w for w, (first, last) in enumerate(words.tolist()) if first < end and start < last
            ]
            assert not touched or owner == touched[0], text


# learning


def test_a_vocabulary_is_always_the_same_from_the_same_lines(any_vocabulary):
    if isinstance(any_vocabulary, Words):
        assert vocabulary(kind="word").to_bytes() == any_vocabulary.to_bytes()
    assert vocabulary(kind="unigram").to_bytes() == vocabulary(kind="unigram").to_bytes()


def test_a_vocabulary_survives_storing_and_pickling(any_vocabulary, tmp_path):
    any_vocabulary.save(tmp_path, "shared")
    for copy in (Vocabulary.load(tmp_path, "shared"), pickle.loads(pickle.dumps(any_vocabulary))):
        assert copy.to_bytes() == any_vocabulary.to_bytes()
        assert copy.encode_ids("The monkey 😀") == any_vocabulary.encode_ids("The monkey 😀")
        assert len(copy) == len(any_vocabulary)


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
    lines = LINES[:300] + (
        ODD_LINES if "nmt" in normalization else [line.replace("\t", " ") for line in ODD_LINES]
    )
    settings = VocabularyRecipe(size=700, normalization=normalization, character_coverage=1.0)
    model = io.BytesIO()
    SentencePieceTrainer.Train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="bpe",
        vocab_size=700,
        byte_fallback=True,
        normalization_rule_name=normalization,
        character_coverage=1.0,
        pad_id=PAD,
        unk_id=UNK,
        bos_id=BOS,
        eos_id=EOS,
        user_defined_symbols=["\u2581" + symbol for symbol in symbols],
        max_sentence_length=65536,
        minloglevel=2,
    )
    twin = SentencePieceProcessor(model_proto=model.getvalue())
    learned = train_vocabulary(lines, settings, symbols)
    assert learned.pieces(range(700)) == [twin.id_to_piece(number) for number in range(700)]


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_counts_of_parts_of_a_text_can_be_added(kind):
    settings = VocabularyRecipe(size=400, kind=kind)
    blocks = ("\n".join(LINES[first : first + 7]).encode() for first in range(0, len(LINES), 7))
    parts = (count_words(block, settings) for block in blocks)
    assert (
        train_on_counts(add_counts(parts), settings).to_bytes()
        == train_vocabulary(LINES, settings).to_bytes()
    )


@pytest.mark.parametrize(
    ("lines", "settings", "message"),
    [
        (LINES, {"size": 100}, r"size is 100, but characters and bytes alone need \d+\. Set"),
        (["", "  "], {}, "empty text"),
        (["", "  "], {"kind": "word"}, "empty text"),
        (["", "  "], {"kind": "unigram"}, "empty text"),
    ],
)
def test_a_vocabulary_that_cannot_be_learned_is_an_error(lines, settings, message):
    with pytest.raises(SynmtError, match=message):
        train_vocabulary(lines, VocabularyRecipe(**settings))


@pytest.mark.parametrize("name", ["shared.model", "shared.words", "nothing"])
def test_a_broken_or_missing_vocabulary_is_named(tmp_path, name):
    for stored in (b"", b"nonsense", b"a\nb\n", b"\xff\xfe"):
        (tmp_path / name).write_bytes(stored)
        with pytest.raises(SynmtError, match=r"shared\..*Restore the folder from a copy"):
            Vocabulary.load(tmp_path, "shared")


def test_bpe_that_asks_for_too_many_pieces_is_told_the_most_and_that_works():
    with pytest.raises(
        SynmtError, match=r"vocabulary\.size is 8000, but the text supports at most \d+ pieces"
    ) as caught:
        train_vocabulary(LINES[:20], VocabularyRecipe(size=8000))
    most = int(caught.value.do.split("vocabulary.size=")[1].split()[0])
    assert len(train_vocabulary(LINES[:20], VocabularyRecipe(size=most))) == most


def test_rare_words_are_unknown():
    words = train_vocabulary(["a a b", "c c c"], VocabularyRecipe(kind="word", min_frequency=2))
    assert words.pieces(words.encode_ids("a b c")) == ["a", "<unk>", "c"]
    assert words.pieces([4, 5]) == ["c", "a"]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["the", ".", "▁,", "<0x0A>", "--", "▁a"], [".", "▁,", "--"]),
        (["<0x3F>", "<0x41>", "<0xC3>", "▁"], ["<0x3F>", "▁"]),
        ([], []),
    ],
    ids=[
        "with and without a blank before them",
        "spelled in bytes or after a lone blank",
        "no specials",
    ],
)
def test_the_pieces_of_punctuation_are_found(pieces, expected):
    words = Words(pieces)
    assert [words.pieces([number])[0] for number in punctuation_pieces(words)] == expected


def test_pieces_are_not_learned_if_threads_cannot_start(monkeypatch):
    monkeypatch.setattr(
        "threading.Thread.start", Mock(side_effect=RuntimeError("can't start new thread"))
    )
    with pytest.raises(RuntimeError, match="can't start new thread"):
        train_vocabulary(LINES, VocabularyRecipe(size=400))
