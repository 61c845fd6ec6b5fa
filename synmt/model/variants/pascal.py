"""Parent-scaled self-attention (Bugliarello & Okazaki, 2020, section 2.1).

    S_tj = (q_t · k_j / √d) · D_tj        D_tj = N(j; p_t, variance)

p_t is the middle position of the pieces of the parent of piece t, so it can be halfway between two
pieces. The density is not normalized: its peak is 0.399 for variance 1, and the rows of D do not
sum to 1. A score that D makes 0 stays 0; it is not masked. Parent ignoring (section 2.3) replaces
random rows of D by ones, in training only.

The released code multiplies the scores of the wrong sentences unless all heads are PASCAL heads,
and misplaces D in padded rows; here every sentence has its own D.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import PositiveFloat
from torch import Tensor

from synmt.model.attention import Terms
from synmt.model.variant import Place, Probability, Syntax, Variant
from synmt.syntax.signals import PARENT_MIDDLE


class Pascal(Variant):
    """Scale each score by the key's closeness to the query's dependency parent.

    variance: variance of the Gaussian, in squared piece positions (paper: 1; table 3b: 1, 4, 9, 16,
        25).
    ignore: probability that a row of a head ignores its parent in a training step (paper: 0 to
        0.4).
    combine: use of the closeness: `multiply` the scores (paper) or `add` to them (appendix B).
    shape: shape of the closeness: `gaussian`, or `parent_only`, 1 at less than one step from the
        middle of the parent and 0 elsewhere.
    """

    reads = (PARENT_MIDDLE,)
    sides = ("source",)

    def __init__(
        self,
        place: Place,
        *,
        variance: PositiveFloat = 1.0,
        ignore: Probability = 0.0,
        combine: Literal["multiply", "add"] = "multiply",
        shape: Literal["gaussian", "parent_only"] = "gaussian",
    ) -> None:
        super().__init__(place)
        self.variance, self.ignore, self.combine, self.shape = variance, ignore, combine, shape

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Set the factor (or the bias) to D: (B, 1 or H, T, T)."""
        parents = syntax.signals["parent_middle"]  # (B, T)
        if self.shape == "gaussian":
            closeness = gaussian(parents, self.variance)[:, None]  # (B, 1, T, T)
        else:
            closeness = (_distance_to_parent(parents) < 1).float()[:, None]  # (B, 1, T, T)
        neutral = 1.0 if self.combine == "multiply" else 0.0
        if self.training and self.ignore:
            rows = *terms.q.shape[:3], 1
            ignored = torch.rand(rows, device=closeness.device) < self.ignore  # (B, H, T, 1)
            closeness = torch.where(ignored, neutral, closeness)  # (B, H, T, T)
        return (
            terms.edit(factor=closeness)
            if self.combine == "multiply"
            else terms.edit(bias=closeness)
        )


def gaussian(parents: Tensor, variance: float) -> Tensor:
    """Compute the density of every position around every parent: (B, T) -> (B, T, T)."""
    distance = _distance_to_parent(parents)  # (B, T, T)
    return torch.exp(-distance.square() / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def _distance_to_parent(parents: Tensor) -> Tensor:
    keys = torch.arange(parents.size(1), device=parents.device, dtype=parents.dtype)  # (T,)
    return (keys - parents[..., None]).abs()  # (B, T, T)
