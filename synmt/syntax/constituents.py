"""Constituents: read from brackets, moved to other words, and as binary trees; or a binary tree
from dependencies.

Constituents are spans of words, (N, 2): [start, end). They have two words at least, each is there
once, and an outer one comes before an inner one. Labels are not kept, and a constituent in one of
the same words is the same constituent.

A binary tree of W words is an array of merges, (W - 1, 2): merge m joins two nodes into the node W
+ m. The nodes 0 to W - 1 are the words. A merge comes after those that make its nodes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from synmt.arrays import IntArray, IntPairs, int_pairs
from synmt.errors import SynmtError
from synmt.syntax.align import place_words
from synmt.syntax.parse import Parse, words_at
from synmt.syntax.trees import depths

_TOKEN = re.compile(r"\([^\s()]*|\)|[^\s()]+")
_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_FORMAT = (
    "Brackets look like `(S (NP The monkey) (VP eats (NP a banana)))`; a bracket in the text "
    "is -LRB- or -RRB-"
)


def without_constituents(what: str, where: str = "") -> SynmtError:
    """Make the error for a tree without the constituents that a variant reads."""
    return SynmtError(
        f"{what} has no constituents that fit its words, and a variant reads them",
        where=where,
        do="Give brackets for every line, or build constituents from dependencies: "
        "parser.constituents=dependencies",
    )


def without_dependencies(what: str, where: str = "") -> SynmtError:
    """Make the error for a tree that has constituents only, where a variant reads dependencies."""
    return SynmtError(
        f"{what} comes as brackets, and the model reads dependencies",
        where=where,
        do="Give CoNLL-U; its comment `# constituency = (S …)` can have the brackets of a "
        "sentence, too",
    )


def read_brackets(text: str) -> tuple[list[str], IntArray]:
    """Read the words and the constituents of a line of brackets; raises ValueError for what is not
    in brackets."""
    words: list[str] = []
    spans: IntPairs = []
    opened: list[int] = []
    for token in _TOKEN.findall(text):
        if token.startswith("("):
            opened.append(len(words))
            continue
        if not opened:
            raise ValueError(f"'{token}' is outside all brackets")
        if token == ")":
            spans.append((opened.pop(), len(words)))
        else:
            words.append(token)
    if opened:
        raise ValueError("a bracket is not closed")
    return words, ordered(spans)


def ordered(spans: Iterable[Sequence[int]]) -> IntArray:
    """Order spans, once each, an outer one before an inner one, and drop those of one word or none:
    (N, 2)."""
    longer = {(start, end) for start, end in spans if end - start > 1}
    return int_pairs(sorted(longer, key=lambda span: (span[0], -span[1])))


def parse_brackets(brackets: str, line: str, *, where: str) -> Parse:
    """Read the tree of a line from brackets; it has constituents, but neither relations nor true
    parents."""
    try:
        words, spans = read_brackets(brackets)
    except ValueError as error:
        raise SynmtError(str(error), where=where, allowed=_FORMAT) from None
    try:
        places = place_words(line, words, where=where)
    except SynmtError:
        places = place_words(line, [_ESCAPED.get(word, word) for word in words], where=where)
    tokens = words_at(line, places)
    return Parse(tokens, places, np.zeros(len(tokens), dtype=np.int64), [], [], constituents=spans)


def constituents_of_tokens(brackets: str, tokens: Sequence[range]) -> IntArray | None:
    """Read the constituents of a tree whose tokens have one word or more, (N, 2); None where the
    words do not fit.

    brackets: have a leaf for each word, or for each token.
    """
    try:
        leaves, spans = read_brackets(brackets)
    except ValueError:
        return None
    if len(leaves) == len(tokens):
        return spans
    if len(leaves) != sum(map(len, tokens)):
        return None
    # a token belongs to what begins before its second word
    starts = np.array([token.start for token in tokens])  # (tokens,)
    return ordered(np.searchsorted(starts, spans).tolist())


def binary_tree(parse: Parse) -> IntArray:
    """Make the binary tree of a line: of its constituents if it has them, or else of its
    dependencies: (W - 1, 2)."""
    if parse.constituents is None:
        return binary_dependencies(parse.parents.tolist())
    return right_binary(parse.constituents, len(parse))


def right_binary(spans: IntArray, words: int) -> IntArray:
    """Make constituents binary, each with its first part on the left and all others on the right:
    (N, 2) -> (W - 1, 2).

    What is in no constituent, and the parts of a line with several trees, are parts of the whole
    line.
    """
    merges: IntPairs = []
    # of the largest node that begins at a word: itself, and where it ends
    node, end = list(range(words)), list(range(1, words + 1))
    for start, stop in reversed([(0, words), *spans.tolist()]):
        parts, at = [], start
        while at < stop:
            parts.append(node[at])
            at = end[at]
        for part in reversed(parts[:-1]):
            merges.append((part, parts[-1]))
            parts[-1] = words + len(merges) - 1
        if parts:
            node[start], end[start] = parts[-1], stop
    return int_pairs(merges)


def binary_dependencies(parents: Sequence[int]) -> IntArray:
    """Build a binary tree from a dependency tree, the parents of W words: (W - 1, 2).

    A word joins its dependents one by one: those on its right, the nearest first, then those on its
    left. Of two nodes, the one whose top word comes first is on the left, so a tree with crossing
    arcs has W - 1 nodes, too.
    """
    depth = depths(parents).tolist()
    below: dict[int, list[int]] = defaultdict(list)
    for word, parent in enumerate(parents):
        if word != parent:
            below[parent].append(word)
    merges: IntPairs = []
    node = list(range(len(parents)))
    for parent in sorted(below, key=lambda word: -depth[word]):
        left = [word for word in below[parent] if word < parent]
        for word in (*below[parent][len(left) :], *reversed(left)):
            merges.append(
                (node[parent], node[word]) if parent < word else (node[word], node[parent])
            )
            node[parent] = len(parents) + len(merges) - 1
    return int_pairs(merges)


def heights(merges: IntArray) -> list[int]:
    """Compute the height of each merge, one more than that of its higher node; a word has 1."""
    words = len(merges) + 1
    heights = [1] * words
    for left, right in merges.tolist():
        heights.append(1 + max(heights[left], heights[right]))
    return heights[words:]
