"""Parent-scaled self-attention (Bugliarello & Okazaki, 2020, section 2.1).

    S_tj = (q_t · k_j / √d) · D_tj        D_tj = N(j; p_t, variance)

p_t is the middle position of the pieces of the parent of piece t, so it may lie between two pieces. The density
is used as it is: its peak is 0.399 for variance 1, and no row of D is scaled to sum to 1. A score that D makes 0
stays 0; it is not masked. Parent ignoring (section 2.3) draws rows of D that become ones, in training only.

The released code multiplies the scores of the wrong sentences unless all heads are PASCAL heads, and misplaces
D in padded rows; here every sentence meets its own D.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from synmt.errors import UsageError
from synmt.model.attention import Terms
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.signals import PARENT_MIDDLE


class Pascal(Variant):
    """Scale each score by the key's closeness to the query's dependency parent.

    variance: of the Gaussian, in squared piece positions (paper: 1; table 3b: 1, 4, 9, 16, 25).
    ignore: probability that a row of a head forgets its parent in a training step (paper: 0 to 0.4).
    combine: `multiply` the scores (paper) or `add` to them (appendix B).
    shape: `gaussian`, or `parent_only`, which is 1 less than one step from the parent's middle and 0 elsewhere.
    """

    reads = (PARENT_MIDDLE,)

    def __init__(
        self,
        place: Place,
        *,
        variance: float = 1.0,
        ignore: float = 0.0,
        combine: Literal["multiply", "add"] = "multiply",
        shape: Literal["gaussian", "parent_only"] = "gaussian",
    ) -> None:
        super().__init__(place)
        if place.side != "source":
            raise UsageError("pascal reads the parse of the source", allowed="side: source")
        if variance <= 0:
            raise UsageError(f"the variance of pascal is {variance}", allowed="a number above 0")
        if not 0 <= ignore <= 1:
            raise UsageError(f"`ignore` of pascal is {ignore}", allowed="a probability from 0 to 1")
        self.variance, self.ignore, self.combine, self.shape = variance, ignore, combine, shape

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Fill the factor (or the bias) with D: (B, 1 or H, T, T)."""
        parents = syntax.signals["parent_middle"]  # (B, T)
        if self.shape == "gaussian":
            closeness = gaussian(parents, self.variance)[:, None]  # (B, 1, T, T)
        else:
            closeness = parent_only(parents)[:, None]  # (B, 1, T, T)
        neutral = 1.0 if self.combine == "multiply" else 0.0
        if self.training and self.ignore:
            closeness = ignore_rows(closeness, terms.q.size(1), self.ignore, neutral)  # (B, H, T, T)
        return terms.edit(factor=closeness) if self.combine == "multiply" else terms.edit(bias=closeness)


def gaussian(parents: Tensor, variance: float) -> Tensor:
    """Give the density of every position around every parent: (B, T) -> (B, T, T)."""
    distance = _distance_to_parent(parents)  # (B, T, T)
    return torch.exp(-distance.square() / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def parent_only(parents: Tensor) -> Tensor:
    """Give 1 to the piece, or the two pieces, at the parent's middle: (B, T) -> (B, T, T)."""
    return (_distance_to_parent(parents) < 1).float()


def ignore_rows(closeness: Tensor, heads: int, rate: float, neutral: float) -> Tensor:
    """Make rows neutral, drawn for each sentence, head and row: (B, 1, T, T) -> (B, H, T, T)."""
    batch, _, length, _ = closeness.shape
    ignored = torch.rand(batch, heads, length, 1, device=closeness.device) < rate  # (B, H, T, 1)
    return torch.where(ignored, neutral, closeness)


def _distance_to_parent(parents: Tensor) -> Tensor:
    keys = torch.arange(parents.size(1), device=parents.device, dtype=parents.dtype)  # (T,)
    return (keys - parents[..., None]).abs()  # (B, T, T)
