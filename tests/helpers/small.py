"""Small things that many tests are made of: *The monkey eats a banana*, models of a few thousand
weights, batches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from synmt.arrays import SIDES, IntArray
from synmt.data.batch import Batch, collate
from synmt.data.corpus import Example, Tree
from synmt.data.vocabulary import PAD
from synmt.model.build import build
from synmt.model.placement import PlacedVariant, option_defaults
from synmt.model.seq2seq import Seq2Seq
from synmt.model.variant import Place, Variant
from synmt.recipe.load import check_recipe
from synmt.recipe.schema import ModelRecipe, Recipe
from synmt.syntax.parse import SCENES, Arcs, Parse
from synmt.syntax.reading import Reading

PIECES = 40
RELATIONS = ("root", "nsubj", "nsubj:pass", "obj", "det", "case", "odd")
PUNCTUATION = (5, 6, 7, 8)
SIZE = {
    "encoder_layers": 2,
    "decoder_layers": 2,
    "model_dim": 16,
    "feedforward_dim": 24,
    "heads": 4,
}
LSTM_SIZE = {"encoder_layers": 2, "decoder_layers": 2, "model_dim": 16, "initial_range": 0.5}

MONKEY = Parse(
    words=["The", "monkey", "eats", "a", "banana"],
    spans=np.array([[0, 3], [4, 10], [11, 15], [16, 17], [18, 24]]),
    parents=np.array([1, 2, 2, 4, 2]),
    relations=["det", "nsubj", "root", "det", "obj"],
)
MONKEY_SPANS = np.array([[0, 3], [3, 7], [7, 10], [10, 15], [15, 17], [17, 21], [21, 24]])
"""▁The ▁mon key ▁eats ▁a ▁ban ana"""
MONKEY_WORD_OF = np.array([0, 1, 1, 2, 3, 4, 4])
"""The word of each piece."""


def small_recipe(**sections: Any) -> Recipe:
    """Make a recipe from English to German with these sections."""
    languages = {"source": "en", "target": "de"}
    return check_recipe(
        {"name": "small", **languages, "corpus": {"name": "controlled"}, **sections}, where="test"
    )


def sized_recipe(*variants: dict[str, Any], **options: Any) -> Recipe:
    """Make the recipe of a small model without dropout unless asked for it."""
    model = {**_size(options), "dropout": 0.0, **options}
    return small_recipe(model=model, syntax={"variants": list(variants)})


def small_model(*variants: dict[str, Any], seed: int = 0, **options: Any) -> Seq2Seq:
    """Build a small model without dropout unless asked for it."""
    recipe = sized_recipe(*variants, **options)
    # torch.manual_seed writes down the stack for each kind of device that is not in use
    torch.default_generator.manual_seed(seed)
    punctuation = {"source": PUNCTUATION, "target": PUNCTUATION}
    return build(
        recipe.model,
        recipe.syntax,
        source_pieces=PIECES,
        target_pieces=PIECES,
        punctuation=punctuation,
    )


def shaken(**options: Any) -> Seq2Seq:
    """Build a small Transformer in which no bias is zero and no norm is one."""
    model: Any = small_model(**options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
        for table in {model.source_embedding.table, model.target_embedding.table, model.output}:
            table.weight[PAD].zero_()
    return model.eval()


def _size(options: dict[str, Any]) -> dict[str, Any]:
    return LSTM_SIZE if options.get("architecture") == "lstm" else SIZE


def make_variant(kind: type[Variant], place: Place, /, **options: Any) -> Variant:
    """Build one variant with the signals of its options, as a model does."""
    options = {**option_defaults(kind), **options}
    return PlacedVariant(kind, place, options, 1.0, kind.reads_for(**options)).build()


def model_recipe(**options: Any) -> ModelRecipe:
    """Return the small model's sizes."""
    return ModelRecipe.model_validate({**_size(options), "dropout": 0.0, **options})


def is_tree(parents: Sequence[int] | IntArray) -> bool:
    """Check whether the parents of every word lead to the one root; no words are a tree, too."""
    ends = np.arange(len(parents))
    for _ in parents:
        ends = np.asarray(parents)[ends]
    return len(set(ends.tolist())) <= 1 and all(parents[end] == end for end in ends)


@cache
def all_trees(words: int) -> IntArray:
    """Write down the parents of every tree of W words: (trees, W)."""
    return np.array(
        [parents for parents in product(range(words), repeat=words) if is_tree(parents)]
    )


def slow_distances(parents: IntArray) -> list[list[int]]:
    """Search in breadth from every word, over arcs that go both ways."""
    beside: list[set[int]] = [set() for _ in parents]
    for word, parent in enumerate(parents.tolist()):
        beside[word].add(parent)
        beside[parent].add(word)
    rows = []
    for start in range(len(parents)):
        steps, found = {start: 0}, [start]
        for word in found:
            for near in beside[word] - steps.keys():
                steps[near] = steps[word] + 1
                found.append(near)
        rows.append([steps[word] for word in range(len(parents))])
    return rows


