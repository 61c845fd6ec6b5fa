"""BPE dropout in training: another segmentation of each sentence in each epoch (Provilkov et al.,
2020, algorithm 1).

A word starts as symbols. In each round, every possible merge of two neighbours is dropped with the
given probability, and the best remaining one is applied; a round in which none remains ends the
word. Without dropout, the result is SentencePiece's. SentencePiece can drop merges too, but its
random numbers cannot be set for each sentence. All words of many sentences are merged at once.

The prepared corpus has the segmentation without dropout; its pieces are split into symbols and
merged again. The trees come from an annotation that knows the symbols of each word, so that they
fit every segmentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from synmt.arrays import SIDES, BoolArray, IntArray, Side, Values
from synmt.data.corpus import Example
from synmt.data.epoch import EpochRows
from synmt.data.stored_trees import WholeTree
from synmt.data.vocabulary import IdArray, SentencePieces, Vocabulary

Keys = npt.NDArray[np.uint64]

_NONE = np.iinfo(np.int64).max
# 2**64 divided by the golden ratio, odd
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class BpeDropout:
    """Draws segmentations of training pairs.

    probability: that a merge is dropped.
    """

    def __init__(
        self, vocabularies: tuple[Vocabulary, Vocabulary], probability: float, seed: int
    ) -> None:
        self.probability, self.seed = probability, seed
        self._merges: list[Merges] = []
        for vocabulary in vocabularies:
            # the recipe allows dropout for BPE only
            assert isinstance(vocabulary, SentencePieces)
            self._merges.append(Merges(vocabulary))

    def apply(self, examples: Sequence[Example], rows: EpochRows, epoch: int) -> list[Example]:
        """Segment both sides of the pairs of rows anew, and find the words of the new pieces."""
        result = list(examples)
        for number, side in enumerate(SIDES):
            merges = self._merges[number]
            symbols = merges.symbols([getattr(example, side) for example in result])
            [base] = np.random.SeedSequence((self.seed, epoch, number)).generate_state(1, np.uint64)
            keys = mix(mix(base + rows.rows.astype(np.uint64)) + rows.copies.astype(np.uint64))
            segmented = merges.segment(symbols, keys, self.probability)
            for row, (ids, starts) in enumerate(segmented.sentences()):
                spans = np.stack((starts, np.append(starts[1:], symbols.lengths[row])), axis=1)
                result[row] = _with_pieces(result[row], side, ids, spans)
        return result


def _with_pieces(example: Example, side: Side, ids: IdArray, spans: IntArray) -> Example:
    """Replace the pieces of a side, whose spans (T, 2) count symbols, and fit its tree to them."""
    changed: Values = {side: ids}
    tree = example.trees.get(side)
    if isinstance(tree, WholeTree):
        # a random control is the same in all epochs, unless the words are merged in another way
        changed["trees"] = {
            **example.trees,
            side: replace(tree.on(spans), key=getattr(example, side).tobytes()),
        }
    return replace(example, **changed)


@dataclass(frozen=True)
class Symbols:
    """The symbols of several sentences, one sentence after the other.

    ids: (N,) pieces.
    starts: (N,) the position of each in its sentence, counted in symbols that cannot be split.
    lengths: (B,) number of ids of each sentence.
    """

    ids: IntArray
    starts: IntArray
    lengths: IntArray

    def sentences(self) -> Iterator[tuple[IdArray, IntArray]]:
        """Yield the pieces and their starts of each sentence."""
        ids, ends = self.ids.astype(np.int32), np.cumsum(self.lengths)
        for first, end in zip((ends - self.lengths).tolist(), ends.tolist(), strict=True):
            yield ids[first:end], self.starts[first:end]


class Merges:
    """The merges of a BPE vocabulary.

    A symbol is a character, or a piece that is never split: a byte, the unknown piece, a tag.
    """

    def __init__(self, vocabulary: SentencePieces) -> None:
        spelled, plain = vocabulary.pieces(range(len(vocabulary))), set(vocabulary.merged_pieces())
        numbers = {spelled[piece]: piece for piece in plain}
        merged = [piece for piece in plain if len(spelled[piece]) > 1]
        # a better score is merged first
        self._by_rank = np.array(sorted(merged, key=vocabulary.score, reverse=True))
        # the last pair is found for all that are not there
        ranks = {_NONE: _NONE}
        for rank, piece in enumerate(self._by_rank.tolist()):
            for place in range(1, len(spelled[piece])):
                left, right = spelled[piece][:place], spelled[piece][place:]
                if left in numbers and right in numbers:
                    ranks[numbers[left] * len(spelled) + numbers[right]] = rank
        self._pairs, self._ranks = np.array(sorted(ranks.items())).T.copy()
        self._parts = [
            [numbers[c] for c in text] if piece in plain else [piece]
            for piece, text in enumerate(spelled)
        ]
        self._begins_word = np.array([text.startswith("▁") for text in spelled])  # (V,)

    def symbols(self, sentences: list[IdArray]) -> Symbols:
        """Split the pieces of sentences into symbols."""
        parts = self._parts
        split = [[part for piece in ids.tolist() for part in parts[piece]] for ids in sentences]
        lengths = np.array(list(map(len, split)), dtype=np.int64)  # (B,)
        ids = np.fromiter(chain.from_iterable(split), dtype=np.int64)  # (N,)
        starts = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # (N,)
        return Symbols(ids, starts, lengths)

    def segment(self, symbols: Symbols, keys: Keys, dropout: float) -> Symbols:
        """Merge the symbols of sentences into pieces; a sentence's random numbers depend only on
        its key (B,)."""
        drawn = streams(np.repeat(keys, symbols.lengths), symbols.starts)  # (N,)
        words = np.cumsum(self._begins_word[symbols.ids] | (symbols.starts == 0))  # (N,)
        ids, alive = symbols.ids.copy(), np.ones(len(words), dtype=bool)
        # the symbols of the words that are not finished; after a merge, a symbol is no more than a
        # part of another one
        going, turn = np.arange(len(words)), 0
        ranks = self._ranks_of_merges(going, ids, words)  # (M,)
        while len(going):
            places = np.flatnonzero(ranks != _NONE)
            places = places[uniform(drawn[going[places]], turn) >= dropout]
            left, going_on = _best(ranks, places, words[going])
            ids[going[left]] = self._by_rank[ranks[left]]
            alive[going[left + 1]] = going_on[left + 1] = False
            # a merge changes the next one of its symbol and of the symbol before it
            changed = np.zeros(len(going), dtype=bool)
            changed[left] = changed[left - 1] = True
            going, ranks, changed = going[going_on], ranks[going_on], changed[going_on]
            places = np.flatnonzero(changed)
            ranks[places] = self._ranks_of_merges(places, ids[going], words[going])
            turn += 1
        sentences = np.repeat(np.arange(len(symbols.lengths)), symbols.lengths)[alive]
        lengths = np.bincount(sentences, minlength=len(symbols.lengths))
        return Symbols(ids[alive], symbols.starts[alive], lengths)

    def _ranks_of_merges(self, places: IntArray, ids: IntArray, words: IntArray) -> IntArray:
        """Find the rank of the merge of the symbols at places, (N,), with the next ones of their
        words: (N,); a huge number for none."""
        inside = np.append(words[1:] == words[:-1], False)  # (M,)
        pairs = np.where(inside, ids * len(self._parts) + np.roll(ids, -1), -1)[places]  # (N,)
        nearest = np.searchsorted(self._pairs, pairs)  # (N,)
        return np.where(self._pairs[nearest] == pairs, self._ranks[nearest], _NONE)


def _best(ranks: IntArray, places: IntArray, words: IntArray) -> tuple[IntArray, BoolArray]:
    """Choose the place with the lowest rank in each word, the first of equals.

    Returns these places, and which symbols are in a word that has one: (M,).
    """
    order = np.full(len(words), _NONE)
    order[places] = ranks[places] * len(words) + places
    starts = np.flatnonzero(np.diff(words, prepend=-1))
    best = np.minimum.reduceat(order, starts)  # of each word
    chosen = best != _NONE
    return best[chosen] % len(words), np.repeat(chosen, np.diff(starts, append=len(words)))


def streams(keys: Keys, places: IntArray) -> Keys:
    """Return a stream of random numbers for each place of a sentence, whose key it has: (N,)."""
    return mix(keys + places.astype(np.uint64))


def uniform(streams: Keys, turn: int) -> npt.NDArray[np.float64]:
    """Draw number `turn` of each stream, from [0, 1): (N,)."""
    drawn = mix(streams + np.uint64(turn * int(_GOLDEN) % 2**64)) >> np.uint64(11)
    return drawn.astype(np.float64) * 2.0**-53


def mix(numbers: Keys) -> Keys:
    """Scramble numbers: one step of SplitMix64 (Steele et al., 2014) from each, whose results look
    independent."""
    z = numbers + _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
