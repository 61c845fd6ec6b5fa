"""The life of a run folder: which recipe may use it, how a run starts, and when it has finished."""

from __future__ import annotations

import datetime
import logging
import shutil
from pathlib import Path

import torch

from synmt import __version__
from synmt.decode.tree_provider import parser_difference
from synmt.errors import UsageError, counted, listed
from synmt.files.checksums import RECORD, recording, verify, verify_file
from synmt.files.links import remove
from synmt.files.own_code import changed_code, keep_code
from synmt.files.reading import stored_sha256
from synmt.files.writing import UNFINISHED, write_atomically
from synmt.model.weights import average_weights
from synmt.recipe.load import recipe_differences, recipe_values
from synmt.recipe.schema import Recipe, TrainingRecipe
from synmt.run_folder import Run
from synmt.tokenization.word_tokenizer import case_model, identities
from synmt.training.checkpoint import regular_checkpoints
from synmt.training.finished import another_run, has_finished
from synmt.training.preparation import Prepared

_logger = logging.getLogger(__name__)

_MAY_CHANGE = {
    *("decoding", "evaluation", "corpus.test"),
    *(f"{parser}.{key}" for parser in ("parser", "target_parser") for key in ("workers", "device")),
    *(
        f"training.{key}"
        for key in ("max_steps", "log_every", "validate_every", "save_every", "keep", "average")
    ),
    *(f"training.{key}" for key in ("patience", "max_decays", "use", "device", "shard_optimizer")),
}
"""Keys of a recipe that may change when a run is continued."""


def check_run(run: Run, recipe: Recipe, *, overwrite: bool) -> None:
    """Refuse a folder that is not a run, or the run of a different recipe; writes nothing."""
    if not run.exists():
        # killed before run.json was written; names with a dot are unfinished files
        ours = ("lock", "recipe.yaml")
        if any(
            path.name not in ours and not path.name.startswith(".") for path in run.folder.glob("*")
        ):
            raise UsageError(
                "not a run folder (no run.json), and not empty",
                where=str(run.folder),
                do="Choose another name: name=…",
            )
        return
    run.info()
    if overwrite:
        return
    verify(run.folder)
    before = run.recipe()
    changed = recipe_differences(recipe_values(before), recipe_values(recipe), _MAY_CHANGE)
    differences = [f"{key} was {old}, is {new}" for key, old, new in changed]
    if len(differences) == 1 and before.name != recipe.name:
        raise UsageError(
            f"this is the run '{before.name}', whose folder was renamed or copied",
            where=str(run.folder),
            do=f"Rename the folder to {before.name} to resume, choose another name=… for a new "
            "run, or replace this "
            "one with --overwrite",
        )
    if differences:
        raise another_run(
            run, recipe, "this run was started with a different recipe: " + "; ".join(differences)
        )
    if changed_packages := changed_code(_variants(recipe), run.folder / "code"):
        what = f"the code of {listed(changed_packages)} has changed since this run was started"
        raise another_run(run, recipe, f"{what} (the old one is in {run.folder / 'code'})")
    if _has_lost_checkpoints(run) and not has_finished(run, recipe):
        raise another_run(
            run,
            recipe,
            "the run has finished, and cannot be continued or changed without its checkpoints",
        )
    steps, step = recipe.training.max_steps, run.reached()
    if steps < step and steps != before.training.max_steps:
        what = (
            f"the run is already at step {step:,}; set training.max_steps to {step} (to end it "
            "there) or more"
        )
        raise another_run(run, recipe, f"{what}, not {steps}")


def _variants(recipe: Recipe) -> list[str]:
    return [variant.name for variant in recipe.syntax.variants]


def _has_lost_checkpoints(run: Run) -> bool:
    return run.info().get("status") == "finished" and not run.checkpoints()


RESUME_ADVICE = "Leave out --overwrite to resume the run instead of restarting it"
"""What to do after an error in a run that was started with --overwrite."""


