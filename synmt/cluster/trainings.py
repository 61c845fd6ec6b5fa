"""The runs of a grid side by side on a cluster.

The driver prepares the data and sets up each run folder; a worker gets both, trains in its own
folder, and sends the run folder back. A run whose worker dies begins again on another one; on the
same machine, or with a shared cache folder, it goes on from the last checkpoint there.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from synmt.cluster.dask import Cluster
from synmt.cluster.portable_run import Content, PortableRun, newest_step, pack, unpack
from synmt.cluster.sent_items import LongWork
from synmt.cluster.shipment import driver_waits, ending_with_driver
from synmt.errors import SynmtError, adding_advice, naming_lack_of_memory
from synmt.files.json_files import parse_json
from synmt.files.reading import cache_folder, fingerprint, stored_sha256
from synmt.files.schemas import RunInfo
from synmt.files.writing import locked, remove
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run, named_run
from synmt.training.checks import check_values
from synmt.training.distributed import Processes
from synmt.training.finished import has_finished
from synmt.training.grid_runs import (
    ClusterStarted,
    Ends,
    FailedRun,
    GridRun,
    NextRun,
    failure_of,
    starts_from,
)
from synmt.training.lifecycle import RESUME_ADVICE, begin_run, remove_leftovers
from synmt.training.pipeline import Record, train, train_prepared
from synmt.training.preparation import Prepared
from synmt.training.records import EndRecord, RunRecord
from synmt.training.run_stages import RunStages
from synmt.training.test_sets import read_results

_Item = tuple[int, Path, Content]
"""The number of a run, its folder and the content of that."""


@dataclass(frozen=True)
class RunsToTrain:
    """What the workers need for all runs.

    attempt: names the folders in which workers train. With the same name, a run goes on from the
        checkpoints there.
    """

    runs: tuple[PortableRun, ...]
    attempt: str

    def files(self) -> dict[str, Path]:
        """Name the files that the runs read by their paths in a folder of copies."""
        return {name: path for run in self.runs for name, path in run.files().items()}

    def relocated(self, folder: Path) -> RunsToTrain:
        """Make the same runs, which read the copies in this folder."""
        return replace(self, runs=tuple(run.relocated(folder) for run in self.runs))


@dataclass(frozen=True)
class TrainedRun:
    """What a worker sends back.

    end: `folder` is that of the driver.
    content: the run folder, also of a run that was interrupted or failed; None if there is none.
    """

    number: int
    end: RunRecord | FailedRun
    content: Content | None = None


def train_side_by_side(
    cluster: Cluster,
    planned: Sequence[GridRun],
    left: Sequence[GridRun],
    data: str | Path,
    *,
    overwrite: bool,
    stop: threading.Event,
) -> Generator[Record | NextRun | ClusterStarted | FailedRun, None, Ends]:
    """Train those runs of a grid that are left; returns how the runs have ended.

    A run that starts from the weights of another one waits for it.
    """
    data = Path(data)
    ends: Ends = {run.folder: None for run in planned if run not in left}
    for number, run in enumerate(planned, start=1):
        yield NextRun(run.folder, number, len(planned), run not in left)
    waiting = list(left)
    while waiting and not stop.is_set():
        wave = [run for run in waiting if starts_from(run, waiting) is None] or waiting
        waiting = [run for run in waiting if run not in wave]
        with ExitStack() as stack:
            ready = yield from _begin_all(wave, data, stack, ends, overwrite=overwrite)
            if not ready:
                continue
            yield ClusterStarted(len(ready))
            for run, end in _train_all(cluster, ready, data, overwrite=overwrite, stop=stop):
                if isinstance(end, FailedRun):
                    ends[run.folder] = end
                    yield end
                elif end.status == "finished":
                    ends[run.folder] = None
                    yield from read_results(Run(run.folder))
                    yield end
    return ends


def _begin_all(
    runs: Sequence[GridRun], data: Path, stack: ExitStack, ends: Ends, *, overwrite: bool
) -> Generator[Record | FailedRun, None, list[tuple[GridRun, PortableRun]]]:
    """Prepare the data of runs, and set up their folders, which stay locked; what has trained
    already is completed."""
    ready = []
    for run in runs:
        try:
            if not overwrite and has_finished(Run(run.folder), run.recipe):
                yield from train(run.recipe, runs=run.folder.parent, data=data)
                ends[run.folder] = None
            else:
                ready.append((run, (yield from _begin(run, data, stack, overwrite=overwrite))))
        except Exception as error:
            ends[run.folder] = failed = failure_of(run.folder, error)
            yield failed
    return ready


def _train_all(
    cluster: Cluster,
    ready: Sequence[tuple[GridRun, PortableRun]],
    data: Path,
    *,
    overwrite: bool,
    stop: threading.Event,
) -> Iterator[tuple[GridRun, RunRecord | FailedRun]]:
    """Train runs in workers, and write what these send back."""
    state = RunsToTrain(
        tuple(portable for _, portable in ready), uuid.uuid4().hex if overwrite else ""
    )
    runs = [run for run, _ in ready]

    def items() -> Iterator[_Item]:
        for number, run in enumerate(runs):
            if not stop.is_set():
                yield number, run.folder, pack(Run(run.folder))

    def lost(item: _Item, error: SynmtError) -> TrainedRun:
        error = error.with_advice(RESUME_ADVICE * overwrite)
        return TrainedRun(item[0], FailedRun(item[1], str(error)))

    gpu = any(run.recipe.training.device != "cpu" for run in runs)
    for trained in cluster.run(_train, state, items(), where=data, long=LongWork(stop, lost, gpu)):
        run = runs[trained.number]
        if trained.content:
            unpack(Run(run.folder), trained.content)
        yield run, trained.end


def _begin(
    run: GridRun, data: Path, stack: ExitStack, *, overwrite: bool
) -> Generator[Prepared, None, PortableRun]:
    """Prepare the data of a run, and set up its folder."""
    requirements = check_values(run.recipe)
    way = RunStages(Run(run.folder), run.recipe, requirements, data, overwrite=overwrite)
    prepared = way.preparation.run()
    yield prepared
    reads_trees = requirements["source"].to_run and prepared.corpus.test
    parser = way.preparation.sources.result["source"].parser if reads_trees else None
    stack.enter_context(locked(run.folder, "this run"))
    begin_run(way.run, way.recipe, prepared, overwrite=overwrite)
    return PortableRun(way.recipe, prepared, parser)


def _train(state: RunsToTrain, item: _Item) -> TrainedRun:
    """Train one run in a worker, from the newest checkpoint that the driver or this machine has."""
    number, target, content = item
    portable = state.runs[number]
    place = (
        cache_folder() / "workers" / "runs" / _name(portable.recipe, target, content, state.attempt)
    )
    try:
        with locked(place, "this run"), ending_with_driver() as stop:
            run = Run(place / target.name)
            end = _end_of(
                run, target, portable, content, stop, advice=RESUME_ADVICE * bool(state.attempt)
            )
            content = pack(run)
            # otherwise what has been trained would be lost; a new attempt to overwrite would not
            # look for it
            if driver_waits() or state.attempt:
                remove(place)
    except SynmtError as error:
        return TrainedRun(number, failure_of(target, error))
    return TrainedRun(number, end, content)


def _name(recipe: Recipe, target: Path, content: Content, attempt: str) -> str:
    """Name a run by what its result depends on."""
    reads = parse_json(content["run.json"], RunInfo, where=str(target / "run.json"))
    begins_with = named_run(recipe.model.init).weights if recipe.model.init else None
    weights = stored_sha256(begins_with) if begins_with and begins_with.exists() else ""
    code = [content[name] for name in sorted(content) if name.startswith("code/")]
    made_from = reads.get("prepared"), reads.get("trees")
    return fingerprint(attempt, target.name, content["recipe.yaml"], *made_from, weights, *code)


def _end_of(
    run: Run,
    target: Path,
    portable: PortableRun,
    content: Content,
    stop: threading.Event,
    *,
    advice: str,
) -> RunRecord | FailedRun:
    here = run.checkpoint(run.reached()).name
    if not run.exists() or here < newest_step(content):
        unpack(run, content)
    remove_leftovers(run)
    parser = str(portable.parser_folder) if portable.parser_folder else None
    try:
        with adding_advice(advice), naming_lack_of_memory():
            *_, end = train_prepared(
                run, portable.recipe, portable.prepared, Processes(), stop, parser=parser
            )
    except Exception as error:
        return failure_of(target, error)
    assert isinstance(end, EndRecord), end
    return RunRecord(target, "interrupted" if end.reason == "interrupted" else "finished", end.step)
