"""The grammar of a set of trees: how often a part of speech depends on another (Tran & Bisk, 2018).

    share of VERB → NOUN = nouns whose parent is a verb / words whose parent is a verb

Roots, punctuation and words without a parent do not count. The tags are those of the gold trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from synmt.analysis.trees.attachment import not_punctuation
from synmt.arrays import IntArray
from synmt.syntax.parse import Parse

Rule = tuple[str, str]
"""The tag of a parent and that of its child."""


@dataclass(frozen=True, eq=False)
class Grammar:
    """How often each rule was used; none without tags."""

    counts: Counter[Rule]

    def share(self, rule: Rule) -> float:
        """Compute the share of a rule among those of the same parent, 0 to 1."""
        of_parent = sum(count for (parent, _), count in self.counts.items() if parent == rule[0])
        return self.counts[rule] / of_parent if of_parent else 0.0


def read_grammar(trees: Sequence[IntArray], gold: Sequence[Parse]) -> Grammar:
    """Count the rules of trees, a parent for each word, (W,), of the sentences of gold trees; -1 means no parent."""
    counts: Counter[Rule] = Counter()
    for parents, parse in zip(trees, gold, strict=True):
        if parse.tags:
            pairs = enumerate(zip(parents.tolist(), not_punctuation(parse).tolist(), strict=True))
            counts.update((parse.tags[up], parse.tags[word]) for word, (up, ok) in pairs if ok and up not in (-1, word))
    return Grammar(counts)
