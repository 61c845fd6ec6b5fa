"""The target pieces that each piece of the source may become, learned from the training text.

A pair of pieces counts as much as it adds to the log-likelihood ratio of "the two occur together
more often than by chance" (Dunning, 1993; for word alignments Moore, 2004):

    score(e, f) = n(e, f) · ln (n(e, f) · n / (n(e) · n(f)))    n: numbers of sentence pairs
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from synmt.arrays import Array
from synmt.data.corpus import Split
from synmt.data.vocabulary import PAD
from synmt.reporting.progress import progress

_CHUNK = 20_000
"""Pairs that are counted at once."""
Candidates = npt.NDArray[np.int32]
"""(V, 1 + N): of each source piece first itself, if it is in both vocabularies, else PAD; then the
target pieces with the highest scores, PAD where there are fewer; of PAD, the most frequent ones."""


def learn_candidates(
    train: Split, sizes: tuple[int, int], count: int, *, joint: bool
) -> Candidates:
    """Find candidates for each source piece.

    sizes: of the vocabularies of source and target.
    count: N.
    joint: they are the same, so each piece may stay what it is.
    """
    together = csr_array(sizes)
    of_source, of_target = (np.zeros(size) for size in sizes)
    with progress("learn the shortlist", len(train), "pairs") as advance:
        for first in range(0, len(train), _CHUNK):
            rows = train.rows(range(len(train))[first : first + _CHUNK])
            source = _occurrences([row.source for row in rows], sizes[0])
            target = _occurrences([row.target for row in rows], sizes[1])
            together += source.T @ target
            of_source += source.sum(0)
            of_target += target.sum(0)
            advance(len(rows))
    cells = together.tocoo()
    e, f, times = cells.row, cells.col, cells.data
    scores = times * np.log(times * len(train) / (of_source[e] * of_target[f]))
    order = np.lexsort((-scores, e))
    e, f = e[order], f[order]
    places = np.arange(len(e)) - np.searchsorted(e, e)  # among those of the same source piece
    found = np.full((sizes[0], 1 + count), PAD, np.int32)
    few = places < count
    found[e[few], 1 + places[few]] = f[few]
    often = np.argsort(-of_target, kind="stable")[:count]
    found[PAD, 1 : 1 + len(often)] = often
    if joint:
        found[:, 0] = np.arange(sizes[0])
    return found


def _occurrences(texts: Sequence[Array], size: int) -> csr_array:
    """Mark which pieces occur in each text: (B, V)."""
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    pieces = np.concatenate(texts)
    found = csr_array((np.ones(len(pieces)), (rows, pieces)), shape=(len(texts), size))
    found.data[:] = 1
    return found
