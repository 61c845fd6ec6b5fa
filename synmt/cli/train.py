"""`synmt train`: a recipe to a run folder; what is missing before is made, what was interrupted goes on."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synmt.cli import console
from synmt.cli.arguments import DataFolder, Overrides, RecipeFile

if TYPE_CHECKING:
    from synmt.recipe.data import SplitFiles
    from synmt.recipe.schema import Recipe, TrainingRecipe
    from synmt.run import Run
    from synmt.training.distributed import Processes
    from synmt.training.pipeline import Prepared
    from synmt.training.records import EndRecord, Record, ValidationRecord
    from synmt.training.trainer import Trainer


def train(
    recipe: RecipeFile,
    overrides: Overrides = None,
    runs: Annotated[Path, typer.Option(help="Where run folders lie.")] = Path("runs"),
    data: DataFolder = Path("data"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Remove the run of this name and begin anew.")] = False,
) -> None:
    """Train a model by a recipe: parse, prepare, train, translate the test sets, score them.

    What is there already is not made again. After an interruption of any kind the same command goes on from the
    last checkpoint. Several GPUs: the same command under `torchrun`.

    Example: [bold]synmt train recipes/multi30k-pascal.yaml training.max_steps=300[/]
    """
    from synmt.errors import naming
    from synmt.recipe.load import load_recipe
    from synmt.run import Run
    from synmt.training.distributed import join_processes
    from synmt.training.pipeline import check_run, check_values, has_finished

    loaded = load_recipe(recipe, overrides or [])
    with naming(recipe):
        check_values(loaded)
    processes = join_processes()
    run = Run(runs / loaded.name)
    if processes.rank:
        console.configure(quiet=True, debug=False)
    check_run(run, loaded, overwrite=overwrite)
    finished = not overwrite and has_finished(run, loaded)
    processes.wait()
    if finished:
        if processes.rank == 0:
            _complete(run, loaded)
        console.remark(f"{run.folder} has finished already, after {run.info()['steps']:,} steps")
    else:
        _prepare_and_train(run, loaded, data, processes, overwrite)
    if processes.rank == 0:
        _tell_scores(run)


def _complete(run: Run, recipe: Recipe) -> None:
    """Make what a finished run lacks: weights that were removed, translations of test sets that are new or gone."""
    from synmt.files import locked
    from synmt.training.pipeline import find_tests, keep_final_weights, missing_tests

    names = missing_tests(run, recipe)
    if run.weights.exists() and not names and run.recipe() == recipe:
        return
    tests = find_tests(recipe, names) if names else {}
    with locked(run.folder, "this run"):
        if not run.weights.exists():
            keep_final_weights(run, recipe)
            console.remark(f"{run.weights} is made again")
        _translate_tests(run, recipe, tests)
        # only now: whoever interrupts this finds the same sets missing
        run.write_recipe(recipe)


def _prepare_and_train(run: Run, recipe: Recipe, data: Path, processes: Processes, overwrite: bool) -> None:
    from synmt.cli.stages import prepare_for
    from synmt.files import locked
    from synmt.training.pipeline import begin_run

    with ExitStack() as stack:
        with processes.first_alone():
            # before the run is begun: a recipe whose data are missing may still be changed
            prepared = prepare_for(recipe, data)
            if processes.rank == 0:
                run.folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(run.folder, "this run"))
                begin_run(run, recipe, prepared, overwrite=overwrite)
        _train(run, recipe, prepared, processes)


def _train(run: Run, recipe: Recipe, prepared: Prepared, processes: Processes) -> None:
    from synmt.training.pipeline import finish_run, keep_final_weights, make_trainer

    trainer = make_trainer(run, recipe, prepared, processes)
    end = _show_training(run, trainer)
    if end.reason == "interrupted":
        console.remark(f"stopped; step {end.step:,} is saved, and the same command goes on from there")
        raise KeyboardInterrupt
    if processes.rank:
        return
    keep_final_weights(run, recipe)
    _translate_tests(run, recipe, prepared.corpus.test)
    finish_run(run, end.step)


def _show_training(run: Run, trainer: Trainer) -> EndRecord:
    from synmt.training.log import Log
    from synmt.training.records import EndRecord

    began = trainer.resume()
    settings = trainer.settings
    weights = sum(parameter.numel() for parameter in trainer.model.parameters())
    console.remark(
        f"train: {weights:,} weights on {trainer.device}, {settings.precision}, "
        + (f"from step {began:,} on" if began else f"{settings.max_steps:,} steps")
    )
    log = Log(run.folder, began) if trainer.processes.rank == 0 else None
    end = None
    shown = began
    with _stopping(trainer), console.progress("train", settings.max_steps - began, "steps", every=1e9) as advance:
        for record in trainer.train():
            advance(record.step - shown)
            shown = record.step
            if log:
                log.write(record)
            console.remark(_line(record, settings))
            end = record
    assert isinstance(end, EndRecord)
    return end


def _line(record: Record, settings: TrainingRecipe) -> str:
    from synmt.training.records import StepRecord, ValidationRecord

    if isinstance(record, StepRecord):
        extra = "".join(f"  {name} {value:.3f}" for name, value in record.losses.items())
        return (
            f"step {record.step:>7,}  loss {record.loss:.3f}  perplexity {_short(record.perplexity):>9}{extra}  "
            f"rate {record.learning_rate:.2e}  norm {record.gradient_norm:.2f}  "
            f"{record.tokens_per_second:,.0f} tokens/s  {record.memory / 2**20:,.0f} MB"
        )
    if isinstance(record, ValidationRecord):
        bleu = f"  BLEU {record.bleu:.2f}" if record.bleu is not None else ""
        shown = f"loss {record.loss:.3f}  perplexity {_short(record.perplexity)}{bleu}"
        return f"valid at {record.step:,}: {shown}{_judged(record, settings)}"
    reasons = {"decays": f"no better validation after {settings.max_decays} lower rates (training.max_decays)"}
    return f"end of training at step {record.step:,}: {reasons.get(record.reason, record.reason)}"


def _short(perplexity: float) -> str:
    return f"{perplexity:.2f}" if perplexity < 1e6 else f"{perplexity:.2e}"


def _judged(record: ValidationRecord, settings: TrainingRecipe) -> str:
    """Say what a validation changes."""
    if record.best:
        return f"  (the best {'BLEU' if settings.best == 'bleu' else 'loss'} so far)"
    if settings.schedule == "plateau" and record.decays <= settings.max_decays:
        return f"  (no better: the rate is lowered, {record.decays} of {settings.max_decays} times)"
    return ""


@contextmanager
def _stopping(trainer: Trainer) -> Iterator[None]:
    """Ask the trainer to save and stop at the first Ctrl-C or SIGTERM; the second one stops at once."""

    def ask(number: int, frame: Any) -> None:
        trainer.stop_requested = True
        signal.signal(number, old[number])
        # a signal may come in the middle of a remark, where Python allows no other
        with suppress(RuntimeError):
            console.remark("stopping after this step (once more: at once) ...")

    old: dict[int, Any] = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _translate_tests(run: Run, recipe: Recipe, tests: Mapping[str, SplitFiles]) -> None:
    from synmt.files import count_lines
    from synmt.training.pipeline import translate_test

    for name, files in tests.items():
        with console.progress(f"translate {name}", count_lines(files.source), "lines") as advance:
            for done in translate_test(run, recipe, name, files):
                advance(done)


def _tell_scores(run: Run) -> None:
    import json

    for path in sorted(run.folder.glob("tests/*/scores.json")):
        scores = json.loads(path.read_text(encoding="utf-8"))
        for metric, found in scores.items():
            console.remark(f"{path.parent.name}: {metric} {found['score']:.2f}  {found['signature']}")
    console.remark(f"run: {run.folder}")
