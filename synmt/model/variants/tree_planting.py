"""Tree-planting (Yoshida, Someya & Oseki, 2024): a head learns to weigh words by their distance in
the tree.

    t_ij = exp(-d_ij) / Σ_k exp(-d_ik)        loss = λ Σ_i KL( t_i || a_i )

d_ij counts the steps in the tree between words i and j. a_i are the weights of word i: those of the
pieces of each j are summed, the rows of the pieces of i averaged, and the row is divided by its sum
over the allowed j. Several heads have the mean of their losses. λ is the recipe's `loss_weight`.
The head itself stays as it is, so a trained model computes the same without the variant, and
translating needs no parser.

The paper has a language model. As there, in the decoder the weights of word i are those of the step
that predicts it, and the allowed j are the words before it and the beginning of the sentence (BOS),
which hangs below the root: it is one step from the root. The end of the sentence (EOS), also below
the root, is predicted from all words. In the encoder, which is our addition, the weights are those
of the word's own pieces, and all other words are allowed, without EOS.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from synmt.arrays import IntArray
from synmt.model.attention import Terms
from synmt.model.variant import Syntax, Variant
from synmt.syntax.parse import Parse
from synmt.syntax.signals import WORD, Signal
from synmt.syntax.trees import tree_distances


def node_distances(parse: Parse, word_of: IntArray) -> IntArray:
    """Count the steps between words, by their indices: (T, T); row and column W are for BOS and
    EOS, below the root.

    Between BOS and EOS there are two steps. Rows and columns after W are 0.
    """
    words = len(parse)
    roots = np.flatnonzero(parse.parents == np.arange(words))  # (1,), or (0,) without words
    steps = tree_distances(
        np.append(parse.parents, [*roots, 0][0]).astype(np.int64)
    )  # (W + 1, W + 1)
    steps[words, words] = 2
    table = np.zeros((len(word_of), len(word_of)), dtype=np.int64)  # (T, T)
    table[: words + 1, : words + 1] = steps
    return table


def next_words(parse: Parse, word_of: IntArray) -> IntArray:
    """Return the word of the piece after each piece: (T,); the number of words after the last, -1
    for specials."""
    return np.append(word_of[1:], len(parse)).astype(np.int64)


NODE_DISTANCE = Signal("node_distance", "parents", node_distances, pad=0)
NEXT_WORD = Signal("next_word", "words", next_words, pad=-1)


class TreePlanting(Variant):
    """Let heads learn to attend to each word by its distance in the tree, as an auxiliary loss of
    plain heads."""

    learns = (NODE_DISTANCE, NEXT_WORD, WORD)
    default_layers = (6,)
    default_heads = 1
    only_learns = True

    @property
    def rows_predict(self) -> bool:
        """In the decoder, as in the paper's language model."""
        return self.place.side == "target"

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Return the terms as they are; in training, compare the weights with the tree."""
        if gold := self.gold(syntax):
            self.supervise(syntax, self._loss(terms.normalize(terms.scores()), *gold))
        return terms

    def _loss(self, weights: Tensor, steps: Tensor, following: Tensor, words: Tensor) -> Tensor:
        # the number of words, which is the node of BOS and EOS
        special = following.amax(1, keepdim=True)  # (B, 1)
        # as many as there are pieces: enough
        nodes = torch.arange(words.size(1), device=words.device)  # (N,)
        if self.place.side == "source":
            rows = keys = words  # (B, T)
            inside = nodes < special  # (B, N)
            allowed = inside[:, :, None] & inside[:, None] & (nodes != nodes[:, None])  # (B, N, N)
        else:
            rows, keys = following, torch.cat((special, words[:, 1:]), 1)  # (B, T), (B, T)
            before = (nodes < nodes[:, None]) | (nodes == special)[:, None]  # (B, N, N)
            allowed = before & (nodes <= special)[:, :, None]  # (B, N, N)
        return tree_divergence(by_word(weights, rows, keys), steps, allowed)


def by_word(weights: Tensor, rows: Tensor, keys: Tensor) -> Tensor:
    """Average the rows and sum the columns of each word: (B, H, T, T) -> (B, H, N, N), with N = T.

    rows, keys: (B, T), the word whose row and whose column a piece belongs to; -1 for none.
    """
    nodes = torch.arange(rows.size(1), device=rows.device)[:, None]  # (N, 1)
    of_row, of_key = (
        (part[:, None] == nodes).to(weights.dtype) for part in (rows, keys)
    )  # (B, N, T) each
    mean = of_row / of_row.sum(-1, keepdim=True).clamp(min=1)  # (B, N, T)
    # half precision would round small weights to 0
    with torch.autocast(weights.device.type, enabled=False):
        return mean[:, None] @ weights @ of_key.mT[:, None]


def tree_divergence(weights: Tensor, steps: Tensor, allowed: Tensor) -> Tensor:
    """Sum KL(t || a) over the rows, in nats, and average over the heads: ().

    weights: (B, H, N, N), not yet divided by their sums.
    steps: (B, N, N), distances in the tree.
    allowed: (B, N, N), True at the keys of a row; rows without a key add nothing.
    """
    empty = ~allowed.any(-1, keepdim=True)  # (B, N, 1)
    closeness = -steps.to(weights.dtype)  # (B, N, N)
    log_t = closeness.masked_fill(~(allowed | empty), -torch.inf).log_softmax(-1)  # (B, N, N)
    t, log_t = (
        log_t.exp().masked_fill(~allowed, 0.0),
        log_t.masked_fill(~allowed, 0.0),
    )  # (B, N, N) each
    seen = weights.masked_fill(~allowed[:, None], 0.0)  # (B, H, N, N)
    # a softmax may round a weight to 0
    least = torch.finfo(weights.dtype).tiny
    log_a = (
        seen.clamp(min=least).log() - seen.sum(-1, keepdim=True).clamp(min=least).log()
    )  # (B, H, N, N)
    return (t[:, None] * (log_t[:, None] - log_a)).sum() / weights.size(1)
