"""The runs of a grid: each recipe with each seed, their names and order, and checks before the
first one begins."""

from __future__ import annotations

import logging
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from synmt.errors import SynmtError, UsageError, all_in_one, listed, naming
from synmt.evaluation.systems import name_with_seed
from synmt.recipe.load import load_recipe
from synmt.recipe.schema import SEEDS, Recipe
from synmt.run_folder import Run
from synmt.training.finished import changed_inputs, has_finished, inputs_error, is_complete

_logger = logging.getLogger(__name__)

_MOST_SEEDS = 1000
"""A larger number of seeds is a seed that was taken for their number."""


@dataclass(frozen=True)
class GridRun:
    """One recipe with one seed.

    system: the recipe as it was given; the runs of a system differ in the seed only.
    """

    system: str
    recipe: Recipe
    folder: Path

    def is_done(self) -> bool:
        """Return whether the run has finished and has all its translations."""
        run = Run(self.folder)
        return has_finished(run, self.recipe) and is_complete(run, self.recipe)


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


Ends = dict[Path, FailedRun | None]
"""The runs that have ended: why one has failed, or None if it has finished."""


def failure_of(folder: Path, error: Exception) -> FailedRun:
    """Describe an error in text only: the error itself holds on to the memory of the model."""
    expected = isinstance(error, SynmtError)
    stack = "".join(traceback.format_exception(error)).rstrip()
    _logger.log(logging.DEBUG if expected else logging.WARNING, "%s", stack)
    return FailedRun(folder, str(error) if expected else f"{type(error).__name__}: {error}")


def grid_runs(
    recipes: Iterable[str | Path | Recipe],
    overrides: Iterable[str] = (),
    *,
    seeds: int | Sequence[int] | None = None,
    runs: str | Path = "runs",
) -> list[GridRun]:
    """List the runs of a grid in the order of training: every recipe with its first seed, then with
    the second, …

    So a table of all systems is there early, and a recipe that fails does so early. The arguments
    are those of `train_grid`. Raises a UsageError that names every recipe that is wrong, or two
    runs with the same name.
    """
    loaded, errors = list[tuple[str, Recipe]](), dict[str, SynmtError]()
    for recipe in recipes:
        try:
            system = recipe.name if isinstance(recipe, Recipe) else str(recipe)
            loaded.append((system, load_recipe(recipe, overrides)))
        except SynmtError as error:
            errors[str(error)] = error
    if errors:
        raise all_in_one(list(errors.values()))
    if not loaded:
        raise UsageError("there is no recipe to train")
    columns = [
        [GridRun(system, recipe, Path(runs) / recipe.name) for recipe in _with_seeds(recipe, seeds)]
        for system, recipe in loaded
    ]
    planned = [run for of_one_seed in zip(*columns, strict=True) for run in of_one_seed]
    seen: dict[Path, GridRun] = {}
    for run in planned:
        other = seen.setdefault(run.folder, run)
        if other is not run:
            raise _same_folder(other, run)
    return planned


def _with_seeds(recipe: Recipe, seeds: int | Sequence[int] | None) -> list[Recipe]:
    first = recipe.training.seed
    if isinstance(seeds, int):
        if seeds > _MOST_SEEDS:
            raise UsageError(
                f"{seeds} seeds are too many",
                where="seeds",
                allowed=f"At most {_MOST_SEEDS}",
                do=f"For one run with the seed {seeds}, write `--seeds {seeds},` or, in Python, "
                f"`seeds=[{seeds}]`",
            )
        chosen = list(range(first, first + seeds))
    else:
        chosen = [first] if seeds is None else list(seeds)
    if not chosen or min(chosen) < 0 or max(chosen) >= SEEDS:
        raise UsageError(
            f"{seeds!r} is neither a number of seeds nor a list of them",
            where="seeds",
            allowed="A number from 1, or different seeds from 0, below 2⁶⁴",
        )
    seed, count = Counter(chosen).most_common(1)[0]
    if count > 1:
        raise UsageError(f"the seed {seed} is given twice", where="seeds", do="Give each seed once")
    return [recipe if seed == first else _with_seed(recipe, seed) for seed in chosen]


def _with_seed(recipe: Recipe, seed: int) -> Recipe:
    training = recipe.training.model_copy(update={"seed": seed})
    return recipe.model_copy(
        update={"name": name_with_seed(recipe.name, seed), "training": training}
    )


def _same_folder(first: GridRun, other: GridRun) -> UsageError:
    """Make the error for two runs that would be trained in one folder."""
    both = f"{first.system} and {other.system}"
    if first.recipe == other.recipe:
        return UsageError(
            f"{other.system} is given twice"
            if first.system == other.system
            else f"{both} are the same recipe",
            do="Leave one out; `--seeds 3` trains three seeds of each recipe",
        )
    if first.system == other.system:
        seeds = [run.recipe.training.seed for run in (first, other)]
        both = f"seeds {listed(map(str, seeds))} of {other.system}"
    return UsageError(
        f"{both} would both train {other.folder}",
        do="Give one of them another `name:`; the override name=… names all of them alike",
    )


def resume_command(planned: Sequence[GridRun], *, overwrite: bool) -> Callable[[], str]:
    """Make the function that names the command to run after one that was stopped or has failed.

    That command must not overwrite the runs that the first one has replaced. Those that it has not
    replaced yet have to be removed, because without --overwrite they would stay as they are.

    planned: all runs of a grid that overwrites, as they are before the command; none for any other
        command.
    """
    before = {run.folder: Run(run.folder).written_at() for run in planned}

    def name() -> str:
        old = [str(path) for path, at in before.items() if at and Run(path).written_at() == at]
        first = f" (remove {', '.join(old)} first: not replaced yet)" if old else ""
        return "the same command" + " without --overwrite" * overwrite + first

    return name


def runs_left(planned: Sequence[GridRun], *, overwrite: bool) -> list[GridRun]:
    """Choose the runs that are still to be done."""
    return [run for run in planned if overwrite or not run.is_done()]


def check_grid(runs: Sequence[GridRun], planned: Sequence[GridRun], *, overwrite: bool) -> None:
    """Check the recipes of runs, and their folders, before the first one begins; raises all
    problems together.

    planned: all runs of the grid; what starts from the weights of one of them is checked when these
        are there.
    """
    if not runs:
        return
    from synmt.training.checks import check_run_folder, check_values

    errors: dict[str, SynmtError] = {}
    for run in runs:
        try:
            with naming(Path(run.system)):
                check_values(run.recipe)
            if waits_for(run, planned) is None:
                check_run_folder(Run(run.folder), run.recipe, overwrite=overwrite)
        except SynmtError as error:
            # a fault of the recipe is the same for all its seeds
            errors[str(error)] = error
    if errors:
        raise all_in_one(list(errors.values()))


def check_grid_inputs(planned: Sequence[GridRun]) -> None:
    """Check that the inputs of no run have changed since it was started, also of those that have
    finished."""
    errors: list[SynmtError] = []
    for planned_run in planned:
        run, recipe = Run(planned_run.folder), planned_run.recipe
        if changed := changed_inputs(run, recipe):
            errors.append(inputs_error(run, recipe, changed))
    if errors:
        raise all_in_one(errors)


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
