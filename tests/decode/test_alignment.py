"""Word alignments read off attention, by hand."""

import sys

import numpy as np
import torch
from notation import matrix

from synmt.decode.alignment import (
    attention_to_source,
    best_pairs,
    whitespace_words,
    word_weights,
)

SOURCE, TARGET = "The monkey eats", "Der Affe isst"
# pieces: The, mon|key, eats; Der, Af|fe, isst; each with the blank before it
SOURCE_PIECES = np.array([(0, 3), (3, 7), (7, 10), (10, 15)])
TARGET_PIECES = np.array([(0, 3), (3, 6), (6, 8), (8, 13)])
CROSS = matrix("""
0.60 0.10 0.10 0.10 0.10  # Der: The mon key eats EOS
0.05 0.30 0.35 0.30 0.00  # Af
0.45 0.05 0.00 0.50 0.00  # fe
0.00 0.40 0.30 0.30 0.00  # isst
0.00 0.00 0.00 0.00 1.00  # EOS
""")


def weights(cross=CROSS, rows=4, columns=4):
    """Sum up the weights of words, of the first pieces only."""
    words = whitespace_words(SOURCE if columns else ""), whitespace_words(TARGET if rows else "")
    return word_weights(cross, TARGET_PIECES[:rows], SOURCE_PIECES[:columns], *words)


def test_the_best_source_word_of_each_target_word_is_taken_and_the_first_of_equal_ones():
    # Affe: The (0.05 + 0.45) / 2, monkey (0.65 + 0.05) / 2, eats (0.3 + 0.5) / 2
    expected = "0.6 0.2 0.1 \n 0.25 0.35 0.4 \n 0 0.7 0.3"
    np.testing.assert_allclose(weights(), matrix(expected))
    assert best_pairs(weights()) == [(0, 0), (2, 1), (1, 2)]
    assert best_pairs(weights(np.full((5, 5), 0.2))) == [(1, 0), (1, 1), (1, 2)]
    even = np.tile([0.25, 0.125, 0.125, 0.25, 0.25], (5, 1))
    assert best_pairs(weights(even)) == [(0, 0), (0, 1), (0, 2)]


def test_words_without_pieces_or_weight_have_no_pair():
    # isst has lost its pieces, and Affe one of them
    assert best_pairs(weights(rows=2)) == [(0, 0), (1, 1)]
    only_eos = CROSS.copy()
    only_eos[3] = CROSS[4]
    assert best_pairs(weights(only_eos)) == [(0, 0), (2, 1)]
    for rows, columns in ((0, 4), (4, 0), (0, 0)):
        assert best_pairs(weights(CROSS[: rows + 1, : columns + 1], rows, columns)) == []


def test_the_default_is_the_mean_over_the_heads_of_the_penultimate_layer():
    cross = {layer: torch.full((1, 2, 2, 3), 10.0 * layer) for layer in (1, 2, 3)}
    for weight in cross.values():
        weight[:, 1] += 1
    assert (attention_to_source(cross) == 20.5).all()
    assert (attention_to_source({1: cross[1]}) == 10.5).all()
    # an LSTM of two layers looks at the source once, from the last one
    assert (attention_to_source({2: torch.ones(1, 1, 2, 3)}) == np.ones((1, 2, 3))).all()


def test_words_are_those_of_split_for_all_whitespace():
    for letter in map(chr, range(sys.maxunicode + 1)):
        if letter.isspace() or letter in "​\x00\ufeff":
            line = f" a{letter}bc{letter}{letter}d "
            words = [line[start:end] for start, end in whitespace_words(line).tolist()]
            assert words == line.split(), hex(ord(letter))
    assert whitespace_words(" \t").shape == whitespace_words("").shape == (0, 2)
