"""Dependency-scaled self-attention (Peng et al., 2022: Deps-SAN).

    S_ij = (q_i · k_j / √d) · D_ij        D_ij = N(distance_ij; 0, variance)

distance_ij counts the edges between the words of pieces i and j in the tree; it is 0 between the
pieces of one word. The distance of EOS to every word is one more than the largest distance between
two words. The density is not normalized: its peak is 0.399 for variance 1, and the rows of D do not
sum to 1. A score that D makes 0 stays 0; it is not masked. Two options guard against wrong parses
and overfitting:

    RS-Sparsing, in training:        D_ij = N(fill; 0, variance)   with probability `resample`
    Wink-Sparsing, always:           S_ij = -∞                     where distance_ij > window

With both, Wink uses the distance in the tree, so no row is ever empty.

UDISCAL (Slobodkin, Choshen & Abend, 2022) has the same Gaussian. With `combine: weights` it scales
the weights instead of the scores, as that paper's code can: N(S_i)_j · D_ij, where N is the softmax
and the rows do not sum to 1.

The released code differs. RS fills in the largest distance of the batch, not 6. Wink is on in
training only, affects only keys to the left of the query, and masks nothing: a clipped score
becomes about 0, which still gets weight. EOS has a large distance to itself too, so it attends to
all pieces equally; and this distance depends on the whole batch, so the result for a sentence
depends on its neighbours.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor

from synmt.model.attention import Terms, softmax
from synmt.model.variant import Place, Probability, Syntax, Variant
from synmt.syntax.signals import DISTANCE


class DepsSan(Variant):
    """Scale each score by the closeness of the two words in the tree.

    variance: variance of the Gaussian, in squared edges (paper: 1; its table compares 1, 2, 4, 8,
        16, 32).
    resample: probability that an entry's distance becomes `fill` in a training step, sampled for
        each layer, sentence and entry, and shared by the heads (paper's RS-Sparsing: 0.1).
    fill: distance that `resample` inserts, in edges (paper: 6).
    window: largest distance that a query attends to, in edges (paper's Wink-Sparsing: 6); none
        means no limit.
    combine: use of the closeness: `multiply` the scores (paper), `add` to them, or multiply the
        `weights`, after the softmax (UDISCAL).
    """

    reads = (DISTANCE,)
    sides = ("source",)
    default_layers = (1, 2, 3)

    def __init__(
        self,
        place: Place,
        *,
        variance: PositiveFloat = 1.0,
        resample: Probability = 0.0,
        fill: NonNegativeFloat = 6.0,
        window: NonNegativeFloat | None = None,
        combine: Literal["multiply", "add", "weights"] = "multiply",
    ) -> None:
        super().__init__(place)
        self.variance, self.resample, self.fill, self.window = variance, resample, fill, window
        self.combine = combine

    @classmethod
    def can_blend_for(cls, **options: Any) -> bool:
        """A window hides pieces."""
        return options["window"] is None

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Set the factor, the bias, or a factor of the weights to D, (B, 1, T, T); mask keys
        outside the window."""
        distance = syntax.signals["distance"][:, None]  # (B, 1, T, T)
        if self.window is not None:
            terms = terms.edit(mask=within(distance, self.window, terms.mask))  # (B, 1, T, T)
        if self.training and self.resample:
            distance = resampled(distance, self.resample, self.fill)  # (B, 1, T, T)
        closeness = density(distance, self.variance)  # (B, 1, T, T)
        if self.combine == "weights":
            return terms.edit(normalize=lambda scores: softmax(scores) * closeness)
        return (
            terms.edit(factor=closeness)
            if self.combine == "multiply"
            else terms.edit(bias=closeness)
        )


def density(distance: Tensor, variance: float) -> Tensor:
    """Compute the density of a Gaussian around 0 at every distance: any shape -> same."""
    return torch.exp(-distance.square() / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def resampled(distance: Tensor, rate: float, fill: float) -> Tensor:
    """Replace random entries by `fill`: (B, 1, T, T) -> same."""
    replaced = torch.rand(distance.shape, device=distance.device) < rate  # (B, 1, T, T)
    return torch.where(replaced, fill, distance)


def within(distance: Tensor, window: float, mask: Tensor | None) -> Tensor:
    """Narrow a mask to the window: (B, 1, T, T), broadcasts to (B, 1, T, T) -> (B, 1, T, T)."""
    # rows of padding have distance 0 to all keys: they still attend to real keys, and so stay
    # finite
    near = distance <= window  # (B, 1, T, T)
    return near if mask is None else near & mask
