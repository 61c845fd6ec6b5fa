"""Training a recipe from Python: `for record in train("quickstart"): print(record)`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path

import torch

from synmt.arrays import SIDES, Side
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
from synmt.run_folder import Run
from synmt.syntax.feature_signals import FeatureValues
from synmt.syntax.reading import Reading, reading_of
from synmt.training.checks import check_values, load_checked
from synmt.training.distributed import Processes, join_processes
from synmt.training.initial import adopt_vocabulary, freeze, take_weights
from synmt.training.lifecycle import RESUME_ADVICE, begin_run, finish_run, write_final_weights
from synmt.training.log import Log
from synmt.training.preparation import Preparation, Prepared
from synmt.training.records import EndRecord, LogRecord, RunRecord, ScoreRecord, StartRecord
from synmt.training.run_stages import RunStages
from synmt.training.stages import Estimate, estimate_all
from synmt.training.test_sets import read_results, translate_tests, validation_bleu
from synmt.training.trainer import Trainer
from synmt.training.tree_sources.requirements import tree_requirements

Record = Prepared | StartRecord | LogRecord | ScoreRecord | RunRecord
"""What `train` yields, in this order."""

_FIXED = ("recipe.yaml", "*.model", "*.words", "*.truecase", "features.json")
"""Files of a run that do not change while it is trained."""

_logger = logging.getLogger(__name__)


def prepare(
    recipe: str | Path | Recipe,
    overrides: Iterable[str] = (),
    *,
    data: str | Path = "data",
    source_trees: bool = False,
) -> Iterator[Prepared]:
    """Prepare the training data of a recipe; yields one record, which names the folder.

    recipe: its file, or the name of a shipped one.
    overrides: `key=value` changes of the recipe, such as `filters.max_words=80`.
    data: the folder of trees and prepared corpora; what it already has is not made again.
    source_trees: parse the source even if no variant reads its trees.
    """
    yield from prepare_stages(_preparation(recipe, overrides, Path(data), source_trees))


def plan_preparation(
    recipe: str | Path | Recipe,
    overrides: Iterable[str] = (),
    *,
    data: str | Path = "data",
    source_trees: bool = False,
) -> list[Estimate]:
    """Estimate what `prepare` would do; the arguments are the same."""
    return list(estimate_all(_preparation(recipe, overrides, Path(data), source_trees).stages))


def _preparation(
    recipe: str | Path | Recipe, overrides: Iterable[str], data: Path, source_trees: bool
) -> Preparation:
    loaded, requirements = load_checked(recipe, overrides, tree_requirements)
    loaded, vocabularies, truecasers = adopt_vocabulary(loaded)
    return Preparation(
        loaded,
        requirements,
        data,
        source_trees=source_trees,
        vocabularies=vocabularies,
        truecasers=truecasers,
    )


def prepare_stages(preparation: Preparation) -> Generator[Prepared, None, Prepared]:
    """Prepare the data, and warn of what is unexpected in them."""
    prepared = preparation.run()
    yield prepared
    for text in preparation.warnings():
        _logger.warning("%s", text)
    return prepared


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
    """Train a recipe: prepare its data, train, translate and score the test sets; yields a record
    of each event.

    The last record is a RunRecord with the run folder. An interrupted run continues from its last
    checkpoint when the same recipe is trained again. If the run has finished already, only what is
    missing is made (final weights, translations of new test sets), and there are no records of
    training: the scores and the RunRecord follow at once.

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
    way = RunStages(run, loaded, requirements, Path(data), overwrite=overwrite)
    way.check_inputs()
    processes.wait()
    if way.finished:
        if processes.rank == 0:
            way.complete()
        _logger.info("%s has finished already, after %s steps", run.folder, f"{run.steps():,}")
    else:
        with ExitStack() as stack:
            with processes.first_alone():
                # before the run folder is written: if data are missing, the recipe may still be
                # changed
                prepared = yield from prepare_stages(way.preparation)
                if processes.rank == 0:
                    stack.enter_context(locked(run.folder, "this run"))
                    begin_run(run, way.recipe, prepared, overwrite=overwrite)
                    processes.note(f"overwrite {run.folder}")
            with adding_advice(advice):
                record = None
                for record in train_prepared(run, way.recipe, prepared, processes, stop):
                    yield record
        if isinstance(record, EndRecord) and record.reason == "interrupted":
            yield RunRecord(run.folder, "interrupted", record.step)
            return
    if processes.rank == 0:
        yield from read_results(run)
        yield RunRecord(run.folder, "finished", run.steps())


def plan_training(
    recipe: str | Path | Recipe,
    overrides: Iterable[str] = (),
    *,
    runs: str | Path = "runs",
    data: str | Path = "data",
    overwrite: bool = False,
) -> list[Estimate]:
    """Estimate what `train` would do; arguments and errors are the same."""
    loaded, requirements = load_checked(recipe, overrides, check_values)
    run = Run(Path(runs) / loaded.name)
    way = RunStages(run, loaded, requirements, Path(data), overwrite=overwrite)
    return list(estimate_all([*way.shared(), *way.own()]))


def train_prepared(
    run: Run,
    recipe: Recipe,
    prepared: Prepared,
    processes: Processes,
    stop: threading.Event | None,
    *,
    parser: str | None = None,
) -> Generator[StartRecord | LogRecord, None, None]:
    """Train from the newest checkpoint, write the log, and finish the run unless it was
    interrupted.

    The last record is an EndRecord; after it, the test sets are translated.

    parser: the folder of the parser that parses the test sets, if it is not where the run recorded
        it.
    """
    trainer = make_trainer(run, recipe, prepared, processes)
    trainer.stop = stop or trainer.stop
    step, settings = trainer.resume(), recipe.training
    weights = sum(weight.numel() for weight in trainer.model.parameters())
    frozen = sum(
        weight.numel() for weight in trainer.model.parameters() if not weight.requires_grad
    )
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
        translate_tests(run, recipe, prepared.corpus.test, parser=parser)
        finish_run(run, record.step)


def _begin_log(run: Run, step: int, device: torch.device) -> Log:
    """Open the log of a training that begins or goes on after this step, and write down its
    device."""
    if not step and run.log.exists():
        _logger.info(
            "%s has no checkpoint, so training starts again from the first step", run.folder
        )
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
        side: reading_of(model.reads(side) + model.learns(side), recipe.parser_of(side))
        for side in SIDES
    }
    valid = Reader(data.split("valid", prepared.trees), recipe.training, reading)
    train = Reader(
        data.split("train", prepared.trees),
        recipe.training,
        reading,
        processes.rank,
        processes.count,
        prepared.corpus.parts,
        BpeDropout((source, target), share, recipe.training.seed)
        if (share := recipe.vocabulary.dropout)
        else None,
    )
    return Trainer(
        run,
        recipe,
        model,
        train=train,
        valid=valid,
        device=choose_device(recipe.training.device),
        score=validation_bleu(recipe, prepared, valid, target)
        if recipe.training.validation_beam_size
        else None,
        processes=processes,
    )


def _features(
    run: Run, recipe: Recipe, data: PreparedCorpus, trees: Mapping[Side, str]
) -> FeatureValues:
    """Find the values of learned features: those of the run, of `model.init`, or of the training
    text."""
    if known := run.features():
        return known
    learned = learn_features(data, trees["source"]) if "source" in trees else {}
    if learned and recipe.model.init is not None:
        learned = {**learned, **Run(recipe.model.init.expanduser()).features()}
    if learned:
        run.write_features(learned)
    return learned
