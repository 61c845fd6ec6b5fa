"""`synmt train`: from a recipe to a run folder."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synmt.cli import console
from synmt.cli.command import ClusterAddress, DataFolder, DryRun, Overrides, RecipeOrWord
from synmt.cli.prepare import draw_progress, show_plan
from synmt.errors import SynmtError, UsageError

if TYPE_CHECKING:
    from synmt.recipe.schema import TrainingRecipe
    from synmt.training.pipeline import Record
    from synmt.training.records import LogRecord, RunRecord, StartRecord, ValidationRecord


def train(
    recipe: RecipeOrWord = None,
    overrides: Overrides = None,
    runs: Annotated[Path, typer.Option(metavar="FOLDER", help="Parent of the run folders.")] = Path("runs"),
    data: DataFolder = Path("data"),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove the run of this name, and start again.")
    ] = False,
    cluster: ClusterAddress = None,
    dry_run: DryRun = False,
    show_list: Annotated[
        bool, typer.Option("--list", help="List the shipped recipes that contain all given words: --list pascal nc11")
    ] = False,
) -> None:
    """Train a model from a recipe: parse, prepare, train, translate the test sets, score them.

    Existing results are reused. After an interruption of any kind, the same command continues from the last
    checkpoint. Several GPUs: run the same command under `torchrun`.

    Example: [bold]synmt train multi30k-pascal training.max_steps=300[/]
    """
    if show_list:
        _show_list([str(word) for word in (recipe, *(overrides or ())) if word])
        return
    if recipe is None:
        raise UsageError("RECIPE is missing", do="Give a file, or a name that `synmt train --list` shows")
    if dry_run:
        from synmt.training.plan import plan_training

        show_plan(plan_training(recipe, overrides or (), runs=runs, data=data, overwrite=overwrite))
        return
    from synmt.parallel.work import using_cluster
    from synmt.training import pipeline
    from synmt.training.distributed import join_processes

    processes, stop = join_processes(), threading.Event()
    if processes.rank:
        console.configure(quiet=True, debug=False)
    records = pipeline.train(
        recipe, overrides or (), runs=runs, data=data, overwrite=overwrite, stop=stop, processes=processes
    )
    # the first of several processes makes the data
    with using_cluster(None if processes.rank else cluster), closing(records):
        _draw(records, stop)


def _show_list(words: list[str]) -> None:
    from synmt.training.recipe_list import COLUMNS, list_recipes

    entries = list_recipes(words)
    if not entries:
        raise SynmtError(f"no shipped recipe contains {' and '.join(words)}", do="`synmt train --list` shows all")
    console.table("", COLUMNS, [entry.row() for entry in entries], to_stdout=True)


def _draw(records: Iterator[Record], stop: threading.Event) -> None:
    """Show every record as it comes; a signal during training sets `stop`."""
    from synmt.training.records import EndRecord, LogRecord, RunRecord, ScoreRecord, StartRecord

    with ExitStack() as training:
        step, settings, advance = 0, None, None
        for record in draw_progress(records):
            if isinstance(record, StartRecord):
                step, settings = record.step, record.settings
                console.remark(_start_line(record))
                training.enter_context(_stopping(stop))
                steps = console.progress("train", settings.max_steps - step, "steps", every=1e9)
                advance = training.enter_context(steps)
            elif isinstance(record, ScoreRecord):
                console.remark(f"{record.test}: {record.metric} {record.score:.2f}  {record.signature}")
            elif isinstance(record, RunRecord):
                _end(record)
            elif isinstance(record, LogRecord) and settings and advance:
                advance(record.step - step)
                step = record.step
                console.remark(_line(record, settings))
                if isinstance(record, EndRecord):
                    training.close()


def _start_line(record: StartRecord) -> str:
    steps = f"continuing from step {record.step:,}" if record.step else f"{record.settings.max_steps:,} steps"
    frozen = f", {record.frozen:,} of them frozen," if record.frozen else ""
    return f"train: {record.weights:,} weights{frozen} on {record.device}, {record.settings.precision}, {steps}"


def _line(record: LogRecord, settings: TrainingRecipe) -> str:
    from synmt.training.records import StepRecord, ValidationRecord

    if isinstance(record, StepRecord):
        losses = "".join(f"  {name} {value:.3f}" for name, value in record.losses.items())
        return (
            f"step {record.step:>7,}  loss {record.loss:.3f}  perplexity {_short(record.perplexity):>9}{losses}  "
            f"rate {record.learning_rate:.2e}  norm {record.gradient_norm:.2f}  "
            f"{record.tokens_per_second:,.0f} tokens/s  {record.memory / 2**20:,.0f} MB"
        )
    if isinstance(record, ValidationRecord):
        bleu = f"  BLEU {record.bleu:.2f}" if record.bleu is not None else ""
        values = f"loss {record.loss:.3f}  perplexity {_short(record.perplexity)}{bleu}"
        return f"valid at {record.step:,}: {values}{_verdict(record, settings)}"
    reasons = {"decays": f"no improvement after {settings.max_decays} learning rate decays (training.max_decays)"}
    return f"end of training at step {record.step:,}: {reasons.get(record.reason, record.reason)}"


def _short(perplexity: float) -> str:
    return f"{perplexity:.2f}" if perplexity < 1e6 else f"{perplexity:.2e}"


def _verdict(record: ValidationRecord, settings: TrainingRecipe) -> str:
    """Tell what follows from a validation."""
    if record.best:
        return f"  (best {'BLEU' if settings.best == 'bleu' else 'loss'} so far)"
    if settings.schedule == "plateau" and record.decays <= settings.max_decays:
        return f"  (no improvement: learning rate decay {record.decays} of {settings.max_decays})"
    return ""


def _end(record: RunRecord) -> None:
    if record.status == "interrupted":
        console.remark(f"stopped; step {record.steps:,} is saved, and the same command continues from there")
        raise KeyboardInterrupt
    console.remark(f"run: {record.folder}")


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """Set `stop` at the first Ctrl-C or SIGTERM; the second one interrupts at once."""

    def request(number: int, frame: Any) -> None:
        stop.set()
        signal.signal(number, old[number])
        # a signal may arrive while another message is being written, where Python allows no second one
        with suppress(RuntimeError):
            console.remark("stopping after this step (once more: at once) ...")

    old: dict[int, Any] = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
