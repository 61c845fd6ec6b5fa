"""Trees as arrays of parents: depths, distances, brackets, random trees and the best tree.

A tree of W words is an array (W,) with the parent of each word; the root is its own parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synmt.arrays import BoolArray, DoubleArray, IntArray, IntPairs, int_array, int_pairs
from synmt.syntax.parse import Parse


def tree_distances(parents: IntArray) -> IntArray:
    """Count the steps between every two words of a tree: (W,) -> (W, W).

        D = a + aᵀ - 2 A Aᵀ

    A is the ancestor-or-self matrix and a its row sums: A Aᵀ counts the ancestors that two words
    share.
    """
    above = ancestors(parents).astype(np.float32)  # (W, W), float32 multiplies faster than integers
    shared = above @ above.T  # (W, W)
    depth = shared.diagonal()  # (W,) number of its ancestors, including itself
    return (depth[:, None] + depth - 2 * shared).astype(np.int64)  # (W, W)


def ancestors(parents: IntArray) -> BoolArray:
    """Find the ancestors of each word: (W,) -> (W, W), [i, j] is True if j is i or an ancestor of
    i."""
    above = np.eye(len(parents), dtype=bool)  # (W, W)
    # a row with the next n ancestors, joined with the row of the n-th one, has 2n of them
    for jump in _jumps(parents):
        above |= above[jump]
    return above


def linearise(parse: Parse) -> str:
    """Write a tree as brackets and relations, without words:
    `(root (nsubj (det ) ) (obj (det ) ) )`.

    Children are in the order of their words. Bugliarello & Okazaki (2020) predict brackets in this
    format besides translations, after Currey & Heafield (2019); theirs are constituents, these are
    dependencies.
    """
    return " ".join(token for token, word in _brackets(parse) if word is None)


@dataclass(frozen=True)
class LinearisedTree:
    """A tree as text with its words.

    spans: (C, 2), what each character of the text covers in the line: a character of a word, or
        nothing, which begins and ends in the same place; the space before a word covers nothing
        before it.
    """

    text: str
    spans: IntArray

    def cover(self, pieces: IntArray) -> IntArray:
        """Find what pieces of the text cover in the line: (T, 2) -> (T, 2)."""
        if not len(self.spans):
            return pieces
        last = len(self.spans) - 1
        begins = self.spans[pieces[:, 0].clip(max=last), 0]  # (T,)
        ends = self.spans[(pieces[:, 1] - 1).clip(min=0), 1]  # (T,)
        ends = np.where(pieces[:, 0] < pieces[:, 1], ends, begins)  # (T,)
        return np.stack((begins, ends), 1)


def linearise_with_words(parse: Parse) -> LinearisedTree:
    """Write a tree as brackets, relations and words, each between its left and its right
    dependents.

    `(root (nsubj (det The ) monkey ) eats (obj (det a ) banana ) )`, as the source of a
    translation.
    """
    tokens, spans, end = list[str](), IntPairs(), 0
    for token, word in _brackets(parse):
        # a bracket covers nothing after the word before it
        start, end = (end, end) if word is None else parse.spans[word].tolist()
        # the first token has no space before it
        spans += [(start, start)] if tokens else []
        spans += [(min(start + at, end), min(start + at + 1, end)) for at in range(len(token))]
        tokens.append(token)
    return LinearisedTree(" ".join(tokens), int_pairs(spans))


def _brackets(parse: Parse) -> Iterator[tuple[str, int | None]]:
    """Yield brackets and words in their order, each with the number of the word, or None if it is a
    bracket."""
    children: list[list[int]] = [[] for _ in parse.words]
    # a number is a word whose brackets are still to come
    stack: list[int | tuple[str, int | None]] = []
    for word, parent in enumerate(parse.parents.tolist()):
        (stack if word == parent else children[parent]).append(word)
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            yield item
            continue
        yield f"({parse.relations[item]}", None
        left = [child for child in children[item] if child < item]
        right = children[item][len(left) :]
        stack += [(")", None), *reversed(right), (parse.words[item], item), *reversed(left)]


def random_tree(words: int, random: np.random.Generator) -> IntArray:
    """Draw one of the W^(W-1) trees of W words with equal probability: (W,)."""
    return tree_of_map(random.integers(words, size=words)) if words else int_array([])


def tree_of_map(targets: IntArray) -> IntArray:
    """Turn a map from words to words into a tree (Joyal, 1981): (W,) -> (W,), W ≥ 1; each tree
    comes from W maps.

    The words on the map's cycles become a path that ends at the root: the targets of these words,
    in the order of the words. The parent of every other word is its target.
    """
    path = targets[np.unique(_repeat(targets))]
    parents = targets.copy()  # (W,)
    parents[path[:-1]] = path[1:]
    parents[path[-1]] = path[-1]
    return parents


def _repeat(targets: IntArray) -> IntArray:
    """Apply a map at least W times, so that every word reaches a cycle: (W,) -> (W,)."""
    for jump in _jumps(targets):
        targets = jump[jump]
    return targets


def _jumps(targets: IntArray) -> Iterator[IntArray]:
    """Yield a map from words to words applied once, twice, four times …, less than W times:
    (W,) each."""
    for _ in range(max(len(targets) - 1, 0).bit_length()):
        yield targets
        targets = targets[targets]


def depths(parents: Sequence[int] | IntArray) -> IntArray:
    """Count each word's steps to its root: (W,) -> (W,)."""
    above = np.asarray(parents, dtype=np.int64)
    steps = (above != np.arange(len(above))).astype(np.int64)  # (W,)
    for jump in _jumps(above):
        steps += steps[jump]
    return steps


