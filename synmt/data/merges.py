"""BPE with merges that can be dropped (Provilkov et al., 2020, algorithm 1), for all words of many sentences at once.

A word starts as symbols. In each round, every possible merge of two neighbours is dropped with the given probability,
and the best remaining one is applied; a round in which none remains ends the word. Without dropout, the result is
SentencePiece's. SentencePiece can drop merges too, but its random numbers cannot be set for each sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from synmt.arrays import BoolArray, IntArray
from synmt.data.vocabulary import IdArray, SentencePieces

Keys = npt.NDArray[np.uint64]

_NONE = np.iinfo(np.int64).max
# 2**64 divided by the golden ratio, odd
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


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
        # a better score is merged first
        self._by_rank = np.array(sorted((p for p in plain if len(spelled[p]) > 1), key=vocabulary.score, reverse=True))
        pairs = {
            (numbers[left], numbers[right]): rank
            for rank, piece in enumerate(self._by_rank.tolist())
            for left, right in _halves(spelled[piece])
            if left in numbers and right in numbers
        }
        self._ranks = _PairTable(pairs, len(spelled))
        parts = [[numbers[c] for c in text] if piece in plain else [piece] for piece, text in enumerate(spelled)]
        self._counts = np.array(list(map(len, parts)))  # (V,)
        self._firsts = np.cumsum(self._counts) - self._counts  # (V,)
        self._parts = np.fromiter(chain.from_iterable(parts), dtype=np.int64)
        self._begins_word = np.array([text.startswith("▁") for text in spelled])  # (V,)

    def symbols(self, sentences: list[IdArray]) -> Symbols:
        """Split the pieces of sentences into symbols."""
        pieces = np.concatenate([np.zeros(0, dtype=np.int64), *sentences])  # (N',)
        counts = self._counts[pieces]  # (N',)
        ends = np.cumsum(counts)  # (N',)
        places = np.arange(counts.sum()) - np.repeat(ends - counts - self._firsts[pieces], counts)  # (N,)
        after = np.append(0, ends)[np.cumsum([0, *map(len, sentences)])]  # (B + 1,) the first symbol of each
        lengths = np.diff(after)  # (B,)
        return Symbols(self._parts[places], np.arange(len(places)) - np.repeat(after[:-1], lengths), lengths)

    def segment(self, symbols: Symbols, keys: Keys, dropout: float) -> Symbols:
        """Merge the symbols of sentences into pieces; a sentence's random numbers depend only on its key (B,)."""
        drawn = streams(np.repeat(keys, symbols.lengths), symbols.starts)  # (N,)
        words = np.cumsum(self._begins_word[symbols.ids] | (symbols.starts == 0))  # (N,)
        state = _State(self, symbols.ids, words)
        turn = 0
        while len(places := state.candidates()):
            state.merge(places, uniform(drawn[places], turn) >= dropout)
            turn += 1
        sentences = np.repeat(np.arange(len(symbols.lengths)), symbols.lengths)[state.alive]
        lengths = np.bincount(sentences, minlength=len(symbols.lengths))
        return Symbols(state.ids[:-1][state.alive], symbols.starts[state.alive], lengths)

    def ranks_of(self, left: IntArray, right: IntArray) -> IntArray:
        """Find the rank of the merge of each pair, 0 for the first to be merged: (N,); a huge number for none."""
        return self._ranks.find(left, right)

    def piece_of(self, ranks: IntArray) -> IntArray:
        """Return the pieces that merges of these ranks make."""
        return self._by_rank[ranks]


