"""How well trees agree with gold ones: directed and undirected attachment, without punctuation.

    DA = words whose parent is the gold one / words
    UA = words that are joined with their gold parent, whichever of the two is above / words

The words are those that are no punctuation in the gold tree. The root counts: it is right where it is the root of the
tree as well. After Tran & Bisk (2018, section 6), who compare with chains to the left and to the right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from synmt.arrays import BoolArray, IntArray
from synmt.evaluation.bootstrap import ratio_intervals
from synmt.syntax.parse import Parse


@dataclass(frozen=True)
class Share:
    """A share of words, 0 to 1, and the interval that holds it in 95 % of the resamples of the sentences."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Attachment:
    """Which words of all sentences are attached as in gold; M words count.

    sentences: how many there are.
    sentence: (M,) the one that each word belongs to.
    relations: (M,) of gold.
    directed, undirected: (M,) whether the word is right.
    """

    sentences: int
    sentence: IntArray
    relations: npt.NDArray[np.str_]
    directed: BoolArray
    undirected: BoolArray

    @property
    def words(self) -> int:
        """How many words count."""
        return len(self.sentence)

    @property
    def da(self) -> Share:
        """The directed attachment accuracy."""
        return self._shares[0]

    @property
    def ua(self) -> Share:
        """The undirected attachment accuracy."""
        return self._shares[1]

    @cached_property
    def _shares(self) -> list[Share]:
        if not self.words:
            return [Share(0.0, 0.0, 0.0)] * 2
        flags = np.stack((self.directed, self.undirected), 1)  # (M, 2)
        right = np.zeros((self.sentences, 2))  # (N, 2)
        np.add.at(right, self.sentence, flags)
        words = np.bincount(self.sentence, minlength=self.sentences).astype(np.float64)  # (N,)
        intervals = ratio_intervals(right, np.stack((words, words), 1))
        return [Share(value, *ends) for value, ends in zip(flags.mean(0).tolist(), intervals, strict=True)]

    def by_relation(self) -> dict[str, tuple[int, float, float]]:
        """Give the words, DA and UA of each gold relation, the most frequent first."""
        names, members, counts = np.unique(self.relations, return_inverse=True, return_counts=True)
        right = [np.bincount(members, flags, len(names)) / counts for flags in (self.directed, self.undirected)]
        rows = zip(names.tolist(), counts.tolist(), *(shares.tolist() for shares in right), strict=True)
        return {name: (words, da, ua) for name, words, da, ua in sorted(rows, key=lambda row: (-row[1], row[0]))}


def compare(trees: Sequence[IntArray], gold: Sequence[Parse]) -> Attachment:
    """Compare trees, or any choice of a parent for each word, with gold ones; -1 is no parent."""
    judged = [_judge(parents, parse) for parents, parse in zip(trees, gold, strict=True)]
    directed, undirected, relations = zip(*judged, strict=True) if judged else ((), (), ())
    counts = [len(flags) for flags in directed]
    return Attachment(
        sentences=len(gold),
        sentence=np.repeat(np.arange(len(gold)), counts),
        relations=np.array([name for names in relations for name in names], dtype=np.str_),
        directed=np.concatenate([np.zeros(0, np.bool_), *directed]),
        undirected=np.concatenate([np.zeros(0, np.bool_), *undirected]),
    )


def _judge(parents: IntArray, gold: Parse) -> tuple[BoolArray, BoolArray, list[str]]:
    chosen = not_punctuation(gold)  # (W,)
    directed = parents == gold.parents  # (W,)
    # a root above itself is not joined with any other word
    reversed_ = (parents[gold.parents] == np.arange(len(gold))) & (gold.parents != np.arange(len(gold)))  # (W,)
    relations = [gold.relations[word] for word in np.flatnonzero(chosen).tolist()]
    return directed[chosen], (directed | reversed_)[chosen], relations


def not_punctuation(gold: Parse) -> BoolArray:
    """Tell which words are no punctuation: (W,)."""
    tags = gold.tags or [""] * len(gold)
    return np.array(
        [
            relation.partition(":")[0] != "punct" and tag != "PUNCT"
            for relation, tag in zip(gold.relations, tags, strict=True)
        ],
        dtype=np.bool_,
    )


def branching(gold: Parse, to: Literal["left", "right"]) -> IntArray:
    """Make a chain of the words that are no punctuation: (W,), -1 for punctuation.

    In `left` each word hangs on the next one and the last is the root, in `right` on the one before and the first is.
    """
    chain = np.flatnonzero(not_punctuation(gold))
    parents = np.full(len(gold), -1)  # (W,)
    parents[chain] = np.append(chain[1:], chain[-1:]) if to == "left" else np.append(chain[:1], chain[:-1])
    return parents


def branchings(gold: Sequence[Parse]) -> Iterator[tuple[str, Attachment]]:
    """Yield what the two chains reach, with their names."""
    yield "left branching", compare([branching(parse, "left") for parse in gold], gold)
    yield "right branching", compare([branching(parse, "right") for parse in gold], gold)
