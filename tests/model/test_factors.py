"""Features in embeddings, by tag_embedding and syntax_infused, against loops from the equations."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from attending import random_trees, read
from small import (
    MONKEY,
    MONKEY_WORD_OF,
    SIZE,
    make_variant,
    random_batch,
    relation_warnings,
    small_model,
    small_recipe,
)

from synmt.data.corpus import Tree
from synmt.errors import UsageError
from synmt.model.build import build
from synmt.model.variant import Place, Syntax
from synmt.model.variants.syntax_infused import SyntaxInfused
from synmt.model.variants.tag_embedding import TagEmbedding
from synmt.syntax.feature_signals import CASES, PLACES, UNIVERSAL_TAGS, case_of, with_values
from synmt.syntax.relations import KNOWN

VALUES = {"lemma": ("c", "a", "b"), "morphology": ("_", "Case=Nom"), "fine_tag": ("NN",)}
PLACE = Place("source", layer=1, heads=0, model_dim=8, head_dim=4, features=VALUES)
WIDTHS = {"lemma": 3, "subword": 1, "morphology": 2, "tag": 1, "relation": 1}
INFUSED = ("tag", "relation", "case", "subword", "lemma")
MOST = 2
LISTS = {"tag": UNIVERSAL_TAGS, "relation": KNOWN, "case": CASES, "subword": PLACES, **VALUES}


def featured_trees(seed, words=(1, 4, 6)):
    """Draw trees whose words have tags and features; some have values that are not in the lists."""
    random = np.random.default_rng(seed)

    def drawn(values, count):
        return random.choice([*values, "odd"], count).tolist()

    for tree in random_trees(seed, words):
        count = len(tree.parse)
        features = {name: drawn(values, count) for name, values in VALUES.items()}
        words = drawn(("monkey", "The", "UN", "iPad", "?"), count)
        yield Tree(
            replace(tree.parse, words=words, tags=drawn(UNIVERSAL_TAGS, count), features=features),
            tree.word_of,
        )


def slow_row(name, tree, position):
    """Find the row of a piece in the table of a feature."""
    word_of = [*tree.word_of.tolist(), -1]
    word = word_of[position]
    if word < 0:
        return 0
    parse = tree.parse
    if name == "subword":
        own = [place for place, owner in enumerate(word_of) if owner == word]
        value = (
            "O"
            if len(own) == 1
            else "B"
            if position == own[0]
            else "E"
            if position == own[-1]
            else "I"
        )
    elif name == "case":
        value = case_of(parse.words[word])
    elif name == "relation":
        value = (
            parse.relations[word]
            if parse.relations[word] in KNOWN
            else parse.relations[word].split(":")[0]
        )
    else:
        value = parse.tags[word] if name == "tag" else parse.features[name][word]
    known = LISTS[name][:MOST] if name in VALUES else LISTS[name]
    return 1 + (known.index(value) if value in known else len(known))


def slow_embed(x, trees, tables, join):
    """Look up every feature of every piece, and join its vectors with the vector of the piece."""
    result = x.detach().clone()
    for b, tree in enumerate(trees):
        for t in range(len(tree.word_of) + 1):
            features = {name: table[slow_row(name, tree, t)] for name, table in tables.items()}
            result[b, t] = join(x[b, t].detach(), features)
    return result


def made(kind, **options):
    """Make a variant in float64 with drawn weights, whose signals know the values."""
    variant = make_variant(kind, PLACE, **options).double()
    variant.reads = tuple(with_values(signal, VALUES) for signal in variant.reads)
    for parameter in variant.parameters():
        torch.nn.init.normal_(parameter)
    return variant


def check(variant, trees, tables, join):
    syntax, mask = read(variant, trees)
    mask = mask[:, 0, 0]
    x = torch.randn(*mask.shape, 8, dtype=torch.float64)
    plain = {name: table.detach() for name, table in tables.items()}
    expected = slow_embed(x, trees, plain, join)
    torch.testing.assert_close(variant.embed(x, syntax)[mask], expected[mask])
    weights = dict(variant.named_parameters())

    def embedded(x, *values):
        own = dict(zip(weights, values, strict=True))
        return torch.func.functional_call(
            _Embedding(variant), {f"of.{k}": v for k, v in own.items()}, (x, syntax)
        )

    inputs = (x[:1, :4].requires_grad_(), *weights.values())
    syntax = Syntax({name: signal[:1, :4] for name, signal in syntax.signals.items()})
    # the gradients of every table, projection and piece
    assert torch.autograd.gradcheck(embedded, inputs)


class _Embedding(torch.nn.Module):
    def __init__(self, variant):
        super().__init__()
        self.of = variant

    def forward(self, x, syntax):
        return self.of.embed(x, syntax)


def tables_of(variant):
    found = {name: table.weight for name, table in variant.tables.items()}
    return {name: variant.table.weight if name == "relation" else found[name] for name in WIDTHS}


@pytest.mark.parametrize("seed", [0, 1])
def test_replacing_equals_a_loop_over_pieces(seed):
    variant, trees = made(TagEmbedding, features=WIDTHS, most=MOST), list(featured_trees(seed))
    check(
        variant,
        trees,
        tables_of(variant),
        lambda x, features: torch.cat([x[:0], *features.values()]),
    )
    narrow = {name: WIDTHS[name] for name in ("subword", "tag")}
    variant = made(TagEmbedding, features=narrow, most=MOST)
    tables = {name: variant.tables[name].weight for name in narrow}
    check(
        variant,
        trees,
        tables,
        lambda x, features: torch.cat([x[:6], features["subword"], features["tag"]]),
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_concatenating_projects_piece_and_features(seed):
    variant = made(TagEmbedding, features=WIDTHS, combine="concatenate", most=MOST)
    weight, bias = variant.projection.weight.detach(), variant.projection.bias.detach()

    def join(x, features):
        whole = [*x.tolist(), *(value for name in WIDTHS for value in features[name].tolist())]
        rows = [sum(w * v for w, v in zip(row, whole, strict=True)) for row in weight.tolist()]
        return torch.tensor(rows, dtype=torch.float64) + bias

    check(variant, list(featured_trees(seed)), tables_of(variant), join)


@pytest.mark.parametrize("seed", [0, 1])
def test_summing_widens_what_is_narrower_than_the_piece(seed):
    widths = {"lemma": 8, "tag": 3}
    variant = made(TagEmbedding, features=widths, combine="sum", most=MOST)
    widening = variant.widening["tag"].weight.detach()
    assert set(variant.widening) == {"tag"}
    tables = {name: variant.tables[name].weight for name in widths}

    def join(x, features):
        wide = [
            sum(w * v for w, v in zip(row, features["tag"].tolist(), strict=True))
            for row in widening.tolist()
        ]
        return x + features["lemma"] + torch.tensor(wide, dtype=torch.float64)

    check(variant, list(featured_trees(seed)), tables, join)


@pytest.mark.parametrize("seed", [0, 1])
def test_syntax_infused_puts_the_features_before_the_piece(seed):
    variant = made(SyntaxInfused, features=INFUSED, size=2, most=MOST)
    weight, bias = variant.projection.weight.detach(), variant.projection.bias.detach()
    tables = {name: table.weight for name, table in zip(INFUSED, variant.tables, strict=True)}

    def join(x, features):
        whole = [*(value for name in INFUSED for value in features[name].tolist()), *x.tolist()]
        rows = [sum(w * v for w, v in zip(row, whole, strict=True)) for row in weight.tolist()]
        return torch.tensor(rows, dtype=torch.float64) + bias

    check(variant, list(featured_trees(seed)), tables, join)


def test_syntax_infused_warns_of_relations_that_share_an_embedding_if_it_reads_relations():
    counts = {"nsubj": 500, "SUBJ": 1200}
    [warning] = relation_warnings(SyntaxInfused, counts)
    assert (
        "1 relation (1,200 of 1,700 words) is unknown to syntax_infused; these words share one "
        "embedding" in warning
    )
    assert relation_warnings(SyntaxInfused, counts, features=("tag", "case")) == []


def test_syntax_infused_divides_an_embedding_among_its_features_and_can_leave_it_as_it_is():
    variant = make_variant(SyntaxInfused, PLACE)
    assert [tuple(table.weight.shape) for table in variant.tables] == [
        (19, 2),
        (73, 2),
        (7, 2),
        (6, 2),
    ]
    assert variant.projection.weight.shape == (8, 16)
    with torch.no_grad():
        variant.projection.weight.copy_(torch.cat((torch.zeros(8, 8), torch.eye(8)), 1))
        variant.projection.bias.zero_()
    parse = replace(MONKEY, tags=["DET", "NOUN", "VERB", "DET", "NOUN"])
    syntax, _ = read(variant, [Tree(parse, MONKEY_WORD_OF)])
    x = torch.randn(1, 8, 8)
    assert torch.equal(variant.embed(x, syntax), x)
    # each table once, zero elsewhere: the first two components of x are those of the tag
    with torch.no_grad():
        variant.projection.weight.copy_(torch.cat((torch.eye(8), torch.zeros(8, 8)), 1))
    tags = [1 + UNIVERSAL_TAGS.index(parse.tags[word]) for word in MONKEY_WORD_OF]
    torch.testing.assert_close(
        variant.embed(x, syntax)[0, :, :2], variant.tables[0].weight[[*tags, 0]]
    )


def test_the_initial_inputs_of_the_projection_weigh_alike():
    place = replace(PLACE, model_dim=256)
    assert abs(make_variant(SyntaxInfused, place).tables[1].weight.std().item() - 1) < 0.05


def featured_model(*variants, values=VALUES):
    recipe = small_recipe(model={**SIZE, "dropout": 0.0}, syntax={"variants": list(variants)})
    return build(recipe.model, recipe.syntax, source_pieces=40, target_pieces=40, features=values)


def test_the_tables_of_a_model_have_a_row_for_each_value_of_the_training_text_and_two_more():
    model = featured_model(
        {"name": "tag_embedding", "features": {"lemma": 3, "fine_tag": 2}, "most": 2}
    )
    [variant] = model.variants["source"]
    assert [len(table.weight) for table in variant.tables.values()] == [4, 3]
    assert [signal.name for signal in model.reads("source")] == ["lemma.2", "fine_tag.2"]
    _, batch = random_batch(model, [3, 1])
    assert torch.isfinite(model(batch).states).all()


def test_two_variants_may_read_the_same_feature():
    names = ["lemma", "tag"]
    model = featured_model(
        {"name": "syntax_infused", "features": names},
        {"name": "tag_embedding", "features": {"lemma": 4}},
    )
    assert [signal.name for signal in model.reads("source")] == ["lemma.50000", "tag"]


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        (
            {"name": "tag_embedding", "features": {"tag": 9, "case": 8}},
            "the size of tag_embedding is 17. 1 to 16",
        ),
        ({"name": "tag_embedding", "features": {"tags": 9}}, "syntax.variants.0.features"),
        ({"name": "tag_embedding", "features": {"tag": 0}}, "syntax.variants.0.features"),
        ({"name": "tag_embedding", "features": {"tag": 2}, "relations": ["a"]}, "but embeds none"),
        ({"name": "syntax_infused", "features": []}, "`features` of syntax_infused is empty"),
        ({"name": "syntax_infused", "features": ["tag", "tag"]}, "names one twice"),
        ({"name": "syntax_infused", "features": ["chunk"]}, "syntax.variants.0.features"),
    ],
)
def test_features_that_do_not_fit_are_refused(variant, said):
    with pytest.raises(UsageError) as caught:
        small_model(variant)
    assert said in str(caught.value)


LAB = """
from synmt.model.variant import Variant
from synmt.syntax.feature_signals import feature_signal