def begin_run(run: Run, recipe: Recipe, prepared: Prepared, *, overwrite: bool) -> None:
    """Set up a run folder that `check_run_folder` accepted; the caller holds its lock."""
    if overwrite:
        _empty(run)
    remove_leftovers(run)
    if run.checkpoints():
        verify(run.folder, large=True)
        verify(prepared.folder, large=True)
    # both names are hashes of the contents
    reads = {"prepared": prepared.folder.name, "trees": dict(prepared.made_by)}
    before = run.info() if run.exists() else {}
    if any(before.get(key, value) != value for key, value in reads.items()):
        what = "the text, or the parser of its trees, has changed since this run was started"
        recorded, present = before.get("parser"), prepared.parser
        difference = parser_difference(recorded, dict(present)) if recorded and present else ""
        raise another_run(run, recipe, f"{what} ({difference})" if difference else what)
    if not run.exists() or run.recipe() != recipe:
        if run.exists():
            # first: if this is interrupted, a run that has finished has not done so with the new
            # recipe
            run.write_info(status="training")
        run.write_recipe(recipe)
        run.write_info(
            name=recipe.name, status="training", synmt=__version__, torch=torch.__version__
        )
    if not (run.folder / "code").exists():
        keep_code(_variants(recipe), run.folder / "code")
    # weights and log are going to change
    remove(run.folder / RECORD)
    for side, tokenizer in prepared.tokenizers.items():
        if tokenizer.truecaser is not None:
            with write_atomically(case_model(run.folder, side), binary=True) as out:
                out.write(tokenizer.truecaser.path.read_bytes())
    text = identities(prepared.tokenizers)
    run.write_info(
        parser=prepared.parser, inputs=prepared.inputs, **reads, **({"text": text} if text else {})
    )
    if prepared.parse_costs:
        run.write_info(parsing=dict(prepared.parse_costs))
    if recipe.model.init is not None and not run.checkpoints():
        other = Run(recipe.model.init.expanduser())
        run.write_info(
            init={"run": str(other.folder), "weights": stored_sha256(other.weights_of("final"))}
        )


def remove_leftovers(run: Run) -> None:
    """Remove the unfinished files of a killed process."""
    for path in run.folder.rglob(f".*{UNFINISHED}"):
        remove(path)


def _empty(run: Run) -> None:
    # run.json goes last: if this is interrupted, the folder is still a run
    for path in sorted(run.folder.iterdir(), key=lambda path: path.name == "run.json"):
        if path.name != "lock":
            remove(path)


def write_final_weights(run: Run, recipe: Recipe) -> None:
    """Write the weights used for translation: the best, the last, or the mean of the last ones."""
    with recording(run.folder, "*.safetensors", run.log.name):
        _write_weights(run, recipe.training, run.folder / "average.safetensors")


def _write_weights(run: Run, settings: TrainingRecipe, average: Path) -> None:
    # the checkpoints of a finished run may have been removed by hand
    if settings.average > 1 and (last := regular_checkpoints(run, settings)[-settings.average :]):
        if len(last) < settings.average:
            what = "only %s averaged: there are no more, but training.average is %d"
            _logger.warning(
                what, counted(len(last), "checkpoint is", "checkpoints are"), settings.average
            )
        for folder in last:
            verify(folder, large=True)
        average_weights([folder / "model.safetensors" for folder in last], average)
    elif settings.average == 1:
        # it is that of fewer steps
        average.unlink(missing_ok=True)
    used = run.weights_of(settings.use)
    verify_file(used, large=True)
    with write_atomically(run.weights, binary=True) as out, open(used, "rb") as weights:
        shutil.copyfileobj(weights, out)


def finish_run(run: Run, step: int) -> None:
    """Mark the run as finished, so that `find_run` finds it."""
    run.write_info(
        status="finished",
        steps=step,
        finished_at=datetime.datetime.now(datetime.timezone.utc).isoformat(),
    )
