"""Dependency-scaled self-attention (Peng et al., 2022: Deps-SAN).

    S_ij = (q_i · k_j / √d) · D_ij        D_ij = N(distance_ij; 0, variance)

distance_ij counts the edges between the words of pieces i and j in the tree; it is 0 between the pieces of one word.
EOS is one step farther from every word than the two farthest words are from each other. The density is used as it is:
its peak is 0.399 for variance 1, and no row of D is scaled to sum to 1. A score that D makes 0 stays 0; it is not
masked. Two options guard against wrong parses and overfitting:

    RS-Sparsing, in training:        D_ij = N(fill; 0, variance)   with probability `resample`
    Wink-Sparsing, always:           S_ij = -∞                     where distance_ij > window

With both, Wink looks at the distance in the tree, so that no row is ever empty.

The released code differs. RS fills in the largest distance of the batch, not 6. Wink is on in training only, reaches
only keys to the left of the query, and masks nothing: a clipped score becomes about 0, which still has weight. EOS is
far from itself too, so it attends to all pieces alike; and its distance is taken from the whole batch, so a sentence
depends on its neighbours.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from synmt.errors import UsageError
from synmt.model.attention import Terms
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.signals import DISTANCE


class DepsSan(Variant):
    """Scale each score by the closeness of the two words in the tree.

    variance: of the Gaussian, in squared edges (paper: 1; its table compares 1, 2, 4, 8, 16, 32).
    resample: probability that an entry's distance becomes `fill` in a training step: one draw for each sentence and
        entry, the same for all heads, anew in every layer (paper's RS-Sparsing: 0.1).
    fill: the distance that `resample` puts in, in edges (paper: 6).
    window: look no farther than so many edges (paper's Wink-Sparsing: 6); without it, everywhere.
    combine: `multiply` the scores (paper) or `add` to them.
    """

    reads = (DISTANCE,)
    default_layers = (1, 2, 3)

    def __init__(
        self,
        place: Place,
        *,
        variance: float = 1.0,
        resample: float = 0.0,
        fill: float = 6.0,
        window: float | None = None,
        combine: Literal["multiply", "add"] = "multiply",
    ) -> None:
        super().__init__(place)
        if place.side != "source":
            raise UsageError("deps_san reads the parse of the source", allowed="side: source")
        if variance <= 0:
            raise UsageError(f"the variance of deps_san is {variance}", allowed="a number above 0")
        if not 0 <= resample <= 1:
            raise UsageError(f"`resample` of deps_san is {resample}", allowed="a probability from 0 to 1")
        if fill < 0:
            raise UsageError(f"`fill` of deps_san is {fill}", allowed="a number of edges, 0 or more")
        if window is not None and window < 0:
            raise UsageError(f"the window of deps_san is {window}", allowed="a number of edges, 0 or more")
        self.variance, self.resample, self.fill, self.window = variance, resample, fill, window
        self.combine = combine

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Fill the factor (or the bias) with D, (B, 1, T, T), and mask what lies outside the window."""
        distance = syntax.signals["distance"][:, None]  # (B, 1, T, T)
        if self.window is not None:
            terms = terms.edit(mask=within(distance, self.window, terms.mask))  # (B, 1, T, T)
        if self.training and self.resample:
            distance = resampled(distance, self.resample, self.fill)  # (B, 1, T, T)
        closeness = density(distance, self.variance)  # (B, 1, T, T)
        return terms.edit(factor=closeness) if self.combine == "multiply" else terms.edit(bias=closeness)


def density(distance: Tensor, variance: float) -> Tensor:
    """Give the density of a Gaussian around 0 at every distance: any shape -> same."""
    return torch.exp(-distance.square() / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def resampled(distance: Tensor, rate: float, fill: float) -> Tensor:
    """Put `fill` in the place of entries drawn one by one: (B, 1, T, T) -> same."""
    drawn = torch.rand(distance.shape, device=distance.device) < rate  # (B, 1, T, T)
    return torch.where(drawn, fill, distance)


def within(distance: Tensor, window: float, mask: Tensor | None) -> Tensor:
    """Narrow a mask to the window: (B, 1, T, T), broadcasts to (B, 1, T, T) -> (B, 1, T, T)."""
    # rows of padding are at distance 0 from all: they keep real keys to look at, and so stay finite
    near = distance <= window  # (B, 1, T, T)
    return near if mask is None else near & mask
