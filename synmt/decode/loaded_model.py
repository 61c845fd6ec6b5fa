"""The models that translate together, or the only one: what each wants of a source, and the trees that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from synmt.data.batch import Reading, reading_of
from synmt.data.tasks import TRANSLATION, task_tags
from synmt.data.vocabulary import Vocabulary
from synmt.decode.source import Remark, check_arcs, recorded_parser
from synmt.errors import UsageError
from synmt.files import fingerprint
from synmt.model.build import build_for
from synmt.model.device import choose_device
from synmt.model.seq2seq import Seq2Seq
from synmt.model.weights import load_weights
from synmt.parsing.cache import CachedParser
from synmt.parsing.parser import StanzaParser
from synmt.recipe.schema import Recipe
from synmt.run import Run
from synmt.syntax.flat import flat_parse
from synmt.syntax.parse import Parse
from synmt.syntax.whitespace import without_whitespace

Trees = Sequence[Parse | None]
"""One for each line; None where a model reads none."""


@dataclass(frozen=True)
class LoadedModel:
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


class TreeProvider:
    """What makes the trees of some readers; a parser loads when it is first needed.

    cached: whether trees are kept between runs (see synmt/parsing/cache.py).
    remark: told what a person should know, once.
    """

    def __init__(self, readers: Sequence[LoadedModel], *, device: str, cached: bool, remark: Remark) -> None:
        self.readers, self.device, self.cached, self.remark = readers, device, cached, remark
        self._parsers: dict[str, StanzaParser] = {}
        self._caches: dict[str, CachedParser] = {}

    def of(self, lines: Sequence[str], given: Trees | None = None, number: int = 1) -> list[Trees]:
        """Find what each reader reads of each line: the tree that is given, else its own parser's.

        number: of the first line, for messages.
        """
        nothing: Trees = [None] * len(lines)
        given = nothing if given is None else given
        found: dict[str, Trees] = {"": nothing}
        if any(reader.wants_arcs for reader in self.readers):
            check_arcs(given, number)
        for reader in self.readers:
            name = self._name(reader)
            if name not in found:
                found[name] = self._with_own(reader, lines, given, number)
        return [found[self._name(reader)] for reader in self.readers]

    def parser(self, reader: LoadedModel) -> StanzaParser:
        """Give the parser of a reader; an error where its run does not record it."""
        name = self._name(reader)
        if name not in self._parsers:
            # those with probabilities are the same trees, so they serve all readers of the parser
            arcs = any(other.wants_arcs for other in self.readers if self._name(other) == name)
            self._parsers[name] = recorded_parser(reader.parser, self.device, self.remark, arcs=arcs)
        return self._parsers[name]

    def _with_own(self, reader: LoadedModel, lines: Sequence[str], given: Trees, number: int) -> Trees:
        trees = [
            flat_parse(line) if tree is None and not without_whitespace(line) else tree
            for line, tree in zip(lines, given, strict=True)
        ]
        places = [place for place, tree in enumerate(trees) if tree is None]
        # a parser that is not needed need not be there
        if not places:
            return trees
        name, parser = self._name(reader), self.parser(reader)
        if self.cached and name not in self._caches:
            self._caches[name] = CachedParser(parser, remark=self.remark)

        def warn(index: int, why: str) -> None:
            self.remark(f"line {number + places[index]}: its tree is flat or pieced: {why}")

        own = iter(self._caches.get(name, parser).parse([lines[place] for place in places], on_failure=warn))
        return [next(own) if tree is None else tree for tree in trees]

    @staticmethod
    def _name(reader: LoadedModel) -> str:
        """Name what a reader reads: equal for the same parser, wherever its files lie; empty for no trees."""
        if not reader.reads_trees:
            return ""
        identity = reader.parser or {}
        return fingerprint(sorted((key, value) for key, value in identity.items() if key not in ("model", "arcs")))


def describe_model(model: Seq2Seq, recipe: Recipe, parser: dict[str, Any] | None) -> LoadedModel:
    """Find out what a model wants of a source."""
    reading = reading_of(model.reads("source"), recipe.parser)
    task = TRANSLATION if task_tags(recipe) else ""
    return LoadedModel(model.eval(), reading, parser, recipe.filters.max_pieces, task)


def load_model(run: Run, *, device: str = "auto", which: str = "final", parser: str | None = None) -> LoadedModel:
    """Load the model of a run with its weights `final`, `best`, `last` or `average`.

    parser: where its parser lies, if not where the run says.
    """
    recipe, info = run.recipe(), run.info()
    model = build_for(recipe, *load_vocabularies(run))
    place = choose_device(device)
    load_weights(run.weights_of(which), model)
    identity = info.get("parser")
    if identity is not None and parser is not None:
        identity = {**identity, "model": parser}
    return describe_model(model.to(place), recipe, identity)


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
