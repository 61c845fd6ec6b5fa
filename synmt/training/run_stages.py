"""The stages of one run: those of its data, the training, and the test sets."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

from synmt.corpora.items import test_names
from synmt.data.prepare import check_lengths
from synmt.exchange.card import write_card
from synmt.files.checksums import recording
from synmt.files.writing import locked
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run
from synmt.training.checks import check_run_folder
from synmt.training.finished import check_inputs, is_complete, missing_tests
from synmt.training.lifecycle import write_final_weights
from synmt.training.preparation import Preparation
from synmt.training.stages import Result, Stage, run_stages
from synmt.training.test_sets import read_results, translate_tests
from synmt.training.tree_sources import Requirements, all_given_trees


class RunStages:
    """What is known of a run before it is trained, and its stages."""

    def __init__(
        self,
        run: Run,
        recipe: Recipe,
        requirements: Requirements,
        data: Path,
        *,
        overwrite: bool = False,
    ) -> None:
        self.run, self.overwrite = run, overwrite
        adopted, self.finished = check_run_folder(run, recipe, overwrite=overwrite)
        self.recipe = adopted[0]
        if not overwrite:
            check_inputs(run, self.recipe)
        self.preparation = Preparation(adopted, requirements, data)

    def missing(self) -> list[str]:
        """Name the test sets that have to be translated."""
        if self.finished:
            return missing_tests(self.run, self.recipe)
        return list(test_names(self.recipe.corpus, self.recipe.source, self.recipe.target))

    @property
    def stages(self) -> list[Stage[Any]]:
        """All stages that the run needs, in order."""
        data = self.preparation.stages
        if self.finished:
            data = [self.preparation.text] if self.missing() else []
        return [*data, TrainingStage(self), TranslationStage(self)]

    def complete(self) -> None:
        """Make what a finished run lacks: weights that were removed, translations of new or missing
        test sets."""
        if is_complete(self.run, self.recipe):
            return
        with locked(self.run.folder, "this run"):
            run_stages(self.stages)
            # only now: after an interruption the same test sets are still missing
            with recording(self.run.folder, "recipe.yaml"):
                self.run.write_recipe(self.recipe)
            write_run_card(self.run, self.recipe)


def write_run_card(run: Run, recipe: Recipe) -> None:
    """Write the model card of a run that has its scores."""
    info = run.info()
    write_card(
        run.folder / "README.md",
        recipe,
        info.get("pairs"),
        map(astuple, read_results(run)),
        info.get("parser"),
        run.folder / "code",
    )


class _RunStage(Stage[Result]):
    """A stage of a run."""

    verb = ""

    def __init__(self, of: RunStages) -> None:
        self.of, self.name = of, f"{self.verb} {of.run.folder}"


class TrainingStage(_RunStage[int]):
    """Trains the model; the result is the number of steps. Training yields records, so
    `train_prepared` makes it; this only writes final weights that were removed."""

    verb = "train"

    def find(self) -> int | None:
        return self.of.run.steps() if self.of.finished and self.of.run.weights.exists() else None

    def make(self) -> int:
        assert self.of.finished
        write_final_weights(self.of.run, self.of.recipe)
        return self.of.run.steps()

    def size(self) -> str:
        done = self.known or (0 if self.of.overwrite else self.of.run.reached())
        return f"{done:,} of {self.of.recipe.training.max_steps:,} steps are done"


class TranslationStage(_RunStage[bool]):
    """Translates and scores the test sets with the final weights."""

    verb = "translate the test sets of"

    def find(self) -> bool | None:
        return True if self.of.finished and not self.of.missing() else None

    def make(self) -> bool:
        recipe, preparation = self.of.recipe, self.of.preparation
        text, needs = preparation.text.result, preparation.requirements["source"]
        tests = {name: text.test[name] for name in self.of.missing()}
        check_lengths(tests)
        if needs.to_run:
            # either all texts come with trees, or none
            all_given_trees(recipe, text, "source", needs)
        translate_tests(self.of.run, recipe, tests)
        return True

    def size(self) -> str:
        return ", ".join(self.of.missing())
