"""`synmt train`: from a recipe to a run folder."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from synmt.cli import console
from synmt.cli.command import WHICH_RECIPE, Cluster, Data, DryRun, loading
from synmt.cli.options import command
from synmt.cli.prepare import show_corpus, show_keys, show_plan, show_recipes
from synmt.errors import SynmtError, UsageError
from synmt.options import Option

if TYPE_CHECKING:
    from synmt.training.grid import GridRecord, GridStep
    from synmt.training.pipeline import Record
    from synmt.training.records import LogRecord, StartRecord


@dataclass(frozen=True, kw_only=True)
class TrainArguments:
    """What `synmt train` is given."""

    arguments: Annotated[
        Sequence[str],
        Option(
            f"{WHICH_RECIPE} More recipes may follow, then values that replace theirs.",
            metavar="RECIPE|KEY=VALUE",
            is_argument=True,
        ),
    ] = ()
    seeds: Annotated[
        str | None,
        Option(
            "Train each recipe with N seeds, from its training.seed, or with the seeds listed; "
            "then compare.",
            metavar="N|SEED,SEED,...",
        ),
    ] = None
    runs: Annotated[Path, Option("Parent of the run folders.", metavar="FOLDER")] = Path("runs")
    data: Data = Path("data")
    overwrite: Annotated[bool, Option("Remove the run of this name, and start again.")] = False
    cluster: Cluster = None
    dry_run: DryRun = False
    dump_config: Annotated[
        bool,
        Option(
            "Write every value of the recipe as YAML, with the file that it comes from, instead of "
            "training."
        ),
    ] = False
    show_list: Annotated[
        bool,
        Option(
            "List the shipped recipes that contain all given words: --list pascal nc11",
            names="--list",
        ),
    ] = False
    keys: Annotated[
        bool,
        Option(
            "List the keys of a recipe that contain all given words: --keys dropout", names="--keys"
        ),
    ] = False


@command
def train(options: TrainArguments) -> None:
    """Train a model from a recipe: parse, prepare, train, translate the test sets, score them.

    Existing results are reused. After an interruption of any kind, the same command continues from
    the last checkpoint. Several GPUs: run the same command under `torchrun`.

    Several recipes or seeds are trained one after the other, or side by side on a cluster. One that
    fails does not stop the others. At the end, tables compare them with the first recipe, as
    `synmt score --seeds --cost` does.

    Example: [bold]synmt train multi30k-pascal training.max_steps=300[/]

    Example: [bold]synmt train multi30k-tiny multi30k-pascal --seeds 3[/]
    """
    words = options.arguments
    if options.show_list or options.keys:
        (show_recipes if options.show_list else show_keys)(words)
        return
    from synmt.recipe.catalogue import split_overrides

    recipes, overrides = split_overrides(words)
    if not recipes:
        raise UsageError(
            "RECIPE is missing", do="Give a file, or a name that `synmt train --list` shows"
        )
    if options.dump_config:
        from synmt.recipe.load import annotated_recipe

        for recipe in recipes:
            console.show(annotated_recipe(recipe, overrides), end="")
        return
    seeds, overwrite = _parse_seeds(options.seeds), options.overwrite
    if options.dry_run:
        from synmt.training.grid import plan_grid

        show_plan(
            plan_grid(
                recipes,
                overrides,
                seeds=seeds,
                runs=options.runs,
                data=options.data,
                overwrite=overwrite,
            )
        )
        return
    # several runs, or a table of one; one recipe without --seeds has none
    if seeds is not None or len(recipes) > 1:
        from synmt.training import grid

        start = partial(grid.train_grid, recipes, overrides, seeds=seeds)
    else:
        with loading():
            from synmt.training import pipeline

        start = partial(pipeline.train, recipes[0], overrides)
    stop, again = threading.Event(), "the same command"
    if overwrite:
        again += " without --overwrite"
    with _cluster_of_first_process(options.cluster):
        records = start(runs=options.runs, data=options.data, overwrite=overwrite, stop=stop)
        with closing(records):
            _draw(records, stop, again)


@contextmanager
def _cluster_of_first_process(cluster: str | None) -> Iterator[None]:
    """Use a cluster; of the processes that `torchrun` starts, the first makes the data and speaks
    for all."""
    from synmt.parallel.torchrun import started

    if started().rank:
        console.configure(quiet=True, debug=False)
        cluster = None
    from synmt.parallel.engine import using_cluster

    with using_cluster(cluster):
        yield


def _parse_seeds(text: str | None) -> int | list[int] | None:
    """Read a number of seeds, or seeds separated by commas."""
    if text is None:
        return None
    try:
        seeds = [int(part) for part in text.removesuffix(",").split(",")]
    except ValueError:
        raise UsageError(
            f"'{text}' is not a number", where="--seeds", allowed="How many (3), or which (1,5,9)"
        ) from None
    return seeds if "," in text else seeds[0]


def _draw(records: Iterable[Record | GridStep], stop: threading.Event, again: str) -> None:
    """Show every record as it comes; during training, a signal sets `stop`.

    again: the command that then resumes.
    """
    from synmt.training.grid import GridRecord
    from synmt.training.grid_runs import ClusterStarted, FailedRun, NextRun
    from synmt.training.records import EndRecord, LogRecord, RunRecord, ScoreRecord, StartRecord

    with ExitStack() as signals:
        start, began = None, 0.0
        for record in records:
            if isinstance(record, StartRecord):
                start, began = record, time.monotonic()
                signals.enter_context(_stopping(stop))
                console.remark(_start_line(record))
            elif isinstance(record, ScoreRecord):
                console.remark(
                    f"{record.test}: {record.metric} {record.score:.2f}  {record.signature}"
                )
            elif isinstance(record, RunRecord):
                if record.status == "interrupted":
                    console.remark(
                        f"stopped; step {record.steps:,} is saved. Run {again} to resume"
                    )
                    raise KeyboardInterrupt
                console.remark(f"run: {record.folder}")
            elif isinstance(record, NextRun):
                # of a run that failed; a handler inside another one would need a third Ctrl-C
                signals.close()
                done = " has finished already" if record.done else ""
                console.remark(f"run {record.number} of {record.count}: {record.folder}{done}")
            elif isinstance(record, ClusterStarted):
                signals.close()
                signals.enter_context(_stopping(stop))
                console.remark(f"the cluster trains runs side by side: {record.runs}")
            elif isinstance(record, FailedRun):
                console.warn(f"{record.folder} has failed: {record.reason}")
            elif isinstance(record, GridRecord):
                signals.close()
                _end_grid(record, again)
            elif isinstance(record, LogRecord):
                assert start is not None
                console.remark(_line(record, start, time.monotonic() - began))
                for reference, translation in getattr(record, "samples", ()):
                    console.detail(f"  reference    {reference}\n  translation  {translation}")
                if isinstance(record, EndRecord):
                    signals.close()
            elif record.new:
                # of Prepared, whose file loads torch
                show_corpus(record)


def _end_grid(record: GridRecord, again: str) -> None:
    from synmt.evaluation.outputs import the_test_set
    from synmt.evaluation.report import score_report

    finished, failed = len(record.finished), len(record.failed)
    if record.status == "interrupted":
        console.remark(f"stopped; finished runs: {finished}. Run {again} to resume")
        raise KeyboardInterrupt
    for test, comparison in record.comparisons.items():
        console.remark(f"{the_test_set(test)}:")
        console.show_reports({test: score_report(comparison, cost=True)})
    if failed:
        raise SynmtError(
            f"{failed} of {failed + finished} runs failed", do=f"Run {again} to try them again"
        )


def _start_line(record: StartRecord) -> str:
    begun = f", continuing from step {record.step:,}" if record.step else ""
    return (
        f"train: {record.weights:,} parameters, {record.frozen:,} of them frozen, on "
        f"{record.device}, {record.settings.precision}, {record.settings.max_steps:,} steps{begun}"
    )


def _line(record: LogRecord, start: StartRecord, seconds: float) -> str:
    from synmt.reporting.progress import duration
    from synmt.training.records import END_REASONS, StepRecord, ValidationRecord

    if isinstance(record, StepRecord):
        last = start.settings.max_steps
        left = duration(seconds / max(1, record.step - start.step) * (last - record.step))
        losses = "".join(f"  {name} {value:.3f}" for name, value in record.losses.items())
        skipped = f"skipped {record.skipped}  " if record.skipped else ""
        return (
            f"step {record.step:>7,} of {last:,}  loss {record.loss:.3f}  "
            f"perplexity {record.perplexity:.4g}{losses}  "
            f"lr {record.learning_rate:.2e}  grad norm {record.gradient_norm:.2f}  "
            f"{record.tokens_per_second:,.0f} tokens/s  memory {record.memory / 2**20:,.0f} MB  "
            f"{skipped}"
            f"{left} left"
        )
    if isinstance(record, ValidationRecord):
        scores = "".join(f"  {name.upper()} {value:.2f}" for name, value in record.scores.items())
        best = "  (best so far)" if record.best else ""
        values = f"loss {record.loss:.3f}  perplexity {record.perplexity:.4g}{scores}{best}"
        return f"valid at {record.step:,}: {values}"
    return f"end of training at step {record.step:,}: {END_REASONS[record.reason]}"


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """Set `stop` at the first Ctrl-C or SIGTERM; the second one interrupts at once."""

    def request(number: int, frame: Any) -> None:
        stop.set()
        signal.signal(number, old[number])
        # a signal may arrive while another message is being written: a thread waits for its end
        threading.Thread(
            target=console.remark,
            args=("stopping after this step (a second signal: at once) ...",),
        ).start()

    old: dict[int, Any] = {
        number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
