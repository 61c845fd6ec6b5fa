"""Latent graphs against loops over pieces, alone and supervised by trees."""

import numpy as np
import pytest
import torch
from attending import assert_alone_as_in_a_batch, random_trees
from small import MONKEY, MONKEY_WORD_OF, random_batch, relation_warnings, small_model

from synmt.analysis.heads import tree_heads
from synmt.data.batch import collate, collate_source
from synmt.data.corpus import Example, Tree
from synmt.errors import UsageError
from synmt.model.attention import Memory
from synmt.model.variant import Place, Syntax
from synmt.model.variants.latent_graph import LABELS, LatentGraph
from synmt.syntax.reading import Reading
from synmt.syntax.relations import KNOWN, base_name


def with_graphs(**options):
    model = small_model({"name": "latent_graph", **options}, architecture="lstm").double().eval()
    return model, model.variants["source"][0]


def slow_graph(variant, states):
    """Follow the equation for one sentence: p(j | i) with the root last, log p(label | i), the
    annotations."""
    parents, labels, annotations = [], [], []
    for i, state in enumerate(states):
        scores = {
            j: state @ (variant.query.weight.T @ other) for j, other in enumerate(states) if j != i
        }
        scores[len(states)] = state @ (variant.query.weight.T @ variant.root)
        total = sum(score.exp() for score in scores.values())
        row = [
            scores[j].exp() / total if j in scores else torch.zeros_like(total)
            for j in range(len(states) + 1)
        ]
        mean = sum(p * place for p, place in zip(row, [*states, variant.root], strict=True))
        both = torch.cat((state, mean))
        likely = torch.softmax(variant.label.weight @ both + variant.label.bias, 0)
        composed = variant.compose.weight @ torch.cat((both, likely)) + variant.compose.bias
        parents.append(torch.stack(row))
        labels.append(likely.log())
        annotations.append(torch.tanh(composed))
    return torch.stack(parents), torch.stack(labels), torch.stack(annotations)


def test_it_equals_a_loop_over_pieces_and_their_parents():
    model, variant = with_graphs()
    _, batch = random_batch(model, [1, 4, 2])
    plain = model.encode(batch.source)
    memory, _ = model.remember(batch.source, {})
    for row, length in enumerate(plain.mask.sum(1).tolist()):
        parents, _, annotations = slow_graph(variant, plain.states[row, :length])
        torch.testing.assert_close(memory.annotations[row, :length], annotations)
        torch.testing.assert_close(
            memory.weights[row, :length, :length], parents[:, :-1] + torch.diag(parents[:, -1])
        )
        assert not memory.weights[row, length:].any()
        assert not memory.weights[row, :, length:].any()
        assert torch.equal(memory.states, plain.states)


def slow_loss(variant, states, parse, word_of):
    """Sum -log p of parents and relations, piece by piece; the parent is the first piece of the
    parent's word."""
    parents, labels, _ = slow_graph(variant, states)
    total = states.new_zeros(())
    for i, word in enumerate(word_of.tolist()):
        if word < 0:
            continue
        up = parse.parents[word]
        gold = len(states) if up == word else word_of.tolist().index(up)
        relation = parse.relations[word]
        names = [name for name in (relation, base_name(relation)) if name in KNOWN]
        label = KNOWN.index(names[0]) if names else LABELS - 1
        total = total - parents[i, gold].log() - labels[i, label]
    return total


@pytest.mark.parametrize("seed", [0, 1])
def test_its_loss_equals_a_loop_over_random_trees_gradients_too(seed):
    model, variant = with_graphs(supervised=True, loss_weight=0.5)
    # piece 3 of the last sentence belongs to no word
    trees = random_trees(seed)
    examples = [
        Example(line, np.full(len(tree.word_of), 9), np.array([9]), {"source": tree})
        for line, tree in enumerate(trees)
    ]
    batch = collate(examples, Reading(model.learns("source")))
    plain = model.encode(batch.source)
    states = plain.states.detach().requires_grad_()
    syntax = Syntax(batch.source_signals, ids=batch.source.ids)
    variant.annotate(plain.edit(states=states), syntax)
    (found,) = syntax.losses.values()
    expected = 0.5 * sum(
        slow_loss(variant, states[row, : len(tree.word_of)], tree.parse, tree.word_of)
        for row, tree in enumerate(trees)
    )
    torch.testing.assert_close(found, expected)
    leaves = [states, variant.query.weight, variant.root, variant.label.weight]
    ours, theirs = (torch.autograd.grad(loss, leaves) for loss in (found, expected))
    torch.testing.assert_close(ours, theirs)


