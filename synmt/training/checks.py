"""What is checked before anything runs: the recipe, and whether it fits the run folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from synmt.errors import UsageError, naming
from synmt.evaluation.metrics import computed_here, make_metric, options_of
from synmt.model.device import choose_device
from synmt.parallel.engine import cluster_in_use
from synmt.parallel.torchrun import started
from synmt.recipe.load import RecipeSource, load_recipe
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run
from synmt.speed import fast
from synmt.training.finished import has_finished
from synmt.training.initial import Adopted, adopt_vocabulary, check_parts
from synmt.training.lifecycle import check_run
from synmt.training.test_sets import validation_metrics
from synmt.training.tree_sources import Requirements, tree_requirements

_logger = logging.getLogger(__name__)


def load_checked(
    recipe: RecipeSource, overrides: Iterable[str], check: Callable[[Recipe], Requirements]
) -> tuple[Recipe, Requirements]:
    """Load a recipe and check it; errors of both name its file."""
    loaded = load_recipe(recipe, overrides)
    if isinstance(recipe, Recipe):
        return loaded, check(loaded)
    with naming(Path(recipe)):
        return loaded, check(loaded)


def check_run_folder(run: Run, recipe: Recipe, *, overwrite: bool) -> tuple[Adopted, bool]:
    """Check that a recipe and its run folder fit together; writes nothing.

    Returns the recipe with what it takes of `model.init`, and whether the run has finished.
    """
    recipe, vocabularies, truecasers = adopt_vocabulary(recipe, run, overwrite=overwrite)
    check_run(run, recipe, overwrite=overwrite)
    finished = not overwrite and has_finished(run, recipe)
    if not finished:
        check_parts(recipe, vocabularies, continued=bool(run.checkpoints()) and not overwrite)
    return (recipe, vocabularies, truecasers), finished


def check_values(recipe: Recipe) -> Requirements:
    """Check variants, device and metrics before anything runs; return which trees the model
    needs."""
    requirements = tree_requirements(recipe)
    _check_pretraining(recipe, requirements)
    # a cluster has other devices
    if cluster_in_use() is None:
        device = choose_device(recipe.training.device)
        precision = recipe.training.precision
        if (recipe.model.architecture, precision, device.type) == ("lstm", "fp16", "cpu"):
            raise UsageError(
                "an lstm cannot be trained in fp16 on a CPU",
                where="training.precision",
                allowed="Allowed: float32 and bf16",
            )
        if recipe.training.cuda_graphs:
            _check_graphs(device, requirements)
    options = options_of(recipe.evaluation)
    metrics = computed_here(recipe.evaluation.metrics)
    if len(metrics) < len(recipe.evaluation.metrics):
        _logger.info("BEER_HOME does not name a folder of BEER: `beer` is left out")
    for name in (*metrics, *validation_metrics(recipe.training)):
        make_metric(name, options)
    return requirements


def _check_graphs(device: torch.device, requirements: Requirements) -> None:
    """Refuse CUDA graphs where no step can be recorded."""
    for is_missing, need in (
        (device.type != "cuda", "a GPU of CUDA"),
        (not fast("training_graphs"), "synmt.fast"),
        (started().count > 1, "a training in one process"),
        (
            any(
                signal.tables
                for needs in requirements.values()
                for variant in needs.variants
                for signal in variant.signals
            ),
            "batches of the same shape, which path_relations does not have",
        ),
    ):
        if is_missing:
            raise UsageError(f"CUDA graphs need {need}", where="training.cuda_graphs")


def _check_pretraining(recipe: Recipe, requirements: Requirements) -> None:
    """Refuse steps in which neither the translation nor an auxiliary loss is trained."""
    steps = recipe.training.pretraining
    spans = [
        variant.loss_steps or (1, steps)
        for needs in requirements.values()
        for variant in needs.variants
        if variant.learns and variant.loss_weight
    ]
    for step in (1, *(last + 1 for _, last in spans)):
        if step <= steps and not any(first <= step <= last for first, last in spans):
            raise UsageError(
                f"nothing is trained in step {step}: neither the translation nor an auxiliary loss",
                where="training.pretraining",
                do="Add a variant with an auxiliary loss, change its `loss_steps`, or pretrain for "
                "fewer steps",
            )
