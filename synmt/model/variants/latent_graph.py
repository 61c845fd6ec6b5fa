"""Latent graphs as annotations of the source (Hashimoto & Tsuruoka, 2017).

    p(j | i) = softmax_j( s_i · W s_j )  over j ≠ i and the root        s̄_i = Σ_j p(j | i) s_j
    m_i = tanh( V [s_i; s̄_i; p(label | i)] + b )
    p(label | i) = softmax( U [s_i; s̄_i] + c )

s are the states of the encoder. The root has a learned vector r in the place of a state: the LSTM
does not encode EOS, which is the root in the paper. Every piece has a distribution over parents,
which need not form a tree. The decoder reads the annotations m_i with an attention of their own.

With `supervised`, p(j | i) and p(label | i) also learn from the parser's trees, where every piece
of a word hangs on the first piece of the parent:

    loss = - λ Σ_i ( log p(parent of i | i) + log p(relation of i | i) )

The sum is over the pieces of words; λ is the recipe's `loss_weight`. To pretrain as in the paper,
give `loss_steps` to the variant and `pretraining` to the training. Translating needs no parser.

The paper has three encoders on top of each other, for tags, for parents and for translation; here
one has all tasks, and there are no tags. The labels are the relations of Universal Dependencies and
Stanford and one for all others, also where nothing supervises them.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt.model.attention import Memory, exact
from synmt.model.blocks.parents import parent_loss
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.relations import KNOWN
from synmt.syntax.signals import PARENT_FIRST, WORD, Signals, relation_signal

LABELS = len(KNOWN) + 1
"""The known relations, and one label for all others."""


class LatentGraph(Variant):
    """Annotate each source state with the states of its likely parents, in graphs learned from
    translation.

    supervised: whether it also learns from the trees of a parser, in training only.
    """

    learns = (PARENT_FIRST, WORD, relation_signal())
    sides = ("source",)
    annotation = "separate"
    induces_trees = True

    def __init__(self, place: Place, *, supervised: bool = False) -> None:
        super().__init__(place)
        width = place.model_dim
        self.query = nn.Linear(width, width, bias=False)
        self.root = nn.Parameter(torch.randn(width) * width**-0.5)  # (D,)
        self.label = nn.Linear(2 * width, LABELS)
        self.compose = nn.Linear(2 * width + LABELS, width)

    @classmethod
    def learns_for(cls, *, supervised: bool, **options: Any) -> Signals:
        """List the signals of the parser's trees, or nothing."""
        return cls.learns if supervised else ()

    def annotate(self, memory: Memory, syntax: Syntax) -> Memory:
        """Annotate every state; the root's probability is on the diagonal of the weights."""
        states = memory.states  # (B, T, D)
        root = self.root.to(states.dtype).expand(len(states), 1, -1)  # (B, 1, D)
        places = torch.cat((states, root), 1)  # (B, T + 1, D)
        scores = self._scores(states, places, memory.mask)  # (B, T, T + 1)
        parents = scores.softmax(-1)  # (B, T, T + 1)
        both = torch.cat((states, parents.to(states.dtype) @ places), -1)  # (B, T, 2D)
        labels = exact(self.label(both)).log_softmax(-1)  # (B, T, L)
        if gold := self.gold(syntax):
            self.supervise(syntax, self._loss(scores, labels, *gold))
        composed = self.compose(
            torch.cat((both, labels.exp().to(both.dtype)), -1)
        ).tanh()  # (B, T, D)
        weights = parents[..., :-1] + torch.diag_embed(parents[..., -1])  # (B, T, T)
        return memory.edit(annotations=composed, weights=weights * memory.mask[..., None])

    def _scores(self, states: Tensor, places: Tensor, mask: Tensor) -> Tensor:
        """Compute s · W s', -inf where there is no parent: (B, T, D), (B, T + 1, D), (B, T) -> (B,
        T, T + 1)."""
        scores = exact(self.query(states) @ places.mT)  # (B, T, T + 1)
        itself = torch.eye(mask.size(1), dtype=torch.bool, device=mask.device)  # (T, T)
        # the last place is the root
        hidden = F.pad(~mask[:, None] | itself, (0, 1), value=False)  # (B, T, T + 1)
        return scores.masked_fill(hidden, -torch.inf)

    def _loss(
        self, scores: Tensor, labels: Tensor, first: Tensor, words: Tensor, relations: Tensor
    ) -> Tensor:
        inside = words >= 0  # (B, T)
        # the first piece of the parent is in the word itself only where the word is the root
        is_root = words.gather(1, first) == words  # (B, T)
        parents = first.masked_fill(is_root, scores.size(1))  # (B, T)
        loss = parent_loss(scores[:, None], parents, inside)
        # relations count from 1, because 0 is for specials
        chosen = labels.gather(-1, (relations - 1).clamp(min=0)[..., None])  # (B, T, 1)
        return loss - chosen[..., 0].masked_fill(~inside, 0.0).sum()
