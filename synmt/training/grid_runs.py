"""The runs of a grid: each recipe with each seed, their names and order, and checks before the
first one begins."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from synmt.errors import SynmtError, UsageError, all_in_one, naming
from synmt.evaluation.systems import name_with_seed
from synmt.files.writing import AnyPath
from synmt.recipe.load import RecipeSource, load_recipe
from synmt.recipe.schema import SEEDS, Recipe
from synmt.run_folder import Run
from synmt.training.finished import check_inputs, is_complete

_logger = logging.getLogger(__name__)

_MOST_SEEDS = 1000
"""A larger number is a seed that was taken for the number of seeds."""


@dataclass(frozen=True)
class GridRun:
    """One recipe with one seed.

    system: the recipe as it was given; the runs of a system differ in the seed only.
    """

    system: str
    recipe: Recipe
    folder: Path


@dataclass(frozen=True)
class NextRun:
    """Which run of how many comes next; a run that is done is skipped."""

    folder: Path
    number: int
    count: int
    done: bool


@dataclass(frozen=True)
class ClusterStarted:
    """From now on, workers train this number of runs side by side."""

    runs: int


@dataclass(frozen=True)
class FailedRun:
    """A run that failed, and why."""

    folder: Path
    reason: str


Seeds = int | Sequence[int] | None
"""How many seeds, from that of the recipe on, or which; None: only that of the recipe."""

Ends = dict[Path, FailedRun | None]
"""The runs that have ended: why one has failed, or None if it has finished."""


def failure_of(folder: Path, error: Exception) -> FailedRun:
    """Describe an error in text only: the error itself holds on to the memory of the model."""
    expected = isinstance(error, SynmtError)
    _logger.log(
        logging.DEBUG if expected else logging.WARNING,
        "%s",
        "".join(traceback.format_exception(error)),
    )
    return FailedRun(folder, str(error) if expected else f"{type(error).__name__}: {error}")


def grid_runs(
    recipes: Iterable[RecipeSource],
    overrides: Iterable[str] = (),
    *,
    seeds: Seeds = None,
    runs: AnyPath = "runs",
) -> list[GridRun]:
    """List the runs of a grid in the order of training: every recipe with its first seed, then with
    the second, …

    So a table of all systems is there early, and a recipe that fails does so early. The arguments
    are those of `train_grid`. Raises a UsageError that names every recipe that is wrong, or two
    runs with the same name.
    """
    systems, errors = list[tuple[str, Recipe]](), list[SynmtError]()
    for recipe in recipes:
        try:
            system = recipe.name if isinstance(recipe, Recipe) else str(recipe)
            systems.append((system, load_recipe(recipe, overrides)))
        except SynmtError as error:
            errors.append(error)
    if errors:
        raise all_in_one(errors)
    columns = [
        [GridRun(system, recipe, Path(runs) / recipe.name) for recipe in _with_seeds(recipe, seeds)]
        for system, recipe in systems
    ]
    planned = list(chain.from_iterable(zip(*columns, strict=True)))
    seen: dict[Path, GridRun] = {}
    for run in planned:
        other = seen.setdefault(run.folder, run)
        if other is not run:
            raise UsageError(
                f"{other.system} and {run.system} would both train {run.folder}",
                do="Leave one out, or give one of them another `name:`; `--seeds 3` trains three "
                "seeds of each recipe",
            )
    return planned


def _with_seeds(recipe: Recipe, seeds: Seeds) -> list[Recipe]:
    first = recipe.training.seed
    chosen = [first] if seeds is None else seeds
    if isinstance(chosen, int):
        chosen = range(first, first + chosen)
    if (
        not 0 < len(chosen) <= _MOST_SEEDS
        or len(set(chosen)) < len(chosen)
        or min(chosen) < 0
        or max(chosen) >= SEEDS
    ):
        raise UsageError(
            f"{seeds!r} does not choose seeds",
            where="seeds",
            allowed=f"A number of seeds from 1 to {_MOST_SEEDS:,}, or a list of different seeds "
            "from 0, below 2⁶⁴",
            do="For a single seed, write a comma after it: `--seeds 7,` (in Python, `seeds=[7]`)"
            if isinstance(seeds, int)
            else "",
        )
    return [recipe if seed == first else _with_seed(recipe, seed) for seed in chosen]


def _with_seed(recipe: Recipe, seed: int) -> Recipe:
    return recipe.model_copy(
        update={
            "name": name_with_seed(recipe.name, seed),
            "training": recipe.training.model_copy(update={"seed": seed}),
        }
    )


def check_grid(planned: Sequence[GridRun], *, overwrite: bool) -> list[GridRun]:
    """Check recipes, folders and inputs of all runs before the first one begins; raises all
    problems together.

    Returns the runs that have not finished, or lack something; torch is loaded for them only.
    """
    left, errors = list[GridRun](), dict[str, SynmtError]()
    for run in planned:
        try:
            if overwrite or not is_complete(Run(run.folder), run.recipe):
                left.append(run)
                _check_run(run, planned, overwrite=overwrite)
            if not overwrite:
                check_inputs(Run(run.folder), run.recipe)
        except SynmtError as error:
            # a fault of the recipe is the same for all its seeds
            errors[str(error)] = error
    if errors:
        raise all_in_one(list(errors.values()))
    return left


def _check_run(run: GridRun, planned: Sequence[GridRun], *, overwrite: bool) -> None:
    from synmt.training.checks import check_run_folder, check_values

    with naming(Path(run.system)):
        check_values(run.recipe)
    # what starts from the weights of another run is checked when these are there
    if waits_for(run, planned) is None:
        check_run_folder(Run(run.folder), run.recipe, overwrite=overwrite)


def waits_for(run: GridRun, planned: Sequence[GridRun]) -> Path | None:
    """Find the folder of the run that has to end first, because this one starts from its weights;
    None if none has."""
    init = starts_from(run, planned)
    return init if init is not None and not Run(init.expanduser()).weights.exists() else None


def starts_from(run: GridRun, planned: Sequence[GridRun]) -> Path | None:
    """Find the folder of the other run of the grid whose weights this one starts from; None if
    there is none."""
    init = run.recipe.model.init
    folders = {other.folder.resolve() for other in planned if other is not run}
    return init if init is not None and init.expanduser().resolve() in folders else None
