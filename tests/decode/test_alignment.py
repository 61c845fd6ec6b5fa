"""Word alignments read off attention: by hand, and against loops over words and pieces."""

import sys
from itertools import pairwise

import numpy as np
import pytest
import torch

from synmt.decode.alignment import (
    attention_to_source,
    best_pairs,
    pharaoh,
    whitespace_words,
    word_weights,
)

SOURCE, TARGET = "The monkey eats", "Der Affe isst"
# pieces: The, mon|key, eats; Der, Af|fe, isst; each with the blank before it
SOURCE_PIECES = np.array([(0, 3), (3, 7), (7, 10), (10, 15)])
TARGET_PIECES = np.array([(0, 3), (3, 6), (6, 8), (8, 13)])
CROSS = np.loadtxt(
    """
    0.60 0.10 0.10 0.10 0.10  # Der: The mon key eats EOS
    0.05 0.30 0.35 0.30 0.00  # Af
    0.45 0.05 0.00 0.50 0.00  # fe
    0.00 0.40 0.30 0.30 0.00  # isst
    0.00 0.00 0.00 0.00 1.00  # EOS
    """.splitlines()
)


def weights(cross=CROSS, rows=4, columns=4):
    """Sum up the weights of words, of the first pieces only."""
    words = whitespace_words(SOURCE if columns else ""), whitespace_words(TARGET if rows else "")
    return word_weights(cross, TARGET_PIECES[:rows], SOURCE_PIECES[:columns], *words)


def test_the_best_source_word_of_each_target_word_is_taken_and_the_first_of_equal_ones():
    # Affe: The (0.05 + 0.45) / 2, monkey (0.65 + 0.05) / 2, eats (0.3 + 0.5) / 2
    assert weights()[1] == pytest.approx([0.25, 0.35, 0.4])
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


@pytest.mark.parametrize("seed", range(20))
def test_weights_of_words_are_those_of_loops_over_their_characters(seed):
    random = np.random.default_rng(seed)
    lines = [" ".join("x" * n for n in random.integers(1, 6, size=3 + seed % 5)) for _ in range(2)]
    target, source = (cut(line, random) for line in lines)
    cross = random.random((len(target) + 1, len(source) + 1))
    found = word_weights(cross, target, source, *map(whitespace_words, lines[::-1]))
    rows, columns = (
        np.array([len(line[:end].split()) - 1 for _, end in spans])
        for line, spans in zip(lines, (target, source), strict=True)
    )
    for (v, w), value in np.ndenumerate(found):
        part = cross[:-1, :-1][rows == v][:, columns == w]
        assert value == pytest.approx(part.sum(1).mean())


def cut(line, random):
    """Cut a line at random places inside words and before each blank, as a vocabulary does."""
    places = {0, len(line)}
    for place in range(1, len(line)):
        inside = " " not in line[place - 1 : place + 1]
        if line[place] == " " or (inside and random.random() < 0.4):
            places.add(place)
    return np.array(list(pairwise(sorted(places))))


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


def test_pharaoh_writes_the_source_word_first():
    assert pharaoh([(0, 0), (2, 1), (1, 2)]) == "0-0 2-1 1-2"
    assert pharaoh([]) == ""
