"""What `synmt train` would do with a recipe, step by step, and what of it is there already; nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

from synmt.arrays import SIDES
from synmt.corpora.resolve import test_names
from synmt.data.corpus import PreparedCorpus
from synmt.data.vocabulary import Vocabularies
from synmt.files import count_lines
from synmt.model.build import build
from synmt.recipe.schema import ModelRecipe, Recipe, SyntaxRecipe
from synmt.run import Run
from synmt.training.initial import adopt_case, adopt_vocabulary, check_parts
from synmt.training.lifecycle import check_run, has_finished
from synmt.training.pipeline import check_values, load_checked
from synmt.training.plan_data import plan_data
from synmt.training.plan_text import PlannedText, plan_text
from synmt.training.planned import PlannedStep
from synmt.training.test_sets import missing_tests
from synmt.training.tree_requirements import tree_requirements


def plan_preparation(
    recipe: str | Path | Recipe, overrides: Iterable[str] = (), *, data: str | Path = "data", source_trees: bool = False
) -> list[PlannedStep]:
    """Plan `prepare`; the arguments are the same."""
    loaded, requirements = load_checked(recipe, overrides, tree_requirements)
    loaded, vocabularies = adopt_vocabulary(loaded)
    text = plan_text(loaded)
    how = {"source_trees": source_trees, "vocabularies": vocabularies, "truecasers": adopt_case(loaded)}
    return [*text.steps, *plan_data(loaded, requirements, text, Path(data), **how).steps]


def plan_training(
    recipe: str | Path | Recipe,
    overrides: Iterable[str] = (),
    *,
    runs: str | Path = "runs",
    data: str | Path = "data",
    overwrite: bool = False,
) -> list[PlannedStep]:
    """Plan `train`; the arguments are the same, and so are the errors of a recipe or a run folder that do not fit."""
    loaded, requirements = load_checked(recipe, overrides, check_values)
    run = Run(Path(runs) / loaded.name)
    loaded, vocabularies = adopt_vocabulary(loaded, run, overwrite=overwrite)
    check_run(run, loaded, overwrite=overwrite)
    if not overwrite and has_finished(run, loaded):
        missing = missing_tests(run, loaded)
        text = plan_text(loaded) if missing else PlannedText(None)
        trained = PlannedStep(f"train {run.folder}", "there", f"{run.info()['steps']:,} steps")
        return [*text.steps, trained, *_tests(run, loaded, text, missing)]
    check_parts(loaded, vocabularies, continued=bool(run.checkpoints()) and not overwrite)
    text = plan_text(loaded)
    case = adopt_case(loaded, run, overwrite=overwrite)
    prepared = plan_data(loaded, requirements, text, Path(data), vocabularies=vocabularies, truecasers=case)
    names = list(test_names(loaded.corpus, loaded.source, loaded.target))
    training = _training(run, loaded, _vocabularies(prepared.folder) or vocabularies, overwrite=overwrite)
    return [*text.steps, *prepared.steps, training, *_tests(run, loaded, text, names)]


def _training(run: Run, recipe: Recipe, vocabularies: Vocabularies | None, *, overwrite: bool) -> PlannedStep:
    last = recipe.training.max_steps
    begun = run.checkpoints()[-1:] if not overwrite else []
    steps = f"{last:,} steps" if not begun else f"steps {int(begun[0].name.removeprefix('step-')):,} to {last:,}"
    return PlannedStep(f"train {run.folder}", "to do", f"{_weights(recipe, vocabularies)} weights, {steps}")


def _vocabularies(prepared: Path | None) -> Vocabularies | None:
    return dict(zip(SIDES, PreparedCorpus.open(prepared).vocabularies, strict=True)) if prepared else None


def _weights(recipe: Recipe, vocabularies: Vocabularies | None) -> str:
    """Count the weights of the model; before the vocabulary is learnt it may turn out smaller."""
    sizes = [len(vocabularies[side]) if vocabularies else recipe.vocabulary.size for side in SIDES]
    count = count_weights(recipe.model, recipe.syntax, sizes[0], sizes[1])
    return f"{count:,}" if vocabularies else f"{'up to' if recipe.vocabulary.kind == 'word' else 'about'} {count:,}"


def count_weights(model: ModelRecipe, syntax: SyntaxRecipe, source_pieces: int, target_pieces: int) -> int:
    """Count the weights of a model without filling any memory."""
    with torch.device("meta"):
        network = build(model, syntax, source_pieces=source_pieces, target_pieces=target_pieces)
    return sum(parameter.numel() for parameter in network.parameters())


def _tests(run: Run, recipe: Recipe, text: PlannedText, missing: list[str]) -> Iterator[PlannedStep]:
    for name in test_names(recipe.corpus, recipe.source, recipe.target):
        lines = count_lines(text.corpus.test[name].source) if text.corpus else text.counts.get(name)
        metrics = ", ".join(recipe.evaluation.metrics)
        amount = f"{lines:,} lines, {metrics}" if lines is not None else metrics
        yield PlannedStep(f"translate and score {name}", "to do" if name in missing else "there", amount)
