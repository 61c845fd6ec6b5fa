"""Heads that learn parents, DBSA and LISA, and their loss, against loops over the equations."""

import math

import pytest
import torch
import torch.nn.functional as F
from attending import (
    assert_same_with_gradients,
    drawn,
    random_terms,
    random_trees,
    read,
    slow_attend,
)

from synmt.model.attention import attend
from synmt.model.blocks.parents import parent_loss
from synmt.model.variant import Place
from synmt.model.variants.dbsa import Dbsa
from synmt.model.variants.lisa import Lisa


def slow_loss(scores, parents, supervised, mask):
    """- Σ log(exp S_tp / Σ_j exp S_tj) over what is supervised and sees its parent, over j that t
    sees; the mean over the heads."""
    visible, total = mask.expand_as(scores), scores.new_zeros(())
    for b, h, t in torch.cartesian_prod(*map(torch.arange, scores.shape[:3])).tolist():
        parent = parents[b, t]
        if supervised[b, t] and visible[b, h, t, parent]:
            shares = scores[b, h, t].exp() * visible[b, h, t]
            total = total - (shares[parent] / shares.sum()).log()
    return total / scores.size(1)


def of_dbsa(variant, terms):
    """q and k as they are; their products are divided by √d."""
    return terms.q / math.sqrt(4), terms.k


def of_lisa(variant, terms):
    """[q; k] = leaky_relu(W x + b), head by head."""
    parts = F.leaky_relu(terms.x @ variant.project.weight.T + variant.project.bias, 0.01).split(
        4, -1
    )
    return torch.stack(parts[::2], 1), torch.stack(parts[1::2], 1)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("kind", "side", "projected"),
    [(Dbsa, "source", of_dbsa), (Dbsa, "target", of_dbsa), (Lisa, "source", of_lisa)],
)
def test_heads_and_their_loss_equal_loops_over_the_equation_gradients_too(
    kind, side, projected, seed
):
    variant = drawn(kind, Place(side, 1, 2, 8, 4))
    variant.loss_weight = 0.7
    syntax, mask = read(variant, random_trees(seed, (1, 4, 5)))
    terms = random_terms(3, 2, mask.size(-1), 4, mask, seed=seed)
    terms = terms.edit(x=torch.randn_like(terms.x, dtype=torch.float64).requires_grad_())
    output = attend(variant.edit(terms, syntax))
    (q, k), biaffine = projected(variant, terms), variant.biaffine
    # S_tj = Σ_mn q_tm U_mn k_jn + Σ_n k_jn u_n
    scores = torch.einsum("bhtm,hmn,bhjn->bhtj", q, biaffine.weight, k)
    scores = scores + torch.einsum("bhjn,hn->bhj", k, biaffine.key_bias)[:, :, None]
    parents, words = (syntax.signals[signal.name] for signal in variant.learns)
    loss = 0.7 * slow_loss(scores, parents, words >= 0, mask)
    expected = slow_attend(terms, lambda *at: scores[at])
    found = torch.cat((output.flatten(), *(one[None] for one in syntax.losses.values())))
    leaves = (terms.v, *([terms.x] if kind is Lisa else [terms.q, terms.k]), *variant.parameters())
    assert_same_with_gradients(found, torch.cat((expected.flatten(), loss[None])), leaves)


@pytest.mark.parametrize("padding", [-1, 0, 10**6])
def test_rows_that_teach_nothing_may_be_masked_throughout_and_hold_any_parent(padding):
    scores = torch.randn(2, 2, 3, 3, generator=torch.Generator().manual_seed(2), requires_grad=True)
    parents = torch.tensor([[1, 1, padding], [padding] * 3])
    supervised = torch.tensor([[True, True, False], [False] * 3])
    mask = torch.ones(2, 1, 3, 3, dtype=torch.bool)
    # of what is masked, the second row would teach
    mask[0, :, 1:] = mask[1] = False
    loss = parent_loss(scores.masked_fill(~mask, -math.inf), parents, supervised)
    loss.backward()
    assert loss > 0
    assert loss.isfinite()
    taught = torch.zeros(2, 2, 3, 3, dtype=torch.bool)
    taught[0, :, 0] = True
    assert torch.equal(scores.grad != 0, taught)


@pytest.mark.parametrize(
    ("scores", "parents", "loss"),
    [
        ([[0.0, -500.0]] * 2, [1, 0], 500.0),  # exp(-500) is 0 in float32
        ([[math.nan] * 2] * 2, [0, 0], math.nan),
        ([[-math.inf] * 2] * 2, [0, 0], 0.0),
    ],
)
def test_the_loss_of_extreme_scores(scores, parents, loss):
    supervised = torch.ones(1, 2, dtype=torch.bool)
    found = parent_loss(torch.tensor(scores)[None, None], torch.tensor([parents]), supervised)
    assert found.item() == pytest.approx(loss, nan_ok=True)
