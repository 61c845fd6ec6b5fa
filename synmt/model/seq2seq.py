"""The interface of every translation model, and the embeddings of its pieces."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt.arrays import Side
from synmt.data.batch import Batch, Sequences, Tensors
from synmt.data.vocabulary import PAD
from synmt.model.attention import Memory
from synmt.model.device import InferencePrecision, float32_only
from synmt.model.variant import Syntax, Variant
from synmt.syntax.signals import Signal, Signals

Waves = Callable[[int, int], Tensor]


class Products:
    """Products by torch; `synmt.fast` has faster ones."""

    def padded(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Convert (N, D) to a precision; rows of zeros may follow: (P, D)."""
        return x.to(dtype)

    def multiply(self, x: Tensor, weight: Tensor) -> Tensor:
        """Compute x Wᵀ without a gradient: (N, D), (D', D) -> (N, D')."""
        return F.linear(x, weight)

    def add_outer(self, total: Tensor, slope: Tensor, x: Tensor) -> None:
        """Add sᵀ x to a total: (D', D), (N, D'), (N, D)."""
        total.add_(slope.T @ x)


@dataclass
class Output:
    """The result of one pass over a batch.

    states: (B, T, D), from which the output layer predicts the target.
    losses: auxiliary losses by name, sums over the batch.
    """

    states: Tensor
    losses: Tensors


class Predictor(Protocol):
    """What a search reads its probabilities from: a model, or a faster copy of its decoder.

    output_type: the precision in which its output layer computes.
    """

    output_type: torch.dtype

    def start(self, memory: Memory) -> Any:
        """Begin decoding with one hypothesis for each sentence; the state has `select`."""
        ...

    def predict(self, state: Any, pieces: Tensor) -> Tensor:
        """Feed the newest piece of every hypothesis, (B, K), and compute the next logits, in
        float32: (B, K, V)."""
        ...

    def hidden(self, state: Any, pieces: Tensor) -> Tensor:
        """Feed the newest piece of every hypothesis, (B, K), and compute what the output layer
        reads: (B, K, D)."""
        ...


def rows_of(sentences: Tensor | None, chosen: Tensor, beams: int) -> Tensor:
    """Find the rows of chosen hypotheses, (B', K'), of these sentences, (B',), or of all if None:
    (B' K',).

    beams: how many hypotheses each sentence has had.
    """
    first = torch.arange(len(chosen), device=chosen.device) if sentences is None else sentences
    return (first[:, None] * beams + chosen).flatten()


class Seq2Seq(nn.Module):
    """An encoder and a decoder; Transformer and Lstm implement the five abstract methods.

    source_variants, target_variants: the variants of each side, in the order of layers.
    """

    products: Products = Products()
    output_type = torch.float32
    output_bias: nn.Parameter | None
    """What the output layer adds to the logits, (V,), if the recipe has `output_bias`."""

    def __init__(
        self, source_variants: Iterable[Variant], target_variants: Iterable[Variant]
    ) -> None:
        super().__init__()
        self.variants = {"source": tuple(source_variants), "target": tuple(target_variants)}
        self._observers = {
            side: tuple(v for v in variants if v.observes())
            for side, variants in self.variants.items()
        }
        self._annotators = tuple(v for v in self.variants["source"] if v.annotates_memory())
        self.register_parameter("output_bias", None)

    @property
    def output_weight(self) -> Tensor:
        """The weight of the output layer: (V, D)."""
        raise NotImplementedError

    def encode(self, source: Sequences, syntax: Syntax | None = None) -> Memory:
        """Encode source pieces (B, T)."""
        raise NotImplementedError

    def decode(self, memory: Memory, ids: Tensor, syntax: Syntax | None = None) -> Tensor:
        """Compute the states that predict what follows each piece of (B, T): (B, T, D)."""
        raise NotImplementedError

    def start(self, memory: Memory) -> Any:
        """Begin decoding with one hypothesis for each sentence."""
        raise NotImplementedError

    def step(self, state: Any, pieces: Tensor, syntax: Syntax | None = None) -> Tensor:
        """Feed the newest piece of every hypothesis, (B, K), and compute the states for the next
        one: (B, K, D)."""
        raise NotImplementedError

    def logits(self, states: Tensor) -> Tensor:
        """Compute the output layer: (…, D) -> (…, V)."""
        return F.linear(states, self.output_weight, self.output_bias)

    def predict(self, state: Any, pieces: Tensor) -> Tensor:
        """Feed the newest piece of every hypothesis, (B, K), and compute the next logits, in
        float32: (B, K, V)."""
        return self.logits(self.hidden(state, pieces)).float()

    def hidden(self, state: Any, pieces: Tensor) -> Tensor:
        """Feed the newest piece of every hypothesis, (B, K), and compute what the output layer
        reads: (B, K, D)."""
        return self.step(state, pieces, self.syntax("target", {}))

    def predictor(self) -> Predictor:
        """Return what decodes with the weights as they are now."""
        return self

    def prepared(self, precision: InferencePrecision) -> Predictor:
        """Prepare linear layers for a precision, and return what decodes; the model cannot be
        trained afterwards."""
        float32_only(precision)
        return self

    def reads(self, side: Side) -> Signals:
        """List the signals that the model needs whenever it runs."""
        return _unique(signal for variant in self.variants[side] for signal in variant.reads)

    def learns(self, side: Side) -> Signals:
        """List the signals that are needed in training only."""
        return _unique(signal for variant in self.variants[side] for signal in variant.learns)

    def syntax(self, side: Side, signals: Tensors, ids: Tensor | None = None) -> Syntax | None:
        """Make what one pass hands to the variants of a side; None for a side without variants."""
        return Syntax(signals, ids=ids) if self.variants[side] else None

    def remember(self, source: Sequences, signals: Tensors) -> tuple[Memory, Syntax | None]:
        """Encode the source with its signals, and let the variants annotate it for the decoder."""
        syntax = self.syntax("source", signals, source.ids)
        memory = self.encode(source, syntax)
        if syntax is not None:
            for variant in self._annotators:
                memory = variant.annotate(memory, syntax)
        return memory, syntax

    def forward(self, batch: Batch) -> Output:
        """Run teacher forcing over a batch."""
        memory, source = self.remember(batch.source, batch.source_signals)
        target = self.syntax("target", batch.target_signals)
        states = self.decode(memory, batch.target_input, target)  # (B, T, D)
        self._observe("source", source)
        self._observe("target", target)
        losses: Tensors = {}
        for syntax in (source, target):
            losses |= syntax.losses if syntax else {}
        return Output(states, losses)

    def _observe(self, side: Side, syntax: Syntax | None) -> None:
        for variant in self._observers[side]:
            assert syntax is not None
            variant.observe(syntax.states[variant.place.layer], syntax)


