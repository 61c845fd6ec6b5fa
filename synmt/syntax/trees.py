"""Trees as arrays of parents: distances, brackets, and trees drawn at random.

A tree of W words is an array (W,) with the parent of each word; the root is its own parent.
"""

from __future__ import annotations

import numpy as np

from synmt.arrays import BoolArray, IntArray
from synmt.syntax.parse import Parse


def tree_distances(parents: IntArray) -> IntArray:
    """Count the steps between every two words of a tree: (W,) -> (W, W).

        D = a + aᵀ - 2 A Aᵀ

    A is the ancestor-or-self matrix and a its row sums: A Aᵀ counts the ancestors that two words share.
    """
    above = ancestors(parents).astype(np.float32)  # (W, W), float32 multiplies faster than integers
    shared = above @ above.T  # (W, W)
    own = shared.diagonal()  # (W,) a word shares all its ancestors with itself
    return (own[:, None] + own - 2 * shared).astype(np.int64)  # (W, W)


def ancestors(parents: IntArray) -> BoolArray:
    """Find the words from each word up to the root: (W,) -> (W, W), [i, j] True where j is i or an ancestor of i."""
    above = np.eye(len(parents), dtype=np.bool_)  # (W, W)
    jump = parents  # (W,)
    # a row with the next n words above it, joined with the row n steps above, has 2n of them
    for _ in range(_doublings(len(parents))):
        above |= above[jump]
        jump = jump[jump]
    return above


def linearise(parse: Parse) -> str:
    """Write a tree as brackets and relations, without words: `(root (nsubj (det ) ) (obj (det ) ) )`.

    Children stand in the order of their words. The brackets are laid out as those that Bugliarello & Okazaki (2020)
    predict beside the translation, after Currey & Heafield (2019); theirs are constituents, these are dependencies.
    """
    below: list[list[int]] = [[] for _ in parse.words]
    closed = -1
    waiting: list[int] = []
    for word, parent in enumerate(parse.parents.tolist()):
        (waiting if word == parent else below[parent]).append(word)
    tokens: list[str] = []
    while waiting:
        word = waiting.pop()
        if word == closed:
            tokens.append(")")
            continue
        tokens.append(f"({parse.relations[word]}")
        waiting.append(closed)
        waiting.extend(reversed(below[word]))
    return " ".join(tokens)


def random_tree(words: int, random: np.random.Generator) -> IntArray:
    """Draw one of the W^(W-1) trees of W words, each as likely as any other: (W,)."""
    return tree_of_map(random.integers(words, size=words)) if words else np.zeros(0, dtype=np.int64)


def tree_of_map(targets: IntArray) -> IntArray:
    """Make a tree of a map from words to words (Joyal, 1981): (W,) -> (W,), W ≥ 1; W maps make each tree.

    The words on the map's cycles become a path that ends in the root: the targets of these words, in the order of the
    words. Every other word keeps its target as its parent.
    """
    path = targets[np.unique(_repeat(targets))]
    parents = targets.copy()  # (W,)
    parents[path[:-1]] = path[1:]
    parents[path[-1]] = path[-1]
    return parents


def _repeat(targets: IntArray) -> IntArray:
    """Follow a map W times at least, so that every word has come to a cycle: (W,) -> (W,)."""
    for _ in range(_doublings(len(targets))):
        targets = targets[targets]
    return targets


def _doublings(words: int) -> int:
    """Count the doublings from 1 to the number of words, or beyond."""
    return max(words - 1, 0).bit_length()
