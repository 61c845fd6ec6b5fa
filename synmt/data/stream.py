"""The endless stream of training batches, which can start at any position."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from synmt.arrays import Array, Side
from synmt.corpora.corpus import CorpusPart, rows_of_parts
from synmt.data.batch import Batch, collate
from synmt.data.corpus import Split
from synmt.data.dropout import BpeDropout
from synmt.data.epoch import EpochRows, epoch_rows, plan_batches
from synmt.errors import SynmtError
from synmt.recipe.schema import TrainingRecipe
from synmt.syntax.reading import Reading

T = TypeVar("T")
_END = object()


@dataclass(frozen=True)
class Position:
    """A position in the stream: the epoch, and how many of its batches all processes together have
    read."""

    epoch: int = 0
    batch: int = 0


@dataclass(frozen=True)
class Reader:
    """Reads batches of a split.

    rank, processes: this process reads every `processes`-th batch, starting at `rank`.
    parts: of the training text, with their weights.
    dropout: segments the training text anew in each epoch.
    collate: makes a batch of the training text.
    """

    split: Split
    recipe: TrainingRecipe
    reading: Mapping[Side, Reading] = field(default_factory=dict)
    rank: int = 0
    processes: int = 1
    parts: Sequence[CorpusPart] = ()
    dropout: BpeDropout | None = None
    collate: Callable[..., Batch] = collate

    def batch(self, rows: Array) -> Batch:
        """Read rows as a batch."""
        return collate(self.split.rows(rows), **self.reading)

    @property
    def batch_tokens(self) -> int:
        """The maximum size of a batch."""
        tokens = self.recipe.batch_tokens
        assert tokens != "auto", "the recipe of a reader has a number"
        return tokens

    def with_batches_of(self, tokens: int) -> Reader:
        """Make a reader with batches of another size."""
        return replace(self, recipe=self.recipe.model_copy(update={"batch_tokens": tokens}))

    def longest(self) -> Batch:
        """Read the longest sentences as one batch: it takes as much memory as any in training."""
        longer = self.split.lengths().max(1)  # (N,)
        most = max(1, self.batch_tokens // int(longer.max()))
        rows = np.argsort(longer)[::-1][: min(most, self.recipe.batch_sentences or most)]
        return self._segmented(EpochRows(rows, np.zeros_like(rows)), epoch=0)

    def once(self) -> Iterator[Batch]:
        """Yield all batches once, the longest first."""
        return map(self.batch, plan_batches(self.split.lengths(), batch_tokens=self.batch_tokens))

    def forever(self, position: Position) -> Iterator[tuple[Batch, Position]]:
        """Yield batches from a position, each with the position after it; every epoch has its own
        order."""
        while True:
            # the plan of an epoch ends with it, before the next one is made
            yield from self._rest_of_epoch(position)
            position = Position(position.epoch + 1)

    def _rest_of_epoch(self, position: Position) -> Iterator[tuple[Batch, Position]]:
        number, parts = position.epoch, self.parts
        weights = [part.weight for part in parts] or [1.0]
        rows = rows_of_parts(parts, self.split.lines) if parts else [range(len(self.split))]
        if not sum(weight * len(part) for weight, part in zip(weights, rows, strict=True)):
            raise SynmtError(
                "no pair of the training text has a weight above 0",
                do="Raise a weight in corpus.train",
            )
        chosen = epoch_rows(rows, weights, seed=self.recipe.seed, epoch=number)
        plan = plan_batches(
            self.split.lengths()[chosen.rows],
            batch_tokens=self.batch_tokens,
            batch_sentences=self.recipe.batch_sentences,
            seed=(self.recipe.seed, number),
        )
        # all processes read the same number of batches; the rest of the epoch is skipped
        batches = max(1, len(plan) // self.processes) if plan else 0
        for index in range(position.batch // self.processes, batches):
            mine = chosen.select(plan[(index * self.processes + self.rank) % len(plan)])
            yield self._segmented(mine, number), Position(number, (index + 1) * self.processes)

    def _segmented(self, rows: EpochRows, epoch: int) -> Batch:
        examples = self.split.rows(rows.rows)
        if self.dropout:
            examples = self.dropout.apply(examples, rows, epoch)
        return self.collate(examples, **self.reading)


def prefetch(items: Iterator[T]) -> Generator[T, None, None]:
    """Read items in a thread, a few ahead, so that reading and computing overlap."""
    with ThreadPoolExecutor(1) as thread:
        pending = deque(thread.submit(next, items, _END) for _ in range(4))
        try:
            while (item := pending.popleft().result()) is not _END:
                pending.append(thread.submit(next, items, _END))
                yield item  # type: ignore[misc]
        finally:
            for future in pending:
                future.cancel()
