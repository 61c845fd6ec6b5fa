"""Words that own no piece are taken out of a tree, so that every word of it can be attended to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from synmt.arrays import IntArray
from synmt.syntax.parse import Arcs, Parse


def merge_unowned(parse: Parse, spans: IntArray, owners: IntArray) -> tuple[Parse, IntArray]:
    """Take the words out of a tree that own no piece: owners (T,) -> the smaller tree, its owners (T,).

    Such a word passes its arcs to the word it shares a piece with; where the vocabulary has lost all of its
    characters, to its parent. What is left is a tree. Probabilities of arcs follow: what points at the word points at
    the other one, and of two rows the one that is nearer to the root stays.
    """
    owned = np.bincount(owners[owners >= 0], minlength=len(parse)) > 0  # (W,)
    if owned.all() or not owned.any():
        return parse, owners
    merging = _Merging(parse)
    sharing = _sharing(spans, parse.spans, owners)
    for word in np.flatnonzero(~owned).tolist():
        into = sharing[word] if sharing[word] >= 0 else _nearest(merging.parents, word)
        merging.contract(word, into)
    return merging.kept(owned), _renumbered(owned, owners)


class _Merging:
    """A tree while words are taken out of it.

    row_of: the word whose row of probabilities each word has by now.
    goes_to: the word that each word has become a part of.
    """

    def __init__(self, parse: Parse) -> None:
        self.parse = parse
        self.parents, self.relations = parse.parents.tolist(), list(parse.relations)
        self.row_of = list(range(len(parse)))
        self.goes_to = list(range(len(parse)))

    def contract(self, word: int, into: int) -> None:
        """Make a word a part of another one."""
        parents = self.parents
        above = into
        while parents[above] not in (above, word):
            above = parents[above]
        if parents[above] == word:
            parents[into] = into if parents[word] == word else parents[word]
            self.relations[into] = self.relations[word]
            self.row_of[into] = self.row_of[word]
        for child, parent in enumerate(parents):
            if parent == word and child != into:
                parents[child] = into
        parents[word] = -1
        self.goes_to = [into if place == word else place for place in self.goes_to]

    def kept(self, owned: npt.NDArray[np.bool_]) -> Parse:
        """Give the tree of the words that are left."""
        chosen = np.flatnonzero(owned).tolist()
        parse, arcs = self.parse, self.parse.arcs
        return Parse(
            words=[parse.words[word] for word in chosen],
            spans=parse.spans[chosen],
            parents=_renumbered(owned, np.array(self.parents))[chosen],
            relations=[self.relations[word] for word in chosen],
            tags=[parse.tags[word] for word in chosen] if parse.tags else [],
            arcs=None if arcs is None else self._kept_arcs(arcs, owned),
        )

    def _kept_arcs(self, arcs: Arcs, owned: npt.NDArray[np.bool_]) -> Arcs:
        owner = np.full(len(owned), -1)  # (W,), the word that has each row by now
        owner[np.array(self.row_of)[owned]] = np.flatnonzero(owned)
        words, parents = owner[arcs.words], np.array(self.goes_to)[arcs.parents]  # (N,), (N,)
        # what pointed from one part of a word to the other says nothing of the whole
        root, inside = arcs.words == arcs.parents, words == parents
        kept = np.flatnonzero((words >= 0) & (root | ~inside))
        kept = kept[np.argsort(words[kept], kind="stable")]
        left = replace(
            arcs,
            words=_renumbered(owned, words[kept]),
            parents=_renumbered(owned, np.where(root, words, parents)[kept]),
            relations=arcs.relations[kept],
            probabilities=arcs.probabilities[kept],
        )
        mass = np.bincount(arcs.words, weights=arcs.probabilities, minlength=len(owned))  # (W,)
        relations = [self.relations[word] for word in np.flatnonzero(owned).tolist()]
        parents = _renumbered(owned, np.array(self.parents))[owned]
        return _with_mass(_filled(left, parents, relations), mass[np.array(self.row_of)[owned]])


def _filled(arcs: Arcs, parents: IntArray, relations: list[str]) -> Arcs:
    """Give words that have lost all their arcs the one of the tree."""
    bare = np.flatnonzero(np.bincount(arcs.words, minlength=len(parents)) == 0)
    names = tuple(dict.fromkeys((*arcs.names, *(relations[word] for word in bare.tolist()))))
    numbers = np.array([names.index(relations[word]) for word in bare.tolist()], dtype=np.int64)
    words = np.concatenate((arcs.words, bare))
    order = np.argsort(words, kind="stable")
    return Arcs(
        words=words[order],
        parents=np.concatenate((arcs.parents, parents[bare]))[order],
        relations=np.concatenate((arcs.relations, numbers))[order],
        probabilities=np.concatenate((arcs.probabilities, np.ones(len(bare), dtype=np.float32)))[order],
        names=names,
    )


def _with_mass(arcs: Arcs, mass: npt.NDArray[Any]) -> Arcs:
    """Scale the rows of words to a mass (W,)."""
    left = np.bincount(arcs.words, weights=arcs.probabilities, minlength=len(mass))  # (W,)
    scale = np.divide(mass, left, out=np.ones_like(mass), where=left > 0)  # (W,)
    return replace(arcs, probabilities=(arcs.probabilities * scale[arcs.words]).astype(np.float32))


def _renumbered(owned: npt.NDArray[np.bool_], words: IntArray) -> IntArray:
    """Number words anew by those that are left; -1 stays."""
    return np.where(words >= 0, (np.cumsum(owned) - 1)[words], -1)


def _sharing(spans: IntArray, words: IntArray, owners: IntArray) -> list[int]:
    """Find the owner of the piece that has a word's first kept character: (W,), -1 where none is kept."""
    piece = np.searchsorted(spans[:, 1], words[:, 0], side="right")  # (W,)
    begins = np.append(spans[:, 0], np.iinfo(np.int64).max)[piece]  # (W,)
    return np.where(begins < words[:, 1], np.append(owners, -1)[piece], -1).tolist()


def _nearest(parents: list[int], word: int) -> int:
    """Give a word's parent; a root's first child."""
    if parents[word] != word:
        return parents[word]
    return next(child for child, parent in enumerate(parents) if parent == word != child)
