"""Probabilities of arcs: cut down to what matters, moved from words to tokens, written and read as text.

In the column MISC of CoNLL-U those of a word stand as `Arcs=2:nsubj:0.97,5:obj:0.02,0:root:0.009`: parent,
relation, probability, the largest first. Parents are numbered as in HEAD: from 1, and 0 makes the word the root.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from synmt.arrays import IntArray
from synmt.errors import SynmtError
from synmt.syntax.multiword import Token
from synmt.syntax.parse import Arcs

Entry = tuple[int, str, float]
"""Parent as HEAD numbers it, relation, probability."""

KEPT = 0.999
"""The probability that is kept of each word, at least."""

# 0.999 is reached in float32, too, whichever way the values are added
_SURE = 1e-6

_MISC = re.compile(r"(?:^|\|)Arcs=([^|]*)")
_FORBIDDEN = re.compile(r"[\s,;|=]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?", re.ASCII)


def without_arcs(what: str, where: str = "") -> SynmtError:
    """Say that a tree lacks what a variant reads."""
    return SynmtError(
        f"{what} has no probabilities of arcs, and a variant reads them",
        where=where,
        do="Parse the text again with `synmt parse --arcs`",
    )


def sparse(arcs: Arcs) -> Arcs:
    """Round to 4 significant digits and keep the largest of each word, until they reach 0.999 and never more than 1.

    arcs: all that matters of each word: entries in any order, which equals keep; they sum to 0.9999 at least.
    """
    rounded = _four_digits(arcs.probabilities, np.rint)  # (N,)
    order = np.lexsort((-rounded, arcs.words))  # (N,)
    words, rounded = arcs.words[order], rounded[order]
    before = np.cumsum(rounded) - rounded  # (N,)
    before -= before[np.searchsorted(words, words)]
    kept = before < KEPT + _SURE  # (N,)
    words, before, rounded = words[kept], before[kept], rounded[kept]
    over = before + rounded > 1 + 1e-9  # (N,), the last of a word whose rounded values exceed 1
    rounded[over] = _four_digits(1 - before[over], np.floor)
    order = order[kept]
    return replace(
        arcs,
        words=words,
        parents=arcs.parents[order],
        relations=arcs.relations[order],
        probabilities=rounded.astype(np.float32),
    )


def _four_digits(values: npt.NDArray[Any], whole: np.ufunc) -> npt.NDArray[np.float64]:
    values = values.astype(np.float64)
    scale = 10.0 ** (3 - np.floor(np.log10(values)))
    # 1 - 0.9 is a little less than 0.1, and has to stay 0.1
    return whole(values * scale + (1e-6 if whole is np.floor else 0)) / scale


def summed(arcs: Arcs) -> Arcs:
    """Make one entry of several of the same word, parent and relation."""
    if not len(arcs.words):
        return arcs
    sizes = (int(arcs.words.max()) + 1, int(arcs.parents.max()) + 1, len(arcs.names))
    keys = np.ravel_multi_index((arcs.words, arcs.parents, arcs.relations), sizes)  # (N,)
    distinct, place = np.unique(keys, return_inverse=True)
    words, parents, relations = np.unravel_index(distinct, sizes)
    total = np.bincount(place, weights=arcs.probabilities).astype(np.float32)  # (N',)
    return Arcs(words, parents, relations, total, arcs.names)


def token_arcs(
    arcs: Arcs, tokens: Sequence[Token], leading: Sequence[int], parents: Sequence[int], relations: list[str]
) -> Arcs:
    """Move arcs from words to the tokens of the text: a token has those of the word that leads it.

    What points at a word points at its token. What points inside the token is dropped, and the rest divided by its
    sum; where all of it points inside, the arc of the tree is certain.

    tokens, leading: the words of each token, and the one that leads it.
    parents, relations: the tree of the tokens.
    """
    if all(len(token) == 1 for token in tokens):
        return arcs
    words = sum(map(len, tokens))
    token_of = np.repeat(np.arange(len(tokens)), [len(token) for token in tokens])  # (words,)
    led = np.full(words, -1)  # (words,), the token that a word leads
    led[np.asarray(leading)] = np.arange(len(tokens))
    here, there, root = led[arcs.words], token_of[arcs.parents], arcs.words == arcs.parents  # (N,), (N,), (N,)
    kept = (here >= 0) & (root | (here != there))
    here, there, values = here[kept], there[kept], arcs.probabilities[kept].astype(np.float64)
    mass = np.bincount(here, weights=values, minlength=len(tokens))  # (tokens,)
    alone = np.flatnonzero(mass == 0)
    certain = [relations[token] for token in alone.tolist()]
    names = tuple(dict.fromkeys((*arcs.names, *certain)))
    return summed(
        Arcs(
            words=np.concatenate([here, alone]),
            parents=np.concatenate([there, np.asarray(parents)[alone]]),
            relations=np.concatenate([arcs.relations[kept], _integers(map(names.index, certain))]),
            probabilities=np.concatenate([values / mass[here], np.ones(len(alone))]).astype(np.float32),
            names=names,
        )
    )


def joined_arcs(sentences: Sequence[Arcs], lengths: Sequence[int], root: int) -> Arcs:
    """Put the sentences of a line side by side: later roots hang on the first one, `root`, as they do in the tree."""
    if len(sentences) == 1:
        return sentences[0]
    names = tuple(dict.fromkeys([*(name for each in sentences for name in each.names), "parataxis"]))
    number = {name: index for index, name in enumerate(names)}
    columns: list[tuple[npt.NDArray[Any], ...]] = []
    for index, (arcs, first) in enumerate(zip(sentences, np.cumsum([0, *lengths]), strict=False)):
        relations = np.array([number[name] for name in arcs.names])[arcs.relations]
        later = (arcs.words == arcs.parents) & (index > 0)
        parents = np.where(later, root, arcs.parents + first)
        relations = np.where(later, number["parataxis"], relations)
        columns.append((arcs.words + first, parents, relations, arcs.probabilities))
    words, parents, relations, probabilities = map(np.concatenate, zip(*columns, strict=True))
    return summed(Arcs(words, parents, relations, probabilities, names))


def arcs_misc(arcs: Arcs | None, words: int) -> list[str]:
    """Write each word's arcs for MISC, with `|` behind them; nothing where there are none."""
    if arcs is None:
        return [""] * words
    texts: list[list[str]] = [[] for _ in range(words)]
    columns = [column.tolist() for column in (arcs.words, arcs.parents, arcs.relations, arcs.probabilities)]
    for word, parent, relation, probability in zip(*columns, strict=True):
        head = 0 if parent == word else parent + 1
        texts[word].append(f"{head}:{_writable(arcs.names[relation])}:{probability:.4g}")
    assert all(texts), "a word has no arcs"
    return [f"Arcs={','.join(text)}|" for text in texts]


