"""A training step never waits for the device."""

import math

import numpy as np
import pytest
import torch
import yaml
from copy_task import CopyTask, make_recipe
from small import PIECES, SIZE, random_batch, random_tree
from torch.utils._python_dispatch import TorchDispatchMode

from synmt.data.corpus import Example, Tree
from synmt.data.stream import Reader
from synmt.model.build import build
from synmt.run_folder import Run
from synmt.training.trainer import Trainer

pytestmark = pytest.mark.journey

WAITS = tuple(
    f"aten.{name}"
    for name in (
        "_local_scalar_dense",
        "item",
        "nonzero",
        "masked_select",
        "equal",
        "is_nonzero",
        "unique",
        "_unique",
    )
)
"""Operations whose result the processor waits for."""


class Trees(CopyTask):
    """Sentences with random trees, a word for each piece."""

    def rows(self, indices):
        random = np.random.default_rng(1)
        trees = (
            (i, Tree(random_tree(len(self.texts[i]), random), np.arange(len(self.texts[i]))))
            for i in indices
        )
        return [
            Example(int(i), self.texts[i], self.texts[i], {"source": tree}) for i, tree in trees
        ]


class Recorded(TorchDispatchMode):
    """Lists the operations of PyTorch by name."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        # to index by a mask is to count it
        indices = args[1] if str(func) == "aten.index.Tensor" else []
        by_mask = any(index is not None and index.dtype == torch.bool for index in indices)
        self.names.append("aten.nonzero" if by_mask else str(func))
        return func(*args, **(kwargs or {}))


SYSTEMS = yaml.safe_load(
    """
plain: []
pascal: [{name: pascal, ignore: 0.3}]
deps_san: [{name: deps_san, resample: 0.1, window: 6, layers: [1, 2]}]
distance_mask: [{name: distance_mask, layers: [1, 2]}]
kinship_mask: [{name: kinship_mask}]
localness: [{name: localness, window: query, layers: [1]}]
context: [{name: context, kind: deep_global}]
tags: [{name: tag_embedding}]
features: [{name: tag_embedding, features: {lemma: 3, tag: 2, subword: 1}, combine: sum}]
infused: [{name: syntax_infused, features: [tag, relation, subword]}]
labels: [{name: dependency_distribution, kind: ldd, layers: [1]}]
relative: [{name: relative, side: source}, {name: relative, side: target}]
depth_relative: [{name: depth_relative}]
graph_relations: [{name: graph_relations}]
path_relations: [{name: path_relations, label_dim: 4, hidden_dim: 3}]
structural_positions: [{name: structural_positions}]
structural_depth: [{name: structural_depth}]
lisa: [{name: lisa}]
dbsa: [{name: dbsa, side: source, layers: [1]}, {name: dbsa, side: target, layers: [1]}]
scene_mask: [{name: scene_mask, layers: [1]}]
distance_transformer: [{name: distance_transformer}]
tree_regularization: [{name: tree_regularization, side: target, layers: [1, 2]}]
tree_lstm: [{name: tree_lstm}]
gcn: [{name: gcn}]
tree_planting: [{name: tree_planting, side: source, layers: [1]},
  {name: tree_planting, side: target, layers: [1]}]
tree_attention: [{name: tree_attention, hard: true}]
rotary: [{name: pascal, heads: 2}]
bf16: [{name: pascal, heads: 2}, {name: lisa}]
alibi: [{name: relative, side: source, heads: 2}, {name: relative, side: target, heads: 2}]
"""
)
MODERN = {"norm": "pre", "norm_kind": "rms", "feed_forward": "swiglu"}


@pytest.mark.parametrize("name", SYSTEMS)
def test_training_steps_read_nothing_from_the_device_until_their_record(name, tmp_path):
    wide = {"model_dim": 32, "encoder_heads": [16, 4]} if name == "labels" else {}
    # variants know nothing of it
    precision = "bf16" if name == "bf16" else "float32"
    modern = {**MODERN, "positions": name} if name in ("rotary", "alibi") else {}
    rates = {"dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1}
    recipe = make_recipe(
        {**SIZE, **rates, **wide, **modern}, SYSTEMS[name], precision=precision, clip_norm=1.0
    )
    sizes = {"source_pieces": PIECES, "target_pieces": PIECES}
    model = build(
        recipe.model, recipe.syntax, **sizes, punctuation={"source": (5,), "target": (5,)}
    )
    batches = [random_batch(model, [4, 3, 6], seed)[1] for seed in range(2)]
    reader = Reader(Trees(), recipe.training, {})
    trainer = Trainer(
        Run(tmp_path), recipe, model, train=reader, valid=reader, device=torch.device("cpu")
    )
    # a first step and a later one; of one batch, and of two
    steps = [batches, batches] if name == "plain" else [batches[:1], batches[1:]]
    with Recorded() as recorded:
        for step in steps:
            trainer._meter.add(trainer.update(step))
    assert len(recorded.names) > 500
    assert not [name for name in recorded.names if name.startswith(WAITS)]
    assert math.isfinite(trainer._meter.record(2).loss)
