"""Attention between the words of given pairs, read while a model is made to write the targets."""

from __future__ import annotations

from collections.abc import Sequence

from synmt.analysis.forward_passes import run_forward
from synmt.arrays import DoubleArray, IntArray
from synmt.decode.alignment import default_head_weights, word_weights
from synmt.decode.forced import cross_by_head
from synmt.decode.translator import Translator


def word_attention(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    source_words: Sequence[IntArray],
    target_words: Sequence[IntArray],
) -> list[DoubleArray | None]:
    """Find how strongly each target word looks at each source word: (V, W) for each pair.

    source_words, target_words: (W, 2), (V, 2) characters of the words of each line.
    The model's own parser makes the trees that it reads. A line without text has None.
    """
    found: list[DoubleArray | None] = [None] * len(sources)
    for passed in run_forward(translator, sources, targets, what=("cross",)):
        cross = cross_by_head(passed.captured)  # (B, T, S) each
        weights = default_head_weights(cross, max(layer for layer, _ in cross))  # (B, T, S)
        for one, row in zip(passed.sentences, weights, strict=True):
            words = source_words[one.index], target_words[one.index]
            found[one.index] = word_weights(row, one.target, one.source, *words)
    return found
