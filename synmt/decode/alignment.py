"""Word alignment from the attention to the source.

    soft[v, w] = mean_{t in word v} Σ_{s in word w} cross[t, s]
    align(v) = argmax_w soft[v, w]

Row t of the weights belongs to the step that predicts target piece t. By default, the weights are
the mean over the heads of the penultimate decoder layer, which aligns best according to Garg et al.
(2019, section 4.1). Their alignment loss and the combination of both directions are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from synmt.arrays import DoubleArray, IntArray
from synmt.data.vocabulary import word_of

Pair = tuple[int, int]
"""A source word and the target word aligned with it, both counted from 0."""


def word_alignment(
    cross: DoubleArray,
    target_spans: IntArray,
    source_spans: IntArray,
    source_words: IntArray,
    target_words: IntArray,
) -> list[Pair]:
    """Align each target word with the source word that has the largest weight: pairs in the order
    of target words.

    The arguments are those of `word_weights`. Of equally good source words, the first one is taken.
    A target word without pieces, or without any weight on a source word, has no pair.
    """
    return best_pairs(word_weights(cross, target_spans, source_spans, source_words, target_words))


def word_weights(
    cross: DoubleArray,
    target_spans: IntArray,
    source_spans: IntArray,
    source_words: IntArray,
    target_words: IntArray,
) -> DoubleArray:
    """Sum weights over the pieces of each source word, and average them over those of each target
    word: (V, W).

    cross: (T, S) weights of pieces. Rows and columns after the last span, such as those of EOS, are
        ignored, so a row need not sum to 1.
    target_spans, source_spans: (T', 2), (S', 2) characters that each piece covers; a piece that
    covers none, such as a
        byte or a task tag, belongs to the next word, or at the end to the last one.
    source_words, target_words: (W, 2), (V, 2) characters of the words.
    A target word without pieces has only weights of 0.
    """
    row_words, column_words = (
        word_of(target_spans, target_words),
        word_of(source_spans, source_words),
    )  # (T',), (S',)
    rows = _members(row_words, len(target_words))  # (V, T')
    columns = _members(column_words, len(source_words))  # (W, S')
    pieces = np.maximum(rows.sum(1), 1)  # (V,)
    weights = np.asarray(cross, dtype=np.float64)[: len(row_words), : len(column_words)]  # (T', S')
    return rows @ weights @ columns.T / pieces[:, None]  # (V, W)


def best_pairs(soft: DoubleArray) -> list[Pair]:
    """Pair each target word with its best source word, from the weights of words (V, W)."""
    if not soft.size:
        return []
    best = zip(soft.argmax(1).tolist(), soft.max(1).tolist(), strict=True)
    return [(word, target) for target, (word, weight) in enumerate(best) if weight > 0]


def default_head_weights(cross: Mapping[tuple[int, int], DoubleArray], layers: int) -> DoubleArray:
    """Average weights over the heads of the penultimate decoder layer: (…, T, S) each -> (…, T, S).

    cross: by layer and head, both from 1. If the penultimate layer has no weights, as in an LSTM or
        a decoder with one layer, the last layer that has some is used.
    layers: number of decoder layers.
    """
    available = {layer for layer, _ in cross}
    chosen = layers - 1 if layers - 1 in available else max(available)
    return np.mean(
        [weights for (layer, _), weights in cross.items() if layer == chosen], axis=0
    )  # (…, T, S)


def whitespace_words(line: str) -> IntArray:
    """Find the words between Unicode whitespace, as `str.split` does: (W, 2) characters."""
    return np.array([match.span() for match in re.finditer(r"\S+", line)], dtype=np.int64).reshape(
        -1, 2
    )


def pharaoh(pairs: Iterable[Pair]) -> str:
    """Format pairs as Pharaoh did: `0-0 1-2`, source word first."""
    return " ".join(f"{source}-{target}" for source, target in pairs)


def _members(word_of_piece: IntArray, words: int) -> DoubleArray:
    """Mark with 1 which pieces belong to each word: (T,) -> (W, T)."""
    return (np.arange(words)[:, None] == word_of_piece).astype(np.float64)
