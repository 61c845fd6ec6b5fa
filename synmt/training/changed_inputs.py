"""Which inputs of a run have changed since it was started; small files and stored hashes only, and
no torch.

What is not recorded, because an earlier version started the run, and what is gone does not count as
changed.
"""

from __future__ import annotations

from contextlib import suppress

from synmt.arrays import SIDES
from synmt.corpora.resolve import local_texts
from synmt.data.inputs import Inputs, describe_input, differences, hash_files, recorded_inputs
from synmt.errors import SynmtError, UsageError, listed
from synmt.files.reading import stored_sha256
from synmt.parsing.parser import StanzaParser
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run

_SHOWN = 4
"""Files in one message."""


def inputs_error(run: Run, recipe: Recipe, changed: list[str]) -> UsageError:
    """Make the error for a run whose inputs have changed."""
    return another_run(
        run, recipe, f"its inputs have changed since this run was started: {', '.join(changed)}"
    )


def another_run(run: Run, recipe: Recipe, what: str) -> UsageError:
    """Make the error for a run folder that cannot be the run of a recipe."""
    do = (
        f"Give the new run another name (name={recipe.name}-2), or replace this one with "
        "--overwrite"
    )
    return UsageError(what, where=str(run.folder), do=do)


def changed_inputs(run: Run, recipe: Recipe) -> list[str]:
    """Name the inputs of a run that have changed, each with its files."""
    before = recorded_inputs(run.info()) if run.exists() else {}
    if not before:
        return []
    texts = local_texts(recipe.corpus, recipe.source, recipe.target)
    now: Inputs = _parsers(recipe, before) | _first_weights(run, recipe)
    with suppress(SynmtError):
        now |= hash_files(texts, before)
    found: dict[str, list[str]] = {}
    for key, file in differences(before, now):
        path = (
            recipe.model.init
            if key == "init"
            else getattr(texts[key], file)
            if key in texts
            else file
        )
        found.setdefault(describe_input(key, file), []).append(str(path))
    return [f"{name} ({listed(files, _SHOWN)})" for name, files in found.items()]


def _parsers(recipe: Recipe, recorded: Inputs) -> Inputs:
    """Hash the files of those recorded parsers that are on this machine."""
    found: Inputs = {}
    for side, key in zip(SIDES, ("parser", "target_parser"), strict=True):
        settings = recipe.parser_of(side)
        with suppress(SynmtError):
            if key in recorded:
                parser = StanzaParser(
                    recipe.language_of(side), model=settings.model, package=settings.package
                )
                found[key] = parser.identity["files"]
    return found


def _first_weights(run: Run, recipe: Recipe) -> Inputs:
    """Hash the weights of `model.init`; a run without a checkpoint still has to take them."""
    init = recipe.model.init
    weights = Run(init.expanduser()).weights if init is not None else None
    if weights is None or not weights.is_file() or not (run.checkpoints() or run.weights.exists()):
        return {}
    return {"init": {"weights": stored_sha256(weights)}}