class _State:
    """Symbols while they are merged, as a list with links; the last entry, at index -1, is after and before all.

    ranks: (N + 1,) of the merge of each symbol with the one after it.
    alive: (N,) False for a symbol that has become a part of the one before it.
    """

    def __init__(self, merges: Merges, ids: IntArray, words: IntArray) -> None:
        self.merges = merges
        self.ids, self.words = np.append(ids, 0), np.append(words, -1)
        self.after, self.before = np.arange(1, len(ids) + 2), np.arange(-1, len(ids))
        self.alive = np.ones(len(ids), dtype=bool)
        self.ranks = np.full(len(ids) + 1, _NONE)
        self._rank(np.arange(len(ids)))

    def candidates(self) -> IntArray:
        """Find the symbols that can be merged with the one after them."""
        return np.flatnonzero(self.ranks != _NONE)

    def merge(self, places: IntArray, kept: BoolArray) -> None:
        """Apply the best of the kept merges of each word; a word without one is finished."""
        words = self.words[places]
        going_on = np.zeros(self.words[-2] + 1, dtype=bool)
        going_on[words[kept]] = True
        self.ranks[places[~going_on[words]]] = _NONE
        left = self._best(places[kept], words[kept])
        right = self.after[left]
        beyond = self.after[right]
        self.ids[left] = self.merges.piece_of(self.ranks[left])
        self.after[left], self.before[beyond] = beyond, left
        self.alive[right] = False
        self.ranks[right] = _NONE
        before = self.before[left]
        self._rank(np.concatenate((left, before[before >= 0])))

    def _best(self, places: IntArray, words: IntArray) -> IntArray:
        """Choose the place with the lowest rank in each word, the first of equals."""
        if not len(places):
            return places
        order = self.ranks[places] * len(self.ids) + places
        return np.minimum.reduceat(order, np.flatnonzero(np.diff(words, prepend=-1))) % len(self.ids)

    def _rank(self, places: IntArray) -> None:
        following = self.after[places]
        inside = self.words[places] == self.words[following]
        ranks = self.merges.ranks_of(self.ids[places], self.ids[following])
        self.ranks[places] = np.where(inside, ranks, _NONE)


class _PairTable:
    """Numbers of pairs of pieces, in a hash table that finds many at once; a search in a sorted list is slower."""

    def __init__(self, numbers: Mapping[tuple[int, int], int], pieces: int) -> None:
        self._pieces = pieces
        size = 1 << (8 * len(numbers) + 8).bit_length()
        self._shift = np.uint64(65 - size.bit_length())
        self._keys, self._numbers = np.full(size, -1), np.full(size, _NONE)
        pairs = np.array([*numbers], dtype=np.int64).reshape(-1, 2)  # (P, 2)
        keys = self._key(pairs[:, 0], pairs[:, 1])
        for key, place, number in zip(keys.tolist(), self._place(keys).tolist(), numbers.values(), strict=True):
            while self._keys[place] >= 0:
                place = (place + 1) % size
            self._keys[place], self._numbers[place] = key, number

    def find(self, left: IntArray, right: IntArray) -> IntArray:
        """Return the number of each pair: (N,); a huge one for a pair without."""
        keys = self._key(left, right)
        places = self._place(keys)
        found = self._keys[places]
        going_on = np.flatnonzero((found != keys) & (found >= 0))
        while len(going_on):
            places[going_on] = (places[going_on] + 1) % len(self._keys)
            found = self._keys[places[going_on]]
            going_on = going_on[(found != keys[going_on]) & (found >= 0)]
        return self._numbers[places]

    def _key(self, left: IntArray, right: IntArray) -> IntArray:
        return left * self._pieces + right

    def _place(self, keys: IntArray) -> IntArray:
        # the highest bits of a product with an odd number (Knuth's multiplicative hashing)
        return (keys.astype(np.uint64) * _GOLDEN >> self._shift).astype(np.int64)


def streams(keys: Keys, places: IntArray) -> Keys:
    """Give each place of a sentence, whose key it has, its own stream of random numbers: (N,)."""
    return mix(keys + places.astype(np.uint64))


def uniform(streams: Keys, turn: int) -> npt.NDArray[np.float64]:
    """Draw number `turn` of each stream, from [0, 1): (N,)."""
    return (mix(streams + np.uint64(turn * int(_GOLDEN) % 2**64)) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def mix(numbers: Keys) -> Keys:
    """Scramble numbers: one step of SplitMix64 (Steele et al., 2014) from each, whose results look independent."""
    z = numbers + _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _halves(text: str) -> Iterator[tuple[str, str]]:
    return ((text[:place], text[place:]) for place in range(1, len(text)))
