"""The stages of the data of a recipe: those of its text (`text_stages.py`), then tasks, pieces and
trees."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from synmt.arrays import SIDES, Side
from synmt.corpora.corpus import Corpus
from synmt.corpora.resolve import local_texts
from synmt.data.annotate import annotate
from synmt.data.corpus import PreparedCorpus, is_complete
from synmt.data.encoding import KEPT_FILE
from synmt.data.inputs import Inputs, hash_files
from synmt.data.prepare import check_lengths, prepare, prepared_folder
from synmt.data.task_corpus import task_corpus, with_bracketings, with_trees, without_filters
from synmt.errors import UsageError, listed
from synmt.files.language import warn_of_file
from synmt.files.links import own_folder
from synmt.recipe.schema import Recipe
from synmt.syntax.arcs import without_arcs
from synmt.syntax.feature_signals import UNIVERSAL_TAGS
from synmt.tokenization.word_tokenizer import WordTokenizer
from synmt.training.initial import Adopted
from synmt.training.stages import Result, Stage, run_stages
from synmt.training.text_stages import (
    ParseStage,
    SourceStage,
    TextStage,
    WordStage,
    read_parse_cost,
)
from synmt.training.tree_sources import TreeRequirements, make_parser, parser_section

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """The data that training reads.

    corpus: the text that was prepared; the test sets are raw.
    folder: the prepared corpus.
    trees: for each side with trees, the name of their annotation.
    made_by: the part of the annotation's name that identifies the trees alone; it changes only if
        the trees do.
    parser: the identity of the parser of the source, which also parses new text.
    tokenizers: what tokenizes each side.
    raw: the corpus before it was tokenized, also if nothing was.
    parse_costs: for each side that synmt parsed, lines, words and processor seconds of its training
        text.
    inputs: the hashes of what all this was made from.
    new: whether some of it was not there before.
    """

    corpus: Corpus
    folder: Path
    trees: Mapping[Side, str] = field(default_factory=dict)
    made_by: Mapping[Side, str] = field(default_factory=dict)
    parser: Mapping[str, Any] | None = None
    tokenizers: Mapping[Side, WordTokenizer] = field(default_factory=dict)
    raw: Corpus | None = None
    parse_costs: Mapping[Side, Mapping[str, Any]] = field(default_factory=dict)
    inputs: Inputs = field(default_factory=dict)
    new: bool = field(default=True, compare=False)


class Preparation:
    """The stages of the data of a recipe, and their result.

    adopted: the recipe, with the vocabularies and truecase models of another run, or None: then
        they are learned from the corpus.
    data: the folder of trees and prepared corpora.
    source_trees: parse the source even if no variant reads its trees.
    """

    def __init__(
        self,
        adopted: Adopted,
        requirements: Mapping[Side, TreeRequirements],
        data: Path,
        *,
        source_trees: bool = False,
        text: TextStage | None = None,
    ) -> None:
        recipe, self.vocabularies, truecasers = adopted
        if source_trees and recipe.tasks.trees != "none":
            raise UsageError(
                f"--trees cannot be combined with tasks.{recipe.tasks.key}, which changes the "
                "source text",
                do="Leave out --trees",
            )
        self.recipe, self.requirements, self.data = recipe, requirements, data
        sides: list[Side] = [
            side
            for side, needs in requirements.items()
            if needs.to_run or needs.to_learn or (source_trees and side == "source")
        ]
        self.text = text or TextStage(recipe)
        self.sources = SourceStage(recipe, requirements, sides, self.text)
        self.words = WordStage(data, self.sources, truecasers)
        self.parses: dict[Side, ParseStage] = {side: ParseStage(side, self.words) for side in sides}
        self.task, self.pieces = TaskStage(self), PieceStage(self)
        self.trees: dict[Side, TreeStage] = {
            side: TreeStage(self, side) for side in sides if not requirements[side].as_text
        }

    @property
    def stages(self) -> list[Stage[Any]]:
        """All stages, in order."""
        return [
            *(self.text, self.sources, self.words, self.task, self.pieces),
            *self.trees.values(),
        ]

    def run(self) -> Prepared:
        """Make what is missing, warn of what is unexpected in the data, and describe them."""
        new = run_stages(self.stages)
        sources, needs = self.sources.result, self.requirements["source"]
        has_parser = "source" in self.trees or needs.to_run
        trees: dict[Side, str] = {side: stage.result.name for side, stage in self.trees.items()}
        prepared = PreparedCorpus.open(self.pieces.result)
        for text in relation_warnings(self.requirements, prepared, trees):
            _logger.warning("%s", text)
        costs = {side: self._parse_cost(side) for side in sources}
        return Prepared(
            corpus=self.task.result,
            folder=self.pieces.result,
            trees=trees,
            made_by={side: sources[side].trees for side in trees},
            parser=sources["source"].identity if has_parser else None,
            tokenizers=self.words.result[1],
            raw=self.text.result,
            parse_costs={side: cost for side, cost in costs.items() if cost},
            inputs=self._inputs(),
            new=new,
        )

    def _parse_cost(self, side: Side) -> Mapping[str, Any] | None:
        """Read what it took to parse the training text; the same text may also have been parsed
        with probabilities, or without."""
        source, parse = self.sources.result[side], self.parses[side]
        if source.parser is None:
            return None
        parser = parse.parser or source.parser
        if tree := self.trees.get(side):
            has_arcs = tree.result.name == source.name(arcs=True)
            parser = source.parser.with_arcs() if has_arcs else source.parser
        return read_parse_cost(parse.path("train", parser))

    def _inputs(self) -> Inputs:
        """Hash the texts of the recipe, the trees that come with them, and the parsers of the
        others."""
        recipe, sources = self.recipe, self.sources.result
        trees = {path for source in sources.values() for path in source.given.values()}
        bracketings = self.text.result.train.source_bracketings
        if recipe.tasks.trees == "bracketings" and bracketings:
            trees.add(bracketings)
        texts = local_texts(recipe.corpus, recipe.source, recipe.target)
        read = {
            key: [name for name, path in files if name in SIDES or path in trees]
            for key, files in texts.items()
        }
        inputs = hash_files(texts, read)
        for side in filter(self.sources.parses, SIDES):
            inputs[parser_section(side)] = make_parser(recipe, side).identity["files"]
        return inputs


class _DataStage(Stage[Result]):
    """A stage of a preparation, which knows all others."""

    def __init__(self, of: Preparation) -> None:
        self.of, self.recipe, self.data = of, of.recipe, of.data


class TaskStage(_DataStage[Corpus]):
    """Writes the text of a recipe with tasks, from trees of the source; other recipes have that of
    the words."""

    name = "write sentences with tasks"

    def __init__(self, of: Preparation) -> None:
        super().__init__(of)
        self.kind = of.recipe.tasks.trees
        self.is_idle = self.kind == "none"
        self.parts = [of.parses["source"]] if self.kind == "dependencies" else []

    def find(self) -> Corpus | None:
        words = self.of.words.corpus
        if self.is_idle or words is None:
            return words
        check_lengths(words.splits())
        trees = self._trees(words)
        if not trees:
            return None
        made = task_corpus(self.recipe, words, trees[0], self.data / "tasks", *trees[1:])
        return made if made.train.source.is_file() else None

    def _trees(self, words: Corpus) -> list[Path]:
        """Find the files of trees of train, and perhaps of valid; none while they are missing."""
        if self.kind == "bracketings":
            given = words.train.source_bracketings
            return [given] if given else []
        parse = self.of.parses["source"]
        return list(parse.result.values()) if parse.is_done() else []

    def make(self) -> Corpus:
        words, folder = self.of.words.result[0], own_folder(self.data / "tasks")
        if self.kind == "bracketings":
            return with_bracketings(self.recipe, words, folder)
        train, *valid = self.of.parses["source"].result.values()
        return with_trees(self.recipe, words, train, folder, *valid)

    def size(self) -> str:
        return str(self.known.train.source.parent) if self.known else ""


class PieceStage(_DataStage[Path]):
    """Prepares the corpus: filter, vocabulary, pieces; the result is its folder."""

    name = "prepare"

    @cached_property
    def _recipe(self) -> Recipe:
        return self.recipe if self.of.task.is_idle else without_filters(self.recipe)

    @cached_property
    def _folder(self) -> Path:
        return prepared_folder(
            self.data / "prepared", self._recipe, self.of.task.result, self.of.vocabularies
        )

    def find(self) -> Path | None:
        corpus = self.of.task.known
        if corpus is None or not is_complete(self._folder):
            return None
        # a prepared corpus does not cover the test sets, which may be new
        check_lengths(corpus.test)
        return self._folder

    def make(self) -> Path:
        # an interrupted preparation has done so
        if not (self._folder / KEPT_FILE).exists():
            text = self.of.text.result
            for files in text.splits().values():
                warn_of_file(files.source, text.source, other=text.target)
                warn_of_file(files.target, text.target, other=text.source)
        prepare(self._recipe, self.of.task.result, self._folder, self.of.vocabularies)
        return self._folder

    def size(self) -> str:
        return str(self._folder) if self.of.task.known else ""


class TreeStage(_DataStage[Path]):
    """Adds trees to one side of the prepared corpus; the result is the folder of the annotation."""

    def __init__(self, of: Preparation, side: Side) -> None:
        super().__init__(of)
        self.side: Side = side
        self.name, self.parts = f"add trees to the {side}", [of.parses[side]]

    def find(self) -> Path | None:
        folder = self.of.pieces.known
        if folder is None:
            return None
        source = self.of.sources.result[self.side]
        name = source.annotation_in(folder)
        # the given trees of other recipes may lack them
        if name and source.arcs and not PreparedCorpus.open(folder).annotations()[name]["arcs"]:
            raise without_arcs("some tree", ", ".join(map(str, source.given.values())))
        return folder / name if name else None

    def make(self) -> Path:
        source, folder = self.of.sources.result[self.side], self.of.pieces.result
        parse = self.of.parses[self.side]
        arcs = parse.parser.arcs if parse.parser else source.arcs
        annotate(
            folder,
            self.of.task.result,
            parse.result,
            parser=source.description(arcs=arcs),
            side=self.side,
            arcs=arcs,
            whole=source.whole,
            constituents=source.constituents,
        )
        return folder / source.name(arcs=arcs)


def relation_warnings(
    requirements: Mapping[Side, TreeRequirements],
    prepared: PreparedCorpus,
    trees: Mapping[Side, str],
) -> list[str]:
    """Describe which relations and tags of the training text variants do not know; each text once.

    trees: by side, the name of the annotation.
    """
    warnings = []
    for side, name in trees.items():
        facts = prepared.annotations()[name]
        unknown = [tag for tag in facts["tags"] if tag not in (*UNIVERSAL_TAGS, "_")]
        for variant in requirements[side].variants:
            needs = {signal.needs for signal in variant.signals}
            counts = facts["arc_relations" if facts["arcs"] and "arcs" in needs else "relations"]
            warnings += variant.kind.relation_warnings(counts["train"], **variant.options)
            if "tags" in needs and unknown:
                warnings.append(
                    f"{variant.kind.recipe_name()} knows the tags of Universal Dependencies; other "
                    f"tags share one embedding: {listed(unknown, 5)}"
                )
    return list(dict.fromkeys(warnings))
