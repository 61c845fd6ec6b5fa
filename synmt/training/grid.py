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
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from synmt.corpora.resolve import Estimate
from synmt.errors import SynmtError, naming_lack_of_memory
from synmt.evaluation.comparison import ScoreOptions, SystemComparison, compare_systems
from synmt.evaluation.outputs import tests_of
from synmt.exchange.hub import without_downloads
from synmt.files.writing import AnyPath
from synmt.parallel.engine import cluster_in_use, trainings_on
from synmt.parallel.torchrun import started
from synmt.recipe.load import RecipeSource
from synmt.run_folder import Run
from synmt.training.grid_runs import (
    ClusterStarted,
    FailedRun,
    GridRun,
    NextRun,
    Seeds,
    check_grid,
    failure_of,
    grid_runs,
    waits_for,
)
from synmt.training.records import RunRecord
from synmt.training.stages import estimate_all

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


GridStep = NextRun | ClusterStarted | FailedRun | GridRecord
"""What `train_grid` yields in addition to the records of `train`."""


def train_grid(
    recipes: Iterable[RecipeSource],
    overrides: Iterable[str] = (),
    *,
    seeds: Seeds = None,
    runs: AnyPath = "runs",
    data: AnyPath = "data",
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
    left = check_grid(planned, overwrite=overwrite)
    if processes is None and (left or started().count > 1):
        from synmt.training.distributed import join_processes

        processes = join_processes()
    cluster = cluster_in_use() if processes is None or processes.count == 1 else None
    if cluster and left:
        ends = yield from trainings_on(cluster)(planned, left, data, overwrite=overwrite, stop=stop)
    else:
        ends = {}
        for number, run in enumerate(planned, start=1):
            # if any process has to stop, all do
            if processes.sum(int(stop.is_set()))[0] if processes else stop.is_set():
                break
            yield NextRun(run.folder, number, len(planned), run not in left)
            end = None
            if run in left:
                for end in _train(run, data, processes, overwrite=overwrite, stop=stop):
                    yield end
            if isinstance(end, RunRecord) and end.status == "interrupted":
                break
            ends[run.folder] = end if isinstance(end, FailedRun) else None
    failed = [end for end in ends.values() if end]
    finished = [run for run in planned if run.folder in ends and not ends[run.folder]]
    all_ended = len(ends) == len(planned)
    yield GridRecord(
        "finished" if all_ended else "interrupted",
        [run.folder for run in finished],
        failed,
        compare_runs(finished) if all_ended and (not processes or processes.rank == 0) else {},
    )


def train_run(
    run: GridRun, data: AnyPath = "data", *, overwrite: bool = False
) -> RunRecord | FailedRun:
    """Train one run of a grid to its end, in this process or in one of a
    `concurrent.futures.Executor`."""
    *_, end = _train(run, data, None, overwrite=overwrite, stop=None)
    assert isinstance(end, RunRecord | FailedRun), end
    return end


def _train(
    run: GridRun,
    data: AnyPath,
    processes: Processes | None,
    *,
    overwrite: bool,
    stop: threading.Event | None,
) -> Iterator[Record | FailedRun]:
    """Train a run; its last record, which `torchrun` gives to its first process only, says how it
    has ended."""
    from synmt.training import pipeline

    steps = pipeline.train(
        run.recipe,
        runs=run.folder.parent,
        data=data,
        overwrite=overwrite,
        stop=stop,
        processes=processes,
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


def compare_runs(runs: Sequence[GridRun]) -> dict[str, SystemComparison]:
    """Compare the systems that have a test set, for each of them, as `synmt score --seeds` does."""
    systems = list(dict.fromkeys(run.system for run in runs))
    tested: dict[str, list[GridRun]] = {}
    for run in sorted(runs, key=lambda run: systems.index(run.system)):
        # a run of a recipe without test sets has none
        with suppress(SynmtError):
            for test in tests_of(run.folder):
                tested.setdefault(test, []).append(run)
    comparisons = {}
    for test, members in tested.items():
        seeded = len({run.system for run in members}) < len(members)
        try:
            comparisons[test] = compare_systems(
                [run.folder for run in members],
                options=ScoreOptions(test_set=test, group_seeds=seeded),
            )
        except SynmtError as error:
            _logger.warning("there is no table for the test set %s: %s", test, error)
    return comparisons


def plan_grid(
    recipes: Iterable[RecipeSource],
    overrides: Iterable[str] = (),
    *,
    seeds: Seeds = None,
    runs: AnyPath = "runs",
    data: AnyPath = "data",
    overwrite: bool = False,
) -> list[Estimate]:
    """Estimate what `train_grid` would do; arguments and errors are the same. What runs share is
    listed once."""
    from synmt.training.run_stages import RunStages
    from synmt.training.tree_sources import tree_requirements

    planned = grid_runs(recipes, overrides, seeds=seeds, runs=runs)
    steps: dict[tuple[str, ...], Estimate] = {}
    with without_downloads():
        check_grid(planned, overwrite=overwrite)
        for run in planned:
            recipe, parser = run.recipe, run.recipe.parser
            if before := waits_for(run, planned):
                what = f"train {run.folder}"
                steps[(what,)] = Estimate(what, size=f"with the weights of {before}")
                continue
            stages = RunStages(
                Run(run.folder), recipe, tree_requirements(recipe), Path(data), overwrite=overwrite
            )
            # as long as texts and parsers are not there, the steps of two texts look alike
            text = recipe.corpus, recipe.source, recipe.target, recipe.text, recipe.target_text
            for step in estimate_all(stages.stages):
                key = repr((text, parser.model, parser.package)), step.what, step.size
                steps.setdefault(key, step)
    return list(steps.values())
