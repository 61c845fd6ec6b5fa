"""Training a recipe from Python: `for record in train("quickstart"): print(record)`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, nullcontext
from functools import partial
from pathlib import Path

import torch

from synmt.arrays import SIDES, Side
from synmt.corpora.resolve import Estimate
from synmt.data.annotate import learn_features
from synmt.data.corpus import PreparedCorpus
from synmt.data.dropout import BpeDropout
from synmt.data.stream import Reader
from synmt.errors import adding_advice, naming_lack_of_memory
from synmt.exchange.hub import without_downloads
from synmt.files.checksums import recording
from synmt.files.writing import AnyPath, locked
from synmt.model.build import build_for
from synmt.model.device import choose_device, device_name, fixed_order, keep_freed_memory
from synmt.model.weights import load_tensors, save_tensors
from synmt.recipe.load import RecipeSource
from synmt.recipe.schema import Recipe
from synmt.run_folder import CANDIDATES, Run, named_run
from synmt.syntax.feature_signals import FeatureValues
from synmt.syntax.reading import Reading, reading_of
from synmt.training.batch_size import SMALLEST, fit_batch
from synmt.training.checks import check_values, load_checked
from synmt.training.distributed import Processes, join_processes
from synmt.training.initial import adopt_vocabulary, freeze, take_weights
from synmt.training.lifecycle import RESUME_ADVICE, begin_run, finish_run, write_final_weights
from synmt.training.preparation import Preparation, Prepared
from synmt.training.records import EndRecord, Log, LogRecord, RunRecord, ScoreRecord, StartRecord
from synmt.training.run_stages import RunStages, write_run_card
from synmt.training.stages import estimate_all
from synmt.training.test_sets import read_results, translate_tests, validation_scores
from synmt.training.trainer import Trainer
from synmt.training.tree_sources import tree_requirements

Record = Prepared | StartRecord | LogRecord | ScoreRecord | RunRecord
"""What `train` yields, in this order."""

_FIXED = (
    "recipe.yaml",
    "*.model",
    "*.words",
    "*.truecase",
    "features.json",
    "code/**/*.py",
    CANDIDATES,
)
"""Files of a run that do not change while it is trained."""

_logger = logging.getLogger(__name__)


def prepare(
    recipe: RecipeSource,
    overrides: Iterable[str] = (),
    *,
    data: AnyPath = "data",
    source_trees: bool = False,
) -> Iterator[Prepared]:
    """Prepare the training data of a recipe; yields one record, which names the folder.

    recipe: its file, or the name of a shipped one.
    overrides: `key=value` changes of the recipe, such as `filters.max_words=80`.
    data: the folder of trees and prepared corpora; what it already has is not made again.
    source_trees: parse the source even if no variant reads its trees.
    """
    yield _preparation(recipe, overrides, data, source_trees).run()


def plan_preparation(
    recipe: RecipeSource,
    overrides: Iterable[str] = (),
    *,
    data: AnyPath = "data",
    source_trees: bool = False,
) -> list[Estimate]:
    """Estimate what `prepare` would do; the arguments are the same."""
    with without_downloads():
        return list(estimate_all(_preparation(recipe, overrides, data, source_trees).stages))


def _preparation(
    recipe: RecipeSource, overrides: Iterable[str], data: AnyPath, source_trees: bool
) -> Preparation:
    loaded, requirements = load_checked(recipe, overrides, tree_requirements)
    return Preparation(
        adopt_vocabulary(loaded), requirements, Path(data), source_trees=source_trees
    )


def train(
    recipe: RecipeSource,
    overrides: Iterable[str] = (),
    *,
    runs: AnyPath = "runs",
    data: AnyPath = "data",
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
    processes = processes or join_processes()
    stages = _run_stages(recipe, overrides, runs, data, overwrite, processes)
    run = stages.run
    processes.wait()
    if stages.finished:
        if processes.rank == 0:
            stages.complete()
        _logger.info("%s has finished already, after %s steps", run.folder, f"{run.steps():,}")
    else:
        with ExitStack() as stack:
            with processes.first_alone():
                # before the run folder is written: if data are missing, the recipe may still be
                # changed
                prepared = stages.preparation.run()
                yield prepared
                if processes.rank == 0:
                    stack.enter_context(locked(run.folder, "this run"))
                    begin_run(run, stages.recipe, prepared, overwrite=stages.overwrite)
                    processes.note(f"overwrite {run.folder}")
            with adding_advice(RESUME_ADVICE * overwrite):
                record = None
                for record in train_prepared(run, stages.recipe, prepared, processes, stop):
                    yield record
        if isinstance(record, EndRecord) and record.reason == "interrupted":
            yield RunRecord(run.folder, "interrupted", record.step)
            return
    if processes.rank == 0:
        yield from read_results(run)
        yield RunRecord(run.folder, "finished", run.steps())


def _run_stages(
    recipe: RecipeSource,
    overrides: Iterable[str],
    runs: AnyPath,
    data: AnyPath,
    overwrite: bool,
    processes: Processes | None = None,
) -> RunStages:
    loaded, requirements = load_checked(recipe, overrides, check_values)
    run = Run(Path(runs, loaded.name))
    if overwrite and processes:
        # if torchrun starts this again, the run that was there before has been removed already
        overwrite = not processes.was_done_before(f"overwrite {run.folder}")
    return RunStages(run, loaded, requirements, Path(data), overwrite=overwrite)


def plan_training(
    recipe: RecipeSource,
    overrides: Iterable[str] = (),
    *,
    runs: AnyPath = "runs",
    data: AnyPath = "data",
    overwrite: bool = False,
) -> list[Estimate]:
    """Estimate what `train` would do; arguments and errors are the same."""
    with without_downloads():
        return list(estimate_all(_run_stages(recipe, overrides, runs, data, overwrite).stages))


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
    step, parameters = trainer.resume(), list(trainer.model.parameters())
    in_order = partial(fixed_order, trainer.device, wanted=recipe.training.deterministic)
    if recipe.training.batch_tokens == "auto" and "batch_tokens" not in run.info():
        with naming_lack_of_memory(), in_order():
            tokens = fit_batch(trainer)
        if processes.rank == 0:
            run.write_info(batch_tokens=tokens)
    yield StartRecord(
        step,
        weights=sum(weight.numel() for weight in parameters),
        frozen=sum(weight.numel() for weight in parameters if not weight.requires_grad),
        device=str(choose_device(recipe.training.device)),
        settings=recipe.training,
    )
    log, record = None, None
    if processes.rank == 0:
        devices = [*(run.info().get("devices", []) if step else []), device_name(trainer.device)]
        run.write_info(devices=list(dict.fromkeys(devices)))
        log = Log(run.folder, step)
    with in_order(), closing(trainer.train()) as records:
        for record in records:
            if log:
                log.write(record)
            yield record
    assert isinstance(record, EndRecord), record
    if record.reason != "interrupted" and processes.rank == 0:
        write_final_weights(run, recipe)
        translate_tests(run, recipe, prepared.corpus.test, parser=parser)
        write_run_card(run, recipe)
        finish_run(run, record.step)


def make_trainer(run: Run, recipe: Recipe, prepared: Prepared, processes: Processes) -> Trainer:
    """Build the model and the readers of its data."""
    keep_freed_memory()
    settings, dropout = recipe.training, recipe.vocabulary.dropout
    if settings.batch_tokens == "auto":
        settings = settings.model_copy(
            update={"batch_tokens": run.info().get("batch_tokens", SMALLEST)}
        )
    data = PreparedCorpus.open(prepared.folder)
    source, target = data.vocabularies
    # the other processes write the same bytes
    with recording(run.folder, *_FIXED) if processes.rank == 0 else nullcontext():
        for side, vocabulary in zip(SIDES, data.vocabularies, strict=True):
            vocabulary.save(run.folder, side)
        features = _features(run, recipe, data, prepared.trees)
        count, path = recipe.decoding.shortlist, run.folder / CANDIDATES
        known = load_tensors(path)["candidates"].size(1) - 1 if path.exists() else 0
        if count != known and count and processes.rank == 0:
            # it loads scipy
            from synmt.data.candidates import learn_candidates

            learned = learn_candidates(
                data.split("train"), (len(source), len(target)), count, joint=source is target
            )
            save_tensors({"candidates": torch.from_numpy(learned)}, path)
    if processes.rank == 0:
        run.write_info(pairs=len(data.split("train", {})))
    torch.manual_seed(settings.seed)
    model = build_for(recipe, source, target, features, run.folder / "code")
    if recipe.model.init is not None and not run.checkpoints():
        pretrained = take_weights(model, recipe)
        if settings.pretrained_rate < 1 and processes.rank == 0:
            run.write_info(pretrained_weights=pretrained)
        processes.wait()
    freeze(model, recipe)
    reading: dict[Side, Reading] = {
        side: reading_of(model.reads(side) + model.learns(side), recipe.parser_of(side))
        for side in SIDES
    }
    valid = Reader(data.split("valid", prepared.trees), settings, reading)
    score = None
    if settings.validation_beam_size:
        score = validation_scores(recipe, prepared, valid, target)
    return Trainer(
        run,
        recipe,
        model,
        train=Reader(
            data.split("train", prepared.trees),
            settings,
            reading,
            processes.rank,
            processes.count,
            prepared.corpus.parts,
            BpeDropout((source, target), dropout, settings.seed) if dropout else None,
        ),
        valid=valid,
        device=choose_device(settings.device),
        score=score,
        processes=processes,
    )


def _features(
    run: Run, recipe: Recipe, data: PreparedCorpus, trees: Mapping[Side, str]
) -> FeatureValues:
    """Find the values of learned features: those of the run, of `model.init`, or of the training
    text."""
    features, init = run.features(), recipe.model.init
    if not features and "source" in trees:
        features = learn_features(data, trees["source"])
        if features and init is not None:
            features = {**features, **named_run(init).features()}
        if features:
            run.write_features(features)
    return features
