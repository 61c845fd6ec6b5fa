"""`synmt train`: from a recipe to a run folder."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from synmt.cli import console
from synmt.cli.command import WHICH_RECIPE, Cluster, Data, DryRun, loading
from synmt.cli.options import command
from synmt.cli.prepare import show_corpus, show_keys, show_plan, show_recipes
from synmt.errors import SynmtError, UsageError, counted
from synmt.options import Option

if TYPE_CHECKING:
    from synmt.recipe.schema import TrainingRecipe
    from synmt.training.grid import GridRecord, GridStep
    from synmt.training.pipeline import Record
    from synmt.training.records import LogRecord, RunRecord, StartRecord, ValidationRecord


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
    words = list(options.arguments)
    if options.show_list or options.keys:
        (show_recipes if options.show_list else show_keys)(words)
        return
    from synmt.recipe.catalogue import split_overrides

    recipes, overrides = split_overrides(words)
    if not recipes:
        raise UsageError(
            "RECIPE is missing", do="Give a file, or a name that `synmt train --list` shows"
        )
    seeds = _parse_seeds(options.seeds)
    # several runs, or a table of one; one recipe without --seeds has none
    if seeds is not None or len(recipes) > 1:
        _train_grid(recipes, overrides, seeds, options)
    else:
        _train(recipes[0], overrides, options)


def _train(recipe: str, overrides: list[str], options: TrainArguments) -> None:
    """Train one run, and show what happens."""
    with loading():
        from synmt.training import pipeline
        from synmt.training.grid_runs import resume_command

    runs, data, overwrite = options.runs, options.data, options.overwrite
    if options.dry_run:
        show_plan(
            pipeline.plan_training(recipe, overrides, runs=runs, data=data, overwrite=overwrite)
        )
        return
    stop = threading.Event()
    with _cluster_of_first_process(options.cluster):
        records = pipeline.train(
            recipe, overrides, runs=runs, data=data, overwrite=overwrite, stop=stop
        )
        with closing(records):
            _draw(records, stop, resume_command([], overwrite=overwrite))


def _train_grid(
    recipes: list[str], overrides: list[str], seeds: int | list[int] | None, options: TrainArguments
) -> None:
    """Train several runs, and show what happens."""
    from synmt.training.grid import plan_grid, train_grid
    from synmt.training.grid_runs import grid_runs, resume_command

    runs, data, overwrite = options.runs, options.data, options.overwrite
    if options.dry_run:
        show_plan(
            plan_grid(recipes, overrides, seeds=seeds, runs=runs, data=data, overwrite=overwrite)
        )
        return
    planned = grid_runs(recipes, overrides, seeds=seeds, runs=runs) if overwrite else []
    again, stop = resume_command(planned, overwrite=overwrite), threading.Event()
    with _cluster_of_first_process(options.cluster):
        records = train_grid(
            recipes, overrides, seeds=seeds, runs=runs, data=data, overwrite=overwrite, stop=stop
        )
        with closing(records):
            _draw_grid(records, stop, again)


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
    first, *others = (part.strip() for part in text.split(","))
    parts = [first, *(part for part in others if part)]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(
            f"'{text}' is not a number", where="--seeds", allowed="How many (3), or which (1,5,9)"
        )
    return [int(part) for part in parts] if others else int(first)


def _draw_grid(
    records: Iterable[Record | GridStep], stop: threading.Event, again: Callable[[], str]
) -> None:
    """Show the runs with their records, then the tables and failures; `again` names the command
    that resumes."""
    from synmt.training.grid import ClusterStarted, FailedRun, GridRecord, GridStep, NextRun

    with ExitStack() as stack:
        for of_grid, group in groupby(records, lambda record: isinstance(record, GridStep)):
            if not of_grid:
                _draw(cast("Iterator[Record]", group), stop, again)
                continue
            for record in group:
                if isinstance(record, NextRun):
                    done = " has finished already" if record.done else ""
                    console.remark(f"run {record.number} of {record.count}: {record.folder}{done}")
                elif isinstance(record, ClusterStarted):
                    console.remark(
                        f"the cluster trains {counted(record.runs, 'run')}, side by side"
                    )
                    stack.close()  # a handler inside another one would need a third Ctrl-C
                    stack.enter_context(_stopping(stop))
                elif isinstance(record, FailedRun):
                    console.warn(f"{record.folder} has failed: {record.reason}")
                elif isinstance(record, GridRecord):
                    stack.close()
                    _end_grid(record, again)


def _end_grid(record: GridRecord, again: Callable[[], str]) -> None:
    from synmt.evaluation.outputs import the_test_set
    from synmt.evaluation.report import score_report

    if record.status == "interrupted":
        runs = counted(len(record.finished), "run has", "runs have")
        console.remark(f"stopped; {runs} finished. Run {again()} to resume")
        raise KeyboardInterrupt
    for test, comparison in record.comparisons.items():
        console.remark(f"{the_test_set(test)}:")
        console.show_reports({test: score_report(comparison, cost=True)})
    if record.failed:
        what = f"{len(record.failed)} of {len(record.failed) + len(record.finished)} runs failed"
        raise SynmtError("\n".join([f"{what}. Run {again()} to try them again", *record.reasons()]))


def _draw(records: Iterator[Record], stop: threading.Event, again: Callable[[], str]) -> None:
    """Show every record as it comes; a signal sets `stop`, and `again` names the command that then
    resumes."""
    from synmt.training.preparation import Prepared
    from synmt.training.records import EndRecord, LogRecord, RunRecord, ScoreRecord, StartRecord

    with ExitStack() as training:
        step, first, began, settings, advance = 0, 0, 0.0, None, None
        for record in records:
            if isinstance(record, Prepared):
                if record.new:
                    show_corpus(record)
            elif isinstance(record, StartRecord):
                step, settings = record.step, record.settings
                first, began = step, time.monotonic()
                console.remark(_start_line(record))
                training.enter_context(_stopping(stop))
                steps = console.progress(
                    "train", max(0, settings.max_steps - step), "steps", every=1e9
                )
                advance = training.enter_context(steps)
            elif isinstance(record, ScoreRecord):
                console.remark(
                    f"{record.test}: {record.metric} {record.score:.2f}  {record.signature}"
                )
            elif isinstance(record, RunRecord):
                _end(record, again)
            elif isinstance(record, LogRecord) and settings and advance:
                advance(record.step - step)
                step = record.step
                seconds_a_step = (time.monotonic() - began) / max(1, step - first)
                console.remark(
                    _line(record, settings, (settings.max_steps - step) * seconds_a_step)
                )
                if isinstance(record, EndRecord):
                    training.close()


def _start_line(record: StartRecord) -> str:
    steps = (
        f"continuing from step {record.step:,}"
        if record.step
        else f"{record.settings.max_steps:,} steps"
    )
    frozen = f", {record.frozen:,} of them frozen," if record.frozen else ""
    return (
        f"train: {record.weights:,} weights{frozen} on {record.device}, "
        f"{record.settings.precision}, {steps}"
    )


def _line(record: LogRecord, settings: TrainingRecipe, seconds_left: float) -> str:
    from synmt.reporting.progress import duration
    from synmt.training.records import END_REASONS, StepRecord, ValidationRecord

    if isinstance(record, StepRecord):
        losses = "".join(f"  {name} {value:.3f}" for name, value in record.losses.items())
        return (
            f"step {record.step:>7,} of {settings.max_steps:,}  loss {record.loss:.3f}  "
            f"perplexity {_short(record.perplexity):>9}{losses}  "
            f"lr {record.learning_rate:.2e}  grad norm {record.gradient_norm:.2f}  "
            f"{record.tokens_per_second:,.0f} tokens/s  memory {record.memory / 2**20:,.0f} MB  "
            f"{duration(seconds_left)} left"
        )
    if isinstance(record, ValidationRecord):
        bleu = f"  BLEU {record.bleu:.2f}" if record.bleu is not None else ""
        values = f"loss {record.loss:.3f}  perplexity {_short(record.perplexity)}{bleu}"
        return f"valid at {record.step:,}: {values}{_verdict(record, settings)}"
    return f"end of training at step {record.step:,}: {END_REASONS[record.reason]}"


def _short(perplexity: float) -> str:
    return f"{perplexity:.2f}" if perplexity < 1e6 else f"{perplexity:.2e}"


def _verdict(record: ValidationRecord, settings: TrainingRecipe) -> str:
    """Return what follows from a validation."""
    if record.best:
        return f"  (best {'BLEU' if settings.best == 'bleu' else 'loss'} so far)"
    if settings.schedule == "plateau" and record.decays <= settings.max_decays:
        return f"  (no improvement: learning rate decay {record.decays} of {settings.max_decays})"
    return ""


def _end(record: RunRecord, again: Callable[[], str]) -> None:
    if record.status == "interrupted":
        console.remark(f"stopped; step {record.steps:,} is saved. Run {again()} to resume")
        raise KeyboardInterrupt
    console.remark(f"run: {record.folder}")


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """Set `stop` at the first Ctrl-C or SIGTERM; the second one interrupts at once."""

    def request(number: int, frame: Any) -> None:
        stop.set()
        signal.signal(number, old[number])
        # a signal may arrive while another message is being written: a thread waits for its end
        said = "stopping after this step (a second signal: at once) ..."
        threading.Thread(target=console.remark, args=(said,)).start()

    old: dict[int, Any] = {
        number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
