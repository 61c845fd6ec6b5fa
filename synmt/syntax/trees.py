"""Trees as arrays of parents: depths, distances, brackets and random trees.

A tree of W words is an array (W,) with the parent of each word; the root is its own parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synmt.arrays import BoolArray, IntArray
from synmt.syntax.parse import Parse


def tree_distances(parents: IntArray) -> IntArray:
    """Count the steps between every two words of a tree: (W,) -> (W, W).

        D = a + aᵀ - 2 A Aᵀ

    A is the ancestor-or-self matrix and a its row sums: A Aᵀ counts the ancestors that two words
    share.
    """
    above = ancestors(parents).astype(np.float32)  # (W, W), float32 multiplies faster than integers
    shared = above @ above.T  # (W, W)
    own = shared.diagonal()  # (W,) number of its ancestors, including itself
    return (own[:, None] + own - 2 * shared).astype(np.int64)  # (W, W)


def ancestors(parents: IntArray) -> BoolArray:
    """Find the ancestors of each word: (W,) -> (W, W), [i, j] is True if j is i or an ancestor of
    i."""
    above = np.eye(len(parents), dtype=np.bool_)  # (W, W)
    jump = parents  # (W,)
    # a row with the next n ancestors, joined with the row of the n-th one, has 2n of them
    for _ in range(_doublings(len(parents))):
        above |= above[jump]
        jump = jump[jump]
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
        first, last = (
            pieces[:, 0].clip(max=len(self.spans) - 1),
            (pieces[:, 1] - 1).clip(min=0),
        )  # (T,) both
        begins = self.spans[first, 0]  # (T,)
        ends = np.where(pieces[:, 0] < pieces[:, 1], self.spans[last, 1], begins)  # (T,)
        return np.stack((begins, ends), 1)


def linearise_with_words(parse: Parse) -> LinearisedTree:
    """Write a tree as brackets, relations and words, each between its left and its right
    dependents.

    `(root (nsubj (det The ) monkey ) eats (obj (det a ) banana ) )`, as the source of a
    translation.
    """
    tokens, spans, end = list[str](), list[tuple[int, int]](), 0
    for token, word in _brackets(parse):
        if word is None:
            covered = [(end, end)] * (len(token) + 1)
        else:
            start, end = parse.spans[word].tolist()
            covered = [(min(start + at, end), min(start + at + 1, end)) for at in range(len(token))]
            covered.insert(0, (start, start))
        tokens.append(token)
        # the first token has no space before it
        spans += covered if len(tokens) > 1 else covered[1:]
    return LinearisedTree(" ".join(tokens), np.array(spans, dtype=np.int64).reshape(-1, 2))


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
    return tree_of_map(random.integers(words, size=words)) if words else np.zeros(0, dtype=np.int64)


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
    for _ in range(_doublings(len(targets))):
        targets = targets[targets]
    return targets


def _doublings(words: int) -> int:
    """Count how often 1 must be doubled to reach the number of words."""
    return max(words - 1, 0).bit_length()


def depths(parents: Sequence[int]) -> list[int] | None:
    """Count each word's steps to its root, which is its own parent; None if there is a cycle."""
    found = [-1] * len(parents)
    for word in range(len(parents)):
        path: list[int] = []
        while found[word] < 0:
            if len(path) > len(parents):
                return None
            if parents[word] == word:
                found[word] = 0
            else:
                path.append(word)
                word = parents[word]
        for step, below in enumerate(reversed(path), start=1):
            found[below] = found[word] + step
    return found