@lru_cache(maxsize=1000)
def _writable(relation: str) -> str:
    assert relation, "a relation without a name"
    assert not _FORBIDDEN.search(relation), f"the relation {relation!r} cannot stand in MISC"
    return relation


def arcs_in(misc: str, word: int, words: int) -> list[Entry] | None:
    """Read the arcs of a word (from 1) of a sentence; None where MISC has none, ValueError says what is wrong."""
    found = _MISC.findall(misc)
    if not found:
        return None
    if len(found) > 1:
        raise ValueError("Arcs stands twice")
    entries = [_entry(text, word, words) for text in found[0].split(",")]
    if len({entry[:2] for entry in entries}) < len(entries):
        raise ValueError("an arc is named twice")
    total = sum(probability for _, _, probability in entries)
    if total > 1.001:
        raise ValueError(f"the probabilities sum to {total:.4g}, which is more than 1")
    if total < 0.99:
        raise ValueError(f"the probabilities sum to {total:.4g}, so that some are missing")
    return entries


def _entry(text: str, word: int, words: int) -> Entry:
    head, _, rest = text.partition(":")
    relation, _, probability = rest.rpartition(":")
    if not text:
        raise ValueError("an arc is empty")
    if not relation:
        raise ValueError(f"the arc '{text}' lacks parent, relation or probability")
    if not (head.isascii() and head.isdigit() and len(head) < 10 and int(head) <= words):
        raise ValueError(f"the arc '{text}' has the parent '{head}', and the sentence has {words} words")
    if int(head) == word:
        raise ValueError(f"the arc '{text}' makes the word its own parent")
    if not _NUMBER.fullmatch(probability):
        raise ValueError(f"the probability of the arc '{text}' is no number between 0 and 1")
    value = float(probability)
    if not 0 < value <= 1:
        raise ValueError(f"the probability of the arc '{text}' is not between 0 and 1")
    if _FORBIDDEN.search(relation):
        raise ValueError(f"the relation of the arc '{text}' has a blank or one of , ; | =")
    return int(head), relation, value


def arcs_of(entries: Iterable[Sequence[Entry]]) -> Arcs:
    """Make arcs of what was read of each word."""
    rows = [(word, *entry) for word, found in enumerate(entries) for entry in found]
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
