"""Training many recipes with several seeds each, one run after the other or on a cluster, and
comparing translations.

    for record in train_grid(["plain.yaml", "pascal.yaml"], seeds=3):
        print(record)

torch is loaded only if a run has still to be trained.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from synmt.arrays import SIDES
from synmt.errors import SynmtError, naming_lack_of_memory
from synmt.evaluation.comparison import ScoreOptions, SystemComparison, compare_systems
from synmt.evaluation.outputs import tests_of, the_test_set
from synmt.parallel.engine import cluster_in_use, trainings_on
from synmt.parallel.torchrun import started
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run
from synmt.training.grid_runs import (
    ClusterStarted,
    Ends,
    FailedRun,
    GridRun,
    NextRun,
    check_grid,
    check_grid_inputs,
    failure_of,
    grid_runs,
    runs_left,
    waits_for,
)
from synmt.training.records import RunRecord
from synmt.training.stages import Estimate, estimate_all

if TYPE_CHECKING:
    from synmt.training.distributed import Processes
    from synmt.training.pipeline import Record

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class GridRecord:
    """The last record: which runs have finished, which have failed, and how the systems compare.

    status: `interrupted` if runs are left that were not tried.
    comparisons: by test set; the first system that has the test set is the baseline.
    """

    status: Literal["finished", "interrupted"]
    finished: list[Path]
    failed: list[FailedRun]
    comparisons: Mapping[str, SystemComparison]

    def reasons(self) -> list[str]:
        """Say why runs have failed, in one line for each reason."""
        folders: dict[str, list[str]] = {}
        for run in self.failed:
            folders.setdefault(run.reason, []).append(str(run.folder))
        return [f"{', '.join(runs)}: {reason}" for reason, runs in folders.items()]


GridStep = NextRun | ClusterStarted | FailedRun | GridRecord
"""What `train_grid` yields in addition to the records of `train`."""


def train_grid(
    recipes: Iterable[str | Path | Recipe],
    overrides: Iterable[str] = (),
    *,
    seeds: int | Sequence[int] | None = None,
    runs: str | Path = "runs",
    data: str | Path = "data",
    overwrite: bool = False,
    stop: threading.Event | None = None,
    processes: Processes | None = None,
) -> Generator[Record | GridStep, None, None]:
    """Train every recipe with every seed; yields the records of `train` after a NextRun for each,
    then a GridRecord.

    Runs that are done are skipped, and a run that fails does not stop the others. Under `torchrun`
    it does, because the other processes wait for it. All recipes are checked before the first run
    begins.

    A cluster that is in use (`using_cluster`) trains the runs side by side. Then all NextRun come
    first, and each run gives its scores and its RunRecord when it has ended.

    recipes: files, names of shipped recipes, or recipes; the first is the baseline.
    seeds: how many, from the recipe's own `training.seed` on, or which. The run with the recipe's
        own seed has the recipe's name, others have NAME-seed2 and so on. By default, the recipe's
        own seed only.

    The other arguments are those of `synmt.training.pipeline.train`; `overrides` change every
    recipe.
    """
    planned, stop = grid_runs(recipes, overrides, seeds=seeds, runs=runs), stop or threading.Event()
    left = runs_left(planned, overwrite=overwrite)
    check_grid(left, planned, overwrite=overwrite)
    if not overwrite:
        check_grid_inputs(planned)
    processes = processes or _join_processes(needed=bool(left))
    cluster = cluster_in_use() if processes is None or processes.count == 1 else None
    if cluster and left:
        ends = yield from trainings_on(cluster)(planned, left, data, overwrite=overwrite, stop=stop)
    else:
        ends = yield from _one_by_one(
            planned, left, data, overwrite=overwrite, stop=stop, processes=processes
        )
    failed = [end for end in ends.values() if isinstance(end, FailedRun)]
    finished = [run for run in planned if run.folder in ends and ends[run.folder] not in failed]
    interrupted = len(ends) < len(planned)
    shown = not interrupted and (processes is None or processes.rank == 0)
    folders = [run.folder for run in finished]
    status = "interrupted" if interrupted else "finished"
    yield GridRecord(status, folders, failed, compare_runs(finished) if shown else {})


def _one_by_one(
    planned: Sequence[GridRun],
    left: Sequence[GridRun],
    data: str | Path,
    *,
    overwrite: bool,
    stop: threading.Event,
    processes: Processes | None,
) -> Generator[Record | GridStep, None, Ends]:
    ends: Ends = {}
    for number, run in enumerate(planned, start=1):
        if _is_stopped(stop, processes):
            break
        yield NextRun(run.folder, number, len(planned), run not in left)
        end = None
        for end in (
            _train(run, data, overwrite=overwrite, stop=stop, processes=processes)
            if run in left
            else ()
        ):
            yield end
        if isinstance(end, RunRecord) and end.status == "interrupted":
            break
        ends[run.folder] = end if isinstance(end, FailedRun) else None
    return ends


def train_run(
    run: GridRun, data: str | Path = "data", *, overwrite: bool = False
) -> RunRecord | FailedRun:
    """Train one run of a grid to its end, in this process or in one of a
    `concurrent.futures.Executor`."""
    *_, end = _train(run, data, overwrite=overwrite, stop=None, processes=None)
    assert isinstance(end, RunRecord | FailedRun), end
    return end


def _train(
    run: GridRun,
    data: str | Path,
    *,
    overwrite: bool,
    stop: threading.Event | None,
    processes: Processes | None,
) -> Iterator[Record | FailedRun]:
    """Train a run; its last record, which `torchrun` gives to its first process only, says how it
    has ended."""
    from synmt.training import pipeline

    runs = run.folder.parent
    steps = pipeline.train(
        run.recipe, runs=runs, data=data, overwrite=overwrite, stop=stop, processes=processes
    )
    try:
        with naming_lack_of_memory(), closing(steps):
            yield from steps
    except Exception as error:
        if processes and processes.count > 1:
            raise
        yield failure_of(run.folder, error)
    # cycles of objects may hold memory of a GPU
    gc.collect()
    if run.recipe.training.compile:
        import torch

        # torch stops compiling a function that it has compiled for several models
        torch.compiler.reset()


def _join_processes(*, needed: bool) -> Processes | None:
    """Join the processes of `torchrun`; without it, torch is loaded only if it is needed."""
    if not needed and started().count == 1:
        return None
    from synmt.training.distributed import join_processes

    return join_processes()


def _is_stopped(stop: threading.Event, processes: Processes | None) -> bool:
    """Tell whether any process was told to stop."""
    told = int(stop.is_set())
    return bool(processes.sum(told)[0] if processes else told)


def compare_runs(runs: Sequence[GridRun]) -> dict[str, SystemComparison]:
    """Compare systems on each test set that several of them have, as `synmt score --seeds` does.

    The log says which systems do not have a test set.
    """
    systems = dict.fromkeys(run.system for run in runs)
    of_tests: dict[str, list[GridRun]] = {}
    for system in systems:
        for run in (run for run in runs if run.system == system):
            for test in _tests_of(run):
                of_tests.setdefault(test, []).append(run)
    if runs and not of_tests:
        _logger.warning("no recipe has a test set, so there is no table")
    comparisons = {}
    for test, members in of_tests.items():
        without = [system for system in systems if system not in {run.system for run in members}]
        if without:
            _logger.warning("%s is missing from %s", the_test_set(test), ", ".join(without))
        if len(systems) - len(without) == 1 < len(systems):
            continue
        try:
            comparisons[test] = _compare(test, members)
        except SynmtError as error:
            _logger.warning("there is no table for %s: %s", the_test_set(test), error)
    return comparisons


def _compare(test: str, runs: Sequence[GridRun]) -> SystemComparison:
    several = len({run.system for run in runs}) < len(runs)
    return compare_systems(
        [run.folder for run in runs], options=ScoreOptions(test_set=test, group_seeds=several)
    )


def _tests_of(run: GridRun) -> list[str]:
    try:
        return tests_of(run.folder)
    except SynmtError:
        return []


def plan_grid(
    recipes: Iterable[str | Path | Recipe],
    overrides: Iterable[str] = (),
    *,
    seeds: int | Sequence[int] | None = None,
    runs: str | Path = "runs",
    data: str | Path = "data",
    overwrite: bool = False,
) -> list[Estimate]:
    """Estimate what `train_grid` would do; arguments and errors are the same. What runs share is
    listed once."""
    from synmt.training.run_stages import RunStages
    from synmt.training.text_stages import TextStage
    from synmt.training.tree_sources.requirements import tree_requirements

    planned = grid_runs(recipes, overrides, seeds=seeds, runs=runs)
    check_grid(runs_left(planned, overwrite=overwrite), planned, overwrite=overwrite)
    steps, seen, texts = list[Estimate](), set[tuple[str, ...]](), dict[str, TextStage]()
    for run in planned:
        if before := waits_for(run, planned):
            steps.append(Estimate(f"train {run.folder}", "to do", f"with the weights of {before}"))
            continue
        recipe = run.recipe
        text = texts.setdefault(
            repr((recipe.corpus, recipe.source, recipe.target)), TextStage(recipe)
        )
        requirements = tree_requirements(recipe)
        way = RunStages(
            Run(run.folder), recipe, requirements, Path(data), overwrite=overwrite, text=text
        )
        for step in estimate_all(way.shared()):
            key = (_text_of(recipe), step.what, step.state, step.amount)
            steps += [step] if key not in seen else []
            seen.add(key)
        steps += estimate_all(way.own())
    return steps


def _text_of(recipe: Recipe) -> str:
    """Name the text of a recipe and its parsers: as long as they are not there, the steps of two
    texts look alike."""
    parsers = [(recipe.parser_of(side).model, recipe.parser_of(side).package) for side in SIDES]
    return repr(
        (recipe.corpus, recipe.source, recipe.target, recipe.text, recipe.target_text, parsers)
    )
