"""A search over some pieces of the vocabulary, others for each sentence, as in Marian (L'Hostis et
al., 2016): the output layer computes hundreds of logits in place of thousands.

    V(x) = {PAD, UNK, BOS, EOS} ∪ prefix ∪ candidates of the empty word and of each piece of x
    P(y_t | y_<t, x) = softmax over V(x)

Within the search, a piece is its place in V(x), in the order of numbers, so that PAD, UNK, BOS and
EOS keep theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from synmt.data.vocabulary import EOS, PAD
from synmt.model.attention import Memory
from synmt.model.seq2seq import Predictor, Seq2Seq


@dataclass
class ShortState:
    """The state of a decoder, and what the output layer has for each sentence.

    pieces: (B, C) V(x), then PAD.
    weight: (B, D, C).
    bias: (B, 1, C), -inf after the last piece.
    """

    inner: Any
    pieces: Tensor
    weight: Tensor
    bias: Tensor

    def select(self, sentences: Tensor | None, beams: Tensor) -> None:
        """Keep these sentences (B',), or all if None, and continue from these hypotheses of each,
        (B', K')."""
        self.inner.select(sentences, beams)
        if sentences is not None:
            self.pieces, self.bias = self.pieces[sentences], self.bias[sentences]
            # most stay in their place
            moved = sentences != torch.arange(len(sentences), device=sentences.device)  # (B',)
            self.weight[: len(sentences)][moved] = self.weight[sentences[moved]]
            self.weight = self.weight[: len(sentences)]


class ShortDecoder:
    """Predicts pieces by their places in shortlists, (B, C) each followed by PAD."""

    def __init__(self, model: Seq2Seq, decoder: Predictor | None, pieces: Tensor) -> None:
        self._model, self._decoder, self._pieces = model, decoder or model, pieces

    def start(self, memory: Memory) -> ShortState:
        """Begin decoding with one hypothesis for each sentence."""
        pieces, model = self._pieces, self._model
        bias = torch.zeros(pieces.shape, device=pieces.device)  # (B, C)
        if model.output_bias is not None:
            bias = model.output_bias[pieces].float()
        bias[:, EOS + 1 :].masked_fill_(pieces[:, EOS + 1 :] == PAD, -math.inf)
        kind = self._decoder.output_type
        weight = F.embedding(pieces, model.output_weight.to(kind)).transpose(1, 2)  # (B, D, C)
        inner = self._decoder.start(memory)
        return ShortState(inner, pieces, weight.contiguous(), bias[:, None].to(kind))

    def predict(self, state: ShortState, pieces: Tensor) -> Tensor:
        """Feed the newest piece of every hypothesis, (B, K), and compute the next logits, in
        float32: (B, K, C)."""
        states = self._decoder.hidden(state.inner, state.pieces.gather(1, pieces))  # (B, K, D)
        return torch.baddbmm(state.bias, states.to(state.weight.dtype), state.weight).float()


def shortlists(candidates: Tensor, source: Tensor, prefixes: Tensor) -> tuple[Tensor, Tensor]:
    """Make the shortlist of each sentence, and say where its prefix is.

    candidates: (V, N) of each source piece.
    source, prefixes: (B, T) and (B, P), followed by PAD.
    Returns the pieces, ascending, then PAD: (B, C), and the places of the prefixes, (B, P).
    """
    always = torch.arange(EOS + 1, device=source.device).expand(len(source), -1)  # (B, 4)
    read = F.pad(source, (0, 1), value=PAD)  # (B, T + 1), with the empty word
    every = torch.cat((always, prefixes, candidates[read].flatten(1)), 1)  # (B, M)
    every = every.sort(1).values
    is_new = F.pad(every[:, 1:] != every[:, :-1], (1, 0), value=True)  # (B, M)
    places = is_new.cumsum(1) - 1  # (B, M)
    last = torch.iinfo(every.dtype).max
    pieces = every.new_full((len(every), int(places.max()) + 1), last)
    pieces.scatter_(1, places, every)
    return pieces.where(pieces < last, PAD), torch.searchsorted(pieces, prefixes)
