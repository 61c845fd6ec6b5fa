"""BPE dropout in training: another segmentation of each sentence in each epoch (Provilkov et al.,
2020).

The prepared corpus has the segmentation without dropout; its pieces are split into symbols and
merged again. The trees come from an annotation that knows the symbols of each word, so that they
fit every segmentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from synmt.arrays import SIDES, IntArray
from synmt.data.corpus import Example
from synmt.data.epoch import EpochRows
from synmt.data.merges import Keys, Merges, mix
from synmt.data.stored_trees import WholeTree
from synmt.data.vocabulary import IdArray, SentencePieces, Vocabulary


class BpeDropout:
    """Draws segmentations of training pairs.

    probability: that a merge is dropped.
    """

    def __init__(
        self, vocabularies: tuple[Vocabulary, Vocabulary], probability: float, seed: int
    ) -> None:
        self.probability, self.seed = probability, seed
        merges = {id(vocabulary): Merges(_with_merges(vocabulary)) for vocabulary in vocabularies}
        self._merges = [merges[id(vocabulary)] for vocabulary in vocabularies]

    def apply(self, examples: Sequence[Example], rows: EpochRows, epoch: int) -> list[Example]:
        """Segment both sides of the pairs of rows anew, and find the words of the new pieces."""
        for number, side in enumerate(SIDES):
            merges, sentences = (
                self._merges[number],
                [getattr(example, side) for example in examples],
            )
            symbols = merges.symbols(sentences)
            segmented = merges.segment(symbols, self._keys(rows, epoch, number), self.probability)
            ends = symbols.lengths.tolist()
            examples = [
                _with_pieces(
                    example, number, ids, np.stack((starts, np.append(starts[1:], end)), axis=1)
                )
                for example, (ids, starts), end in zip(
                    examples, segmented.sentences(), ends, strict=True
                )
            ]
        return list(examples)

    def _keys(self, rows: EpochRows, epoch: int, side: int) -> Keys:
        [base] = np.random.SeedSequence((self.seed, epoch, side)).generate_state(1, np.uint64)
        return mix(mix(base + rows.rows.astype(np.uint64)) + rows.copies.astype(np.uint64))


def _with_merges(vocabulary: Vocabulary) -> SentencePieces:
    # the recipe allows dropout for BPE only
    assert isinstance(vocabulary, SentencePieces)
    return vocabulary


def _with_pieces(example: Example, number: int, ids: IdArray, spans: IntArray) -> Example:
    """Replace the pieces of a side, whose spans (T, 2) count symbols, and fit its tree to them."""
    side = SIDES[number]
    changed: dict[str, Any] = {side: ids}
    tree = example.trees.get(side)
    if isinstance(tree, WholeTree):
        # a random control is the same in all epochs, unless the words are merged in another way
        fitted = replace(tree.on(spans), key=getattr(example, side).tobytes())
        changed["trees"] = {**example.trees, side: fitted}
    return replace(example, **changed)
