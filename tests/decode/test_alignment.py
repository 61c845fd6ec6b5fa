"""Word alignments read off attention: by hand, and against loops over words and pieces."""

import sys
from itertools import pairwise

import numpy as np
import pytest

from synmt.decode.alignment import (
    default_head_weights,
    pharaoh,
    whitespace_words,
    word_alignment,
    word_weights,
)

SOURCE, TARGET = "The monkey eats", "Der Affe isst"
# pieces: The, mon|key, eats; Der, Af|fe, isst; each with the blank before it
SOURCE_PIECES = np.array([(0, 3), (3, 7), (7, 10), (10, 15)])
TARGET_PIECES = np.array([(0, 3), (3, 6), (6, 8), (8, 13)])
CROSS = np.array(
    [
        # The  mon  key  eats EOS
        [0.60, 0.10, 0.10, 0.10, 0.10],  # Der
        [0.05, 0.30, 0.35, 0.30, 0.00],  # Af
        [0.45, 0.05, 0.00, 0.50, 0.00],  # fe
        [0.00, 0.40, 0.30, 0.30, 0.00],  # isst
        [0.00, 0.00, 0.00, 0.00, 1.00],  # EOS
    ]
)


def given(cross=CROSS, source=SOURCE, target=TARGET):
    return cross, TARGET_PIECES, SOURCE_PIECES, whitespace_words(source), whitespace_words(target)


def test_weights_are_summed_over_source_pieces_and_averaged_over_target_pieces():
    expected = [
        [0.60, 0.20, 0.10],
        # Affe: The (0.05 + 0.45) / 2, monkey (0.65 + 0.05) / 2, eats (0.3 + 0.5) / 2
        [0.25, 0.35, 0.40],
        [0.00, 0.70, 0.30],
    ]
    np.testing.assert_allclose(word_weights(*given()), expected)
    assert word_alignment(*given()) == [(0, 0), (2, 1), (1, 2)]


def test_the_first_of_equally_good_source_words_is_taken():
    assert word_alignment(*given(np.full((5, 5), 0.2)[:, [0, 0, 0, 0, 0]])) == [
        (1, 0),
        (1, 1),
        (1, 2),
    ]
    even = np.tile([0.25, 0.125, 0.125, 0.25, 0.25], (5, 1))
    assert word_alignment(*given(even)) == [(0, 0), (0, 1), (0, 2)]


def test_words_without_pieces_or_weight_have_no_pair():
    cut_off = given()[1][:2]
    # isst has lost its pieces, and Affe one of them
    assert word_alignment(CROSS, cut_off, *given()[2:]) == [(0, 0), (1, 1)]
    only_eos = CROSS.copy()
    only_eos[3] = [0, 0, 0, 0, 1]
    assert word_alignment(*given(only_eos)) == [(0, 0), (2, 1)]


@pytest.mark.parametrize(("rows", "columns"), [(0, 4), (4, 0), (0, 0)])
def test_an_empty_line_has_no_pairs(rows, columns):
    source, target = SOURCE if columns else "", TARGET if rows else ""
    spans = TARGET_PIECES[:rows], SOURCE_PIECES[:columns]
    cross = CROSS[: rows + 1, : columns + 1]
    assert word_alignment(cross, *spans, whitespace_words(source), whitespace_words(target)) == []


@pytest.mark.parametrize("seed", range(20))
def test_weights_of_words_are_those_of_loops_over_their_characters(seed):
    random = np.random.default_rng(seed)
    source, target = (
        " ".join("x" * n for n in random.integers(1, 6, size=random.integers(1, 8)))
        for _ in range(2)
    )
    pieces = [cut(line, random) for line in (target, source)]
    cross = random.random((len(pieces[0]) + 1, len(pieces[1]) + 1))
    found = word_weights(cross, *pieces, whitespace_words(source), whitespace_words(target))
    owners = [owners_of(target, pieces[0]), owners_of(source, pieces[1])]
    for v in range(len(target.split())):
        rows = [t for t, owner in enumerate(owners[0]) if owner == v]
        for w in range(len(source.split())):
            total = sum(
                cross[t, s] for t in rows for s, owner in enumerate(owners[1]) if owner == w
            )
            assert found[v, w] == pytest.approx(total / len(rows))


def owners_of(line, spans):
    return [len(line[:end].split()) - 1 for _, end in spans.tolist()]


def cut(line, random):
    """Cut a line at random places inside words and before each blank, as a vocabulary does."""
    inner = {
        place
        for place in range(1, len(line))
        if " " not in line[place - 1 : place + 1] and random.random() < 0.4
    }
    places = sorted(
        {0, len(line)} | inner | {place for place, letter in enumerate(line) if letter == " "}
    )
    return np.array(list(pairwise(places)))


def test_the_default_is_the_mean_over_the_heads_of_the_penultimate_layer():
    heads = {
        (layer, head): np.full((2, 3), 10.0 * layer + head)
        for layer in (1, 2, 3)
        for head in (1, 2)
    }
    np.testing.assert_array_equal(default_head_weights(heads, 3), np.full((2, 3), 21.5))
    only = {place: weights for place, weights in heads.items() if place[0] == 1}
    np.testing.assert_array_equal(default_head_weights(only, 1), np.full((2, 3), 11.5))
    # an LSTM of two layers looks at the source once, from the last one
    np.testing.assert_array_equal(
        default_head_weights({(2, 1): np.ones((2, 3))}, 2), np.ones((2, 3))
    )


def test_words_are_those_of_split_for_all_whitespace():
    for letter in map(chr, range(sys.maxunicode + 1)):
        if letter.isspace() or letter in "​\x00\ufeff":
            line = f" a{letter}bc{letter}{letter}d "
            assert [
                line[start:end] for start, end in whitespace_words(line).tolist()
            ] == line.split(), hex(ord(letter))
    assert whitespace_words(" \t").shape == whitespace_words("").shape == (0, 2)


def test_pharaoh_writes_the_source_word_first():
    assert pharaoh([(0, 0), (2, 1), (1, 2)]) == "0-0 2-1 1-2"
    assert pharaoh([]) == ""
