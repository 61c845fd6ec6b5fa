"""Localized self-attention by constituency: the Distance Transformer (Hou, Kai, Xue et al., 2022,
Findings of EMNLP).

    weights_ij ∝ exp(q_i · k_j / √d) F_ij

    F_ij = Π_{m = j}^{i - 2} σ(2 (δ_{i-1} - δ_m) / τ)          j < i - 1
    F_ij = Π_{m = i + 1}^{j - 1} σ(2 (δ_i - δ_m) / τ)          j > i + 1
    F_ij = 1                                                   the piece itself and its neighbours

δ_m is the height of the lowest constituent over the pieces m and m + 1 in the binary tree; a word
has height 1, and so has a boundary inside a word. σ(2x) is the paper's ½ (1 + tanh x). F enters as
B = log F, so attention keeps its kernel. There are no parameters.

With the paper's τ, each factor is near ½ unless heights differ by many: F is then nearly ½^(|i - j|
- 1), a decay with the distance that the tree tilts a little. The height beside EOS is 2000: the
last word and EOS alone attend to EOS, and EOS attends to every piece alike. All of this is as in
the released code; the binary trees of that code branch to the right.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import PositiveFloat
from torch import Tensor

from synmt.model.attention import Terms
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.constituent_signals import BOUNDARIES


class DistanceTransformer(Variant):
    """Lower the weight of a piece by the boundaries of constituents before it.

    temperature: temperature τ: boundaries whose heights differ by less count nearly alike (released
        code: 10).
    """

    reads = (BOUNDARIES,)
    sides = ("source",)
    default_heads = 4

    def __init__(self, place: Place, *, temperature: PositiveFloat = 10.0) -> None:
        super().__init__(place)
        self.temperature = temperature

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Set the bias to log F: (B, 1, T, T)."""
        precise = torch.promote_types(terms.q.dtype, torch.float32)
        heights = syntax.signals["boundaries"].to(precise)  # (B, T)
        return terms.edit(bias=log_locality(heights, self.temperature)[:, None])


def log_locality(heights: Tensor, temperature: float) -> Tensor:
    """Compute log F from the heights of the boundaries after each piece: (B, T) -> (B, T, T)."""
    scaled = 2 * heights / temperature  # (B, T)
    pairs = torch.ones_like(scaled[0]).expand(heights.size(1), -1)  # (T, T)
    # rolling moves the last boundary to the first piece, which has no product on its left
    left = F.logsigmoid(scaled.roll(1, 1)[..., None] - scaled[:, None]) * pairs.tril(
        -2
    )  # (B, T, T)
    right = F.logsigmoid(scaled[..., None] - scaled[:, None]) * pairs.triu(1)  # (B, T, T)
    # a product on the left begins at the key, one on the right ends before the key
    left = left.flip(-1).cumsum(-1).flip(-1)  # (B, T, T)
    return left + F.pad(right.cumsum(-1)[..., :-1], (1, 0))