def random_pieces(words: int, random: np.random.Generator) -> IntArray:
    """Draw one to four pieces for each word, with specials between them, and with or without some
    before and after."""
    word_of = np.repeat(np.arange(words), random.integers(1, 5, words))
    # between two words: a piece without a word is never inside one
    gaps = np.flatnonzero(np.diff(word_of)) + 1
    word_of = np.insert(word_of, random.choice(gaps, min(2, len(gaps)), replace=False), -1)
    return np.concatenate(
        (np.full(random.integers(2), -1), word_of, np.full(random.integers(3), -1))
    )


def scattered_trees(seed: int, words: Sequence[int]) -> list[Tree]:
    """Draw trees, and pieces with specials between and around them."""
    random = np.random.default_rng(seed)
    parses = [random_tree(count, random) for count in words]
    return [Tree(parse, random_pieces(len(parse), random)) for parse in parses]


def stanza_sentence(
    words: Sequence[tuple[Any, ...]], tokens: Sequence[tuple[int, int, int]]
) -> SimpleNamespace:
    """Make a sentence as Stanza does: words (head, relation, perhaps tag) and tokens (start, end,
    number of words)."""
    made = [
        SimpleNamespace(head=head, deprel=relation, upos=[*tag, "X"][0])
        for head, relation, *tag in words
    ]
    parts = [SimpleNamespace(start_char=a, end_char=b, words=[None] * n) for a, b, n in tokens]
    return SimpleNamespace(words=made, tokens=parts)


def random_tree(words: int, random: np.random.Generator) -> Parse:
    """Draw a tree with probabilities of arcs: every word but the root hangs on a word that hangs on
    the root."""
    order = random.permutation(words)
    parents = np.empty(words, dtype=np.int64)
    parents[order[0]] = order[0]
    for position in range(1, words):
        parents[order[position]] = order[random.integers(position)]
    drawn = random.choice(RELATIONS[1:], words).tolist()
    relations = ["root" if parent == word else drawn[word] for word, parent in enumerate(parents)]
    arcs = random_arcs(words, random)
    # siblings share a scene, and the root is in none
    scenes = {
        SCENES: ["_" if parent == word else str(parent) for word, parent in enumerate(parents)]
    }
    texts, spans = [f"w{word}" for word in range(words)], np.zeros((words, 2), int)
    return Parse(texts, spans, parents, relations, arcs=arcs, features=scenes)


def random_arcs(words: int, random: np.random.Generator, each: int = 3) -> Arcs:
    """Draw some arcs for each word, with probabilities that sum to 1; a word on itself is the
    root."""
    parents, relations = (
        random.integers(words, size=(words, each)),
        random.integers(1, 7, size=(words, each)),
    )
    relations[parents == np.arange(words)[:, None]] = 0
    drawn = random.dirichlet(np.ones(each), words).astype(np.float32)
    return Arcs(
        np.repeat(np.arange(words), each),
        parents.ravel(),
        relations.ravel(),
        drawn.ravel(),
        RELATIONS,
    )


def examples_of(trees: Sequence[Tree], side: str = "source") -> list[Example]:
    """Make an example of each tree; pieces have the numbers of their words."""
    return [
        Example(line, tree.word_of, tree.word_of, {side: tree}) for line, tree in enumerate(trees)
    ]


def random_example(words: int, random: np.random.Generator, line: int = 0) -> Example:
    """Draw a sentence of this number of words and a translation, both parsed, whose words have one
    to three pieces."""
    trees, pieces = {}, []
    for side, count in zip(SIDES, (words, int(random.integers(1, 6))), strict=True):
        word_of = np.repeat(np.arange(count), random.integers(1, 4, count))
        trees[side] = Tree(random_tree(count, random), word_of)
        pieces.append(random.integers(4, PIECES, len(word_of)))
    return Example(line, *pieces, trees)


def random_batch(
    model: Seq2Seq, words: Sequence[int], seed: int = 0
) -> tuple[list[Example], Batch]:
    """Draw sentences of these numbers of words and put them side by side with all that the model
    reads and learns."""
    random = np.random.default_rng(seed)
    examples = [random_example(count, random, line) for line, count in enumerate(words)]
    return examples, batch_for(model, examples)


def batch_for(model: Seq2Seq, examples: Sequence[Example]) -> Batch:
    """Put sentences side by side with all that the model reads and learns."""
    return collate(examples, *(Reading(model.reads(side) + model.learns(side)) for side in SIDES))