def _unique(signals: Iterable[Signal]) -> Signals:
    return tuple({signal.name: signal for signal in signals}.values())


class Embedding(nn.Module):
    """Embed pieces: for an LSTM as they are; for a Transformer multiplied by √D, with dropout, and
    with sinusoids of their positions where it has no others (Vaswani et al., 2017, sections 3.4 and
    3.5)."""

    positions: Tensor | None

    def __init__(
        self,
        table: nn.Embedding,
        variants: Sequence[Variant] = (),
        *,
        scale: float = 1.0,
        waves: Waves | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.table, self.scale, self.dropout = table, scale, nn.Dropout(dropout)
        # a tuple, because the model or its layers register the variants as their modules
        self._variants = tuple(variant for variant in variants if variant.edits_embeddings())
        self.waves = waves
        positions = waves(512, table.embedding_dim) if waves else None
        self.register_buffer("positions", positions, persistent=False)

    def forward(self, ids: Tensor, syntax: Syntax | None = None, *, first: int = 0) -> Tensor:
        """Embed ids (B, T) at the positions from `first` on: (B, T, D)."""
        x = self.table(ids) * self.scale  # (B, T, D)
        if syntax is not None:
            for variant in self._variants:
                x = variant.blended(x, variant.embed(x, syntax))  # (B, T, D)
        # another thread may replace the table by a shorter one meanwhile
        positions, last = self.positions, first + ids.size(1)
        if positions is not None and self.waves is not None:
            if last > positions.size(0):
                longer = self.waves(2 * last, self.table.embedding_dim)
                self.positions = positions = longer.to(positions)
            x = x + positions[first:last]
        return self.dropout(x)


def piece_table(pieces: int, model_dim: int) -> nn.Embedding:
    """Make a table of embeddings whose scaled rows have a norm of about √D; padding is zero."""
    table = nn.Embedding(pieces, model_dim, padding_idx=PAD)
    nn.init.normal_(table.weight, std=model_dim**-0.5)
    with torch.no_grad():
        table.weight[PAD].zero_()
    return table


def sinusoids(length: int, model_dim: int, *, last: int = 1) -> Tensor:
    """Compute position vectors, with sines in the first half and cosines in the second: (T, D).

    The rates fall from 1 to 1 / 10000, which Tensor2Tensor gives to the last sine, and Vaswani et
    al. (2017, section 3.5) to the one after it (`last=0`).
    """
    half = model_dim // 2
    step = math.log(10_000) / max(1, half - last)
    angles = np.arange(length)[:, None] * np.exp(-step * np.arange(half))  # (T, D/2)
    return torch.from_numpy(np.concatenate((np.sin(angles), np.cos(angles)), 1, dtype=np.float32))


WAVES = {"sinusoid": sinusoids, "vaswani": partial(sinusoids, last=0)}
"""By the recipe's positions: length and model_dim -> (T, D)."""
