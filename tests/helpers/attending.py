"""Heads of attention against loops over their equations: terms, trees, loops, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import torch
from small import (
    batch_for,
    examples_of,
    make_variant,
    random_arcs,
    random_batch,
    random_tree,
    slow_distances,
)
from torch import Tensor

from synmt.arrays import SIDES, IntArray
from synmt.data.batch import collate
from synmt.data.corpus import Tree
from synmt.model.attention import Terms, attend
from synmt.model.seq2seq import Seq2Seq
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.parse import SCENES, Parse
from synmt.syntax.reading import Reading

PLACE = Place("source", layer=1, heads=2, model_dim=8, head_dim=4)
NO_WORDS = Tree(
    Parse(
        [],
        np.zeros((0, 2), int),
        np.zeros(0, int),
        [],
        tags=[],
        arcs=random_arcs(0, np.random.default_rng(0)),
        features={SCENES: []},
    ),
    np.zeros(0, int),
)
"""An empty line, which has only EOS."""


def random_terms(
    batch: int, heads: int, length: int, size: int, mask: Tensor | None = None, *, seed: int = 0
) -> Terms:
    """Draw queries, keys and values in float64; the input of the layer is zero."""
    generator, shape = torch.Generator().manual_seed(seed), (batch, heads, length, size)
    q, k, v = (
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for _ in range(3)
    )
    return Terms(torch.zeros(batch, length, heads * size), q, k, v, mask)


def alike_terms(q: Tensor, mask: Tensor | None = None) -> Terms:
    """Use the queries as keys and values, too."""
    batch, heads, length, size = q.shape
    return Terms(torch.zeros(batch, length, heads * size), q, q, q, mask)


def padding_mask(*lengths: int) -> Tensor:
    """Mask what follows each sentence: (B, 1, 1, T)."""
    return (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])[:, None, None]


def seen_mask(side: str, lengths: Sequence[int]) -> Tensor:
    """Mask the padding of the source, or the future of the target: (B, 1, 1, T) or (T, T)."""
    longest = max(lengths)
    future = torch.ones(longest, longest, dtype=torch.bool).tril()
    return padding_mask(*lengths) if side == "source" else future


def random_trees(seed: int, words: Sequence[int] = (1, 4, 6), *, gap: bool = True) -> list[Tree]:
    """Draw trees whose words have one to three pieces; with a gap, a piece inside the last one has
    no word."""
    random = np.random.default_rng(seed)
    trees = [
        Tree(random_tree(n, random), np.repeat(np.arange(n), random.integers(1, 4, n)))
        for n in words
    ]
    if gap:
        trees[-1] = Tree(trees[-1].parse, np.insert(trees[-1].word_of, 3, -1))
    return trees


def with_special(trees: Sequence[Tree], side: str = "source") -> list[tuple[Parse, IntArray]]:
    """Append EOS to the pieces, or put BOS before those of the target; neither has a word."""
    if side == "source":
        return [(tree.parse, np.append(tree.word_of, -1)) for tree in trees]
    return [(tree.parse, np.append(-1, tree.word_of)) for tree in trees]


def read(variant: Variant, trees: Sequence[Tree]) -> tuple[Syntax, Tensor]:
    """Compute and pad what the variant reads or learns on its side: the syntax, and the mask of
    what a piece sees."""
    side, reading = variant.place.side, Reading(variant.reads + variant.learns)
    batch = collate(
        examples_of(trees, side), *(reading if own == side else Reading() for own in SIDES)
    )
    signals = batch.source_signals if side == "source" else batch.target_signals
    return Syntax(signals), seen_mask(side, [len(tree.word_of) + 1 for tree in trees])


def drawn(kind: type[Variant], place: Place = PLACE, /, **options: Any) -> Variant:
    """Make a variant in float64 with drawn parameters."""
    torch.manual_seed(1)
    variant = make_variant(kind, place, **options).double()
    for parameter in variant.parameters():
        torch.nn.init.normal_(parameter)
    return variant


@dataclass(frozen=True)
class Pair:
    """A query i and a key j of a head in a sentence, for an equation that is written as a loop."""

    terms: Terms
    sentence: int
    parse: Parse
    word_of: IntArray
    head: int
    i: int
    j: int

    @property
    def words(self) -> tuple[int, int]:
        """The words of both pieces, -1 for none."""
        return int(self.word_of[self.i]), int(self.word_of[self.j])

    @property
    def distance(self) -> int:
        """Steps in the tree; a piece without a word is one farther from all than any word."""
        if self.i == self.j:
            return 0
        steps = slow_distances(self.parse.parents)
        query, key = self.words
        return steps[query][key] if min(query, key) >= 0 else 1 + max(map(max, steps))

    @property
    def q(self) -> Tensor:
        """The query: (d,)."""
        return self.terms.q[self.sentence, self.head, self.i]

    @property
    def k(self) -> Tensor:
        """The key: (d,)."""
        return self.terms.k[self.sentence, self.head, self.j]

    @property
    def v(self) -> Tensor:
        """The value: (d,)."""
        return self.terms.v[self.sentence, self.head, self.j]

    @property
    def plain(self) -> Tensor:
        """The plain score, q · k / √d."""
        return self.q @ self.k / math.sqrt(len(self.q))


def assert_attends(
    variant: Variant,
    trees: Sequence[Tree],
    score: Callable[[Pair], Tensor],
    value: Callable[[Pair], Tensor] = lambda pair: pair.v,
    *,
    normalized: bool = True,
    unused: bool = False,
) -> None:
    """Compare the heads of a variant with loops over its equation, gradients too: on some trees,
    and on a sentence without words.

    score, value: what the softmax and the sum have for a pair.
    """
    trees = [*trees, NO_WORDS]
    (syntax, mask), place = read(variant, trees), variant.place
    terms = random_terms(len(trees), place.heads, mask.size(-1), place.head_dim, mask, seed=1)
    sentences = with_special(trees)

    def of_pair(function: Callable[[Pair], Tensor]) -> Callable[[int, int, int, int], Tensor]:
        return lambda b, h, i, j: function(Pair(terms, b, *sentences[b], h, i, j))

    lengths = [len(word_of) for _, word_of in sentences]
    expected = slow_attend(
        terms, of_pair(score), value=of_pair(value), lengths=lengths, normalized=normalized
    )
    output = attend(variant.edit(terms, syntax)) * mask.mT
    leaves = (terms.q, terms.k, terms.v, *variant.parameters())
    assert_same_with_gradients(output, expected, leaves, unused=unused, rtol=1e-6, atol=1e-6)


def slow_attend(
    terms: Terms,
    score: Callable[[int, int, int, int], Tensor],
    *,
    value: Callable[[int, int, int, int], Tensor] | None = None,
    lengths: Sequence[int] | None = None,
    normalized: bool = True,
) -> Tensor:
    """Loop over O_t = Σ_j softmax_j(score(b, h, t, j)) v_j, over the j that t sees: (B, H, T, d).

    Rows beyond `lengths` are zero; `value` replaces v_j; the weights may be exp(score) as they are,
    not normalized.
    """
    batch, heads, queries, size = terms.q.shape
    mask = terms.mask.expand(batch, 1, queries, terms.k.size(2))  # type: ignore[union-attr]
    rows = []
    for b, h, t in product(range(batch), range(heads), range(queries)):
        if lengths is not None and t >= lengths[b]:
            rows.append(torch.zeros(size, dtype=terms.v.dtype))
            continue
        seen = mask[b, 0, t].nonzero().flatten().tolist()
        powers = torch.stack([score(b, h, t, j) for j in seen]).exp()
        values = torch.stack([value(b, h, t, j) for j in seen]) if value else terms.v[b, h, seen]
        total = (powers[:, None] * values).sum(0)
        rows.append(total / powers.sum() if normalized else total)
    return torch.stack(rows).view(batch, heads, queries, size)


def assert_same_with_gradients(
    fast: Tensor,
    slow: Tensor,
    leaves: Sequence[Tensor],
    *,
    unused: bool = False,
    **tolerance: float,
) -> Sequence[Tensor]:
    """Compare two outputs, and what a random direction pulls back to the leaves, which it gives."""
    torch.testing.assert_close(fast, slow, **tolerance)
    direction = torch.randn_like(slow)
    unused_too = {"allow_unused": unused, "materialize_grads": unused}
    ours, theirs = (
        torch.autograd.grad(output, leaves, direction, retain_graph=True, **unused_too)
        for output in (fast, slow)
    )
    torch.testing.assert_close(ours, theirs, **tolerance)
    return theirs


def assert_alone_as_in_a_batch(model: Seq2Seq, words: Sequence[int]) -> None:
    """Compare the states of every sentence of a batch with those of the sentence alone and of the
    batch backwards."""
    examples, batch = random_batch(model, words)
    together = model(batch).states
    tolerance = 1e-5 if together.dtype == torch.float32 else 1e-7
    for row, example in enumerate(examples):
        alone = model(batch_for(model, [example])).states[0]
        torch.testing.assert_close(
            alone, together[row, : len(alone)], rtol=tolerance, atol=tolerance
        )
    backwards = model(batch_for(model, examples[::-1])).states.flip(0)
    torch.testing.assert_close(together, backwards, rtol=tolerance, atol=tolerance)


def assert_step_by_step_as_all_at_once(model: Seq2Seq, rtol: float = 1e-5) -> None:
    """Compare the states of a decoder that gets one piece after the other with those of teacher
    forcing."""
    # the seed makes the two targets short, and not equally long
    _, batch = random_batch(model, [4, 7], seed=9)
    at_once = model(replace(batch, target_signals={})).states
    memory, _ = model.remember(batch.source, batch.source_signals)
    state, syntax = model.start(memory), model.syntax("target", {})
    steps = [model.step(state, pieces[:, None], syntax) for pieces in batch.target_input.T]
    torch.testing.assert_close(torch.cat(steps, 1), at_once, rtol=rtol, atol=1e-5)
