"""Features and depths in embeddings, against loops over pieces from the equations."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from attending import assert_same_with_gradients, drawn, random_trees, read, with_special
from small import SIZE, random_batch, small_model, small_recipe
from walks import number, way_up

from synmt.data.corpus import Tree
from synmt.model.build import build
from synmt.model.variant import Place, Syntax
from synmt.model.variants.structural_depth import StructuralDepth, sinusoids_at
from synmt.model.variants.syntax_infused import SyntaxInfused
from synmt.model.variants.tag_embedding import TagEmbedding
from synmt.syntax.feature_signals import CASES, PLACES, UNIVERSAL_TAGS, case_of, with_values

VALUES = {"lemma": ("c", "a", "b"), "morphology": ("_", "Case=Nom"), "fine_tag": ("NN",)}
PLACE = Place("source", layer=1, heads=0, model_dim=8, head_dim=4, features=VALUES)
MOST = 2
LISTS = {"tag": UNIVERSAL_TAGS, "case": CASES, "subword": PLACES}
LISTS |= {name: values[:MOST] for name, values in VALUES.items()}
WIDTHS = {"lemma": 3, "subword": 1, "morphology": 2, "tag": 1, "relation": 1}
INFUSED = ("tag", "relation", "case", "subword", "lemma")


def featured_trees(seed):
    """Draw trees whose words have tags and features; some have values that are not in the lists."""
    random = np.random.default_rng(seed)

    def choose(values, count):
        return random.choice([*values, "odd"], count).tolist()

    for tree in random_trees(seed):
        count = len(tree.parse)
        features = {name: choose(values, count) for name, values in VALUES.items()}
        words, tags = (
            choose(("monkey", "The", "UN", "iPad", "?"), count),
            choose(UNIVERSAL_TAGS, count),
        )
        yield Tree(replace(tree.parse, words=words, tags=tags, features=features), tree.word_of)


def place_of(word_of, position):
    """Name the place of a piece in its word: alone, at its beginning, inside or at its end."""
    own = np.flatnonzero(word_of == word_of[position]).tolist()
    ends = position == own[0], position == own[-1]
    return {(True, True): "O", (True, False): "B", (False, True): "E"}.get(ends, "I")


def row_of(name, parse, word_of, position, relations):
    """Find the row of a piece in the table of a feature: 0 without a word, the last for others."""
    word = word_of[position]
    if word < 0:
        return 0
    if name == "relation" and not relations:
        return 1 + number(parse.relations[word])
    known = relations if name == "relation" else LISTS[name]
    values = {
        "relation": parse.relations,
        "tag": parse.tags,
        "case": [case_of(text) for text in parse.words],
        **parse.features,
    }
    value = place_of(word_of, position) if name == "subword" else values[name][word]
    return 1 + (known.index(value) if value in known else len(known))


def tables_of(variant):
    """Name the table of each feature of a variant."""
    if isinstance(variant, SyntaxInfused):
        return dict(zip(INFUSED, variant.tables, strict=True))
    tables = dict(variant.tables.items())
    return {name: variant.table if name == "relation" else tables[name] for name in variant.widths}


def replaced(variant, x, features):
    """[E(piece) without its last components; L_1; …; L_K]."""
    joined = torch.cat(features)
    return torch.cat((x[: len(x) - len(joined)], joined))


def concatenated(variant, x, features):
    """W [E(piece); L_1; …; L_K] + b."""
    return variant.projection.weight @ torch.cat((x, *features)) + variant.projection.bias


def infused(variant, x, features):
    """W [L_1; …; L_K; E(piece)] + b."""
    return variant.projection.weight @ torch.cat((*features, x)) + variant.projection.bias


def summed(variant, x, features):
    """E(piece) + Σ U_k L_k, where U_k widens what is narrow."""
    widening = {**dict.fromkeys(variant.widths, None), **dict(variant.widening.items())}
    for matrix, feature in zip(widening.values(), features, strict=True):
        x = x + (feature if matrix is None else matrix.weight @ feature)
    return x


NAMES = ("root", "nsubj", "obj", "nsubj:pass", "det", "case", "odd")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("kind", "join", "options"),
    [
        (TagEmbedding, replaced, {"features": WIDTHS}),
        (TagEmbedding, replaced, {"features": {"subword": 1, "tag": 1}}),
        (TagEmbedding, replaced, {"size": 3, "relations": NAMES[:4]}),
        (TagEmbedding, concatenated, {"features": WIDTHS, "combine": "concatenate"}),
        (TagEmbedding, summed, {"features": {"lemma": 8, "tag": 3}, "combine": "sum"}),
        (SyntaxInfused, infused, {"features": INFUSED, "size": 2}),
    ],
)
def test_features_equal_a_loop_over_pieces_gradients_too(kind, join, options, seed):
    trees, variant = list(featured_trees(seed)), drawn(kind, PLACE, most=MOST, **options)
    variant.reads = tuple(with_values(signal, VALUES) for signal in variant.reads)
    (syntax, mask), tables = read(variant, trees), tables_of(variant)
    real = mask[:, 0, 0]
    x = torch.randn(*real.shape, 8, dtype=torch.float64, requires_grad=True)
    rows = []
    for b, (parse, word_of) in enumerate(with_special(trees)):
        for t in range(len(word_of)):
            numbers = {
                name: row_of(name, parse, word_of, t, options.get("relations")) for name in tables
            }
            features = [table.weight[numbers[name]] for name, table in tables.items()]
            rows.append(join(variant, x[b, t], features))
    leaves = (x, *variant.parameters())
    assert_same_with_gradients(variant.embed(x, syntax)[real], torch.stack(rows), leaves)


def test_the_depth_of_each_word_is_added_to_its_embedding_gradients_too():
    trees, variant = random_trees(3), drawn(StructuralDepth)
    syntax, mask = read(variant, trees)
    real = mask[:, 0, 0]
    x = torch.randn(*real.shape, 8, dtype=torch.float64, requires_grad=True)
    rows = []
    for b, (parse, word_of) in enumerate(with_special(trees)):
        for t, word in enumerate(word_of):
            depth = len(way_up(parse.parents, word)) - 1
            angles = [depth * 10_000 ** (-n / 3) for n in range(4)]
            waves = torch.tensor([*map(math.sin, angles), *map(math.cos, angles)]).double()
            added = torch.tanh(variant.project.weight @ waves + variant.project.bias)
            rows.append(x[b, t] + added * (word >= 0))
    leaves = (x, *variant.parameters())
    found = variant.embed(x, syntax)
    assert_same_with_gradients(found[real], torch.stack(rows), leaves, rtol=1e-6, atol=1e-6)
    assert torch.equal(found[~real], x[~real])


def test_an_odd_width_of_the_embedding_has_one_sinusoid_less():
    variant = StructuralDepth(Place("source", 1, 0, 8, 4, embedding_dim=7))
    added = variant.embed(torch.zeros(1, 2, 7), Syntax({"depth": torch.tensor([[3, -1]])}))
    assert added.any(-1).tolist() == [[True, False]]
    assert sinusoids_at(torch.tensor([[3]]), 6).shape == (1, 1, 6)


def test_positions_are_added_to_features_and_the_root_of_d_does_not_scale_them():
    model = small_model({"name": "tag_embedding", "size": 4}).eval()
    [variant], embedding = model.variants["source"], model.source_embedding
    _, batch = random_batch(model, [3, 5])
    ids, relations = batch.source.ids, batch.source_signals["relation"]
    found = embedding(ids, model.syntax("source", batch.source_signals))
    positions = embedding.positions[: ids.size(1), -4:]
    torch.testing.assert_close(found[..., -4:], variant.table.weight[relations] + positions)
    torch.testing.assert_close(found[..., :-4], embedding(ids)[..., :-4])


def test_a_model_has_a_row_for_each_value_of_the_training_text_and_two_more():
    names = ["lemma", "tag"]
    variants = (
        {"name": "syntax_infused", "features": names, "most": 3},
        {"name": "tag_embedding", "features": {"lemma": 3, "fine_tag": 2}, "most": 2},
    )
    recipe = small_recipe(model=SIZE, syntax={"variants": list(variants)})
    sizes = {"source_pieces": 40, "target_pieces": 40}
    model = build(recipe.model, recipe.syntax, **sizes, features=VALUES)
    assert [len(table.weight) for table in model.variants["source"][1].tables.values()] == [4, 3]
    read_by_both = ["lemma.3", "tag", "lemma.2", "fine_tag.2"]
    assert [signal.name for signal in model.reads("source")] == read_by_both
    _, batch = random_batch(model, [3, 1])
    assert torch.isfinite(model(batch).states).all()


def test_an_embedding_is_divided_among_the_features_of_syntax_infused():
    [variant] = small_model({"name": "syntax_infused"}).variants["source"]
    shapes = [tuple(table.weight.shape) for table in variant.tables]
    assert shapes == [(19, 4), (73, 4), (7, 4), (6, 4)]
