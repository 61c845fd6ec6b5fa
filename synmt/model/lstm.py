"""The LSTM (Luong et al., 2015): a bidirectional encoder, a decoder with attention and input feeding.

Each direction of the encoder has half the width, so that the states, and the ends of every layer in which the
decoder's layers begin, are as wide as the decoder's. EOS is not encoded. Dropout stands between layers and on the
attentional state. All weights are drawn from U(-r, r).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from synmt.data.vocabulary import EOS, PAD
from synmt.model.attention import Memory
from synmt.model.embedding import PieceEmbedding, piece_table
from synmt.model.recurrent import Attended, Decoder, Ends, Recurrence
from synmt.model.seq2seq import Seq2Seq
from synmt.model.variant import Annotation, Syntax, Variant
from synmt.recipe.schema import ModelRecipe


@dataclass
class LstmState:
    """What decoding keeps between steps, for B sentences with K beams each.

    attended: of the B sentences; beams share it.
    recurrence: rows of B · K.
    """

    attended: list[Attended]
    recurrence: Recurrence
    beams: int = 1

    def select(self, sentences: Tensor | None, beams: Tensor) -> None:
        """Keep some sentences (B',), or all, and go on from the given beams of each, (B', K')."""
        first = torch.arange(beams.size(0), device=beams.device) if sentences is None else sentences  # (B',)
        if sentences is not None:
            self.attended = [attended.select(sentences) for attended in self.attended]
        self.recurrence = self.recurrence.select((first[:, None] * self.beams + beams).flatten())
        self.beams = beams.size(1)


class Lstm(Seq2Seq):
    """Encoder and decoder over pieces."""

    def __init__(
        self,
        recipe: ModelRecipe,
        source_pieces: int,
        target_pieces: int,
        source_variants: Sequence[Sequence[Variant]] = (),
        target_variants: Sequence[Sequence[Variant]] = (),
    ) -> None:
        super().__init__(chain(*source_variants), chain(*target_variants))
        # no layer owns the variants here: this makes them a part of the model
        self.placed = nn.ModuleList(chain(self.variants["source"], self.variants["target"]))
        width, model_dim = recipe.embedding_dim or recipe.model_dim, recipe.model_dim
        target_table = piece_table(target_pieces, width)
        shared = recipe.embeddings == "shared"
        source_table = target_table if shared else piece_table(source_pieces, width)
        self.source_embedding = PieceEmbedding(source_table, self.variants["source"])
        self.target_embedding = PieceEmbedding(target_table, self.variants["target"])
        self.encoder = nn.LSTM(
            width,
            model_dim // 2,
            recipe.encoder_layers,
            batch_first=True,
            bidirectional=True,
            dropout=recipe.dropout if recipe.encoder_layers > 1 else 0.0,
        )
        self.decoder = Decoder(
            recipe.decoder_layers, width, model_dim, recipe.dropout, _annotation(self.variants["source"])
        )
        self.output = piece_table(target_pieces, width) if recipe.embeddings == "separate" else target_table
        self._draw_weights(recipe.initial_range)

    def _draw_weights(self, reach: float) -> None:
        with torch.no_grad():
            for weight in self.parameters():
                weight.uniform_(-reach, reach)
            for table in {self.source_embedding.table, self.target_embedding.table, self.output}:
                table.weight[PAD].zero_()

    @property
    def output_weight(self) -> Tensor:
        """The matrix that turns states into logits: (V, E)."""
        return self.output.weight

    def encode(self, ids: Tensor, mask: Tensor, syntax: Syntax | None = None) -> Memory:
        """Encode source pieces (B, T) where mask (B, T) is True, without EOS."""
        x = self.source_embedding(ids, syntax)  # (B, T, E)
        real = mask & (ids != EOS)  # (B, T)
        # a source of nothing but EOS has to say something
        real = real | mask & ~real.any(1, keepdim=True)  # (B, T)
        lengths = real.sum(1).cpu()  # (B,)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, ends = self.encoder(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=ids.size(1))  # (B, T, D)
        return Memory(states, real, ends=(_both_directions(ends[0]), _both_directions(ends[1])))

    def decode(self, memory: Memory, ids: Tensor, syntax: Syntax | None = None) -> Tensor:
        """Compute the states that predict what follows each piece of (B, T): (B, T, E)."""
        embedded = self.decoder.piece_gates(self.target_embedding(ids, syntax))  # (B, T, 4D)
        step = self.decoder.stepper(self.decoder.look_at(memory))
        recurrence, states = self._begin(memory), []
        for newest in embedded.unbind(1):  # (B, 4D)
            recurrence = step(newest, recurrence)
            states.append(recurrence.fed)
        return torch.stack(states, 1)

    def start(self, memory: Memory) -> LstmState:
        """Begin decoding with one beam for each sentence."""
        return LstmState(self.decoder.look_at(memory), self._begin(memory))

    def step(self, state: LstmState, pieces: Tensor, syntax: Syntax | None = None) -> Tensor:
        """Feed the newest piece of every beam, (B, K), and compute the states that predict the next: (B, K, E)."""
        newest = self.decoder.piece_gates(self.target_embedding(pieces, syntax)).flatten(0, 1)  # (B K, 4D)
        state.recurrence = self.decoder.stepper(state.attended)(newest, state.recurrence)
        return state.recurrence.fed.view(*pieces.shape, -1)

    def _begin(self, memory: Memory) -> Recurrence:
        """Begin each layer where the encoder's layer of the same number ended, or its last one."""
        assert memory.ends is not None
        last = len(memory.ends[0]) - 1
        layers = [min(layer, last) for layer in range(len(self.decoder.upper_gates) + 1)]
        h, c = memory.ends  # (L, B, D), (L, B, D)
        c = c.to(torch.promote_types(c.dtype, torch.float32))  # (L, B, D)
        ends: Ends = [(h[layer], c[layer]) for layer in layers]
        fed = memory.states.new_zeros(len(memory.states), self.decoder.output.out_features)  # (B, E)
        return Recurrence(ends, fed)


def _both_directions(ends: Tensor) -> Tensor:
    """Put the directions side by side: (2L, B, D/2) -> (L, B, D)."""
    return torch.cat((ends[::2], ends[1::2]), -1)


def _annotation(variants: Iterable[Variant]) -> Annotation:
    """Tell how the decoder reads the annotations that a variant makes."""
    for variant in variants:
        if variant.annotation != "none":
            return variant.annotation
    return "none"
