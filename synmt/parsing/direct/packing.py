"""Sentences from long to short as one packed sequence: first words first, then second words, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from synmt.arrays import BoolArray, IntArray


@dataclass(frozen=True)
class Packing:
    """Where the words of sentences are: N words in B sentences of T words at most.

    lengths: words of each sentence, descending.
    """

    lengths: Sequence[int]

    @cached_property
    def real(self) -> BoolArray:
        """Tell which places have a word (B, T)."""
        return np.arange(self.lengths[0]) < np.array(self.lengths)[:, None]

    @cached_property
    def places(self) -> tuple[IntArray, IntArray]:
        """Give sentence (N,) and place (N,) of each packed word."""
        place, sentence = np.nonzero(self.real.T)
        return sentence, place

    @cached_property
    def numbers(self) -> IntArray:
        """Give the packed number of each word (B, T); 0 in the padding."""
        numbers = np.zeros(self.real.shape, dtype=np.int64)
        numbers[self.places] = np.arange(len(self.places[0]))
        return numbers

    def pack(self, sentences: Sequence[Sequence[Any]]) -> list[Any]:
        """List the words of sentences in packed order."""
        return [sentences[sentence][place] for sentence, place in zip(*(p.tolist() for p in self.places), strict=True)]

    def run(self, network: Any, vectors: Any, initial: tuple[Any, Any]) -> Any:
        """Run one of Stanza's LSTMs on packed vectors: (N, D) -> (N, D).

        initial: its first states, each of (layers and directions, 1, D).
        """
        import torch
        from torch.nn.utils.rnn import PackedSequence

        count = len(self.lengths)
        states = tuple(state.expand(-1, count, -1).contiguous() for state in initial)
        packed = PackedSequence(vectors, torch.from_numpy(self.real.sum(0)))
        return network(packed, self.lengths, hx=states)[0].data
