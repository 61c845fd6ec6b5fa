"""How many files of synmt a training step enters, and that it never waits for the device."""

from itertools import islice

import numpy as np
import pytest
import torch
from entered import files_entered
from small import random_tree
from test_training import CopyTask, make_model, make_recipe
from torch.utils._python_dispatch import TorchDispatchMode

from synmt.data.batch import reading_of
from synmt.data.corpus import Example, Tree
from synmt.data.stream import Position, Reader
from synmt.recipe.data import ParserRecipe
from synmt.run import Run
from synmt.training.trainer import Trainer

pytestmark = pytest.mark.journey

WAITS = ("aten._local_scalar_dense", "aten.nonzero", "aten.masked_select", "aten.equal", "aten.is_nonzero")


class Trees(CopyTask):
    """Sentences with random trees, a word for each piece."""

    def rows(self, indices):
        random = np.random.default_rng(1)
        trees = ((i, Tree(random_tree(len(self.texts[i]), random), np.arange(len(self.texts[i])))) for i in indices)
        return [Example(int(i), self.texts[i], self.texts[i], {"source": tree}) for i, tree in trees]


@pytest.fixture
def pascal(tmp_path):
    """Make a trainer of PASCAL and its first batches."""
    recipe = make_recipe(variants=[{"name": "pascal", "layers": [1], "heads": 2}])
    model = make_model(recipe)
    reader = Reader(Trees(), recipe.training, {"source": reading_of(model.reads("source"), ParserRecipe())})
    trainer = Trainer(Run(tmp_path), recipe, model, train=reader, valid=reader, device=torch.device("cpu"))
    return trainer, [batch for batch, _ in islice(reader.forever(Position()), 3)]


def test_a_training_step_enters_few_files(pascal):
    trainer, batches = pascal

    def step():
        trainer._meter.add(trainer.update(batches))
        trainer._meter.record(1)

    entered = files_entered(step)
    assert {"model/variants/pascal.py", "training/trainer.py", "training/records.py"} <= entered
    assert len(entered) <= 12, sorted(entered)


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


def test_a_training_step_reads_nothing_from_the_device_until_its_record(pascal):
    trainer, batches = pascal
    with Recorded() as recorded:
        trainer._meter.add(trainer.update(batches))
    assert recorded.names
    assert not [name for name in recorded.names if name.startswith(WAITS)]
    assert trainer._meter.record(1).loss > 0