def test_its_arithmetic_has_the_numerical_gradient():
    _, variant = with_graphs()
    states = torch.randn(1, 3, 16, dtype=torch.float64, requires_grad=True)
    mask = torch.ones(1, 3, dtype=torch.bool)
    ids = torch.full((1, 3), 9)

    def annotations(states):
        return variant.annotate(Memory(states, mask), Syntax({}, ids=ids)).annotations

    assert torch.autograd.gradcheck(annotations, states)


def test_the_state_that_the_monkey_s_article_expects_above_it():
    variant = LatentGraph(Place("source", layer=1, heads=0, model_dim=1, head_dim=1)).double()
    states = torch.tensor([1.0, 2, 3, 4, 5], dtype=torch.float64)[None, :, None]
    wanted = torch.tensor([[[0, 0.7, 0.2, 0, 0.1, 0]]], dtype=torch.float64)
    with torch.no_grad():
        for weight in variant.parameters():
            weight.zero_()
        # the annotation is the tangent of a tenth of the mean state above
        variant.compose.weight[0, 1] = 0.1
        variant._scores = lambda *_: wanted.log().expand(1, 5, 6)
        memory = variant.annotate(Memory(states, torch.ones(1, 5, dtype=torch.bool)), Syntax({}))
    # 0.7 · 2 + 0.2 · 3 + 0.1 · 5
    assert 10 * memory.annotations[0, 0, 0].atanh().item() == pytest.approx(2.5)


def test_the_parents_that_it_learns_are_first_pieces_and_of_the_root_the_root():
    model, variant = with_graphs(supervised=True)
    example = Example(
        0, MONKEY_WORD_OF + 9, MONKEY_WORD_OF + 9, {"source": Tree(MONKEY, MONKEY_WORD_OF)}
    )
    batch = collate([example], Reading(model.learns("source")))
    wanted = torch.full((1, 8, 9), -30.0, dtype=torch.float64)
    labels = torch.full((1, 8, LABELS), -30.0, dtype=torch.float64)
    for piece, (parent, relation) in enumerate(
        [(1, "det"), (3, "nsubj"), (3, "nsubj"), (8, "root"), (5, "det"), (3, "obj"), (3, "obj")]
    ):
        wanted[0, piece, parent], labels[0, piece, KNOWN.index(relation)] = 30.0, 0.0
    loss = variant._loss(wanted, labels, Syntax(batch.source_signals))
    assert loss.item() == pytest.approx(0, abs=1e-9)


def test_a_piece_alone_hangs_on_the_root_and_so_does_a_lone_eos():
    model, variant = with_graphs()
    source = collate_source([np.array([9]), np.array([], dtype=int)])
    memory = variant.annotate(model.encode(source), model.syntax("source", {}, source.ids))
    assert memory.weights[:, 0].tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert memory.annotations.isfinite().all()


@pytest.mark.parametrize("supervised", [False, True])
def test_a_sentence_alone_equals_the_sentence_in_a_batch(supervised):
    assert_alone_as_in_a_batch(with_graphs(supervised=supervised)[0], [2, 7, 1])


def test_it_learns_from_trees_only_if_told_and_reads_none():
    plain, supervised = with_graphs()[0], with_graphs(supervised=True)[0]
    assert plain.learns("source") == plain.reads("source") == supervised.reads("source") == ()
    assert {signal.name for signal in supervised.learns("source")} == {
        "parent_first",
        "word",
        "relation",
    }
    assert [head.name for head in tree_heads(plain, "source")] == ["latent trees (latent_graph)"]
    assert relation_warnings(LatentGraph, {"SUJ": 2}, supervised=True)
    assert not relation_warnings(LatentGraph, {"SUJ": 2})


@pytest.mark.parametrize("options", [{"loss_weight": 0.5}, {"loss_steps": [1, 9]}])
def test_a_loss_that_it_does_not_have_cannot_be_weighted(options):
    with pytest.raises(UsageError, match="latent_graph has no auxiliary loss"):
        with_graphs(**options)


def test_a_transformer_refuses_it():
    with pytest.raises(UsageError, match="a Transformer's decoder reads no annotations"):
        small_model({"name": "latent_graph"})
