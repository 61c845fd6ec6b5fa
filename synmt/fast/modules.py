"""The modules of a model that have a faster twin here, which computes the same from the same
weights.

A built model gets the twins by another class of its modules; the names and values of its parameters
stay.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from synmt.fast.attention import attend_fast
from synmt.fast.decoder import fast_decoder
from synmt.fast.dropout import add_dropped, dropout
from synmt.fast.feed_forward import dropped_relu
from synmt.fast.linear import FastLinear, add_outer_product, linear, pad_rows, product, repeated
from synmt.fast.packed import layer_precision, reduce_layers, usable_precision
from synmt.model.attention import Attend, Terms
from synmt.model.blocks.both_directions import BothDirections
from synmt.model.device import InferencePrecision
from synmt.model.lstm import Decoder, Lstm
from synmt.model.seq2seq import Predictor, Products, Seq2Seq
from synmt.model.transformer import FeedForward, Residual, Transformer


def replace_modules(model: nn.Module) -> None:
    """Replace every module of a model that has a twin."""
    for module in model.modules():
        module.__class__ = TWINS.get(type(module), type(module))


class FastDropout(nn.Dropout):
    """With masks that take a quarter of the time."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> same."""
        return dropout(input, self.p if self.training else 0.0)


class FastResidual(Residual):
    """With dropout and sum in one pass."""

    def forward(self, x: Tensor, sub_layer: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        probability = self.dropout.p if self.training else 0.0
        if self.pre:
            return add_dropped(x, sub_layer(self.norm(x)), probability)
        return self.norm(add_dropped(x, sub_layer(x), probability))


class FastFeedForward(FeedForward):
    """With an inner layer that keeps only its output for the gradient."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        return self.output(dropped_relu(self.inner, x, self.dropout.p if self.training else 0.0))


class FastAttend(Attend):
    """By the fastest of three ways."""

    def forward(self, terms: Terms) -> Tensor:
        """Compute O: (B, H, Tq, d)."""
        return attend_fast(terms, self.dropout if self.training else 0.0)


class FastBothDirections(BothDirections):
    """By the fastest library for the processor."""

    multiply = staticmethod(linear)


class RepeatingDecoder(Decoder):
    """With one gradient of each weight for all steps."""

    def repeated(self, projection: nn.Linear) -> Callable[[Tensor], Tensor]:
        """Return a projection for many steps of one pass."""
        return repeated(projection)


class FastProducts(Products):
    """By the fastest library for the processor."""

    def padded(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Convert (N, D) to a precision; rows of zeros may follow: (P, D)."""
        return pad_rows(x, dtype)

    def multiply(self, x: Tensor, weight: Tensor) -> Tensor:
        """Compute x Wᵀ without a gradient: (N, D), (D', D) -> (N, D')."""
        return product(x, weight)

    def add_outer(self, total: Tensor, slope: Tensor, x: Tensor) -> None:
        """Add sᵀ x to a total: (D', D), (N, D'), (N, D)."""
        add_outer_product(total, slope, x)


class FastModel(Seq2Seq):
    """With a packed copy of the decoder for searches."""

    products = FastProducts()

    def logits(self, states: Tensor) -> Tensor:
        """Compute the output layer: (…, D) -> (…, V)."""
        return linear(states, self.output_weight, self.output_bias)

    def predictor(self) -> Predictor:
        """Return what decodes with the weights as they are now."""
        return fast_decoder(self) or self

    def prepared(self, precision: InferencePrecision) -> Predictor:
        """Prepare linear layers for a precision, and return what decodes; the model cannot be
        trained afterwards."""
        precision = usable_precision(precision, self.output_weight.device)
        decoder = fast_decoder(self, precision, recorded=True)
        if (inner := layer_precision(precision, self.output_weight.size(1))) != "float32":
            reduce_layers(self, inner)
        return decoder or self


class FastTransformer(FastModel, Transformer):
    """A Transformer for searches."""


class FastLstm(FastModel, Lstm):
    """An LSTM for searches."""


TWINS: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: FastLinear,
    nn.Dropout: FastDropout,
    Residual: FastResidual,
    FeedForward: FastFeedForward,
    Attend: FastAttend,
    BothDirections: FastBothDirections,
    Decoder: RepeatingDecoder,
    Transformer: FastTransformer,
    Lstm: FastLstm,
}
"""By the class that they replace; subclasses of it stay as they are."""
