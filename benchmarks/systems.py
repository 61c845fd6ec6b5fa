"""Every system by name, as a recipe and as a model, and random parsed sentences for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from synmt.arrays import SIDES, IntArray
from synmt.data.batch import Batch, collate
from synmt.data.corpus import Example, Tree
from synmt.model.build import build, variant_class
from synmt.model.seq2seq import Seq2Seq
from synmt.recipe.load import check_recipe
from synmt.recipe.schema import ModelRecipe, Recipe
from synmt.syntax.parse import SCENES, Arcs, Parse
from synmt.syntax.reading import Reading
from synmt.syntax.relations import UNIVERSAL
from synmt.syntax.trees import random_tree

BOTH = ("source", "target")
TRANSFORMERS: dict[str, list[dict]] = {
    "plain": [],
    "pascal": [{"name": "pascal", "ignore": 0.3}],
    "lisa": [{"name": "lisa"}],
    "tags": [{"name": "tag_embedding"}],
    "features": [{"name": "tag_embedding", "features": {"subword": 1, "tag": 3, "relation": 3}}],
    "syntax-infused": [{"name": "syntax_infused"}],
    "deps-san": [{"name": "deps_san"}],
    "deps-san-rs": [{"name": "deps_san", "resample": 0.1}],
    "deps-san-wink": [{"name": "deps_san", "window": 6}],
    "distance-mask": [{"name": "distance_mask"}],
    "kinship-mask": [{"name": "kinship_mask"}],
    "localness-fixed": [{"name": "localness", "window": "fixed"}],
    "localness-layer": [{"name": "localness", "window": "layer"}],
    "localness-query": [{"name": "localness", "window": "query"}],
    "context-global": [{"name": "context", "kind": "global"}],
    "context-deep": [{"name": "context", "kind": "deep"}],
    "context-deep-global": [{"name": "context", "kind": "deep_global"}],
    "relative-keys": [{"name": "relative", "side": side, "values": False} for side in BOTH],
    "relative": [{"name": "relative", "side": side} for side in BOTH],
    "depth-relative": [{"name": "depth_relative"}],
    "graph-relations": [{"name": "graph_relations"}],
    "path-relations": [{"name": "path_relations", "label_dim": 25, "hidden_dim": 64}],
    "structural-positions": [{"name": "structural_positions"}],
    "structural-depth": [{"name": "structural_depth"}],
    "dbsa-encoder": [{"name": "dbsa"}],
    "dbsa-decoder": [{"name": "dbsa", "side": "target"}],
    "dbsa-both": [{"name": "dbsa", "side": side} for side in BOTH],
    "plain-16-heads": [],
    "rotary": [],
    "alibi": [],
    "rms": [],
    "gelu": [],
    "swiglu": [],
    "modern": [],
    "modern-pascal": [{"name": "pascal", "ignore": 0.3}],
    "ldd": [{"name": "dependency_distribution", "kind": "ldd"}],
    "lda": [{"name": "dependency_distribution", "kind": "lda"}],
    "ldp": [{"name": "dependency_distribution", "kind": "ldp"}],
    "udp": [{"name": "dependency_distribution", "kind": "udp"}],
    "udd": [{"name": "dependency_distribution", "kind": "udd"}],
    "uldd": [{"name": "dependency_distribution", "kind": "uldd"}],
    "uudd": [{"name": "dependency_distribution", "kind": "uudd"}],
    "udiscal": [{"name": "deps_san", "combine": "weights", "heads": 1}],
    "scene-mask": [{"name": "scene_mask"}],
    "distance-transformer": [{"name": "distance_transformer"}],
    "tree-regularization": [{"name": "tree_regularization", "side": "target", "loss_weight": 0.1}],
    "tree-lstm-transformer": [{"name": "tree_lstm"}],
    "gcn": [{"name": "gcn"}],
    "tree-planting": [{"name": "tree_planting", "side": "target"}],
    "tree-attention": [{"name": "tree_attention", "heads": 2}],
}
LSTMS: dict[str, list[dict]] = {
    "lstm": [],
    "tree-lstm": [{"name": "tree_lstm"}],
    "sa": [{"name": "latent_tree"}],
    "sa-separate": [{"name": "latent_tree", "attention": "separate"}],
    "sa-hard": [{"name": "latent_tree", "hard": True}],
    "sa-1set": [{"name": "latent_tree", "sets": 1}],
    "fa": [{"name": "latent_tree", "normalize": "flat"}],
    "gcn-lstm": [{"name": "gcn"}],
    "latent-graph": [{"name": "latent_graph"}],
    "fa-separate": [{"name": "latent_tree", "normalize": "flat", "attention": "separate"}],
}
SYSTEMS = TRANSFORMERS | LSTMS
_MODERN = {"positions": "rotary", "norm_kind": "rms", "feed_forward": "swiglu"}
MODELS: dict[str, dict] = {
    "rotary": {"positions": "rotary"},
    "alibi": {"positions": "alibi"},
    "rms": {"norm_kind": "rms"},
    "gelu": {"feed_forward": "gelu"},
    "swiglu": {"feed_forward": "swiglu"},
    "modern": _MODERN,
    "modern-pascal": _MODERN,
}
"""What a system has in place of the published parts; SwiGLU has 2/3 of the width, so as many weights."""
PUNCTUATION = range(4, 104)
"""Pieces that count as punctuation."""


def recipe_of(name: str, size: str, rates: Mapping[str, float] | None = None) -> Recipe:
    """Give the recipe of a system in one of the sizes of its architecture, with rates of dropout by key."""
    values = {"name": "b", "source": "en", "target": "de", "corpus": {"name": "controlled"}}
    model: dict = {"size": size, "architecture": "lstm" if name in LSTMS else "transformer", **(rates or {})}
    plain: ModelRecipe = check_recipe({**values, "model": model}, where="benchmark").model
    model |= MODELS.get(name, {})
    if model.get("feed_forward") == "swiglu":
        model["feedforward_dim"] = plain.feedforward_dim * 2 // 3
    if has_sixteen_heads(name):
        model["encoder_heads"] = [16, *[plain.heads] * (plain.encoder_layers - 1)]
    variants = variants_in(name, plain.encoder_layers)
    return check_recipe({**values, "model": model, "syntax": {"variants": variants}}, where="benchmark")


def model_of(name: str, size: str, pieces: int, rates: Mapping[str, float] | None = None) -> Seq2Seq:
    """Build the model of a system for a joint vocabulary."""
    recipe = recipe_of(name, size, rates)
    sizes = {"source_pieces": pieces, "target_pieces": pieces}
    return build(recipe.model, recipe.syntax, **sizes, punctuation={"source": PUNCTUATION, "target": PUNCTUATION})


def variants_in(name: str, layers: int) -> list[dict]:
    """Give the variants of a system; those of a layer that a smaller model does not have go to its last one."""
    variants = []
    for variant in SYSTEMS[name]:
        own = variant_class(variant["name"]).default_layers
        too_deep = own != "all" and max(own) > layers
        variants.append({**variant, "layers": [layers]} if too_deep else variant)
    return variants


def has_sixteen_heads(name: str) -> bool:
    """Tell whether the first encoder layer of a system has 16 heads."""
    return name == "plain-16-heads" or any(v["name"] == "dependency_distribution" for v in SYSTEMS[name])


def draw_examples(longest: int, sentences: int, pieces: int, random: np.random.Generator) -> list[Example]:
    """Draw parsed pairs of about `longest` pieces a side, EOS included; a word has 1.4 pieces."""
    lengths = random.integers(max(2, longest - 3), longest + 1, (sentences, 2))
    lengths[0] = longest
    return draw_pairs(lengths, pieces, random)


def draw_pairs(lengths: IntArray, pieces: int, random: np.random.Generator) -> list[Example]:
    """Draw parsed pairs of these lengths, EOS included: (N, 2)."""
    examples = []
    for line, (source, target) in enumerate(lengths - 1):
        trees = {side: _draw_tree(int(length), random) for side, length in zip(SIDES, (source, target), strict=True)}
        examples.append(Example(line, *(random.integers(4, pieces, length) for length in (source, target)), trees))
    return examples


def _draw_tree(pieces: int, random: np.random.Generator) -> Tree:
    words = max(1, round(pieces / 1.4))
    word_of = np.sort(np.append(np.arange(words), random.integers(words, size=pieces - words)))
    parents = random_tree(words, random)
    relations = [UNIVERSAL[number] for number in random.integers(len(UNIVERSAL), size=words)]
    arcs, scenes = _draw_arcs(words, random), {SCENES: list(map(str, random.integers(1 + words // 8, size=words)))}
    tags = [("NOUN", "VERB", "DET", "ADJ")[number] for number in random.integers(4, size=words)]
    parse = Parse(["w"] * words, np.zeros((words, 2), int), parents, relations, tags, arcs, features=scenes)
    return Tree(parse, word_of)


def _draw_arcs(words: int, random: np.random.Generator, each: int = 6) -> Arcs:
    drawn = random.dirichlet(np.full(each, 0.2), words).astype(np.float32).ravel()
    parents, relations = random.integers(words, size=words * each), random.integers(len(UNIVERSAL), size=words * each)
    return Arcs(np.repeat(np.arange(words), each), parents, relations, drawn, UNIVERSAL)


def batch_for(model: Seq2Seq | None, examples: Sequence[Example]) -> Batch:
    """Put sentences side by side with all that a model reads and learns; None reads nothing."""
    if model is None:
        return collate(examples)
    return collate(examples, *(Reading(model.reads(side) + model.learns(side)) for side in SIDES))
