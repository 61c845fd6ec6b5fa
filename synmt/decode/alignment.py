"""Which source word each target word comes from, read off the attention to the source.

    soft[v, w] = mean_{t in word v} Σ_{s in word w} cross[t, s]        align(v) = argmax_w soft[v, w]

Row t of the weights is that of the step which predicts target piece t. By default they are the mean over the heads of
the penultimate decoder layer, which Garg et al. (2019, section 4.1) find to align best. What is left out: their loss
that teaches a head to align, and alignments of both directions joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from synmt.arrays import DoubleArray, IntArray
from synmt.data.vocabulary import word_of

Pair = tuple[int, int]
"""A source word and the target word that is aligned with it, both counted from 0."""


def word_alignment(
    cross: DoubleArray, target_spans: IntArray, source_spans: IntArray, source_words: IntArray, target_words: IntArray
) -> list[Pair]:
    """Align each target word with the source word that it looks at most: pairs in the order of target words.

    Takes what `word_weights` takes. The first of equally good source words is taken. A target word without a piece of
    its own, or without any weight on a word, has no pair.
    """
    return best_pairs(word_weights(cross, target_spans, source_spans, source_words, target_words))


def word_weights(
    cross: DoubleArray, target_spans: IntArray, source_spans: IntArray, source_words: IntArray, target_words: IntArray
) -> DoubleArray:
    """Sum weights over the pieces of each source word, and average over those of each target word: (V, W).

    cross: (T, S) weights of pieces. Rows and columns behind the last span, such as those of EOS, are dropped, so that
        a row need not sum to 1.
    target_spans, source_spans: (T', 2), (S', 2) characters that each piece stands for; a piece with none, such as a
        byte or a task tag, belongs to the word that follows, at the end to the last one.
    source_words, target_words: (W, 2), (V, 2) characters of the words.
    A target word without a piece has the weight 0 everywhere.
    """
    here, there = word_of(target_spans, target_words), word_of(source_spans, source_words)  # (T',), (S',)
    rows, columns = _members(here, len(target_words)), _members(there, len(source_words))  # (V, T'), (W, S')
    pieces = np.maximum(rows.sum(1), 1)  # (V,)
    weights = np.asarray(cross, dtype=np.float64)[: len(here), : len(there)]  # (T', S')
    return rows @ weights @ columns.T / pieces[:, None]  # (V, W)


def best_pairs(soft: DoubleArray) -> list[Pair]:
    """Pair each target word with its best source word, given the weights of words: (V, W)."""
    if not soft.size:
        return []
    best, looks = soft.argmax(1).tolist(), (soft.max(1) > 0).tolist()
    return [(word, target) for target, (word, some) in enumerate(zip(best, looks, strict=True)) if some]


def default_head_weights(cross: Mapping[tuple[int, int], DoubleArray], layers: int) -> DoubleArray:
    """Average weights over the heads of the penultimate of so many decoder layers: (…, T, S) each -> (…, T, S).

    cross: by layer and head, from 1. Where the penultimate layer has none, as that of an LSTM, it is the last one that
        has; where there is one layer, it is that.
    """
    there = {layer for layer, _ in cross}
    chosen = layers - 1 if layers - 1 in there else max(there)
    return np.mean([weights for (layer, _), weights in cross.items() if layer == chosen], axis=0)  # (…, T, S)


def blank_words(line: str) -> IntArray:
    """Find what Unicode white space separates, as `str.split` does: (W, 2) characters."""
    return np.array([match.span() for match in re.finditer(r"\S+", line)], dtype=np.int64).reshape(-1, 2)


def pharaoh(pairs: Iterable[Pair]) -> str:
    """Write pairs as Pharaoh did: `0-0 1-2`, the source word first."""
    return " ".join(f"{source}-{target}" for source, target in pairs)


def _members(word_of_piece: IntArray, words: int) -> DoubleArray:
    """Tell with 1 which pieces belong to a word: (T,) -> (W, T)."""
    return (np.arange(words)[:, None] == word_of_piece).astype(np.float64)
