"""BPE with merges that can be dropped (Provilkov et al., 2020, algorithm 1), for all words of many
sentences at once.

A word starts as symbols. In each round, every possible merge of two neighbours is dropped with the
given probability, and the best remaining one is applied; a round in which none remains ends the
word. Without dropout, the result is SentencePiece's. SentencePiece can drop merges too, but its
random numbers cannot be set for each sentence.
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
        self._by_rank = np.array(
            sorted((p for p in plain if len(spelled[p]) > 1), key=vocabulary.score, reverse=True)
        )
        pairs = {
            (numbers[left], numbers[right]): rank
            for rank, piece in enumerate(self._by_rank.tolist())
            for left, right in _halves(spelled[piece])
            if left in numbers and right in numbers
        }
        self._ranks = _PairTable(pairs, len(spelled))
        parts = [
            [numbers[c] for c in text] if piece in plain else [piece]
            for piece, text in enumerate(spelled)
        ]
        self._counts = np.array(list(map(len, parts)))  # (V,)
        self._firsts = np.cumsum(self._counts) - self._counts  # (V,)
        self._parts = np.fromiter(chain.from_iterable(parts), dtype=np.int64)
        self._begins_word = np.array([text.startswith("▁") for text in spelled])  # (V,)

    def symbols(self, sentences: list[IdArray]) -> Symbols:
        """Split the pieces of sentences into symbols."""
        pieces = np.concatenate([np.zeros(0, dtype=np.int64), *sentences])  # (N',)
        counts = self._counts[pieces]  # (N',)
        ends = np.cumsum(counts)  # (N',)
        places = np.arange(counts.sum()) - np.repeat(
            ends - counts - self._firsts[pieces], counts
        )  # (N,)
        after = np.append(0, ends)[
            np.cumsum([0, *map(len, sentences)])
        ]  # (B + 1,) the first symbol of each
        lengths = np.diff(after)  # (B,)
        return Symbols(
            self._parts[places], np.arange(len(places)) - np.repeat(after[:-1], lengths), lengths
        )

    def segment(self, symbols: Symbols, keys: Keys, dropout: float) -> Symbols:
        """Merge the symbols of sentences into pieces; a sentence's random numbers depend only on
        its key (B,)."""
        drawn = streams(np.repeat(keys, symbols.lengths), symbols.starts)  # (N,)
        words = np.cumsum(self._begins_word[symbols.ids] | (symbols.starts == 0))  # (N,)
        ids, alive = symbols.ids.copy(), np.ones(len(words), dtype=bool)
        # the symbols of the words that are not finished; after a merge, a symbol is no more than a
        # part of another one
        going, turn = np.arange(len(words)), 0
        while len(going):
            ranks = self._ranks_of_merges(ids[going], words[going])  # (M,)
            places = np.flatnonzero(ranks != _NONE)
            places = places[uniform(drawn[going[places]], turn) >= dropout]
            left, going_on = _best(ranks, places, words[going])
            ids[going[left]] = self._by_rank[ranks[left]]
            alive[going[left + 1]] = going_on[left + 1] = False
            going = going[going_on]
            turn += 1
        sentences = np.repeat(np.arange(len(symbols.lengths)), symbols.lengths)[alive]
        lengths = np.bincount(sentences, minlength=len(symbols.lengths))
        return Symbols(ids[alive], symbols.starts[alive], lengths)

    def _ranks_of_merges(self, ids: IntArray, words: IntArray) -> IntArray:
        """Find the rank of the merge of each symbol with the next one of its word: (M,); a huge
        number for none."""
        ranks = np.full(len(ids), _NONE)
        inside = np.flatnonzero(words[:-1] == words[1:])
        ranks[inside] = self._ranks.find(ids[inside], ids[inside + 1])
        return ranks


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


class _PairTable:
    """Numbers of pairs of pieces, in a hash table that finds many at once; a search in a sorted
    list is slower."""

    def __init__(self, numbers: Mapping[tuple[int, int], int], pieces: int) -> None:
        self._pieces = pieces
        size = 1 << (8 * len(numbers) + 8).bit_length()
        self._shift = np.uint64(65 - size.bit_length())
        self._keys, self._numbers = np.full(size, -1), np.full(size, _NONE)
        pairs = np.array([*numbers], dtype=np.int64).reshape(-1, 2)  # (P, 2)
        keys = self._key(pairs[:, 0], pairs[:, 1])
        for key, place, number in zip(
            keys.tolist(), self._place(keys).tolist(), numbers.values(), strict=True
        ):
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
    """Return a stream of random numbers for each place of a sentence, whose key it has: (N,)."""
    return mix(keys + places.astype(np.uint64))


def uniform(streams: Keys, turn: int) -> npt.NDArray[np.float64]:
    """Draw number `turn` of each stream, from [0, 1): (N,)."""
    return (mix(streams + np.uint64(turn * int(_GOLDEN) % 2**64)) >> np.uint64(11)).astype(
        np.float64
    ) * 2.0**-53


def mix(numbers: Keys) -> Keys:
    """Scramble numbers: one step of SplitMix64 (Steele et al., 2014) from each, whose results look
    independent."""
    z = numbers + _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _halves(text: str) -> Iterator[tuple[str, str]]:
    return ((text[:place], text[place:]) for place in range(1, len(text)))
