"""Trees against gold trees, without punctuation: attachment accuracy, and the grammar of parts of
speech.

    DA = words with the gold parent / words
    UA = words connected to their gold parent by an arc in either direction / words
    share of VERB → NOUN = nouns whose parent is a verb / words whose parent is a verb

Words that are punctuation in the gold tree do not count. The root counts: it is correct if it is
the root of both trees. Tran & Bisk (2018, section 6) also report left-branching and right-branching
chains as baselines. The tags of the grammar are those of the gold trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from synmt.arrays import BoolArray, IntArray
from synmt.evaluation.bootstrap import Proportion, proportions
from synmt.syntax.parse import Parse


@dataclass(frozen=True, eq=False)
class Attachment:
    """Which words have the gold parent, over the M words of all sentences that count.

    sentences: number of sentences.
    sentence: (M,) number of the sentence of each word.
    relations: (M,) gold relations.
    directed, undirected: (M,) whether the word is correct.
    """

    sentences: int
    sentence: IntArray
    relations: npt.NDArray[np.str_]
    directed: BoolArray
    undirected: BoolArray

    @property
    def words(self) -> int:
        """Number of words that count."""
        return len(self.sentence)

    @property
    def da(self) -> Proportion:
        """Directed attachment accuracy; its interval is over sentences."""
        return self._shares[0]

    @property
    def ua(self) -> Proportion:
        """Undirected attachment accuracy; its interval is over sentences."""
        return self._shares[1]

    @cached_property
    def _shares(self) -> list[Proportion]:
        if not self.words:
            return [Proportion(0.0, 0.0, 0.0)] * 2
        return proportions(
            np.stack((self.directed, self.undirected), axis=1), self.sentence, self.sentences
        )

    def by_relation(self) -> dict[str, tuple[int, float, float]]:
        """Return the number of words, DA and UA of each gold relation, the most frequent first."""
        names, members, counts = np.unique(self.relations, return_inverse=True, return_counts=True)
        correct = [
            np.bincount(members, flags, len(names)) / counts
            for flags in (self.directed, self.undirected)
        ]
        rows = zip(
            names.tolist(), counts.tolist(), *(shares.tolist() for shares in correct), strict=True
        )
        return {
            name: (words, da, ua)
            for name, words, da, ua in sorted(rows, key=lambda row: (-row[1], row[0]))
        }


def compare_trees(trees: Sequence[IntArray], gold: Sequence[Parse]) -> Attachment:
    """Compare a parent for each word, (W,) for each sentence, with gold trees; -1 means no
    parent."""
    compared = [_compare_tree(parents, parse) for parents, parse in zip(trees, gold, strict=True)]
    directed, undirected, relations = zip(*compared, strict=True) if compared else ((), (), ())
    counts = [len(flags) for flags in directed]
    return Attachment(
        sentences=len(gold),
        sentence=np.repeat(np.arange(len(gold)), counts),
        relations=np.array([name for names in relations for name in names], dtype=np.str_),
        directed=np.concatenate([np.zeros(0, np.bool_), *directed]),
        undirected=np.concatenate([np.zeros(0, np.bool_), *undirected]),
    )


def _compare_tree(parents: IntArray, gold: Parse) -> tuple[BoolArray, BoolArray, list[str]]:
    counts = not_punctuation(gold)  # (W,)
    directed = parents == gold.parents  # (W,)
    # a root is its own parent: it has no arc that could be reversed
    reversed_ = (parents[gold.parents] == np.arange(len(gold))) & (
        gold.parents != np.arange(len(gold))
    )  # (W,)
    relations = [gold.relations[word] for word in np.flatnonzero(counts).tolist()]
    return directed[counts], (directed | reversed_)[counts], relations


def not_punctuation(gold: Parse) -> BoolArray:
    """Tell which words are not punctuation: (W,)."""
    tags = gold.tags or [""] * len(gold)
    return np.array(
        [
            relation.partition(":")[0] != "punct" and tag != "PUNCT"
            for relation, tag in zip(gold.relations, tags, strict=True)
        ],
        dtype=np.bool_,
    )


def branching(gold: Parse, to: Literal["left", "right"]) -> IntArray:
    """Make a chain of the words that are not punctuation: (W,), -1 for punctuation.

    left: the parent of each word is the next word, and the last one is the root.
    right: the parent of each word is the previous word, and the first one is the root.
    """
    chain = np.flatnonzero(not_punctuation(gold))
    parents = np.full(len(gold), -1)  # (W,)
    parents[chain] = (
        np.append(chain[1:], chain[-1:]) if to == "left" else np.append(chain[:1], chain[:-1])
    )
    return parents


def branching_baselines(gold: Sequence[Parse]) -> Iterator[tuple[str, list[IntArray]]]:
    """Yield the names and the trees of the two chains."""
    yield "left branching", [branching(parse, "left") for parse in gold]
    yield "right branching", [branching(parse, "right") for parse in gold]


Rule = tuple[str, str]
"""The tag of a parent and that of its child."""


def count_rules(trees: Sequence[IntArray], gold: Sequence[Parse]) -> Counter[Rule]:
    """Count the rules of trees, a parent for each word, (W,), of the sentences of gold trees; -1
    means no parent.

    Roots, punctuation and words without a parent do not count, nor do sentences without tags.
    """
    counts = Counter()
    for parents, parse in zip(trees, gold, strict=True):
        if parse.tags:
            has_parent = (
                (parents != -1) & (parents != np.arange(len(parse))) & not_punctuation(parse)
            )  # (W,)
            words = np.flatnonzero(has_parent).tolist()
            counts.update((parse.tags[parents[word]], parse.tags[word]) for word in words)
    return counts


def share_of_rule(rule: Rule, counts: Counter[Rule]) -> float:
    """Compute the share of a rule among those of the same parent, 0 to 1."""
    of_parent = sum(count for (parent, _), count in counts.items() if parent == rule[0])
    return counts[rule] / of_parent if of_parent else 0.0


def most_frequent(counts: Counter[Rule]) -> list[tuple[Rule, int]]:
    """Sort rules with their counts, the most frequent first."""
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))
