"""Groups of target words by the trees of the source: a target word is in the group of its aligned source word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis.words.alignments import attend
from synmt.analysis.words.counts import WordGroups
from synmt.analysis.words.matching import TokenizedText, join_alignments
from synmt.analysis.words.texts import WordTexts
from synmt.arrays import IntArray

if TYPE_CHECKING:
    from synmt.analysis.options import WordOptions
    from synmt.evaluation.outputs import Outputs


def by_aligned_words(
    options: WordOptions, texts: WordTexts, groups: Sequence[WordGroups], pairs: IntArray
) -> list[WordGroups]:
    """Group target words as the source words that they are aligned with; words without an alignment are in no group.

    groups: of the source words.
    pairs: (A, 2) aligned words of source and references, numbered through the whole text.

    Words of a translation are aligned by the attention of its run, or of the first run if it is a file. A file of
    alignments says nothing about translations, so that the groups have no translated words, and recall only.
    """
    own: list[list[tuple[IntArray, TokenizedText]]] = []
    if options.alignments is None:
        own = [
            [(_attended(texts, seed, words), words) for words, seed in zip(tokenized, system.seeds, strict=True)]
            for tokenized, system in zip(texts.hypotheses, texts.systems, strict=True)
        ]
    return [
        replace(
            one,
            by=one.by.replace("source word", "aligned source word"),
            side="target",
            words=carry_over(one.words, pairs, len(texts.reference)),
            translated=[[carry_over(one.words, found, len(words)) for found, words in seeds] for seeds in own],
        )
        for one in groups
    ]


def _attended(texts: WordTexts, seed: Outputs, words: TokenizedText) -> IntArray:
    lines = seed.as_read()
    # a file is raw text, unless words are scored
    raw = seed.run is None and not seed.scoring.on_tokens
    found = attend(seed.run or texts.runs[0], (lines.source, lines.hypothesis), texts.source, words, raw=raw)
    return join_alignments(found, texts.source, words)


def carry_over(numbers: IntArray, pairs: IntArray, words: int) -> IntArray:
    """Give each target word the group of its source word, the first one of several: (M,) -> (words,), -1 for none."""
    found = np.full(words, -1, dtype=np.int64)
    source, target = pairs[::-1].T
    found[target] = numbers[source]
    return found
