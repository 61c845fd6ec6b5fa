"""Merges words of a tree: those of a multi-word token into one, and those without a piece into
their neighbours.

A multi-word token (German "zum" = "zu" + "dem") is one token in the text and several words in the
tree. Words without a piece are merged so that attention can reach every word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from synmt.arrays import IntArray, Texts
from synmt.syntax.arcs import move_arcs, with_certain_arcs
from synmt.syntax.constituents import ordered
from synmt.syntax.feature_signals import join_scenes
from synmt.syntax.parse import SCENES, Arcs, Parse
from synmt.syntax.trees import depths

Token = range
"""The words of one surface token, by their indices."""


def token_tree(
    parents: Sequence[int], relations: Texts, tokens: Sequence[Token]
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
        depth = depths(parents).tolist()
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
    parents, sharing = parse.parents.tolist(), _sharing(spans, parse.spans, owners)
    # the word that each word is part of now, and the word whose relation and arcs it has
    places, rows = np.arange(len(parse)), np.arange(len(parse))  # (W,) both
    for word in np.flatnonzero(~owned).tolist():
        into = sharing[word] if sharing[word] >= 0 else _nearest(parents, word)
        if _contract(parents, word, into):
            rows[into] = rows[word]
        places[places == word] = into
    numbers = np.where(owned, np.cumsum(owned) - 1, -1)  # (W,) of the remaining words
    places, rows, parents = numbers[places], rows[owned], numbers[parents][owned]
    remaining = np.flatnonzero(owned).tolist()
    # a tree with constituents only has no relations
    relations = [parse.relations[row] for row in rows.tolist()] if parse.relations else []
    features = {name: [values[w] for w in remaining] for name, values in parse.features.items()}
    if SCENES in features:
        features[SCENES] = _joined_scenes(parse.features[SCENES], places)
    constituents = parse.constituents
    if constituents is not None:
        constituents = ordered(np.append(0, np.cumsum(owned))[constituents].tolist())
    merged = Parse(
        words=[parse.words[word] for word in remaining],
        spans=parse.spans[remaining],
        parents=parents,
        relations=relations,
        tags=[parse.tags[word] for word in remaining] if parse.tags else [],
        arcs=parse.arcs and _merged_arcs(parse.arcs, rows, places, parents, relations),
        constituents=constituents,
        features=features,
    )
    return merged, np.where(owners >= 0, numbers[owners], -1)


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


def _contract(parents: list[int], word: int, into: int) -> bool:
    """Merge a word of a tree into another one; return whether this one takes its place, since it
    was below it."""
    above = into
    while parents[above] not in (above, word):
        above = parents[above]
    below = parents[above] == word
    if below:
        parents[into] = into if parents[word] == word else parents[word]
    for child, parent in enumerate(parents):
        if parent == word and child != into:
            parents[child] = into
    parents[word] = -1
    return below


def _joined_scenes(values: list[str], places: IntArray) -> list[str]:
    """Join the scenes of the words that have become one."""
    inside: list[list[str]] = [[] for _ in range(places.max() + 1)]
    for value, place in zip(values, places.tolist(), strict=True):
        inside[place].append(value)
    return list(map(join_scenes, inside))


def _merged_arcs(
    arcs: Arcs, rows: IntArray, places: IntArray, parents: IntArray, relations: list[str]
) -> Arcs:
    """Move arcs to the remaining words (N,), which have the rows of some words; the probabilities
    of a row keep their sum.

    places: (W,) the remaining word that each word is part of.
    """
    owner = np.full(len(places), -1)  # (W,) the remaining word that has each row now
    owner[rows] = np.arange(len(rows))
    merged = move_arcs(arcs, owner, places)
    bare = np.flatnonzero(np.bincount(merged.words, minlength=len(rows)) == 0)
    merged = with_certain_arcs(merged, bare, parents, relations)
    mass = np.bincount(arcs.words, weights=arcs.probabilities, minlength=len(places))[rows]  # (N,)
    current = np.bincount(merged.words, weights=merged.probabilities, minlength=len(rows))  # (N,)
    scale = np.divide(mass, current, out=np.ones_like(mass), where=current > 0)  # (N,)
    probabilities = (merged.probabilities * scale[merged.words]).astype(np.float32)
    return replace(merged, probabilities=probabilities)