def is_tree(parents: IntArray) -> bool:
    """Check whether all words lead to one root; words in a circle lead to different ones."""
    ends = _repeat(parents)
    return bool((ends == ends[:1]).all())


# the best tree with one root (Chu & Liu, 1965; Edmonds, 1967)
#
#     tree = argmax Σ_i scores[i, parent of i]        over all trees with one root
#
# scores[i, j] is the score of j as the parent of i, and scores[i, i] that of i as the root. Each
# round contracts all cycles at once. If the best tree has several roots, a penalty on roots leaves
# one (Stanojević & Cohen, 2021). Stanza's search derives this penalty from the lowest score, which
# must be negative; attention weights are not.


def not_punctuation(gold: Parse) -> BoolArray:
    """Mark the words that are not punctuation: (W,)."""
    tags = gold.or_unknown(gold.tags)
    pairs = zip(gold.relations, tags, strict=True)
    counts = [relation.partition(":")[0] != "punct" and tag != "PUNCT" for relation, tag in pairs]
    return np.array(counts, dtype=bool)


def collapse(weights: DoubleArray, owners: IntArray, words: int) -> DoubleArray:
    """Sum the weights of pieces over words: weights (T, T), the word of each piece (T,) -> (W, W).

    On the diagonal, the weight of being the root, only the diagonal of the pieces counts. A word
    without pieces has weights of 0, so any word may become its parent; a piece of no word, -1, is
    ignored.
    """
    belongs = (owners[:, None] == np.arange(words)).astype(float)  # (T, W)
    collapsed = belongs.T @ weights @ belongs  # (W, W)
    np.fill_diagonal(collapsed, weights.diagonal() @ belongs)
    return collapsed


def maximum_spanning_tree(scores: npt.NDArray[np.floating[Any]]) -> IntArray:
    """Find a tree with the greatest sum of scores: (W, W) -> (W,) parents.

    A score of -inf forbids an arc; if every tree has such arcs, the result has the fewest of them.
    """
    assert scores.shape == (len(scores), len(scores)), scores.shape
    assert (scores < np.inf).all(), "a score is NaN or infinite"
    losses = _losses(scores.astype(float))  # (W, W)
    parents = _best_tree(losses, penalty=0.0)  # (W,)
    if (parents == np.arange(len(parents))).sum() > 1:
        # more than all arcs of a tree can lose together
        parents = _best_tree(losses, penalty=1.0 - len(losses) * losses.min())
    return parents


def _losses(scores: DoubleArray) -> DoubleArray:
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


def _best_tree(losses: DoubleArray, *, penalty: float) -> IntArray:
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


def _arborescence(scores: DoubleArray) -> IntArray:
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
    nodes = least = np.arange(len(targets))  # (N,)
    for jump in _jumps(targets):
        least = np.minimum(least, least[jump])
    on_cycle = np.bincount(_repeat(targets), minlength=len(targets)) > 0  # (N,)
    return np.unique(np.where(on_cycle, least, nodes), return_inverse=True)[1]


def _contracted(losses: DoubleArray, groups: IntArray) -> DoubleArray:
    """Keep the best arc between every two groups: (N, N) -> (C, C)."""
    order = np.argsort(groups, kind="stable")  # (N,)
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))  # (C,)
    rows = np.maximum.reduceat(losses[order], starts, axis=0)  # (C, N)
    best = np.maximum.reduceat(rows[:, order], starts, axis=1)  # (C, C)
    np.fill_diagonal(best, -np.inf)
    best[0, 0] = 0.0
    return best
