"""The stages of one run: those of its data, the training, and the test sets."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from synmt.arrays import SIDES, Side
from synmt.corpora.items import test_names
from synmt.data.corpus import PreparedCorpus
from synmt.files.checksums import recording
from synmt.files.writing import locked
from synmt.model.build import build
from synmt.recipe.schema import ModelRecipe, Recipe, SyntaxRecipe
from synmt.run_folder import Run
from synmt.training.checks import check_run_folder
from synmt.training.finished import changed_inputs, inputs_error, is_complete, missing_tests
from synmt.training.lifecycle import write_final_weights
from synmt.training.preparation import Preparation
from synmt.training.stages import Estimate, Stage, run_stages
from synmt.training.test_sets import check_tests, translate_tests
from synmt.training.text_stages import TextStage
from synmt.training.tree_sources.requirements import TreeRequirements

_logger = logging.getLogger(__name__)


class RunStages:
    """What is known of a run before it is trained, and its stages.

    text: the stage of the text, if several runs share it.
    """

    def __init__(
        self,
        run: Run,
        recipe: Recipe,
        requirements: Mapping[Side, TreeRequirements],
        data: Path,
        *,
        overwrite: bool = False,
        text: TextStage | None = None,
    ) -> None:
        self.run, self.overwrite = run, overwrite
        adopted, self.finished = check_run_folder(run, recipe, overwrite=overwrite)
        self.recipe = adopted[0]
        self.changed = [] if overwrite else changed_inputs(run, self.recipe)
        self.preparation = Preparation(adopted, requirements, data, text=text)

    def check_inputs(self) -> None:
        """Refuse a run that was started with other texts, trees, parsers or weights than the recipe
        names now."""
        if self.changed:
            raise inputs_error(self.run, self.recipe, self.changed)

    @cached_property
    def missing(self) -> Mapping[str, bool]:
        """The test sets that have to be translated, and whether their files have changed since they
        were."""
        if self.finished:
            return missing_tests(self.run, self.recipe)
        return dict.fromkeys(
            test_names(self.recipe.corpus, self.recipe.source, self.recipe.target), False
        )

    def shared(self) -> list[Stage]:
        """List the stages of the data, which other runs may share."""
        if self.changed or (self.finished and not self.missing):
            return []
        return [self.preparation.text] if self.finished else self.preparation.stages

    def own(self) -> list[Stage]:
        """List the stages in the run folder."""
        return [TrainingStage(self)] if self.changed else [TrainingStage(self), TestStage(self)]

    def complete(self) -> None:
        """Make what a finished run lacks: weights that were removed, translations of new or missing
        test sets."""
        if is_complete(self.run, self.recipe):
            return
        for name in (name for name, changed in self.missing.items() if changed):
            _logger.info(
                "the files of the test set %s have changed, so it is translated and scored again",
                name,
            )
        run_stages(self.shared())
        with locked(self.run.folder, "this run"):
            run_stages(self.own())
            # only now: after an interruption the same test sets are still missing
            with recording(self.run.folder, "recipe.yaml"):
                self.run.write_recipe(self.recipe)


@dataclass(eq=False)
class TrainingStage(Stage[int]):
    """Trains the model; the result is the number of steps. Training yields records, so
    `train_prepared` makes it."""

    of: RunStages

    @property
    def name(self) -> str:  # type: ignore[override]
        """What a dry run shows."""
        return f"train {self.of.run.folder}"

    def find(self) -> int | None:
        return self.of.run.steps() if self.of.finished and self.of.run.weights.exists() else None

    def make(self) -> int:
        assert self.of.finished
        write_final_weights(self.of.run, self.of.recipe)
        _logger.info("%s was missing and has been written again", self.of.run.weights)
        return self.of.run.steps()

    def estimate(self) -> Iterator[Estimate]:
        of = self.of
        if of.changed:
            problem = inputs_error(of.run, of.recipe, of.changed)
            yield Estimate(self.name, "changed", ", ".join(of.changed), problem=problem)
        elif of.finished:
            yield Estimate(
                self.name, "done" if self.known else "to do", f"{of.run.steps():,} steps"
            )
        else:
            yield Estimate(self.name, "to do", f"{self._parameters()}, {self._steps()}")

    def _steps(self) -> str:
        last, begun = (
            self.of.recipe.training.max_steps,
            0 if self.of.overwrite else self.of.run.reached(),
        )
        if not begun:
            return f"{last:,} steps"
        if begun + 1 < last:
            return f"steps {begun + 1:,} to {last:,}"
        return f"step {last:,}" if begun < last else f"no further step: step {begun:,} is done"

    def _parameters(self) -> str:
        """Count the weights of the model; without a learned vocabulary, the number may turn out
        smaller.

        The rows of learned features are not counted, since nothing is there yet that says how many
        they are.
        """
        recipe, preparation = self.of.recipe, self.of.preparation
        vocabularies, prepared = preparation.vocabularies, preparation.pieces.known
        if prepared:
            vocabularies = dict(zip(SIDES, PreparedCorpus.open(prepared).vocabularies, strict=True))
        source, target = (
            len(vocabularies[side]) if vocabularies else recipe.vocabulary.size for side in SIDES
        )
        about = "" if vocabularies else "up to " if recipe.vocabulary.kind == "word" else "about "
        if preparation.requirements["source"].of_parser:
            about = "more than "
        return f"{about}{count_weights(recipe.model, recipe.syntax, source, target):,} weights"


def count_weights(
    model: ModelRecipe, syntax: SyntaxRecipe, source_pieces: int, target_pieces: int
) -> int:
    """Count the weights of a model without filling any memory."""
    with torch.device("meta"):
        network = build(model, syntax, source_pieces=source_pieces, target_pieces=target_pieces)
    return sum(parameter.numel() for parameter in network.parameters())


@dataclass(eq=False)
class TestStage(Stage[bool]):
    """Translates and scores the test sets with the final weights."""

    __test__ = False
    of: RunStages
    name = "translate and score the test sets"

    def find(self) -> bool | None:
        return True if self.of.finished and not self.of.missing else None

    def make(self) -> bool:
        texts = self.of.preparation.text.result.test
        tests = {name: texts[name] for name in self.of.missing}
        check_tests(self.of.recipe, self.of.preparation.text.result, tests)
        translate_tests(self.of.run, self.of.recipe, tests)
        return True

    def estimate(self) -> Iterator[Estimate]:
        recipe, text = self.of.recipe, self.of.preparation.text
        for name in test_names(recipe.corpus, recipe.source, recipe.target):
            lines, metrics = text.lines(name), ", ".join(recipe.evaluation.metrics)
            amount = f"{lines:,} lines, {metrics}" if lines is not None else metrics
            yield Estimate(
                f"translate and score {name}",
                "to do" if name in self.of.missing else "done",
                amount,
            )
