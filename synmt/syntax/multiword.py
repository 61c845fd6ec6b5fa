"""Multi-word tokens: from the words of a tree to the tokens of the text.

A multi-word token (German "zum" = "zu" + "dem") is one token in the text and several words in the tree.
"""

from __future__ import annotations

from collections.abc import Sequence

Token = range
"""The words of one surface token, by their indices."""


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


def leading_words(parents: Sequence[int], tokens: Sequence[Token]) -> list[int]:
    """Find the word that leads each token: the one nearest to the root, and the first one of equals.

    Its parent is outside the token, and nearer to the root than all words of the token: therefore the tree of the
    tokens has one root and no cycle, even if several words of a token have their parents outside.
    """
    if all(len(token) == 1 for token in tokens):
        return [token.start for token in tokens]
    depth = depths(parents)
    assert depth is not None, parents
    return [min(token, key=depth.__getitem__) for token in tokens]


def token_parents(parents: Sequence[int], tokens: Sequence[Token], leading: Sequence[int]) -> list[int]:
    """Find the parents of tokens from those of their leading words."""
    token_of = {word: index for index, token in enumerate(tokens) for word in token}
    return [token_of[parents[word]] for word in leading]


def token_tree(
    parents: Sequence[int], relations: Sequence[str], tokens: Sequence[Token]
) -> tuple[list[int], list[int], list[str]]:
    """Turn a tree of words into one of tokens: the leading words, the parents and the relations of the tokens."""
    leading = leading_words(parents, tokens)
    names = ["root" if parents[word] == word else relations[word] for word in leading]
    return leading, token_parents(parents, tokens, leading), names


def join_trees(parents: Sequence[Sequence[int]]) -> list[int]:
    """Join trees into one: later roots are attached to the first one."""
    joined: list[int] = []
    for tree in parents:
        offset = len(joined)
        joined += [parent + offset for parent in tree]
    roots = [word for word, parent in enumerate(joined) if word == parent]
    for root in roots[1:]:
        joined[root] = roots[0]
    return joined
