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

import numpy as np
import torch
from torch import Tensor

from synmt.analysis.forward_passes import (
    ForwardPass,
    LeftOut,
    ParsedText,
    SentencePass,
    measure_text,
)
from synmt.arrays import DoubleArray, IntArray, Side
from synmt.decode.inputs import piece_owners
from synmt.decode.translator import Translator
from synmt.model.heads import Head, head_weights
from synmt.syntax.trees import collapse, maximum_spanning_tree


def induce_trees(
    translator: Translator, heads: Sequence[Head], text: ParsedText
) -> tuple[dict[int, list[tuple[IntArray, IntArray]]], LeftOut]:
    """Run the model over a text and induce the trees of every head, with progress.

    Returns two arrays for each head, (W,) both, by the number of the line, from 0: the parent in
    the tree, where the root is its own parent; and the word with the highest weight, itself for a
    root, -1 for a word without weight. Also returns the number of lines that are left out.
    """

    def read(forward: ForwardPass) -> Tensor:
        return torch.stack(
            [tree_weights(head, text.side, forward) for head in heads], 1
        )  # (B, S, T, T)

    def measure(sentence: SentencePass, weights: DoubleArray) -> list[tuple[IntArray, IntArray]]:
        owners = word_owners(translator, text, sentence)  # (T,)
        trees = []
        for head in weights[:, : len(owners), : len(owners)]:
            collapsed = collapse(head, owners, len(text.gold[sentence.index]))  # (W, W)
            choices = np.where(collapsed.any(1), collapsed.argmax(1), -1)  # (W,)
            trees.append((maximum_spanning_tree(collapsed), choices))
        return trees

    return measure_text(translator, text, "inducing trees", read, measure)


def tree_weights(head: Head, side: Side, forward: ForwardPass) -> Tensor:
    """Return the weights of possible parents in a forward pass: (B, T, T), without BOS on the
    target."""
    weights = head_weights(head, side, forward.captured, forward.memory)  # (B, T, T)
    if side == "source":
        return weights
    return weights[:, :-1, 1:] if head.predicts else weights[:, 1:, 1:]


def word_owners(translator: Translator, text: ParsedText, sentence: SentencePass) -> IntArray:
    """Find the word of each piece of a sentence: (T,), -1 for a task tag."""
    is_source, words = text.side == "source", text.gold[sentence.index].spans
    spans = sentence.source if is_source else sentence.target  # (T, 2)
    tagged = is_source and bool(translator.task)
    return piece_owners(spans, words, len(text.source[sentence.index]), tagged=tagged)
