"""What `synmt train` would do with a recipe, step by step, and what of it is there already; nothing is written."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

import torch

from synmt.arrays import SIDES
from synmt.corpora.items import test_names
from synmt.data.corpus import PreparedCorpus
from synmt.data.vocabulary import Vocabularies
from synmt.files.reading import count_lines
from synmt.model.build import build
from synmt.recipe.schema import ModelRecipe, Recipe, SyntaxRecipe
from synmt.run import Run
from synmt.training.changed_inputs import changed_inputs, inputs_error
from synmt.training.checks import Requirements, check_run_folder, check_values, load_checked
from synmt.training.finished import missing_tests
from synmt.training.grid_runs import check_grid, grid_runs, runs_left, waits_for
from synmt.training.initial import adopt_case, adopt_vocabulary
from synmt.training.plan.data import plan_data
from synmt.training.plan.step import PlannedStep
from synmt.training.plan.text import PlannedText, plan_text
from synmt.training.trees.parse_source import check_source_trees
from synmt.training.trees.requirements import tree_requirements


def plan_preparation(
    recipe: str | Path | Recipe, overrides: Iterable[str] = (), *, data: str | Path = "data", source_trees: bool = False
) -> list[PlannedStep]:
    """Plan `prepare`; the arguments are the same."""
    loaded, requirements = load_checked(recipe, overrides, tree_requirements)
    if source_trees:
        check_source_trees(loaded)
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
    how = {"overwrite": overwrite, "texts": {}}
    shared, own = _plan_run(Run(Path(runs) / loaded.name), loaded, requirements, Path(data), **how)
    return [*shared, *own]


def plan_grid(
    recipes: Iterable[str | Path | Recipe],
    overrides: Iterable[str] = (),
    *,
    seeds: int | Sequence[int] | None = None,
    runs: str | Path = "runs",
    data: str | Path = "data",
    overwrite: bool = False,
) -> list[PlannedStep]:
    """Plan `train_grid`; the arguments and errors are the same. What several runs share is listed once."""
    planned = grid_runs(recipes, overrides, seeds=seeds, runs=runs)
    check_grid(runs_left(planned, overwrite=overwrite), planned, overwrite=overwrite)
    steps, seen, texts = list[PlannedStep](), set[tuple[str, ...]](), dict[str, PlannedText]()
    for run in planned:
        if before := waits_for(run, planned):
            steps.append(PlannedStep(f"train {run.folder}", "to do", f"with the weights of {before}"))
            continue
        requirements = tree_requirements(run.recipe)
        how = {"overwrite": overwrite, "texts": texts}
        shared, own = _plan_run(Run(run.folder), run.recipe, requirements, Path(data), **how)
        for step in shared:
            key = (_text_of(run.recipe), *step.row())
            steps += [step] if key not in seen else []
            seen.add(key)
        steps += own
    return steps


def _text_of(recipe: Recipe) -> str:
    """Name the text of a recipe and its parsers: as long as they are not there, the steps of two texts look alike."""
    parsers = [(recipe.parser_of(side).model, recipe.parser_of(side).package) for side in SIDES]
    return repr((recipe.corpus, recipe.source, recipe.target, recipe.text, recipe.target_text, parsers))


def _plan_run(
    run: Run,
    recipe: Recipe,
    requirements: Requirements,
    data: Path,
    *,
    overwrite: bool,
    texts: dict[str, PlannedText],
) -> tuple[list[PlannedStep], list[PlannedStep]]:
    """Plan the data of a run, which other runs may share, and what is done in its own folder.

    texts: those that are planned already.
    """
    recipe, vocabularies, finished = check_run_folder(run, recipe, overwrite=overwrite)
    if changed := [] if overwrite else changed_inputs(run, recipe):
        problem = inputs_error(run, recipe, changed)
        return [], [PlannedStep(f"train {run.folder}", "changed", ", ".join(changed), problem=problem)]
    if finished:
        missing = missing_tests(run, recipe)
        text = _plan_once(recipe, texts) if missing else PlannedText(None)
        trained = PlannedStep(f"train {run.folder}", "done", f"{run.steps():,} steps")
        return text.steps, [trained, *_tests(run, recipe, text, missing)]
    text = _plan_once(recipe, texts)
    case = adopt_case(recipe, run, overwrite=overwrite)
    prepared = plan_data(recipe, requirements, text, data, vocabularies=vocabularies, truecasers=case)
    names = list(test_names(recipe.corpus, recipe.source, recipe.target))
    training = _training(run, recipe, _vocabularies(prepared.folder) or vocabularies, overwrite=overwrite)
    return [*text.steps, *prepared.steps], [training, *_tests(run, recipe, text, names)]


def _plan_once(recipe: Recipe, texts: dict[str, PlannedText]) -> PlannedText:
    key = repr((recipe.corpus, recipe.source, recipe.target))
    if key not in texts:
        texts[key] = plan_text(recipe)
    return texts[key]


def _training(run: Run, recipe: Recipe, vocabularies: Vocabularies | None, *, overwrite: bool) -> PlannedStep:
    last = recipe.training.max_steps
    begun = 0 if overwrite else run.reached()
    if not begun:
        steps = f"{last:,} steps"
    elif begun + 1 < last:
        steps = f"steps {begun + 1:,} to {last:,}"
    elif begun < last:
        steps = f"step {last:,}"
    else:
        steps = f"no further step: step {begun:,} is done"
    return PlannedStep(f"train {run.folder}", "to do", f"{_weights(recipe, vocabularies)} weights, {steps}")


def _vocabularies(prepared: Path | None) -> Vocabularies | None:
    return dict(zip(SIDES, PreparedCorpus.open(prepared).vocabularies, strict=True)) if prepared else None


def _weights(recipe: Recipe, vocabularies: Vocabularies | None) -> str:
    """Count the weights of the model; without a learned vocabulary, the number may turn out smaller.

    The rows of learned features are not counted, since nothing is there yet that says how many they are.
    """
    sizes = [len(vocabularies[side]) if vocabularies else recipe.vocabulary.size for side in SIDES]
    count = count_weights(recipe.model, recipe.syntax, sizes[0], sizes[1])
    if tree_requirements(recipe)["source"].of_parser:
        return f"more than {count:,}"
    return f"{count:,}" if vocabularies else f"{'up to' if recipe.vocabulary.kind == 'word' else 'about'} {count:,}"


def count_weights(model: ModelRecipe, syntax: SyntaxRecipe, source_pieces: int, target_pieces: int) -> int:
    """Count the weights of a model without filling any memory."""
    with torch.device("meta"):
        network = build(model, syntax, source_pieces=source_pieces, target_pieces=target_pieces)
    return sum(parameter.numel() for parameter in network.parameters())


def _tests(run: Run, recipe: Recipe, text: PlannedText, missing: Container[str]) -> Iterator[PlannedStep]:
    for name in test_names(recipe.corpus, recipe.source, recipe.target):
        lines = count_lines(text.corpus.test[name].source) if text.corpus else text.counts.get(name)
        metrics = ", ".join(recipe.evaluation.metrics)
        amount = f"{lines:,} lines, {metrics}" if lines is not None else metrics
        yield PlannedStep(f"translate and score {name}", "to do" if name in missing else "done", amount)
