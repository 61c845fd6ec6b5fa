"""Probabilities of arcs: reduced to the largest, moved from words to tokens, written and read as
text.

The column MISC of CoNLL-U contains those of a word as `Arcs=2:nsubj:0.97,5:obj:0.02,0:root:0.009`:
parent, relation, probability; the largest first. Parents are numbered as in HEAD: from 1; 0 makes
the word the root.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from synmt.arrays import IntArray
from synmt.errors import SynmtError
from synmt.syntax.parse import Arcs

Entry = tuple[int, str, float]
"""Parent as HEAD numbers it, relation, probability."""

KEPT = 0.999
"""Minimum probability to keep for each word."""

# with it, float32 sums reach 0.999 too, in any order of addition
_ROUNDING = 1e-6

_MISC = re.compile(r"(?:^|\|)Arcs=([^|]*)")
_ENTRY = re.compile(r"([0-9]{1,9}):([^\s,;|=]+):([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)")


def without_arcs(what: str, where: str = "") -> SynmtError:
    """Make the error for a tree without the arc probabilities that a variant reads."""
    return SynmtError(
        f"{what} has no probabilities of arcs, and a variant reads them",
        where=where,
        do="Parse the text again with `synmt parse --arcs`",
    )


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
    kept = before < KEPT + _ROUNDING  # (N,)
    before, rounded = before[kept], rounded[kept]
    over = before + rounded > 1 + 1e-9  # (N,) the last one of a word whose rounded values exceed 1
    rounded[over] = _four_digits(1 - before[over], np.floor)
    return replace(arcs[order[kept]], probabilities=rounded.astype(np.float32))


def _four_digits(values: npt.NDArray[Any], to_integer: np.ufunc) -> npt.NDArray[np.float64]:
    values = values.astype(np.float64)
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
    values = moved.probabilities.astype(np.float64)  # (N,)
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
    kept = (words >= 0) & ((arcs.words == arcs.parents) | (words != parents))  # (N,)
    return replace(arcs[kept], words=words[kept], parents=parents[kept])


def with_certain_arcs(arcs: Arcs, words: IntArray, parents: IntArray, relations: list[str]) -> Arcs:
    """Add the arc of the tree, with probability 1, for words (n,) without entries; parents (W,) and
    W relations."""
    added = [relations[word] for word in words.tolist()]
    names = tuple(dict.fromkeys((*arcs.names, *added)))
    merged = Arcs(
        words=np.concatenate([arcs.words, words]),
        parents=np.concatenate([arcs.parents, parents[words]]),
        relations=np.concatenate([arcs.relations, _integers(map(names.index, added))]),
        probabilities=np.concatenate([arcs.probabilities, np.ones(len(words), dtype=np.float32)]),
        names=names,
    )
    return merged[np.argsort(merged.words, kind="stable")]


def join_arcs(sentences: Sequence[Arcs], lengths: Sequence[int], root: int) -> Arcs:
    """Concatenate the sentences of a line; later roots are attached to the first one, `root`, as in
    the tree."""
    if len(sentences) == 1:
        return sentences[0]
    names = tuple(
        dict.fromkeys([*(name for each in sentences for name in each.names), "parataxis"])
    )
    number = {name: index for index, name in enumerate(names)}
    columns: list[tuple[npt.NDArray[Any], ...]] = []
    for index, (arcs, first) in enumerate(zip(sentences, np.cumsum([0, *lengths]), strict=False)):
        relations = np.array([number[name] for name in arcs.names])[arcs.relations]
        later = (arcs.words == arcs.parents) & (index > 0)
        parents = np.where(later, root, arcs.parents + first)
        relations = np.where(later, number["parataxis"], relations)
        columns.append((arcs.words + first, parents, relations, arcs.probabilities))
    words, parents, relations, probabilities = map(np.concatenate, zip(*columns, strict=True))
    return sum_duplicates(Arcs(words, parents, relations, probabilities, names))


def format_arcs(arcs: Arcs | None, words: int) -> list[str]:
    """Write the arcs of each word for MISC, with a final `|`; empty strings if there are none."""
    if arcs is None:
        return [""] * words
    texts: list[list[str]] = [[] for _ in range(words)]
    columns = [
        column.tolist() for column in (arcs.words, arcs.parents, arcs.relations, arcs.probabilities)
    ]
    for word, parent, relation, probability in zip(*columns, strict=True):
        head = 0 if parent == word else parent + 1
        texts[word].append(f"{head}:{arcs.names[relation]}:{probability:.4g}")
    assert all(texts), "a word has no arcs"
    return [f"Arcs={','.join(text)}|" for text in texts]


def read_arcs(misc: str, word: int, words: int) -> list[Entry] | None:
    """Read the arcs of a word (from 1) of a sentence; None if MISC has none; ValueError if they are
    wrong."""
    values = _MISC.findall(misc)
    if not values:
        return None
    if len(values) > 1:
        raise ValueError("it has Arcs twice")
    entries = [_entry(text, word, words) for text in values[0].split(",")]
    if len({entry[:2] for entry in entries}) < len(entries):
        raise ValueError("an arc occurs twice")
    total = sum(probability for _, _, probability in entries)
    if total > 1.001:
        raise ValueError(f"the probabilities sum to {total:.4g}, more than 1")
    if total < 0.99:
        raise ValueError(f"the probabilities sum to {total:.4g}, so some are missing")
    return entries


def _entry(text: str, word: int, words: int) -> Entry:
    match = _ENTRY.fullmatch(text)
    if not match:
        raise ValueError(f"the arc '{text}' is not of the form parent:relation:probability")
    head, relation, probability = int(match[1]), match[2], float(match[3])
    if head > words:
        raise ValueError(
            f"the arc '{text}' has the parent '{head}', but the sentence has {words} words"
        )
    if head == word:
        raise ValueError(f"the arc '{text}' makes the word its own parent")
    if not 0 < probability <= 1:
        raise ValueError(f"the probability of the arc '{text}' is not between 0 and 1")
    return head, relation, probability


def arcs_from_entries(entries: Iterable[Sequence[Entry]]) -> Arcs:
    """Make arcs from the entries of each word."""
    rows = [(word, *entry) for word, own in enumerate(entries) for entry in own]
    names = tuple(dict.fromkeys(relation for _, _, relation, _ in rows))
    number = {name: index for index, name in enumerate(names)}
    return Arcs(
        words=_integers(word for word, *_ in rows),
        parents=_integers(head - 1 if head else word for word, head, *_ in rows),
        relations=_integers(number[relation] for _, _, relation, _ in rows),
        probabilities=np.array([probability for *_, probability in rows], dtype=np.float32),
        names=names,
    )


def _integers(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)
