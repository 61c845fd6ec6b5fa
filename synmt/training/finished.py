"""Whether a run has finished, and what a finished run lacks; reads small files only, and does not load torch."""

from __future__ import annotations

from synmt.corpora.items import named_tests
from synmt.corpora.resolve import test_names
from synmt.recipe.schema import Recipe
from synmt.run import Run


def has_finished(run: Run, recipe: Recipe) -> bool:
    """Tell whether a run has finished training with this recipe; its test sets may have changed since."""
    if not run.exists() or run.info().get("status") != "finished":
        return False
    return _without_tests(run.recipe()) == _without_tests(recipe)


def _without_tests(recipe: Recipe) -> Recipe:
    return recipe.model_copy(update={"corpus": recipe.corpus.model_copy(update={"test": {}})})


def is_complete(run: Run, recipe: Recipe) -> bool:
    """Tell whether a run that has finished has its weights, and the translations of all test sets of the recipe."""
    return run.weights.exists() and run.recipe() == recipe and not missing_tests(run, recipe)


def missing_tests(run: Run, recipe: Recipe) -> list[str]:
    """Name the test sets whose translations are missing from a finished run, or were made from other files."""
    before, now = named_tests(run.recipe().corpus), named_tests(recipe.corpus)

    def is_scored(name: str) -> bool:
        files = ("source.txt", "reference.txt", "hypothesis.txt", "scores.json")
        return before.get(name) == now.get(name) and all((run.test_folder(name) / file).is_file() for file in files)

    return [name for name in test_names(recipe.corpus, recipe.source, recipe.target) if not is_scored(name)]
