"""The stages of the data of a recipe: those of its text (`text_stages.py`), then tasks, pieces and
trees."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from synmt.arrays import SIDES, Facts, Side
from synmt.corpora.corpus import Corpus
from synmt.corpora.resolve import local_texts
from synmt.data.annotate import annotate
from synmt.data.corpus import PreparedCorpus, is_complete
from synmt.data.inputs import Inputs, hash_files
from synmt.data.prepare import check_lengths, prepare, prepared_folder
from synmt.data.task_corpus import task_corpus, with_bracketings, with_trees, without_filters
from synmt.errors import listed
from synmt.files.language import warn_of_file
from synmt.files.schemas import ParseCost
from synmt.syntax.arcs import without_arcs
from synmt.syntax.relations import unknown_relations
from synmt.tokenization.word_tokenizer import Tokenizers
from synmt.training.initial import Adopted
from synmt.training.stages import Result, Stage, run_stages
from synmt.training.text_stages import (
    ParseStage,
    PretrainedStage,
    SourceStage,
    TextStage,
    WordStage,
)
from synmt.training.tree_sources import Requirements, make_parser, parser_section

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
    trees: Mapping[Side, str]
    made_by: Mapping[Side, str]
    parser: Facts | None
    tokenizers: Tokenizers
    raw: Corpus
    parse_costs: Mapping[Side, ParseCost]
    inputs: Inputs
    new: bool = field(compare=False)


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
        requirements: Requirements,
        data: Path,
        *,
        source_trees: bool = False,
    ) -> None:
        recipe, self.vocabularies, truecasers = adopted
        # where a task changes the source, its trees are in the text
        source_trees = source_trees and recipe.tasks.trees == "none"
        self.recipe, self.requirements, self.data = recipe, requirements, data
        sides: list[Side] = [
            side
            for side, needs in requirements.items()
            if needs.to_run or needs.to_learn or (source_trees and side == "source")
        ]
        self.pretrained = PretrainedStage(recipe.model.init)
        self.text = TextStage(recipe)
        self.sources = SourceStage(recipe, requirements, sides, self.text)
        self.words = WordStage(data, self.sources, truecasers)
        self.parses: dict[Side, ParseStage] = {side: ParseStage(side, self.words) for side in sides}
        self.task = TaskStage(self)
        self.pieces = PieceStage(self)
        self.trees: dict[Side, TreeStage] = {
            side: TreeStage(self, side) for side in sides if not requirements[side].as_text
        }

    @property
    def stages(self) -> list[Stage[Any]]:
        """All stages, in order."""
        return [
            self.pretrained,
            self.text,
            self.sources,
            self.words,
            self.task,
            self.pieces,
            *self.trees.values(),
        ]

    def run(self) -> Prepared:
        """Make what is missing, warn of what is unexpected in the data, and describe them."""
        new = run_stages(self.stages)
        sources = self.sources.result
        has_parser = "source" in self.trees or self.requirements["source"].to_run
        trees: dict[Side, str] = {side: stage.result.name for side, stage in self.trees.items()}
        for text in relation_warnings(
            self.requirements, PreparedCorpus.open(self.pieces.result), trees
        ):
            _logger.warning("%s", text)
        costs: dict[Side, ParseCost] = {
            side: cost for side, parse in self.parses.items() if (cost := parse.cost())
        }
        return Prepared(
            corpus=self.task.result,
            folder=self.pieces.result,
            trees=trees,
            made_by={side: sources[side].trees for side in trees},
            parser=sources["source"].identity if has_parser else None,
            tokenizers=self.words.result[1],
            raw=self.text.result,
            parse_costs=costs,
            inputs=self._inputs(),
            new=new,
        )

    def _inputs(self) -> Inputs:
        """Hash the texts of the recipe, the trees that come with them, and the parsers of the
        others."""
        recipe = self.recipe
        trees = {path for source in self.sources.result.values() for path in source.given.values()}
        texts = local_texts(recipe.corpus, recipe.source, recipe.target)
        inputs = hash_files(
            texts,
            {
                key: [name for name, path in files if name in SIDES or path in trees]
                for key, files in texts.items()
            },
        )
        for side in filter(self.sources.parses, SIDES):
            inputs[parser_section(side)] = make_parser(recipe, side).identity["files"]
        return inputs


class _DataStage(Stage[Result]):
    """A stage of a preparation, which knows all others."""

    def __init__(self, of: Preparation) -> None:
        self.of, self.recipe = of, of.recipe


class TaskStage(_DataStage[Corpus]):
    """Writes the text of a recipe with tasks, from trees of the source; other recipes have that of
    the words."""

    name = "write sentences with tasks"

    def __init__(self, of: Preparation) -> None:
        super().__init__(of)
        self.is_idle = of.recipe.tasks.trees == "none"
        self.parts = [] if self.is_idle else [of.parses["source"]]

    def find(self) -> Corpus | None:
        words = self.of.words.known
        if self.is_idle or words is None:
            return words and words[0]
        check_lengths(words[0].splits())
        parse = self.of.parses["source"]
        if not parse.is_done():
            return None
        train, *valid = parse.result.values()
        files = task_corpus(self.recipe, words[0], train, self.of.data / "tasks", *valid)
        return files if files.train.source.is_file() else None

    def make(self) -> Corpus:
        words, folder = self.of.words.result[0], self.of.data / "tasks"
        if self.recipe.tasks.trees == "bracketings":
            return with_bracketings(self.recipe, words, folder)
        train, *valid = self.of.parses["source"].result.values()
        return with_trees(self.recipe, words, train, folder, *valid)


class PieceStage(_DataStage[Path]):
    """Prepares the corpus: filter, vocabulary, pieces; the result is its folder."""

    name = "prepare"

    def __init__(self, of: Preparation) -> None:
        super().__init__(of)
        if not of.task.is_idle:
            self.recipe = without_filters(of.recipe)

    @cached_property
    def _folder(self) -> Path:
        return prepared_folder(
            self.of.data / "prepared", self.recipe, self.of.task.result, self.of.vocabularies
        )

    def find(self) -> Path | None:
        corpus = self.of.task.known
        if corpus is None or not is_complete(self._folder):
            return None
        # a prepared corpus does not cover the test sets, which may be new
        check_lengths(corpus.test)
        return self._folder

    def make(self) -> Path:
        raw = self.of.text.result
        for files in raw.splits().values():
            warn_of_file(files.source, raw.source, other=raw.target)
            warn_of_file(files.target, raw.target, other=raw.source)
        prepare(self.recipe, self.of.task.result, self._folder, self.of.vocabularies)
        return self._folder


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
        if not (folder / source.name / "annotation.json").is_file():
            return None
        # given trees that were added for another recipe may lack them
        facts = PreparedCorpus.open(folder).annotations()[source.name]
        if source.needs.arcs and not facts["arcs"]:
            raise without_arcs("some tree", ", ".join(map(str, source.given.values())))
        return folder / source.name

    def make(self) -> Path:
        source, folder = self.of.sources.result[self.side], self.of.pieces.result
        annotate(
            folder,
            self.of.task.result,
            self.of.parses[self.side].result,
            parser=source.description,
            side=self.side,
            arcs=source.needs.arcs,
            whole=source.whole,
            constituents=source.needs.constituents,
        )
        return folder / source.name


def relation_warnings(
    requirements: Requirements,
    prepared: PreparedCorpus,
    trees: Mapping[Side, str],
) -> list[str]:
    """Describe which relations of the training text variants do not know; each text once.

    trees: by side, the name of the annotation.
    """
    warnings = []
    for side, name in trees.items():
        counts = prepared.annotations()[name]["relations"]["train"]
        for variant in requirements[side].variants:
            known = variant.kind.known_relations(**variant.options)
            unknown = Counter(
                {relation: counts[relation] for relation in unknown_relations(counts, known)}
            )
            if known and unknown:
                named = [f"{relation} ({count:,})" for relation, count in unknown.most_common()]
                warnings.append(
                    f"{variant.kind.recipe_name()} does not know the relations of "
                    f"{unknown.total():,} of {sum(counts.values()):,} words: {listed(named, 5)}"
                )
    return list(dict.fromkeys(warnings))
