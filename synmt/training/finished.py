"""Whether a run has finished, and what a finished run lacks; reads small files only, and does not
load torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from synmt.corpora.items import local_tests, named_tests, test_names
from synmt.errors import RETRANSLATE
from synmt.files.json_files import read_json_if_there
from synmt.files.reading import stored_sha256
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run

MADE_FROM = "made_from.json"
"""The file that records the hashes of a test set's files, in the folder of its translations."""


def has_finished(run: Run, recipe: Recipe) -> bool:
    """Tell whether a run has finished training with this recipe; its test sets may have changed
    since."""
    if not run.exists() or run.info().get("status") != "finished":
        return False
    return _without_tests(run.recipe()) == _without_tests(recipe)


def _without_tests(recipe: Recipe) -> Recipe:
    return recipe.model_copy(update={"corpus": recipe.corpus.model_copy(update={"test": {}})})


def is_complete(run: Run, recipe: Recipe) -> bool:
    """Tell whether a run that has finished has its weights, and the translations of all test sets
    of the recipe."""
    return run.weights.exists() and run.recipe() == recipe and not missing_tests(run, recipe)


def missing_tests(run: Run, recipe: Recipe) -> dict[str, bool]:
    """Name the test sets whose translations are missing from a finished run, or were made from
    other files.

    The value tells whether the files of the test set have changed since they were translated.
    """
    before, now = named_tests(run.recipe().corpus), named_tests(recipe.corpus)
    local = local_tests(recipe.corpus, recipe.source, recipe.target)
    hashes = {name: hashes_of(files) for name, files in local.items()}
    missing = {}
    for name in test_names(recipe.corpus, recipe.source, recipe.target):
        folder = run.test_folder(name)
        files = ("source.txt", "reference.txt", "hypothesis.txt", "scores.json")
        there = all((folder / file).is_file() for file in files) and before.get(name) == now.get(
            name
        )
        changed = _has_changed(folder / MADE_FROM, hashes.get(name, {}))
        if changed or not there:
            missing[name] = changed
    return missing


def _has_changed(record: Path, now: Mapping[str, str]) -> bool:
    """Compare hashes with those on record; earlier versions recorded none, and files that are gone
    have no hash."""
    before = read_json_if_there(record, dict[str, str], do=RETRANSLATE) or {}
    return any(before.get(field, digest) != digest for field, digest in now.items())


def hashes_of(files: SplitFiles) -> dict[str, str]:
    """Hash the files of a test set that are there: text, and trees and labels next to it."""
    return {
        field: stored_sha256(path) for field, path in files if path is not None and path.is_file()
    }
