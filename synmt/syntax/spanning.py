"""The best tree with one root (Chu & Liu, 1965; Edmonds, 1967).

    tree = argmax Σ_i scores[i, parent of i]        over all trees with one root

scores[i, j] is for j as the parent of i, and scores[i, i] for i as the root. All circles of a round are contracted
together. Where the best tree has several roots, a price on every root leaves one (Stanojević & Cohen, 2021). Stanza's
search takes that price from the lowest score, which has to be negative; weights of attention are not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from synmt.arrays import IntArray

Scores = npt.NDArray[np.float64]


def maximum_spanning_tree(scores: npt.NDArray[np.floating]) -> IntArray:
    """Find the tree with the greatest sum of scores: (W, W) -> (W,) parents; of equals any.

    A score of -inf forbids an arc; where no tree is left, one with the fewest such arcs is given.
    """
    assert scores.shape == (len(scores), len(scores)), scores.shape
    assert (scores < np.inf).all(), "a score is NaN or infinite"
    losses = _losses(scores.astype(np.float64))  # (W, W)
    parents = _best_tree(losses, price=0.0)  # (W,)
    if _roots(parents) > 1:
        # more than all arcs of a tree can lose together
        parents = _best_tree(losses, price=1.0 - len(losses) * losses.min())
    return parents


def _roots(parents: IntArray) -> int:
    return int((parents == np.arange(len(parents))).sum())


def _losses(scores: Scores) -> Scores:
    """Say by how much each arc falls short of the word's best one: (W, W) -> (W, W), from -1 to 0, forbidden ones less.

    A word has one parent, so that the same number for all of its arcs changes no choice.
    """
    allowed = np.isfinite(scores)
    # huge scores must not become infinite by a difference, and tiny ones not vanish beside the price of a root
    losses = scores / (np.abs(scores[allowed]).max(initial=0.0) or 1.0)  # (W, W)
    best = losses.max(1, keepdims=True, initial=-np.inf)  # (W, 1)
    losses -= np.where(np.isfinite(best), best, 0.0)
    losses /= -losses[allowed].min(initial=0.0) or 1.0
    losses[~allowed] = -1.0 - len(losses)
    return losses


def _best_tree(losses: Scores, *, price: float) -> IntArray:
    """Search with a price on every root: (W, W) -> (W,) parents, of roots themselves."""
    words = len(losses)
    scores = np.full((words + 1, words + 1), -np.inf)  # (W + 1, W + 1), of node 0 the roots are children
    scores[1:, 1:] = losses
    np.fill_diagonal(scores, -np.inf)
    scores[0, 0] = 0.0
    scores[1:, 0] = losses.diagonal() - price
    above = _arborescence(scores)[1:]  # (W,)
    return np.where(above == 0, np.arange(words), above - 1)


def _arborescence(scores: Scores) -> IntArray:
    """Find the best tree below node 0, which alone may be its own parent: (N, N) -> (N,) parents."""
    parents = scores.argmax(1)  # (N,)
    groups = _circles(parents)  # (N,)
    if groups.max() + 1 == len(parents):
        return parents
    # whoever enters a circle at a node gives up the arc that the node has there
    losses = scores - scores.max(1, keepdims=True)  # (N, N)
    between = _arborescence(_contracted(losses, groups))  # (C,)
    entering = np.where(groups == between[groups][:, None], losses, -np.inf)  # (N, N)
    found = entering.argmax(1)  # (N,)
    order = np.lexsort((-entering.max(1), groups))  # (N,) the best of each group first
    opened = order[np.unique(groups[order], return_index=True)[1]]  # (C,)
    parents[opened] = found[opened]
    return parents


def _circles(targets: IntArray) -> IntArray:
    """Number the circles of a map, and each node outside of them, the one with node 0 first: (N,) -> (N,)."""
    least, jump = np.arange(len(targets)), targets  # (N,), (N,)
    for _ in range(len(targets).bit_length()):
        least = np.minimum(least, least[jump])
        jump = jump[jump]
    on_circle = np.zeros(len(targets), dtype=np.bool_)  # (N,)
    on_circle[jump] = True
    return np.unique(np.where(on_circle, least, np.arange(len(targets))), return_inverse=True)[1]


def _contracted(losses: Scores, groups: IntArray) -> Scores:
    """Keep the best arc between every two groups: (N, N) -> (C, C)."""
    order = np.argsort(groups, kind="stable")  # (N,)
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))  # (C,)
    rows = np.maximum.reduceat(losses[order], starts, axis=0)  # (C, N)
    best = np.maximum.reduceat(rows[:, order], starts, axis=1)  # (C, C)
    np.fill_diagonal(best, -np.inf)
    best[0, 0] = 0.0
    return best
