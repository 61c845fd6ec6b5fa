"""The endless stream of training batches, which can start at any position."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from synmt.arrays import IntArray, Side
from synmt.data.batch import Batch, Reading, collate, token_batches
from synmt.data.corpus import Split
from synmt.recipe.schema import TrainingRecipe

T = TypeVar("T")
_END = object()


@dataclass(frozen=True)
class Position:
    """A position in the stream: the epoch, and how many of its batches all processes together have read."""

    epoch: int = 0
    batch: int = 0


@dataclass(frozen=True)
class Reader:
    """Reads batches of a split.

    rank, processes: this process reads every `processes`-th batch, starting at `rank`.
    """

    split: Split
    recipe: TrainingRecipe
    reading: Mapping[Side, Reading] = field(default_factory=dict)
    rank: int = 0
    processes: int = 1

    def batch(self, rows: IntArray) -> Batch:
        """Read rows as a batch."""
        return collate(self.split.rows(rows), **self.reading)

    def once(self) -> Iterator[Batch]:
        """Yield all batches once, the longest first."""
        for rows in token_batches(pair_lengths(self.split), batch_tokens=self.recipe.batch_tokens):
            yield self.batch(rows)

    def forever(self, position: Position) -> Iterator[tuple[Batch, Position]]:
        """Yield batches from a position, each with the position after it; every epoch has its own order."""
        lengths = pair_lengths(self.split)
        while True:
            plan = token_batches(
                lengths,
                batch_tokens=self.recipe.batch_tokens,
                batch_sentences=self.recipe.batch_sentences,
                seed=(self.recipe.seed, position.epoch),
            )
            # all processes read the same number of batches; the rest of the epoch is skipped
            for index in range(position.batch // self.processes, max(1, len(plan) // self.processes)):
                mine = plan[(index * self.processes + self.rank) % len(plan)]
                yield self.batch(mine), Position(position.epoch, (index + 1) * self.processes)
            position = Position(position.epoch + 1)


def pair_lengths(split: Split) -> IntArray:
    """Return the lengths of both sides, including EOS: (N, 2)."""
    return np.stack((split.source_lengths, split.target_lengths), 1).astype(np.int64) + 1


def prefetch(items: Iterator[T], ahead: int = 4) -> Generator[T, None, None]:
    """Read items in a thread, a few ahead, so that reading and computing overlap."""
    with ThreadPoolExecutor(1) as thread:
        pending = deque(thread.submit(next, items, _END) for _ in range(ahead))
        try:
            while (item := pending.popleft().result()) is not _END:
                pending.append(thread.submit(next, items, _END))
                yield item  # type: ignore[misc]
        finally:
            for future in pending:
                future.cancel()
