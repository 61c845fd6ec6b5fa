"""Merges words of a tree: those of a multi-word token into one, and those without a piece into
their neighbours.

A multi-word token (German "zum" = "zu" + "dem") is one token in the text and several words in the
tree. Words without a piece are merged so that attention can reach every word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from synmt.arrays import IntArray
from synmt.syntax.arcs import move_arcs, with_certain_arcs
from synmt.syntax.constituents import ordered
from synmt.syntax.feature_signals import join_scenes
from synmt.syntax.parse import SCENES, Arcs, Parse
from synmt.syntax.trees import depths

Token = range
"""The words of one surface token, by their indices."""


def token_tree(
    parents: Sequence[int], relations: Sequence[str], tokens: Sequence[Token]
) -> tuple[list[int], list[int], list[str]]:
    """Turn a tree of words into one of tokens: the leading words, the parents and the relations of
    the tokens.

    The word that leads a token is the one nearest to the root, and the first one of equals. Its
    parent is outside the token, and nearer to the root than all words of the token: therefore the
    tree of the tokens has one root and no cycle, even if several words of a token have their
    parents outside.
    """
    leading = [token.start for token in tokens]
    if len(parents) > len(tokens):
        depth = depths(parents)
        assert depth is not None, parents
        leading = [min(token, key=depth.__getitem__) for token in tokens]
    token_of = {word: index for index, token in enumerate(tokens) for word in token}
    names = ["root" if parents[word] == word else relations[word] for word in leading]
    return leading, [token_of[parents[word]] for word in leading], names


def merge_unowned(parse: Parse, spans: IntArray, owners: IntArray) -> tuple[Parse, IntArray]:
    """Remove the words without a piece from a tree: owners (T,) -> the smaller tree and its owners
    (T,).

    Such a word is merged into the word that it shares a piece with, or into its parent if the
    vocabulary has dropped all of its characters. The result is a tree. In the arc probabilities,
    the merged word has the row of the one that is nearer to the root, and both are one parent.

    spans: (T, 2) positions of the pieces in the line.
    """
    owned = np.bincount(owners[owners >= 0], minlength=len(parse)) > 0  # (W,)
    if owned.all() or not owned.any():
        return parse, owners
    merging = _Merging(parse)
    sharing = _sharing(spans, parse.spans, owners)
    for word in np.flatnonzero(~owned).tolist():
        into = sharing[word] if sharing[word] >= 0 else _nearest(merging.parents, word)
        merging.contract(word, into)
    return merging.result(owned), _renumbered(owned, owners)


class _Merging:
    """A tree while words are merged.

    row_of: the word whose row of probabilities each word has now.
    merged_into: the word that each word is part of now.
    """

    def __init__(self, parse: Parse) -> None:
        self.parse = parse
        self.parents = parse.parents.tolist()
        # a tree with constituents only has no relations
        self.relations = list(parse.relations) or ["_"] * len(parse)
        self.row_of = list(range(len(parse)))
        self.merged_into = list(range(len(parse)))

    def contract(self, word: int, into: int) -> None:
        """Merge a word into another one."""
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
        self.merged_into = [into if place == word else place for place in self.merged_into]

    def result(self, owned: npt.NDArray[np.bool_]) -> Parse:
        """Make the tree of the remaining words."""
        remaining = np.flatnonzero(owned).tolist()
        parse, arcs = self.parse, self.parse.arcs
        return Parse(
            words=[parse.words[word] for word in remaining],
            spans=parse.spans[remaining],
            parents=_renumbered(owned, np.array(self.parents))[remaining],
            relations=[self.relations[word] for word in remaining] if parse.relations else [],
            tags=[parse.tags[word] for word in remaining] if parse.tags else [],
            arcs=None if arcs is None else self._arcs(arcs, owned),
            constituents=self._constituents(owned),
            features={
                name: self._values(name, values, remaining)
                for name, values in parse.features.items()
            },
        )

    def _values(self, feature: str, values: list[str], remaining: list[int]) -> list[str]:
        if feature != SCENES:
            return [values[word] for word in remaining]
        inside = self.merged_into
        return [
            join_scenes(value for value, into in zip(values, inside, strict=True) if into == w)
            for w in remaining
        ]

    def _constituents(self, owned: npt.NDArray[np.bool_]) -> IntArray | None:
        spans = self.parse.constituents
        return None if spans is None else ordered(np.append(0, np.cumsum(owned))[spans].tolist())

    def _arcs(self, arcs: Arcs, owned: npt.NDArray[np.bool_]) -> Arcs:
        rows = np.array(self.row_of)[owned]  # (remaining,)
        owner = np.full(len(owned), -1)  # (W,) the remaining word that has each row now
        owner[rows] = np.arange(len(rows))
        merged = move_arcs(arcs, owner, _renumbered(owned, np.array(self.merged_into)))
        mass = np.bincount(arcs.words, weights=arcs.probabilities, minlength=len(owned))  # (W,)
        relations = [self.relations[word] for word in np.flatnonzero(owned).tolist()]
        parents = _renumbered(owned, np.array(self.parents))[owned]
        bare = np.flatnonzero(np.bincount(merged.words, minlength=len(parents)) == 0)
        return _with_mass(with_certain_arcs(merged, bare, parents, relations), mass[rows])


def _with_mass(arcs: Arcs, mass: npt.NDArray[Any]) -> Arcs:
    """Scale the probabilities so that those of each word sum to a mass (W,)."""
    current = np.bincount(arcs.words, weights=arcs.probabilities, minlength=len(mass))  # (W,)
    scale = np.divide(mass, current, out=np.ones_like(mass), where=current > 0)  # (W,)
    return replace(arcs, probabilities=(arcs.probabilities * scale[arcs.words]).astype(np.float32))


def _renumbered(owned: npt.NDArray[np.bool_], words: IntArray) -> IntArray:
    """Replace the numbers of words by those among the remaining words; -1 stays."""
    return np.where(words >= 0, (np.cumsum(owned) - 1)[words], -1)


def _sharing(spans: IntArray, words: IntArray, owners: IntArray) -> list[int]:
    """Find the owner of the piece with the first character of each word that is in a piece: (W,),
    -1 if none is."""
    piece = np.searchsorted(spans[:, 1], words[:, 0], side="right")  # (W,)
    begins = np.append(spans[:, 0], np.iinfo(np.int64).max)[piece]  # (W,)
    return np.where(begins < words[:, 1], np.append(owners, -1)[piece], -1).tolist()


def _nearest(parents: list[int], word: int) -> int:
    """Return the parent of a word, or the first child of a root."""
    if parents[word] != word:
        return parents[word]
    return next(child for child, parent in enumerate(parents) if parent == word != child)
