"""Whether a run has finished, what it lacks, and which of its inputs have changed since it was
started; small files and stored hashes only, and no torch.
"""

from __future__ import annotations

from contextlib import suppress

from synmt.arrays import SIDES
from synmt.corpora.items import local_tests, named_tests, test_names
from synmt.corpora.resolve import local_texts
from synmt.data.inputs import Inputs, differences, hash_files, recorded_inputs
from synmt.errors import RETRANSLATE, SynmtError, UsageError
from synmt.exchange.hub import NotDownloaded
from synmt.files.json_files import read_json_if_there
from synmt.files.reading import stored_sha256
from synmt.parsing.parser import StanzaParser
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run, named_run

MADE_FROM = "made_from.json"
"""The file that records the hashes of a test set's files, in the folder of its translations."""


def has_finished(run: Run, recipe: Recipe) -> bool:
    """Return whether a run has finished training with this recipe; its test sets may have changed
    since."""
    if not run.exists() or run.info().get("status") != "finished":
        return False
    return _without_tests(run.recipe()) == _without_tests(recipe)


def _without_tests(recipe: Recipe) -> Recipe:
    return recipe.model_copy(update={"corpus": recipe.corpus.model_copy(update={"test": {}})})


def is_complete(run: Run, recipe: Recipe) -> bool:
    """Return whether a run has finished, and has its weights and the translations of all test sets
    of the recipe."""
    return (
        has_finished(run, recipe)
        and run.weights.exists()
        and run.recipe() == recipe
        and not missing_tests(run, recipe)
    )


def missing_tests(run: Run, recipe: Recipe) -> list[str]:
    """Name the test sets whose translations are missing from a finished run, or were made from
    other files."""
    before, now = named_tests(run.recipe().corpus), named_tests(recipe.corpus)
    local = local_tests(recipe.corpus, recipe.source, recipe.target)
    missing = []
    for name in test_names(recipe.corpus, recipe.source, recipe.target):
        folder = run.test_folder(name)
        files = ("source.txt", "reference.txt", "hypothesis.txt", "scores.json")
        # earlier versions recorded no hashes, and files that are gone have none
        made_from = read_json_if_there(folder / MADE_FROM, dict[str, str], do=RETRANSLATE) or {}
        hashes = hashes_of(local[name]) if name in local else {}
        if (
            before.get(name) != now.get(name)
            or not all((folder / file).is_file() for file in files)
            or any(made_from.get(field, digest) != digest for field, digest in hashes.items())
        ):
            missing.append(name)
    return missing


def hashes_of(files: SplitFiles) -> dict[str, str]:
    """Hash the files of a test set that are there: text, and trees and labels next to it."""
    return {
        field: stored_sha256(path) for field, path in files if path is not None and path.is_file()
    }


def another_run(run: Run, recipe: Recipe, what: str) -> UsageError:
    """Make the error for a run folder that cannot be the run of a recipe."""
    return UsageError(
        what,
        where=run.folder,
        do=f"Give the new run another name (name={recipe.name}-2), or replace this one with "
        "--overwrite",
    )


def check_inputs(run: Run, recipe: Recipe) -> None:
    """Refuse a run that was started with other texts, trees, parsers or weights than the recipe
    names now."""
    before = recorded_inputs(run.info()) if run.exists() else {}
    if not before:
        return
    texts = local_texts(recipe.corpus, recipe.source, recipe.target)
    now = _parsers(recipe, before) | _first_weights(run, recipe)
    with suppress(SynmtError):
        now |= hash_files(texts, before)
    changed = []
    for key, file in differences(before, now):
        path = recipe.model.init if key == "init" else file
        if key in texts:
            path = getattr(texts[key], file)
        changed.append(f"{key} ({path})")
    if changed:
        raise another_run(
            run,
            recipe,
            f"its inputs have changed since this run was started: {', '.join(changed)}",
        )


def _parsers(recipe: Recipe, recorded: Inputs) -> Inputs:
    """Hash the files of those recorded parsers that are on this machine."""
    inputs: Inputs = {}
    for side, key in zip(SIDES, ("parser", "target_parser"), strict=True):
        settings = recipe.parser_of(side)
        with suppress(SynmtError):
            if key in recorded:
                inputs[key] = StanzaParser(
                    recipe.language_of(side), model=settings.model, package=settings.package
                ).identity["files"]
    return inputs


def _first_weights(run: Run, recipe: Recipe) -> Inputs:
    """Hash the weights of `model.init`; a run without a checkpoint still has to take them."""
    init = recipe.model.init
    weights = None
    # a finished run does not need it any more
    with suppress(NotDownloaded):
        weights = named_run(init).weights if init is not None else None
    if weights is None or not weights.is_file() or not (run.checkpoints() or run.weights.exists()):
        return {}
    return {"init": {"weights": stored_sha256(weights)}}
