"""Steps of training can be recorded and replayed: batches are filled up to few shapes, and the
recorded passes compute what the model computes.

Here there is no GPU: `make_graphed_callables` stands in for that of torch.cuda.
"""

from __future__ import annotations

from unittest.mock import Mock

import pytest
import recording
import torch
from copy_task import make_recipe, make_trainer
from recording import assert_recorded_as_computed
from refusing import assert_fails, assert_refused
from torch.utils._pytree import tree_map
from variant_cases import RECORDED, without_dropout

pytest.importorskip("synmt.fast")

from synmt.parallel.torchrun import Started
from synmt.training import checks


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setattr(torch.cuda, "make_graphed_callables", recording.make_graphed_callables)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)


@pytest.mark.parametrize("recipe", RECORDED)
def test_recorded_passes_of_filled_batches_equal_the_models_own(recipe):
    assert_recorded_as_computed(without_dropout(recipe))


def test_a_training_with_recorded_steps_ends_with_the_same_weights(tmp_path, monkeypatch):
    relative = {"name": "relative", "heads": 2}
    # a larger epsilon than usual: Adam divides by gradients near zero
    recipe = make_recipe(variants=[relative], cuda_graphs=True, max_steps=20, epsilon=0.01)
    found = []
    for graphed in (recording.make_graphed_callables, lambda module, *_, **__: module):
        monkeypatch.setattr(torch.cuda, "make_graphed_callables", graphed)
        trainer = make_trainer(tmp_path / str(len(found)), recipe)
        list(trainer.train())
        assert len(trainer._objective.run._recorded) > 1
        found.append(dict(trainer.model.named_parameters()))
    torch.testing.assert_close(*found)


def test_what_cannot_be_recorded_or_computes_something_else_ends_training(tmp_path, monkeypatch):
    def unlike(module, *_, **__):
        return lambda *inputs: tree_map(lambda result: 2 * result, module(*inputs))

    failing = Mock(side_effect=RuntimeError("not while capturing"))
    for graphed, message in (
        (failing, "cannot be recorded as CUDA graphs: not while capturing.*Leave out"),
        (unlike, "do not compute what the model computes.*Leave out training.cuda_graphs"),
    ):
        monkeypatch.setattr(torch.cuda, "make_graphed_callables", graphed)
        trainer = make_trainer(tmp_path, make_recipe(cuda_graphs=True, max_steps=20))
        assert_fails(message, list, trainer.train())


@pytest.mark.parametrize(
    ("device", "count", "variant", "need"),
    [
        ("cpu", 1, "relative", "a GPU of CUDA"),
        ("cuda", 2, "relative", "a training in one process"),
        ("cuda", 1, "path_relations", "batches of the same shape"),
    ],
)
def test_graphs_are_refused_where_no_step_can_be_recorded(
    device, count, variant, need, monkeypatch
):
    monkeypatch.setattr(checks, "choose_device", torch.device)
    monkeypatch.setattr(checks, "started", lambda: Started(count))
    variants = [{"name": variant, "heads": 2}]
    recipe = make_recipe(variants=variants, cuda_graphs=True, device=device)
    assert_refused(f"training.cuda_graphs.*CUDA graphs need {need}", checks.check_values, recipe)
