"""Controls: trees that replace the parser's, to test whether a model gains from syntax or from any
tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Literal

import numpy as np

from synmt.arrays import IntArray, int_array
from synmt.errors import UsageError
from synmt.syntax.arcs import certain, with_certain_arcs
from synmt.syntax.parse import Arcs, Parse
from synmt.syntax.trees import ancestors, is_tree, random_tree

ControlKind = Literal["none", "random", "left", "right", "shuffled"]


@dataclass(frozen=True)
class Control:
    """The tree that a model reads instead of the parser's.

    kind: `none` changes nothing. `random` draws one of all trees of the same size, with equal
        probability. In `left`, the parent of every word is the next word; in `right`, the previous
        word. `shuffled` permutes the words of the tree.
    rewire: probability that a word other than the root then gets a new random parent, which is not
        one of its descendants; a word without another possible parent keeps its own. A higher
        probability rewires the same words, and more.
    seed: of the random numbers.

    Words, spans and tags do not change; constituents that were given are dropped. Words keep their
    relations, but the old and the new root exchange theirs; in `shuffled`, relations move with
    their arcs.
    """

    kind: ControlKind = "none"
    rewire: float = 0.0
    seed: int = 1

    @property
    def idle(self) -> bool:
        """Whether every tree stays as it is."""
        return self.kind == "none" and self.rewire == 0

    @property
    def name(self) -> str:
        """The name of its trees, such as `random` or `left, 30 % rewired`; empty if it is idle."""
        rewired = [f"{100 * self.rewire:g} % rewired"] * (self.rewire > 0)
        return ", ".join([self.kind] * (self.kind != "none") + rewired)

    def apply(self, parse: Parse, key: bytes) -> Parse:
        """Make the tree to read; the random numbers depend on the seed and the key of the sentence
        only."""
        if self.idle or not len(parse):
            return parse
        # Python's hash of bytes differs between processes
        digest = blake2b(b"%d:" % self.seed + key, digest_size=16).digest()
        random = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))
        tree = _replacement(replace(parse, constituents=None), self.kind, random)
        parents = _rewired(tree.parents, self.rewire, random)
        changed = (parents != tree.parents) | (self.kind != "none")  # (W,)
        tree = replace(tree, parents=parents)
        if parse.arcs is None:
            return tree
        # the arcs of the changed words are certain; the others keep their probabilities
        unchanged = parse.arcs[~changed[parse.arcs.words]]
        return replace(
            tree,
            arcs=with_certain_arcs(unchanged, np.flatnonzero(changed), parents, tree.relations),
        )


UNCHANGED = Control()
"""Leaves every tree as it is."""


def certain_arcs(parse: Parse) -> Arcs:
    """Make the arcs of the tree itself, with probability 1."""
    return certain(np.arange(len(parse)), parse.parents, parse.relations)


def certain_if_given(parse: Parse | None) -> Parse | None:
    """Add the arcs of the tree itself to one that was written by hand, and has no others."""
    if parse is None or parse.arcs is not None or not len(parse):
        return parse
    return replace(parse, arcs=certain_arcs(parse))


def _replacement(parse: Parse, kind: ControlKind, random: np.random.Generator) -> Parse:
    words = np.arange(len(parse))
    if kind == "random":
        return with_parents(parse, random_tree(len(parse), random))
    if kind == "left":
        return with_parents(parse, np.minimum(words + 1, len(parse) - 1))
    if kind == "right":
        return with_parents(parse, np.maximum(words - 1, 0))
    if kind == "none":
        return parse
    # each word i of the tree moves to position[i]
    position = random.permutation(len(parse))  # (W,)
    parents = np.empty_like(parse.parents)  # (W,)
    parents[position] = position[parse.parents]
    relations = np.empty(len(parse), dtype=object)  # (W,)
    relations[position] = parse.relations
    return replace(parse, parents=parents, relations=relations.tolist())


def with_heads(parse: Parse, heads: Sequence[int]) -> Parse:
    """Give the words of a parse other parents, counted from 1, with 0 for the root; raises
    UsageError unless they are a tree."""
    parents = int_array(head - 1 if head else word for word, head in enumerate(heads))
    is_right = len(heads) == len(parse) and all(0 <= head <= len(heads) for head in heads)
    if not is_right or not is_tree(parents) or list(heads).count(0) != 1:
        raise UsageError(
            "heads: not a tree of this sentence",
            allowed=f"{len(parse)} numbers, from 1: that of each word's parent, and 0 for one root",
        )
    return with_parents(parse, parents)


def with_parents(parse: Parse, parents: IntArray) -> Parse:
    """Replace the parents; the old and the new root exchange their relations."""
    old, new = _root(parse.parents), _root(parents)
    relations = list(parse.relations)
    relations[old], relations[new] = relations[new], relations[old]
    return replace(parse, parents=parents, relations=relations)


def _root(parents: IntArray) -> int:
    return int((parents == np.arange(len(parents))).argmax())


def _rewired(parents: IntArray, probability: float, random: np.random.Generator) -> IntArray:
    """Draw another parent with a probability for each word but the root, in their order: (W,)
    -> (W,)."""
    chosen = random.random(len(parents)) < probability  # (W,)
    if not chosen.any():
        return parents
    parents, above = parents.copy(), ancestors(parents)  # (W,), (W, W)
    for word in np.flatnonzero(chosen).tolist():
        below = above[:, word].copy()  # (W,) the word and its descendants
        free = ~below  # (W,)
        free[parents[word]] = False
        others = np.flatnonzero(free)
        # the root has none, since all words are its descendants
        if len(others):
            parents[word] = parent = others[random.integers(len(others))]
            # the words of the moved subtree keep their ancestors inside it, and get those of the
            # new parent
            above[below] = above[below] & below | above[parent]
    return parents