class Lemmas(Variant):
    learns = (feature_signal("lemma", most=9),)
"""

BY_OPTION = """
    learns = ()

    @classmethod
    def learns_for(cls, **options):
        return (feature_signal("lemma", most=9),)
"""


@pytest.mark.parametrize(("lab", "module"), [("lemma_lab", LAB), ("option_lab", LAB + BY_OPTION)])
def test_a_variant_of_the_target_cannot_learn_from_lemmas(tmp_path, monkeypatch, lab, module):
    (tmp_path / lab).mkdir()
    (tmp_path / lab / "lemmas.py").write_text(module, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SYNMT_ALLOW_CODE", "1")
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    small_model({"name": f"{lab}.lemmas"})
    with pytest.raises(UsageError, match="whose values are known for the source only"):
        small_model({"name": f"{lab}.lemmas", "side": "target"})


def test_an_embedding_narrower_than_its_number_of_features_is_refused():
    with pytest.raises(UsageError, match="2 components cannot be divided among 4 features"):
        SyntaxInfused.check(replace(PLACE, model_dim=2), features=INFUSED[:4], size=0)


def test_summed_or_projected_features_may_be_wider_than_the_piece():
    for combine in ("sum", "concatenate"):
        model = small_model({"name": "tag_embedding", "features": {"tag": 40}, "combine": combine})
        _, batch = random_batch(model, [3, 1])
        assert model(batch).states.shape[-1] == 16
