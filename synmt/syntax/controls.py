"""Other trees in place of the parser's, to tell whether a model gains from syntax or from any tree at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Literal, get_args

import numpy as np

from synmt.arrays import BoolArray, IntArray
from synmt.errors import UsageError
from synmt.syntax.parse import Arcs, Parse
from synmt.syntax.trees import ancestors, random_tree

ControlKind = Literal["none", "random", "left", "right", "shuffled"]


@dataclass(frozen=True)
class Control:
    """The tree that a model reads in place of the parser's.

    kind: `none` leaves it. `random` draws each tree of so many words with the same probability. In `left` every word
        hangs on the word after it, in `right` on the word before it. `shuffled` puts other words on the same tree.
    rewire: probability that a word, the root excepted, gets another parent afterwards, drawn among the words that do
        not stand below it; a word for which there is no other parent keeps its own. A larger share rewires the same
        words and more.
    seed: of what is drawn.

    Words, spans and tags stay. Words keep their relations, but the old and the new root exchange theirs; in `shuffled`
    relations move with their arcs.
    """

    kind: ControlKind = "none"
    rewire: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        if self.kind not in get_args(ControlKind):
            raise UsageError(f"there is no control '{self.kind}'", allowed=", ".join(get_args(ControlKind)))
        if not 0 <= self.rewire <= 1:
            raise UsageError(f"`rewire` of a control is {self.rewire}", allowed="a share from 0 to 1")

    @property
    def idle(self) -> bool:
        """Whether every tree stays as it is."""
        return self.kind == "none" and self.rewire == 0

    @property
    def name(self) -> str:
        """What people call its trees, such as `random` or `left, 30 % rewired`; empty where it is idle."""
        rewired = [f"{100 * self.rewire:g} % rewired"] * (self.rewire > 0)
        return ", ".join([self.kind] * (self.kind != "none") + rewired)

    def apply(self, parse: Parse, key: bytes) -> Parse:
        """Give the tree to read; the seed and the key of the sentence alone decide what is drawn."""
        if self.idle or not len(parse):
            return parse
        random = _generator(self.seed, key)
        tree = _another_tree(parse, self.kind, random)
        parents = _rewired(tree.parents, self.rewire, random)
        settled = (parents != tree.parents) | (self.kind != "none")  # (W,)
        tree = replace(tree, parents=parents)
        return tree if parse.arcs is None else replace(tree, arcs=_settle(parse.arcs, tree, settled))


def certain_arcs(parse: Parse) -> Arcs:
    """Give the arcs of the tree itself the probability 1."""
    names = tuple(dict.fromkeys(parse.relations))
    return Arcs(
        words=np.arange(len(parse)),
        parents=parse.parents,
        relations=np.array([names.index(name) for name in parse.relations], dtype=np.int64),
        probabilities=np.ones(len(parse), dtype=np.float32),
        names=names,
    )


def _generator(seed: int, key: bytes) -> np.random.Generator:
    # Python's own hash of bytes differs from process to process
    digest = blake2b(b"%d:" % seed + key, digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def _another_tree(parse: Parse, kind: ControlKind, random: np.random.Generator) -> Parse:
    words = np.arange(len(parse))
    if kind == "random":
        return _with_parents(parse, random_tree(len(parse), random))
    if kind == "left":
        return _with_parents(parse, np.minimum(words + 1, len(parse) - 1))
    if kind == "right":
        return _with_parents(parse, np.maximum(words - 1, 0))
    return _shuffled(parse, random) if kind == "shuffled" else parse


def _with_parents(parse: Parse, parents: IntArray) -> Parse:
    """Put other parents in; the old and the new root exchange their relations."""
    old, new = _root(parse.parents), _root(parents)
    relations = list(parse.relations)
    relations[old], relations[new] = relations[new], relations[old]
    return replace(parse, parents=parents, relations=relations)


def _root(parents: IntArray) -> int:
    return int((parents == np.arange(len(parents))).argmax())


def _shuffled(parse: Parse, random: np.random.Generator) -> Parse:
    """Put the word `here[i]` in the place of the word i."""
    here = random.permutation(len(parse))  # (W,)
    parents = np.empty_like(parse.parents)  # (W,)
    parents[here] = here[parse.parents]
    relations = np.empty(len(parse), dtype=object)  # (W,)
    relations[here] = parse.relations
    return replace(parse, parents=parents, relations=relations.tolist())


def _rewired(parents: IntArray, share: float, random: np.random.Generator) -> IntArray:
    """Give each word but the root another parent with this probability, word after word: (W,) -> (W,)."""
    chosen = random.random(len(parents)) < share  # (W,)
    if not chosen.any():
        return parents
    parents, above = parents.copy(), ancestors(parents)  # (W,), (W, W)
    for word in np.flatnonzero(chosen).tolist():
        below = above[:, word].copy()  # (W,) the word and its descendants
        free = ~below  # (W,)
        free[parents[word]] = False
        others = np.flatnonzero(free)
        # none for the root, since all words stand below it
        if len(others):
            parents[word] = parent = others[random.integers(len(others))]
            # what moves keeps its ancestors that move with it, and gets the new parent's
            above[below] = above[below] & below | above[parent]
    return parents


def _settle(arcs: Arcs, tree: Parse, settled: BoolArray) -> Arcs:
    """Make the arcs of the tree certain for the words that are settled (W,); the others keep their probabilities."""
    sure = certain_arcs(tree)
    names = tuple(dict.fromkeys(arcs.names + sure.names))
    numbers = np.array([names.index(name) for name in sure.names])
    old, new = ~settled[arcs.words], settled[sure.words]  # (N,), (W,)
    words = np.concatenate([arcs.words[old], sure.words[new]])
    order = words.argsort(kind="stable")
    return Arcs(
        words=words[order],
        parents=np.concatenate([arcs.parents[old], sure.parents[new]])[order],
        relations=np.concatenate([arcs.relations[old], numbers[sure.relations[new]]])[order],
        probabilities=np.concatenate([arcs.probabilities[old], sure.probabilities[new]])[order],
        names=names,
    )
