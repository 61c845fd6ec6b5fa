"""The life of a run folder: which recipe may use it, how a run starts, and when it has finished."""

from __future__ import annotations

import datetime

import torch

from synmt import __version__
from synmt.arrays import Values
from synmt.errors import UsageError, listed
from synmt.files.checksums import RECORD, recording, verify, verify_file
from synmt.files.own_code import changed_code, own_code
from synmt.files.reading import stored_sha256
from synmt.files.writing import UNFINISHED, copy_file, remove
from synmt.model.weights import average_weights
from synmt.recipe.load import recipe_differences, recipe_values
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run, named_run
from synmt.tokenization.word_tokenizer import case_model, identities
from synmt.training.checkpoint import regular_checkpoints
from synmt.training.finished import another_run, has_finished
from synmt.training.preparation import Prepared

_MAY_CHANGE = {
    "decoding",
    "evaluation",
    "corpus.test",
    "parser.workers",
    "parser.device",
    "target_parser.workers",
    "target_parser.device",
    "training.max_steps",
    "training.log_every",
    "training.validate_every",
    "training.save_every",
    "training.keep",
    "training.average",
    "training.patience",
    "training.max_decays",
    "training.use",
    "training.device",
    "training.cuda_graphs",
    "training.shard_optimizer",
}
"""Keys of a recipe that may change when a run is continued."""


def check_run(run: Run, recipe: Recipe, *, overwrite: bool) -> None:
    """Refuse a folder that is not a run, or the run of a different recipe; writes nothing."""
    if not run.exists():
        # killed before run.json was written; names with a dot are unfinished files
        if {path.name for path in run.folder.glob("[!.]*")} - {"lock", "recipe.yaml"}:
            raise UsageError(
                "not a run folder (no run.json), and not empty",
                where=run.folder,
                do="Choose another name: name=…",
            )
        return
    run.info()
    if overwrite:
        return
    verify(run.folder)
    before = run.recipe()
    changed = list(recipe_differences(recipe_values(before), recipe_values(recipe), _MAY_CHANGE))
    code, steps = run.folder / "code", recipe.training.max_steps
    is_finished = run.info().get("status") == "finished"
    if changed:
        what = "; ".join(f"{key} was {old}, is {new}" for key, old, new in changed)
        what = f"this run was started with a different recipe: {what}"
    elif packages := changed_code(_variants(recipe), code):
        what = f"the code of {listed(packages)} has changed since this run was started"
        what += f" (the old one is in {code})"
    elif is_finished and not run.checkpoints() and not has_finished(run, recipe):
        what = "the run has finished, and cannot be continued or changed without its checkpoints"
    elif steps < run.reached() and steps != before.training.max_steps:
        what = f"training.max_steps is {steps}, and the run is already at step {run.reached()}"
    else:
        return
    raise another_run(run, recipe, what)


def _variants(recipe: Recipe) -> list[str]:
    return [variant.name for variant in recipe.syntax.variants]


RESUME_ADVICE = "Leave out --overwrite to resume the run instead of restarting it"
"""What to do after an error in a run that was started with --overwrite."""


def begin_run(run: Run, recipe: Recipe, prepared: Prepared, *, overwrite: bool) -> None:
    """Set up a run folder that `check_run_folder` accepted; the caller holds its lock."""
    if overwrite:
        # run.json goes last: if this is interrupted, the folder is still a run
        for path in sorted(run.folder.iterdir(), key=lambda path: path.name == "run.json"):
            if path.name != "lock":
                remove(path)
    remove_leftovers(run)
    has_checkpoints, init = bool(run.checkpoints()), recipe.model.init
    if has_checkpoints:
        verify(run.folder, large=True)
        verify(prepared.folder, large=True)
    # both names are hashes of the contents
    reads = {"prepared": prepared.folder.name, "trees": dict(prepared.made_by)}
    before = run.info() if run.exists() else {}
    if any(before.get(key, value) != value for key, value in reads.items()):
        raise another_run(
            run,
            recipe,
            "the text, or the parser of its trees, has changed since this run was started",
        )
    facts: Values = {}
    if not before or run.recipe() != recipe:
        if before:
            # first: if this is interrupted, a run that has finished has not done so with the new
            # recipe
            run.write_info(status="training")
        run.write_recipe(recipe)
        facts = {"name": recipe.name, "status": "training"}
        facts |= {"synmt": __version__, "torch": torch.__version__}
    facts |= {"parser": prepared.parser, "inputs": prepared.inputs, **reads}
    if text := identities(prepared.tokenizers):
        facts["text"] = text
    if prepared.parse_costs:
        facts["parsing"] = dict(prepared.parse_costs)
    if init is not None and not has_checkpoints:
        facts["init"] = {
            "run": str(init.expanduser()),
            "weights": stored_sha256(named_run(init).weights_of("final")),
        }
    run.write_info(**facts)
    if not (run.folder / "code").exists():
        for code in own_code(_variants(recipe)).values():
            code.write(run.folder / "code")
    # weights and log are going to change
    remove(run.folder / RECORD)
    for side, tokenizer in prepared.tokenizers.items():
        if tokenizer.truecaser is not None:
            copy_file(tokenizer.truecaser.path, case_model(run.folder, side))


def remove_leftovers(run: Run) -> None:
    """Remove the unfinished files of a killed process."""
    for path in run.folder.rglob(f".*{UNFINISHED}"):
        remove(path)


def write_final_weights(run: Run, recipe: Recipe) -> None:
    """Write the weights used for translation: the best, the last, or the mean of the last ones."""
    settings, average = recipe.training, run.folder / "average.safetensors"
    with recording(run.folder, "*.safetensors", run.log.name):
        # the checkpoints of a finished run may have been removed by hand
        last = regular_checkpoints(run, settings)[-settings.average :]
        if settings.average == 1:
            # it is that of fewer steps
            average.unlink(missing_ok=True)
        elif last:
            for folder in last:
                verify(folder, large=True)
            average_weights([folder / "model.safetensors" for folder in last], average)
        weights = run.weights_of(settings.use)
        verify_file(weights, large=True)
        copy_file(weights, run.weights)


def finish_run(run: Run, step: int) -> None:
    """Mark the run as finished, so that `find_run` finds it."""
    run.write_info(
        status="finished",
        steps=step,
        finished_at=datetime.datetime.now(datetime.timezone.utc).isoformat(),
    )
