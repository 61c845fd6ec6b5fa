"""The LSTM (Luong et al., 2015): a bidirectional encoder, a decoder with attention and input
feeding.

Each direction of the encoder has half the width, so that its states are as wide as the decoder's.
Each layer of the decoder starts with the final state of an encoder layer. EOS is not encoded.
Dropout is applied between layers and to the attentional state. All weights are initialized from
U(-r, r).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from synmt.data.batch import Sequences
from synmt.data.vocabulary import EOS, PAD
from synmt.model.attention import Memory
from synmt.model.recurrent import Attended, Decoder, Ends, Recurrence
from synmt.model.seq2seq import PieceEmbedding, Seq2Seq, piece_table
from synmt.model.variant import Annotation, Syntax, Variant
from synmt.recipe.schema import ModelRecipe


@dataclass
class LstmState:
    """State of decoding between steps, for B sentences with K hypotheses each.

    attended: keys and values of the B sentences, shared by the hypotheses.
    recurrence: state of the layers, with B · K rows.
    beams: K.
    """

    attended: list[Attended]
    recurrence: Recurrence
    beams: int = 1

    def select(self, sentences: Tensor | None, beams: Tensor) -> None:
        """Keep these sentences (B',), or all if None, and continue from these hypotheses of each,
        (B', K')."""
        first = (
            torch.arange(beams.size(0), device=beams.device) if sentences is None else sentences
        )  # (B',)
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
        # the layers of an LSTM hold no variants, so they are registered here
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
        found: list[Annotation] = [
            v.annotation for v in self.variants["source"] if v.annotation != "none"
        ]
        annotation: Annotation = found[0] if found else "none"
        self.decoder = Decoder(recipe.decoder_layers, width, model_dim, recipe.dropout, annotation)
        self.output = (
            piece_table(target_pieces, width) if recipe.embeddings == "separate" else target_table
        )
        self._initialise(recipe.initial_range)

    def _initialise(self, reach: float) -> None:
        with torch.no_grad():
            for weight in self.parameters():
                weight.uniform_(-reach, reach)
            for table in {self.source_embedding.table, self.target_embedding.table, self.output}:
                table.weight[PAD].zero_()
            for variant in chain(*self.variants.values()):
                variant.initialise()

    @property
    def output_weight(self) -> Tensor:
        """The weight of the output layer: (V, E)."""
        return self.output.weight

    def encode(self, source: Sequences, syntax: Syntax | None = None) -> Memory:
        """Encode source pieces (B, T), without EOS."""
        ids, mask = source.ids, source.mask
        x = self.source_embedding(ids, syntax)  # (B, T, E)
        real = mask & (ids != EOS)  # (B, T)
        # a source that is only EOS keeps it: an LSTM needs at least one piece
        real = real | mask & ~real.any(1, keepdim=True)  # (B, T)
        # torch would sort on the CPU, and a GPU would wait for it
        order = real.sum(1).argsort(descending=True)  # (B,)
        lengths = (source.lengths - 1).clamp(min=1).sort(descending=True).values  # (B,)
        states, ends = self.encoder(
            pack_padded_sequence(x.index_select(0, order), lengths, batch_first=True)
        )
        states, _ = pad_packed_sequence(
            states, batch_first=True, total_length=ids.size(1)
        )  # (B, T, D)
        back = order.argsort()  # (B,)
        hidden, cells = (_both_directions(end.index_select(1, back)) for end in ends)
        return Memory(states.index_select(0, back), real, ends=(hidden, cells))

    def decode(self, memory: Memory, ids: Tensor, syntax: Syntax | None = None) -> Tensor:
        """Compute the states that predict what follows each piece of (B, T): (B, T, E)."""
        embedded = self.decoder.piece_gates(self.target_embedding(ids, syntax))  # (B, T, 4D)
        step = self.decoder.stepper(self.decoder.attended(memory))
        recurrence, states = self._begin(memory), []
        for newest in embedded.unbind(1):  # (B, 4D)
            recurrence = step(newest, recurrence)
            states.append(recurrence.fed)
        return torch.stack(states, 1)

    def start(self, memory: Memory) -> LstmState:
        """Begin decoding with one beam for each sentence."""
        return LstmState(self.decoder.attended(memory), self._begin(memory))

    def step(self, state: LstmState, pieces: Tensor, syntax: Syntax | None = None) -> Tensor:
        """Feed the newest piece of every hypothesis, (B, K), and compute the states for the next
        one: (B, K, E)."""
        newest = self.decoder.piece_gates(self.target_embedding(pieces, syntax)).flatten(
            0, 1
        )  # (B K, 4D)
        state.recurrence = self.decoder.stepper(state.attended)(newest, state.recurrence)
        return state.recurrence.fed.view(*pieces.shape, -1)

    def _begin(self, memory: Memory) -> Recurrence:
        """Start each layer with the final state of the encoder layer of the same number, or of the
        last one."""
        assert memory.ends is not None
        last = len(memory.ends[0]) - 1
        layers = [min(layer, last) for layer in range(len(self.decoder.upper_gates) + 1)]
        h, c = memory.ends  # (L, B, D), (L, B, D)
        c = c.to(torch.promote_types(c.dtype, torch.float32))  # (L, B, D)
        ends: Ends = [(h[layer], c[layer]) for layer in layers]
        fed = memory.states.new_zeros(
            len(memory.states), self.decoder.output.out_features
        )  # (B, E)
        return Recurrence(ends, fed)


def _both_directions(ends: Tensor) -> Tensor:
    """Concatenate the two directions: (2L, B, D/2) -> (L, B, D)."""
    return torch.cat((ends[::2], ends[1::2]), -1)
