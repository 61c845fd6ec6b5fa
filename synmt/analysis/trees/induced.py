"""Dependency trees induced from attention: weights of pieces collapsed to words, then the maximum
spanning tree.

    collapsed[i, j] = Σ weights[s, t] over the pieces s of word i and t of word j, i ≠ j
    collapsed[i, i] = Σ weights[s, s]        tree = maximum spanning tree of `collapsed`

A row of weights is a piece that attends, a column a possible parent, the diagonal the root. Weights
between different pieces of one word are dropped. The released code of Tran & Bisk (2018), from
which the collapsing is taken, instead uses them to choose the root, and it sums unbounded scores
where weights are summed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from synmt.analysis.forward_passes import ForwardPass, ParsedText, SentencePass, run_with_progress
from synmt.analysis.heads import Head, annotation_weights
from synmt.arrays import DoubleArray, IntArray, Side
from synmt.data.vocabulary import word_of
from synmt.decode.translator import Translator
from synmt.syntax.trees import maximum_spanning_tree


@dataclass(frozen=True, eq=False)
class HeadTrees:
    """The trees of one head, or of annotations, sentence by sentence.

    trees: (W,) parents; the root is its own parent.
    choices: (W,) the word with the highest weight for each word, itself for a root; -1 for a word
        without weight.
    """

    head: Head
    trees: list[IntArray]
    choices: list[IntArray]


@dataclass(frozen=True, eq=False)
class InducedTrees:
    """All trees induced from a model.

    lines: numbers of the lines with trees, in order; the other lines are too long for the model or
        empty.
    too_long: number of lines with more pieces than the model's maximum.
    by_head: for each head, the trees of `lines`.
    """

    lines: list[int]
    too_long: int
    by_head: list[HeadTrees]


def induce_trees(translator: Translator, heads: Sequence[Head], text: ParsedText) -> InducedTrees:
    """Run the model over a text and induce the trees of every head, with progress."""
    found = {}
    too_long = 0
    for forward in run_with_progress(translator, text, "inducing trees"):
        tensors = [tree_weights(head, text.side, forward) for head in heads]
        weights_of_heads = [weights.cpu().double().numpy() for weights in tensors]  # S of (B, T, T)
        for row, sentence in enumerate(forward.sentences):
            words = len(text.gold[sentence.index])
            too_long += sentence.dropped > 0
            if words and not sentence.dropped:
                owners = piece_owners(translator, text, sentence)  # (T,)
                part = slice(len(owners))
                found[sentence.index] = trees = []
                for weights in weights_of_heads:
                    collapsed = collapse(weights[row, part, part], owners, words)  # (W, W)
                    choices = np.where(collapsed.any(1), collapsed.argmax(1), -1)  # (W,)
                    trees.append((maximum_spanning_tree(collapsed), choices))
    lines = sorted(found)
    by_head = [
        HeadTrees(head, *([found[index][place][kind] for index in lines] for kind in (0, 1)))
        for place, head in enumerate(heads)
    ]
    return InducedTrees(lines, too_long, by_head)


def tree_weights(head: Head, side: Side, forward: ForwardPass) -> Tensor:
    """Return the weights of possible parents in a forward pass: (B, T, T), without BOS on the
    target."""
    if not head.layer:
        return annotation_weights(head, forward)
    weights = forward.captured.attention[side, head.layer][:, head.number - 1]  # (B, T, T)
    if side == "source":
        return weights
    return weights[:, :-1, 1:] if head.predicts else weights[:, 1:, 1:]


def piece_owners(translator: Translator, text: ParsedText, sentence: SentencePass) -> IntArray:
    """Find the word of each piece: (T,), -1 for a task tag."""
    spans = sentence.source if text.side == "source" else sentence.target  # (T, 2)
    owners = word_of(spans, text.gold[sentence.index].spans)  # (T,)
    if text.side == "source" and translator.task:
        owners[(spans[:, 1] <= 0) | (spans[:, 0] >= len(text.source[sentence.index]))] = -1
    return owners


def collapse(weights: DoubleArray, owners: IntArray, words: int) -> DoubleArray:
    """Sum the weights of pieces over words: weights (T, T), the word of each piece (T,) -> (W, W).

    On the diagonal, the weight of being the root, only the diagonal of the pieces counts. A word
    without pieces has weights of 0, so any word may become its parent; a piece of no word, -1, is
    ignored.
    """
    belongs = (owners[:, None] == np.arange(words)).astype(np.float64)  # (T, W)
    collapsed = belongs.T @ weights @ belongs  # (W, W)
    np.fill_diagonal(collapsed, weights.diagonal() @ belongs)
    return collapsed
