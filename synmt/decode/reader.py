"""A model with what it wants of a source: one member of an ensemble, or the only one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from synmt.batch import Reading, reading_of
from synmt.checkpoint import Run, load_weights
from synmt.device import choose_device
from synmt.errors import UsageError
from synmt.model.build import build_for
from synmt.model.seq2seq import Seq2Seq
from synmt.recipe import Recipe
from synmt.syntax.pieces import Vocabulary
from synmt.tasks import TRANSLATION, task_tags


@dataclass(frozen=True)
class Reader:
    """A model that reads sources.

    reading: what it reads of trees.
    parser: the identity of the parser whose trees it has learnt from; None where it is not known.
    max_pieces: of a source.
    task: the tag to put before and after a source; empty without.
    """

    model: Seq2Seq
    reading: Reading
    parser: dict[str, Any] | None
    max_pieces: int
    task: str = ""

    @property
    def reads_trees(self) -> bool:
        """Tell whether the model needs the tree of a source to translate it."""
        return bool(self.reading.signals)

    @property
    def wants_arcs(self) -> bool:
        """Tell whether it needs the probabilities of arcs with it."""
        return self.reading.arcs and not self.reading.certain


def make_reader(model: Seq2Seq, recipe: Recipe, parser: dict[str, Any] | None) -> Reader:
    """Find out what a model wants of a source."""
    reading = reading_of(model.reads("source"), recipe.parser)
    task = TRANSLATION if task_tags(recipe) else ""
    return Reader(model.eval(), reading, parser, recipe.filters.max_pieces, task)


def load_reader(run: Run, *, device: str = "auto", which: str = "final") -> Reader:
    """Load the model of a run with its weights `final`, `best`, `last` or `average`."""
    recipe, info = run.recipe(), run.info()
    model = build_for(recipe, *load_vocabularies(run))
    place = choose_device(device)
    load_weights(run.weights_of(which), model)
    return make_reader(model.to(place), recipe, info.get("parser"))


def load_vocabularies(run: Run) -> tuple[Vocabulary, Vocabulary]:
    """Read the vocabularies of the source and of the target."""
    return Vocabulary.load(run.folder, "source"), Vocabulary.load(run.folder, "target")


def check_alike(runs: Sequence[Run]) -> None:
    """Refuse runs that cannot translate together: they must cut both sides into the same pieces."""
    first, *others = runs
    expected = [vocabulary.to_bytes() for vocabulary in load_vocabularies(first)]
    for run in others:
        found = [vocabulary.to_bytes() for vocabulary in load_vocabularies(run)]
        sides = [side for side, one, other in zip(("source", "target"), expected, found, strict=True) if one != other]
        if sides:
            raise UsageError(
                f"its vocabulary of the {' and of the '.join(sides)} is not that of {first.folder}",
                where=str(run.folder),
                do="An ensemble takes runs that were prepared from one corpus with one `vocabulary` section",
            )
        if bool(task_tags(run.recipe())) != bool(task_tags(first.recipe())):
            raise UsageError(
                f"one of it and {first.folder} wants task tags around a source, the other does not",
                where=str(run.folder),
                do="An ensemble takes runs with the same `tasks.parsing`",
            )
