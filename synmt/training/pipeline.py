"""Training a recipe from Python: `for record in train("quickstart"): print(record)`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from typing import Any

import torch

from synmt.arrays import SIDES, Side
from synmt.corpora.progress import Progress
from synmt.data.corpus import PreparedCorpus
from synmt.data.dropout import BpeDropout
from synmt.data.features import learn_features
from synmt.data.stream import Reader
from synmt.errors import adding_advice
from synmt.files.checksums import recording
from synmt.files.writing import locked
from synmt.model.build import build_for
from synmt.model.device import choose_device, device_name, keep_freed_memory
from synmt.recipe.schema import Recipe
from synmt.run import Run
from synmt.syntax.feature_signals import FeatureValues
from synmt.syntax.reading import Reading, reading_of
from synmt.training.changed_inputs import check_inputs
from synmt.training.checks import check_run_folder, check_values, load_checked
from synmt.training.distributed import Processes, join_processes
from synmt.training.finished import is_complete, missing_tests
from synmt.training.initial import adopt_case, adopt_vocabulary, freeze, take_weights
from synmt.training.lifecycle import RESUME_ADVICE, begin_run, finish_run, write_final_weights
from synmt.training.log import Log
from synmt.training.records import EndRecord, LogRecord, RunRecord, ScoreRecord, StartRecord
from synmt.training.stages import Prepared, prepare_data
from synmt.training.test_sets import find_tests, read_results, translate_tests
from synmt.training.trainer import Trainer
from synmt.training.trees.requirements import tree_requirements
from synmt.training.validation import validation_bleu

Record = Progress | Prepared | StartRecord | LogRecord | ScoreRecord | RunRecord
"""What `train` yields, in this order; Progress comes before Prepared and after the end of training."""

_FIXED = ("recipe.yaml", "*.model", "*.words", "*.truecase", "features.json")
"""Files of a run that do not change while it is trained."""

_logger = logging.getLogger(__name__)


def prepare(
    recipe: str | Path | Recipe, overrides: Iterable[str] = (), *, data: str | Path = "data", source_trees: bool = False
) -> Generator[Progress | Prepared, None, None]:
    """Prepare the training data of a recipe; the last record names the folder.

    recipe: its file, or the name of a shipped one.
    overrides: `key=value` changes of the recipe, such as `filters.max_words=80`.
    data: the folder of trees and prepared corpora; what it already has is not made again.
    source_trees: parse the source even if no variant reads its trees.
    """
    loaded, requirements = load_checked(recipe, overrides, tree_requirements)
    loaded, vocabularies = adopt_vocabulary(loaded)
    taken: dict[str, Any] = {"vocabularies": vocabularies, "truecasers": adopt_case(loaded)}
    yield from prepare_data(loaded, requirements, Path(data), source_trees=source_trees, **taken)


def train(
    recipe: str | Path | Recipe,
    overrides: Iterable[str] = (),
    *,
    runs: str | Path = "runs",
    data: str | Path = "data",
    overwrite: bool = False,
    stop: threading.Event | None = None,
    processes: Processes | None = None,
) -> Generator[Record, None, None]:
    """Train a recipe: prepare its data, train, translate and score the test sets; yields a record of each event.

    The last record is a RunRecord with the run folder. An interrupted run continues from its last checkpoint when the
    same recipe is trained again. If the run has finished already, only what is missing is made (final weights,
    translations of new test sets), and there are no records of training: the scores and the RunRecord follow at once.

    recipe: its file, or the name of a shipped one.
    overrides: `key=value` changes of the recipe, such as `training.max_steps=300`.
    runs: the parent of the run folder, which is named after the recipe.
    data: the folder of trees and prepared corpora.
    overwrite: remove the run of this name and start again.
    stop: set it to save and stop after the current step; the RunRecord then says `interrupted`.
    processes: this process among those of `torchrun`; found in the environment if None.
    """
    loaded, requirements = load_checked(recipe, overrides, check_values)
    processes = processes or join_processes()
    run = Run(Path(runs) / loaded.name)
    advice = RESUME_ADVICE * overwrite
    # if torchrun starts this again, the run that was there before has been removed already
    overwrite = overwrite and not processes.was_done_before(f"overwrite {run.folder}")
    loaded, vocabularies, finished = check_run_folder(run, loaded, overwrite=overwrite)
    if not overwrite:
        check_inputs(run, loaded)
    case = adopt_case(loaded, run, overwrite=overwrite)
    processes.wait()
    if finished:
        if processes.rank == 0:
            yield from _complete(run, loaded)
        _logger.info("%s has finished already, after %s steps", run.folder, f"{run.steps():,}")
    else:
        with ExitStack() as stack:
            with processes.first_alone():
                # before the run folder is written: if data are missing, the recipe may still be changed
                taken: dict[str, Any] = {"vocabularies": vocabularies, "truecasers": case}
                prepared = yield from prepare_data(loaded, requirements, Path(data), **taken)
                if processes.rank == 0:
                    stack.enter_context(locked(run.folder, "this run"))
                    begin_run(run, loaded, prepared, overwrite=overwrite)
                    processes.note(f"overwrite {run.folder}")
            with adding_advice(advice):
                end = yield from train_prepared(run, loaded, prepared, processes, stop)
        if end.reason == "interrupted":
            yield RunRecord(run.folder, "interrupted", end.step)
            return
    if processes.rank == 0:
        yield from read_results(run)
        yield RunRecord(run.folder, "finished", run.steps())


def _complete(run: Run, recipe: Recipe) -> Iterator[Progress]:
    """Make what a finished run lacks: weights that were removed, translations of test sets that are new or missing."""
    if is_complete(run, recipe):
        return
    missing = missing_tests(run, recipe)
    for name in (name for name, changed in missing.items() if changed):
        _logger.info("the files of the test set %s have changed, so it is translated and scored again", name)
    tests = find_tests(recipe, missing) if missing else {}
    with locked(run.folder, "this run"):
        if not run.weights.exists():
            write_final_weights(run, recipe)
            _logger.info("%s was missing and has been written again", run.weights)
        yield from translate_tests(run, recipe, tests)
        # only now: after an interruption the same test sets are still missing
        with recording(run.folder, "recipe.yaml"):
            run.write_recipe(recipe)


def train_prepared(
    run: Run,
    recipe: Recipe,
    prepared: Prepared,
    processes: Processes,
    stop: threading.Event | None,
    *,
    parser: str | None = None,
) -> Generator[StartRecord | LogRecord | Progress, None, EndRecord]:
    """Train from the newest checkpoint, write the log, and finish the run unless it was interrupted.

    parser: the folder of the parser that parses the test sets, if it is not where the run recorded it.
    """
    trainer = make_trainer(run, recipe, prepared, processes)
    trainer.stop = stop or trainer.stop
    step, settings = trainer.resume(), recipe.training
    weights = sum(weight.numel() for weight in trainer.model.parameters())
    frozen = sum(weight.numel() for weight in trainer.model.parameters() if not weight.requires_grad)
    yield StartRecord(step, weights, frozen, str(choose_device(settings.device)), settings)
    log, record = _begin_log(run, step, trainer.device) if processes.rank == 0 else None, None
    with closing(trainer.train()) as records:
        for record in records:
            if log:
                log.write(record)
            yield record
    assert isinstance(record, EndRecord), record
    if record.reason != "interrupted" and processes.rank == 0:
        write_final_weights(run, recipe)
        yield from translate_tests(run, recipe, prepared.corpus.test, parser=parser)
        finish_run(run, record.step)
    return record


def _begin_log(run: Run, step: int, device: torch.device) -> Log:
    """Open the log of a training that begins or goes on after this step, and write down its device."""
    if not step and run.log.exists():
        _logger.info("%s has no checkpoint, so training starts again from the first step", run.folder)
    before = run.info().get("devices", []) if step else []
    run.write_info(devices=list(dict.fromkeys([*before, device_name(device)])))
    return Log(run.folder, step)


def make_trainer(run: Run, recipe: Recipe, prepared: Prepared, processes: Processes) -> Trainer:
    """Build the model and the readers of its data."""
    keep_freed_memory()
    data = PreparedCorpus.open(prepared.folder)
    source, target = data.vocabularies
    # the other processes write the same bytes
    with recording(run.folder, *_FIXED) if processes.rank == 0 else nullcontext():
        for name, vocabulary in (("source", source), ("target", target)):
            vocabulary.save(run.folder, name)
        features = _features(run, recipe, data, prepared.trees)
    torch.manual_seed(recipe.training.seed)
    model = build_for(recipe, source, target, features, run.folder / "code")
    if recipe.model.init is not None and not run.checkpoints():
        take_weights(model, recipe)
    freeze(model, recipe)
    reading: dict[Side, Reading] = {
        side: reading_of(model.reads(side) + model.learns(side), recipe.parser_of(side)) for side in SIDES
    }
    valid = Reader(data.split("valid", prepared.trees), recipe.training, reading)
    train = Reader(
        data.split("train", prepared.trees),
        recipe.training,
        reading,
        processes.rank,
        processes.count,
        prepared.corpus.parts,
        BpeDropout((source, target), share, recipe.training.seed) if (share := recipe.vocabulary.dropout) else None,
    )
    return Trainer(
        run,
        recipe,
        model,
        train=train,
        valid=valid,
        device=choose_device(recipe.training.device),
        score=validation_bleu(recipe, prepared, valid, target) if recipe.training.validation_beam_size else None,
        processes=processes,
    )


def _features(run: Run, recipe: Recipe, data: PreparedCorpus, trees: Mapping[Side, str]) -> FeatureValues:
    """Find the values of learned features: those of the run, of `model.init`, or of the training text."""
    if known := run.features():
        return known
    learned = learn_features(data, trees["source"]) if "source" in trees else {}
    if learned and recipe.model.init is not None:
        learned = {**learned, **Run(recipe.model.init.expanduser()).features()}
    if learned:
        run.write_features(learned)
    return learned
