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
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Literal

import numpy as np

from synmt.arrays import IntArray
from synmt.evaluation.bootstrap import Proportion, proportions, sum_by_sentence
from synmt.syntax.parse import Parse, Trees
from synmt.syntax.trees import not_punctuation


@dataclass(frozen=True)
class Attachment:
    """How often words have the gold parent; all shares are from 0 to 1.

    words: number of words that count.
    da, ua: directed and undirected attachment accuracy, with intervals over sentences.
    relations: the words, DA and UA of each gold relation, the most frequent first.
    """

    words: int
    da: Proportion
    ua: Proportion
    relations: dict[str, tuple[int, float, float]]


def compare_trees(trees: Sequence[IntArray], gold: Trees) -> Attachment:
    """Compare a parent for each word, (W,) for each sentence, with gold trees; -1 means no
    parent."""
    flags, relations = [], []
    for parents, parse in zip(trees, gold, strict=True):
        words, above = np.arange(len(parse)), parse.parents
        directed = parents == above  # (W,)
        # a root is its own parent: it has no arc that could be reversed
        reversed_ = (parents[above] == words) & (above != words)  # (W,)
        counts = not_punctuation(parse)  # (W,)
        flags.append(np.stack((directed, directed | reversed_), axis=1)[counts])
        relations += compress(parse.relations, counts)
    sentence = np.repeat(np.arange(len(gold)), [len(of_sentence) for of_sentence in flags])  # (M,)
    correct = np.concatenate(flags)  # (M, 2)
    names, members, words = np.unique(relations, return_inverse=True, return_counts=True)
    shares = sum_by_sentence(correct, members, len(names)) / words[:, None]  # (R, 2)
    by_frequency = {
        str(names[row]): (int(words[row]), *shares[row].tolist())
        for row in np.argsort(-words, kind="stable").tolist()
    }
    da, ua = proportions(correct, sentence, len(gold))
    return Attachment(len(correct), da, ua, by_frequency)


def branching(gold: Parse, to: Literal["left", "right"]) -> IntArray:
    """Make a chain of the words that are not punctuation: (W,), -1 for punctuation.

    left: the parent of each word is the next word, and the last one is the root.
    right: the parent of each word is the previous word, and the first one is the root.
    """
    chain = np.flatnonzero(not_punctuation(gold))
    parents = np.full(len(gold), -1)  # (W,)
    places = np.arange(len(chain)) + (1 if to == "left" else -1)
    parents[chain] = chain[places.clip(0, len(chain) - 1)]
    return parents


Rule = tuple[str, str]
"""The tag of a parent and that of its child."""


def count_rules(trees: Sequence[IntArray], gold: Trees) -> Counter[Rule]:
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
            counts.update(
                (parse.tags[parents[word]], parse.tags[word])
                for word in np.flatnonzero(has_parent).tolist()
            )
    return counts


def share_of_rule(rule: Rule, counts: Counter[Rule]) -> float:
    """Compute the share of a rule among those of the same parent, 0 to 1."""
    of_parent = sum(count for (parent, _), count in counts.items() if parent == rule[0])
    return counts[rule] / of_parent if of_parent else 0.0
