"""The best tree with one root (Chu & Liu, 1965; Edmonds, 1967).

    tree = argmax Σ_i scores[i, parent of i]        over all trees with one root

scores[i, j] is the score of j as the parent of i, and scores[i, i] that of i as the root. Each
round contracts all cycles at once. If the best tree has several roots, a penalty on roots leaves
one (Stanojević & Cohen, 2021). Stanza's search derives this penalty from the lowest score, which
must be negative; attention weights are not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from synmt.arrays import IntArray

Scores = npt.NDArray[np.float64]


def maximum_spanning_tree(scores: npt.NDArray[np.floating]) -> IntArray:
    """Find a tree with the greatest sum of scores: (W, W) -> (W,) parents.

    A score of -inf forbids an arc; if every tree has such arcs, the result has the fewest of them.
    """
    assert scores.shape == (len(scores), len(scores)), scores.shape
    assert (scores < np.inf).all(), "a score is NaN or infinite"
    losses = _losses(scores.astype(np.float64))  # (W, W)
    parents = _best_tree(losses, penalty=0.0)  # (W,)
    if (parents == np.arange(len(parents))).sum() > 1:
        # more than all arcs of a tree can lose together
        parents = _best_tree(losses, penalty=1.0 - len(losses) * losses.min())
    return parents


def _losses(scores: Scores) -> Scores:
    """Subtract each word's best score: (W, W) -> (W, W), from -1 to 0, and lower for forbidden
    arcs.

    This does not change the best tree, since a word has exactly one parent.
    """
    allowed = np.isfinite(scores)
    # scaled, so that differences of huge scores stay finite, and tiny ones are not lost next to the
    # penalty
    losses = scores / (np.abs(scores[allowed]).max(initial=0.0) or 1.0)  # (W, W)
    best = losses.max(1, keepdims=True, initial=-np.inf)  # (W, 1)
    losses -= np.where(np.isfinite(best), best, 0.0)
    losses /= -losses[allowed].min(initial=0.0) or 1.0
    losses[~allowed] = -1.0 - len(losses)
    return losses


def _best_tree(losses: Scores, *, penalty: float) -> IntArray:
    """Find the best tree with a penalty on every root: (W, W) -> (W,) parents; roots are their
    own."""
    words = len(losses)
    scores = np.full((words + 1, words + 1), -np.inf)  # (W + 1, W + 1) roots are children of node 0
    scores[1:, 1:] = losses
    np.fill_diagonal(scores, -np.inf)
    scores[0, 0] = 0.0
    scores[1:, 0] = losses.diagonal() - penalty
    above = _arborescence(scores)[1:]  # (W,)
    return np.where(above == 0, np.arange(words), above - 1)


def _arborescence(scores: Scores) -> IntArray:
    """Find the best tree below node 0, the only node that is its own parent: (N, N) -> (N,)
    parents."""
    parents = scores.argmax(1)  # (N,)
    groups = _cycles(parents)  # (N,)
    if groups.max() + 1 == len(parents):
        return parents
    # an arc that enters a cycle at a node replaces the arc of this node in the cycle
    losses = scores - scores.max(1, keepdims=True)  # (N, N)
    between = _arborescence(_contracted(losses, groups))  # (C,)
    entering = np.where(groups == between[groups][:, None], losses, -np.inf)  # (N, N)
    best = entering.argmax(1)  # (N,)
    order = np.lexsort((-entering.max(1), groups))  # (N,) the best of each group comes first
    opened = order[np.unique(groups[order], return_index=True)[1]]  # (C,)
    parents[opened] = best[opened]
    return parents


def _cycles(targets: IntArray) -> IntArray:
    """Number the cycles of a map and the nodes outside of them; node 0 has number 0: (N,) ->
    (N,)."""
    least, jump = np.arange(len(targets)), targets  # (N,), (N,)
    for _ in range(len(targets).bit_length()):
        least = np.minimum(least, least[jump])
        jump = jump[jump]
    on_cycle = np.zeros(len(targets), dtype=np.bool_)  # (N,)
    on_cycle[jump] = True
    return np.unique(np.where(on_cycle, least, np.arange(len(targets))), return_inverse=True)[1]


def _contracted(losses: Scores, groups: IntArray) -> Scores:
    """Keep the best arc between every two groups: (N, N) -> (C, C)."""
    order = np.argsort(groups, kind="stable")  # (N,)
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))  # (C,)
    rows = np.maximum.reduceat(losses[order], starts, axis=0)  # (C, N)
    best = np.maximum.reduceat(rows[:, order], starts, axis=1)  # (C, C)
    np.fill_diagonal(best, -np.inf)
    best[0, 0] = 0.0
    return best
