"""Every system of systems.yaml as a recipe and as a model, and random parsed sentences for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from synmt.arrays import SIDES
from synmt.data.batch import Batch, collate
from synmt.data.corpus import Example, Tree
from synmt.model.build import build, variant_class
from synmt.model.seq2seq import Seq2Seq
from synmt.recipe.load import check_recipe
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml_text import load_yaml
from synmt.syntax.parse import SCENES, Arcs, Parse
from synmt.syntax.reading import Reading
from synmt.syntax.relations import UNIVERSAL
from synmt.syntax.trees import random_tree

_BY_ARCHITECTURE: dict[str, dict[str, dict[str, Any]]] = load_yaml(
    Path(__file__).with_name("systems.yaml")
)
ARCHITECTURES = {name: kind for kind, systems in _BY_ARCHITECTURE.items() for name in systems}
"""The architecture of each system."""
_PUNCTUATION = dict.fromkeys(("source", "target"), range(4, 104))
"""Pieces that count as punctuation."""
_ARCS = 6
"""Arcs of a word."""


def recipe_of(name: str, size: str) -> Recipe:
    """Make the recipe of a system in one of the sizes of its architecture."""
    architecture = ARCHITECTURES[name]
    system = _BY_ARCHITECTURE[architecture][name]
    values = {"name": "b", "source": "en", "target": "de", "corpus": {"name": "controlled"}}
    model: dict[str, Any] = {"size": size, "architecture": architecture}
    plain = check_recipe({**values, "model": model}, where="benchmark").model
    model |= system.get("model", {})
    if model.get("feed_forward") == "swiglu":
        # which then has as many weights
        model["feedforward_dim"] = plain.feedforward_dim * 2 // 3
    if heads := system.get("heads_of_first_layer"):
        model["encoder_heads"] = [heads, *[plain.heads] * (plain.encoder_layers - 1)]
    variants = [dict(variant) for variant in system.get("variants", ())]
    for variant in variants:
        layers = variant_class(variant["name"]).default_layers
        if layers != "all" and max(layers) > plain.encoder_layers:
            # a smaller model does not have the layer
            variant["layers"] = [plain.encoder_layers]
    values |= {"model": model, "syntax": {"variants": variants}}
    return check_recipe(values, where="benchmark")


def model_of(name: str, size: str, pieces: int) -> Seq2Seq:
    """Build the model of a system for a joint vocabulary."""
    recipe = recipe_of(name, size)
    return build(
        recipe.model,
        recipe.syntax,
        source_pieces=pieces,
        target_pieces=pieces,
        punctuation=_PUNCTUATION,
    )


def draw_examples(
    longest: int, sentences: int, pieces: int, random: np.random.Generator
) -> list[Example]:
    """Draw parsed pairs of about `longest` pieces a side, EOS included; a word has 1.4 pieces."""
    lengths = random.integers(max(2, longest - 3), longest + 1, (sentences, 2))
    lengths[0] = longest
    examples = []
    for line, of_sides in enumerate((lengths - 1).tolist()):
        trees = {
            side: _draw_tree(length, random) for side, length in zip(SIDES, of_sides, strict=True)
        }
        source, target = (random.integers(4, pieces, length) for length in of_sides)
        examples.append(Example(line, source, target, trees))
    return examples


def _draw_tree(pieces: int, random: np.random.Generator) -> Tree:
    words, relations = max(1, round(pieces / 1.4)), len(UNIVERSAL)
    word_of = np.sort(np.append(np.arange(words), random.integers(words, size=pieces - words)))
    named = [UNIVERSAL[number] for number in random.integers(relations, size=words)]
    tags = [("NOUN", "VERB", "DET", "ADJ")[number] for number in random.integers(4, size=words)]
    drawn = random.dirichlet(np.full(_ARCS, 0.2), words).astype(np.float32).ravel()
    parents, labels = (random.integers(high, size=words * _ARCS) for high in (words, relations))
    arcs = Arcs(np.repeat(np.arange(words), _ARCS), parents, labels, drawn, UNIVERSAL)
    scenes = {SCENES: list(map(str, random.integers(1 + words // 8, size=words)))}
    spans, tree = np.zeros((words, 2), int), random_tree(words, random)
    return Tree(Parse(["w"] * words, spans, tree, named, tags, arcs, features=scenes), word_of)


def batch_for(model: Seq2Seq | None, examples: Sequence[Example]) -> Batch:
    """Put sentences side by side with all that a model reads and learns; None reads nothing."""
    if model is None:
        return collate(examples)
    return collate(examples, *(Reading(model.reads(side) + model.learns(side)) for side in SIDES))
