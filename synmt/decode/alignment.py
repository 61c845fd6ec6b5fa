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
from torch import Tensor

from synmt.arrays import DoubleArray, IntArray, int_pairs
from synmt.data.vocabulary import word_of

Pair = tuple[int, int]
"""A source word and the target word aligned with it, both counted from 0."""


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
        covers none, such as a byte or a task tag, belongs to the next word, or at the end to the
        last one.
    source_words, target_words: (W, 2), (V, 2) characters of the words.
    A target word without pieces has only weights of 0.
    """
    words = np.arange(len(target_words))[:, None], np.arange(len(source_words))[:, None]
    rows = words[0] == word_of(target_spans, target_words)  # (V, T')
    columns = words[1] == word_of(source_spans, source_words)  # (W, S')
    pieces = np.maximum(rows.sum(1), 1)  # (V,)
    weights = cross[: rows.shape[1], : columns.shape[1]]  # (T', S')
    return rows.astype(float) @ weights @ columns.T.astype(float) / pieces[:, None]  # (V, W)


def best_pairs(soft: DoubleArray) -> list[Pair]:
    """Pair each target word with its best source word, from the weights of words (V, W).

    Of equally good source words, the first one is taken. A target word without pieces, or without
    any weight on a source word, has no pair.
    """
    if not soft.size:
        return []
    best = soft.argmax(1).tolist()
    return [(word, target) for target, word in enumerate(best) if soft[target, word] > 0]


def attention_to_source(cross: Mapping[int, Tensor]) -> DoubleArray:
    """Average weights over the heads of the penultimate decoder layer: (B, H, T, S) by layer, from
    1 -> (B, T, S).

    If the penultimate layer has no weights, as in an LSTM or a decoder with one layer, the last
    layer is used.
    """
    last = max(cross)
    return cross.get(last - 1, cross[last]).cpu().double().numpy().mean(1)  # (B, T, S)


def whitespace_words(line: str) -> IntArray:
    """Find the words between Unicode whitespace, as `str.split` does: (W, 2) characters."""
    return int_pairs([match.span() for match in re.finditer(r"\S+", line)])


def pharaoh(pairs: Iterable[Pair]) -> str:
    """Format pairs as Pharaoh did: `0-0 1-2`, source word first."""
    return " ".join(f"{source}-{target}" for source, target in pairs)
