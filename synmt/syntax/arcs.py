"""Probabilities of arcs: reduced to the largest, moved from words to tokens, written and read as
text.

The column MISC of CoNLL-U contains those of a word as `Arcs=2:nsubj:0.97,5:obj:0.02,0:root:0.009`:
parent, relation, probability; the largest first. Parents are numbered as in HEAD: from 1; 0 makes
the word the root.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from synmt.arrays import Array, DoubleArray, IntArray, Texts, int_array
from synmt.errors import SynmtError
from synmt.syntax.parse import Arcs

KEPT = 0.999
"""Minimum probability to keep for each word."""

# with it, float32 sums reach 0.999 too, in any order of addition
_ROUNDING = 1e-6

_MISC = re.compile(r"(?:^|\|)Arcs=([^|]*)")
_ENTRY = re.compile(r"([0-9]{1,9}):([^\s,;|=]+):([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)")


def without_arcs(what: str, where: str = "", *, reader: str = "a variant") -> SynmtError:
    """Make the error for a tree without the arc probabilities that a variant, or another reader,
    needs."""
    return SynmtError(
        f"{what} has no probabilities of arcs, and {reader} reads them",
        where=where,
        do="Parse the text again with `synmt parse --arcs`",
    )


def parent_probabilities(arcs: Arcs, parents: IntArray) -> DoubleArray:
    """Sum the probabilities of each word's arcs to its parent, whatever their relations: (W,) ->
    (W,)."""
    of_tree = arcs.parents == parents[arcs.words]  # (N,)
    total = np.zeros(len(parents))
    np.add.at(total, arcs.words[of_tree], arcs.probabilities[of_tree])
    return total


def keep_most_probable(arcs: Arcs) -> Arcs:
    """Round to 4 significant digits and keep the largest of each word: they sum to 0.999 at least
    and to 1 at most.

    arcs: entries in any order (equal ones stay in it), whose sum for each word is 0.9999 at least.
    """
    rounded = _four_digits(arcs.probabilities, np.rint)  # (N,)
    order = np.lexsort((-rounded, arcs.words))  # (N,)
    words, rounded = arcs.words[order], rounded[order]
    before = np.cumsum(rounded) - rounded  # (N,)
    before -= before[np.searchsorted(words, words)]
    is_kept = before < KEPT + _ROUNDING  # (N,)
    before, rounded = before[is_kept], rounded[is_kept]
    over = before + rounded > 1 + 1e-9  # (N,) the last one of a word whose rounded values exceed 1
    rounded[over] = _four_digits(1 - before[over], np.floor)
    return replace(arcs[order[is_kept]], probabilities=rounded.astype(np.float32))


def _four_digits(values: Array, to_integer: np.ufunc) -> DoubleArray:
    values = values.astype(float)
    scale = 10.0 ** (3 - np.floor(np.log10(values)))
    # 1 - 0.9 is slightly less than 0.1, and must give 0.1
    return to_integer(values * scale + (1e-6 if to_integer is np.floor else 0)) / scale


def sum_duplicates(arcs: Arcs) -> Arcs:
    """Add up the entries of the same word, parent and relation."""
    if not len(arcs.words):
        return arcs
    sizes = (int(arcs.words.max()) + 1, int(arcs.parents.max()) + 1, len(arcs.names))
    keys = np.ravel_multi_index((arcs.words, arcs.parents, arcs.relations), sizes)  # (N,)
    distinct, place = np.unique(keys, return_inverse=True)
    words, parents, relations = np.unravel_index(distinct, sizes)
    total = np.bincount(place, weights=arcs.probabilities).astype(np.float32)  # (N',)
    return Arcs(words, parents, relations, total, arcs.names)


def token_arcs(
    arcs: Arcs,
    tokens: Sequence[range],
    leading: Sequence[int],
    parents: Sequence[int],
    relations: list[str],
) -> Arcs:
    """Move arcs from words to the tokens of the text: a token has the arcs of the word that leads
    it.

    A parent becomes its token. Arcs inside a token are dropped, and the others divided by their
    sum; if all are inside, the arc of the tree is certain.

    tokens, leading: the words of each token, and the one that leads it (see merging.py).
    parents, relations: the tree of the tokens.
    """
    if all(len(token) == 1 for token in tokens):
        return arcs
    token_of = np.repeat(np.arange(len(tokens)), [len(token) for token in tokens])  # (words,)
    led = np.full(len(token_of), -1)  # (words,) the token that each word leads, if any
    led[np.asarray(leading)] = np.arange(len(tokens))
    moved = move_arcs(arcs, led, token_of)
    values = moved.probabilities.astype(float)  # (N,)
    mass = np.bincount(moved.words, weights=values, minlength=len(tokens))  # (tokens,)
    moved = replace(moved, probabilities=(values / mass[moved.words]).astype(np.float32))
    return sum_duplicates(
        with_certain_arcs(moved, np.flatnonzero(mass == 0), np.asarray(parents), relations)
    )


def move_arcs(arcs: Arcs, rows: IntArray, places: IntArray) -> Arcs:
    """Move arcs to other words, which several words may have become.

    An arc between two words that have become one is dropped, unless it makes a word the root.

    rows: (W,) the word that gets the arcs of each word; -1 drops them.
    places: (W,) the word that each word is part of now.
    """
    words, parents = rows[arcs.words], places[arcs.parents]  # (N,), (N,)
    is_kept = (words >= 0) & ((arcs.words == arcs.parents) | (words != parents))  # (N,)
    return replace(arcs[is_kept], words=words[is_kept], parents=parents[is_kept])


def certain(words: IntArray, parents: IntArray, relations: list[str]) -> Arcs:
    """Make the arcs of some words (n,) of a tree, with probability 1; parents (W,) and W
    relations."""
    relations_of_words = [relations[word] for word in words.tolist()]
    names = tuple(dict.fromkeys(relations_of_words))
    numbers = int_array(names.index(name) for name in relations_of_words)  # (n,)
    return Arcs(words, parents[words], numbers, np.ones(len(words), dtype=np.float32), names)


def with_certain_arcs(arcs: Arcs, words: IntArray, parents: IntArray, relations: list[str]) -> Arcs:
    """Add the arcs of the tree, as `certain` makes them, for words without entries."""
    merged = _concatenated([arcs, certain(words, parents, relations)])
    return merged[np.argsort(merged.words, kind="stable")]


def _concatenated(parts: Sequence[Arcs]) -> Arcs:
    names = tuple(dict.fromkeys(name for arcs in parts for name in arcs.names))
    columns = []
    for arcs in parts:
        numbers = int_array(names.index(name) for name in arcs.names)
        columns.append(replace(arcs, relations=numbers[arcs.relations]).columns)
    return Arcs(*map(np.concatenate, zip(*columns, strict=True)), names=names)


def join_arcs(sentences: Sequence[Arcs], lengths: Sequence[int], root: int) -> Arcs:
    """Concatenate the sentences of a line; later roots are attached to the first one, `root`, as in
    the tree."""
    if len(sentences) == 1:
        return sentences[0]
    parts: list[Arcs] = []
    first = 0
    for arcs, length in zip(sentences, lengths, strict=True):
        parts.append(replace(arcs, words=arcs.words + first, parents=arcs.parents + first))
        first += length
    joined = _concatenated(parts)
    names = tuple(dict.fromkeys((*joined.names, "parataxis")))
    later = (joined.words == joined.parents) & (joined.words >= lengths[0])  # (N,)
    parents = np.where(later, root, joined.parents)
    relations = np.where(later, names.index("parataxis"), joined.relations)
    return sum_duplicates(replace(joined, parents=parents, relations=relations, names=names))


def format_arcs(arcs: Arcs | None, words: int) -> list[str]:
    """Write the arcs of each word for MISC, with a final `|`; empty strings if there are none."""
    if arcs is None:
        return [""] * words
    texts: list[list[str]] = [[] for _ in range(words)]
    rows = zip(*(column.tolist() for column in arcs.columns), strict=True)
    for word, parent, relation, probability in rows:
        head = 0 if parent == word else parent + 1
        texts[word].append(f"{head}:{arcs.names[relation]}:{probability:.4g}")
    return [f"Arcs={','.join(text)}|" for text in texts]


def read_arcs(miscs: Texts, where: str) -> Arcs | None:
    """Read the arcs of all words of a sentence from MISC; None if no word has any."""
    arcs_of_words = [_MISC.findall(misc) for misc in miscs]
    if not any(arcs_of_words):
        return None
    names: dict[str, int] = {}
    rows: list[tuple[int, int, int, float]] = []
    for word, texts in enumerate(arcs_of_words):
        entries = _entries(texts, word, len(miscs))
        if not 0.99 <= sum(entries.values()) <= 1.001:
            raise SynmtError(
                f"the arcs of token {word + 1} in MISC are wrong: '{'|'.join(texts)[:80]}'",
                where=where,
                allowed="All tokens of a sentence have arcs such as "
                "`Arcs=2:nsubj:0.97,0:root:0.03`, or none: other heads or 0 for the root, each "
                "with a relation and a probability; these sum to 1",
                do="Fix the file or parse the text again with `synmt parse --arcs`",
            )
        for (parent, relation), probability in entries.items():
            rows.append((word, parent, names.setdefault(relation, len(names)), probability))
    *columns, probabilities = map(np.array, zip(*rows, strict=True))
    return Arcs(*columns, probabilities=probabilities.astype(np.float32), names=tuple(names))


def _entries(texts: Texts, word: int, words: int) -> dict[tuple[int, str], float]:
    """Read the probabilities of the arcs of a word by parent and relation; none if some are
    wrong."""
    entries: dict[tuple[int, str], float] = {}
    for text in ",".join(texts).split(","):
        match = _ENTRY.fullmatch(text)
        head, relation = (int(match[1]), match[2]) if match else (word + 1, "")
        arc = (head - 1 if head else word), relation
        probability = float(match[3]) if match else 0.0
        if head == word + 1 or head > words or arc in entries or not 0 < probability <= 1:
            return {}
        entries[arc] = probability
    return entries
