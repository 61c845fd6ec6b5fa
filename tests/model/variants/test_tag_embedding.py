"""Tag embedding against a slow loop, and its place in the model."""

import pytest
import torch
from attending import random_trees, read
from small import MONKEY, MONKEY_WORD_OF, make_variant, random_batch, relation_warnings, small_model

from synmt.data.corpus import Tree
from synmt.model.variant import Place
from synmt.model.variants.tag_embedding import TagEmbedding

PLACE = Place("source", layer=1, heads=0, model_dim=8, head_dim=4)
# of the relations that random trees have, nsubj:pass is named itself, and det, case and odd are not
# named
NAMES = ("root", "nsubj", "obj", "nsubj:pass")
ROWS = {"root": 1, "nsubj": 2, "obj": 3, "nsubj:pass": 4}
OTHER = 5


def slow_embed(x, trees, table, size):
    """Put row `relation` of the table in the place of the last components, component by
    component."""
    result = x.detach().clone()
    for b, tree in enumerate(trees):
        for t, word in enumerate([*tree.word_of.tolist(), -1]):
            relation = tree.parse.relations[word] if word >= 0 else None
            row = 0 if relation is None else ROWS.get(relation, OTHER)
            for component in range(size):
                result[b, t, x.size(-1) - size + component] = table[row, component]
    return result


def slow_gradient(direction, trees, size):
    """Sum the direction over all pieces of each row: what the table's gradient has to be."""
    result = torch.zeros(OTHER + 1, size, dtype=torch.float64)
    for b, tree in enumerate(trees):
        for t, word in enumerate([*tree.word_of.tolist(), -1]):
            row = ROWS.get(tree.parse.relations[word], OTHER) if word >= 0 else 0
            result[row] += direction[b, t, -size:]
    return result


@pytest.mark.parametrize("size", [1, 3, 8])
def test_it_equals_a_loop_over_pieces_on_random_trees_gradients_too(size):
    trees = random_trees(size, (1, 4, 9))
    variant = make_variant(TagEmbedding, PLACE, size=size, relations=NAMES).double()
    syntax, mask = read(variant, trees)
    mask = mask[:, 0, 0]
    x = torch.randn(*mask.shape, 8, dtype=torch.float64, requires_grad=True)
    output = variant.embed(x, syntax)
    expected = slow_embed(x, trees, variant.table.weight.detach(), size)
    torch.testing.assert_close(output[mask], expected[mask])
    direction = torch.randn(*mask.shape, 8, dtype=torch.float64) * mask[..., None]
    (output * direction).sum().backward()
    torch.testing.assert_close(variant.table.weight.grad, slow_gradient(direction, trees, size))
    torch.testing.assert_close(x.grad[..., : 8 - size], direction[..., : 8 - size])
    assert not x.grad[..., 8 - size :].any()


def test_the_pieces_of_the_monkey_have_their_words_relations_and_eos_its_own():
    variant = make_variant(TagEmbedding, PLACE, size=2, relations=("det", "nsubj", "root"))
    with torch.no_grad():
        variant.table.weight.copy_(torch.arange(5.0)[:, None].expand(5, 2))
    syntax, _ = read(variant, [Tree(MONKEY, MONKEY_WORD_OF)])
    found = variant.embed(torch.full((1, 8, 8), 9.0), syntax)[0]
    # ▁The ▁mon key ▁eats ▁a ▁ban ana </s>: det 1, nsubj 2, root 3, the unknown obj 4, EOS 0
    assert found[:, -1].tolist() == [1, 2, 2, 3, 1, 4, 4, 0]
    assert torch.equal(found[:, -2], found[:, -1])
    assert (found[:, :6] == 9).all()


def test_positions_are_added_to_it_and_the_root_of_d_does_not_scale_it():
    model = small_model({"name": "tag_embedding", "size": 4}).eval()
    (variant,) = model.variants["source"]
    _, batch = random_batch(model, [3, 5])
    syntax = model.syntax("source", batch.source_signals)
    embedding = model.source_embedding
    found = embedding(batch.source.ids, syntax)
    length = batch.source.ids.size(1)
    relations = batch.source_signals["relation"]
    torch.testing.assert_close(
        found[..., -4:], variant.table.weight[relations] + embedding.positions[:length, -4:]
    )
    torch.testing.assert_close(found[..., :-4], embedding(batch.source.ids)[..., :-4])


def test_the_table_begins_with_rows_of_norm_one():
    torch.manual_seed(0)
    table = make_variant(TagEmbedding, Place("source", 1, 0, 512, 64)).table.weight
    assert table.size(1) == 10
    # 10 · (10 ** -0.5) ** 2 = 1; the mean over more than 80 rows of 10 draws: ± 0.05 (one standard
    # deviation)
    assert abs(table.square().sum(1).mean().item() - 1) < 0.2


def test_eos_learns_its_own_row():
    model = small_model({"name": "tag_embedding", "size": 4})
    _, batch = random_batch(model, [3])
    model(batch).states.square().sum().backward()
    (variant,) = model.variants["source"]
    assert variant.table.weight.grad[0].any()


def test_it_owns_no_heads():
    model = small_model({"name": "tag_embedding"}, {"name": "pascal", "heads": 4})
    assert [variant.place.heads for variant in model.encoder[0].self_attention.variants] == [0, 4]


def test_the_warning_names_relations_that_share_one_embedding():
    counts = {"nsubj": 500, "nsubj:pass": 30, "nmod:poss": 10, "SUBJ": 1200, "OBJ": 60}
    assert relation_warnings(TagEmbedding, counts) == [
        "2 relations (1,260 of 1,800 words) are unknown to tag_embedding; these words share one "
        "embedding: "
        "SUBJ (1,200), OBJ (60)"
    ]


def test_the_warning_about_a_custom_list_names_the_five_most_frequent_other_relations():
    others = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}
    [text] = relation_warnings(TagEmbedding, {"SUBJ": 9, **others}, relations=("SUBJ",))
    assert "6 relations (21 of 30 words) are unknown" in text
    assert text.endswith(": f (6), e (5), d (4), c (3), b (2), …")


def test_there_is_no_warning_where_every_relation_is_known():
    assert relation_warnings(TagEmbedding, {"nsubj": 5, "dobj": 1, "obl:tmod": 3}) == []
