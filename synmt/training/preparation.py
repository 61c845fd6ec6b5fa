"""The stages of the data of a recipe: those of its text (`text_stages.py`), then tasks, pieces and
trees."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from synmt.arrays import SIDES, Side
from synmt.corpora.corpus import Corpus
from synmt.corpora.resolve import local_texts
from synmt.data.annotate import annotate
from synmt.data.corpus import PreparedCorpus, is_complete
from synmt.data.inputs import Inputs, hash_files
from synmt.data.prepare import check_lengths, prepare, prepared_folder
from synmt.data.task_corpus import task_corpus, with_bracketings, with_trees, without_filters
from synmt.errors import UsageError
from synmt.parsing.parser import StanzaParser
from synmt.parsing.target import read_summary
from synmt.recipe.schema import Recipe
from synmt.syntax.arcs import without_arcs
from synmt.syntax.feature_signals import UNIVERSAL_TAGS
from synmt.tokenization.word_tokenizer import WordTokenizer
from synmt.training.initial import Adopted
from synmt.training.stages import Estimate, Result, Stage, run_stages
from synmt.training.text_stages import ParserStage, TextStage, WordStage, read_parse_cost
from synmt.training.tree_sources.requirements import (
    TreeRequirements,
    given_trees,
    make_parser,
    parser_section,
    sides_with_trees,
)

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


SPLITS = ("train", "valid")
"""The splits that are prepared."""


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
            contains = "task tags" if recipe.tasks.mixed == "none" else "trees"
            raise UsageError(
                f"--trees cannot be combined with tasks.{recipe.tasks.key}: the source text "
                f"contains {contains}",
                do="Leave out --trees",
            )
        self.recipe, self.requirements, self.data = recipe, requirements, data
        self.sides = sides_with_trees(requirements, source_trees=source_trees)
        self.text = text or TextStage(recipe)
        self.parsers = ParserStage(recipe, requirements, self.sides, self.text)
        self.words = WordStage(data, self.parsers, truecasers)
        self.task, self.pieces = TaskStage(self), PieceStage(self)
        self.trees: dict[Side, TreeStage] = {side: TreeStage(self, side) for side in self.sides}

    @property
    def stages(self) -> list[Stage]:
        """All stages, in order."""
        return [self.text, self.parsers, self.words, self.task, self.pieces, *self.trees.values()]

    def run(self) -> Prepared:
        """Make what is missing, warn of what is unexpected in the data, and describe them."""
        new, sources = run_stages(self.stages), self.parsers.result
        folder, annotations = self.pieces.result, self._annotations()
        prepared = PreparedCorpus.open(folder)
        for text in relation_warnings(self.requirements, prepared, annotations):
            _logger.warning("%s", text)
        costs: dict[Side, Mapping[str, Any] | None] = {
            side: stage.cost() for side, stage in self.trees.items()
        }
        if self.task.trees:
            costs["source"] = read_parse_cost(self.task.trees[0])
        return Prepared(
            corpus=self.task.result,
            folder=folder,
            trees=annotations,
            made_by={side: sources[side].trees for side in self.sides},
            parser=sources["source"].identity if "source" in sources else None,
            tokenizers=self.words.tokenizers,
            raw=self.text.result,
            parse_costs={side: cost for side, cost in costs.items() if cost},
            inputs=self._inputs(),
            new=new,
        )

    def _annotations(self) -> dict[Side, str]:
        return {side: stage.result.name for side, stage in self.trees.items()}

    def _inputs(self) -> Inputs:
        """Hash the texts of the recipe, the trees that come with them, and the parsers of the
        others."""
        recipe, raw = self.recipe, self.text.result
        trees: set[Path | None] = {
            path for source in self.parsers.result.values() for path in source.given.values()
        }
        if recipe.tasks.trees == "bracketings":
            trees.add(raw.train.source_bracketings)
        elif recipe.tasks.trees == "dependencies":
            trees |= {given_trees(recipe, text, "source") for text in (raw.train, raw.valid)}
        texts = local_texts(recipe.corpus, recipe.source, recipe.target)
        read = {
            key: [name for name, path in files if name in SIDES or path in trees]
            for key, files in texts.items()
        }
        inputs = hash_files(texts, read)
        for side in SIDES:
            if parser := self.parsers.parser_of(side):
                inputs[parser_section(side)] = parser.identity["files"]
        return inputs


class _DataStage(Stage[Result]):
    """A stage of a preparation, which knows all others."""

    def __init__(self, of: Preparation) -> None:
        self.of, self.recipe, self.data = of, of.recipe, of.data


class TaskStage(_DataStage[Corpus]):
    """Writes the text of a recipe with tasks, from trees of the source; other recipes have that of
    the words.

    trees: files of trees of the text, if they are dependencies.
    """

    name = "write sentences with tasks"
    trees: Sequence[Path] = ()

    @property
    def _splits(self) -> tuple[str, ...]:
        return ("train", "valid") if self.recipe.tasks.mixed_only else ("train",)

    def _given(self, split: str) -> Path | None:
        """Find the trees that come with the source of a split."""
        if self.of.words.known is None:
            return None
        text = self.of.words.known.splits()[split]
        if self.recipe.tasks.trees == "bracketings":
            return text.source_bracketings
        return given_trees(self.recipe, text, "source")

    def _parser(self) -> StanzaParser | None:
        """Return the parser of the trees; None if its model or the words are missing."""
        if self.of.parsers.known is None or self.of.words.known is None:
            return None
        return self.of.words.parser_with_trees(
            make_parser(self.recipe, "source"), "source", self._splits
        )

    def find(self) -> Corpus | None:
        words, kind = self.of.words.known, self.recipe.tasks.trees
        if kind == "none" or words is None:
            return words
        check_lengths(words.splits())
        trees = []
        for split in self._splits:
            path, parser = self._given(split), None
            if path is None and kind == "dependencies" and (parser := self._parser()):
                [path] = self.of.words.trees("source", [split], parser)
            if path is None or (parser and not read_summary(path)):
                return None
            trees.append(path)
        self.trees = trees if kind == "dependencies" else ()
        made = task_corpus(self.recipe, words, trees[0], self.data / "tasks", *trees[1:])
        return made if made.train.source.is_file() else None

    def make(self) -> Corpus:
        words, folder = self.of.words.result, self.data / "tasks"
        if self.recipe.tasks.trees == "bracketings":
            return with_bracketings(self.recipe, words, folder)
        trees = []
        for split in self._splits:
            parser = self._parser()
            assert parser is not None
            trees.append(self._given(split) or self.of.words.parse("source", split, parser))
        self.trees = trees
        return with_trees(self.recipe, words, trees[0], folder, *trees[1:])

    def estimate(self) -> Iterator[Estimate]:
        if self.recipe.tasks.trees == "none":
            return
        if self.recipe.tasks.trees == "dependencies" and self.recipe.parser.control != "gold":
            splits = [split for split in self._splits if self._given(split) is None]
            yield from self.of.words.parse_steps("source", splits, self._parser())
        if self.known:
            yield Estimate(f"{self.name}: {self.known.train.source.parent}", "done")
        else:
            yield Estimate(self.name, "to do")


class PieceStage(_DataStage[Path]):
    """Prepares the corpus: filter, vocabulary, pieces; the result is its folder."""

    name = "prepare"

    @cached_property
    def _recipe(self) -> Recipe:
        return self.recipe if self.recipe.tasks.trees == "none" else without_filters(self.recipe)

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
        prepare(self._recipe, self.of.task.result, self._folder, self.of.vocabularies)
        return self._folder

    def estimate(self) -> Iterator[Estimate]:
        what = self._folder if self.of.task.known else "vocabulary and subwords"
        yield Estimate(f"{self.name} {what}", "done" if self.known else "to do")


class TreeStage(_DataStage[Path]):
    """Adds trees to one side of the prepared corpus; the result is the folder of the annotation."""

    side: Side

    def __init__(self, of: Preparation, side: Side) -> None:
        super().__init__(of)
        self.side, self.name = side, f"add trees to the {side}"

    def find(self) -> Path | None:
        folder = self.of.pieces.known
        name = self.of.parsers.result[self.side].annotation_in(folder) if folder else None
        return self._with_arcs(name) if name else None

    def _with_arcs(self, name: str) -> Path:
        """Raise SynmtError where given trees lack the probabilities that the recipe needs; others
        may not need them."""
        source, folder = self.of.parsers.result[self.side], self.of.pieces.result
        if source.arcs and not PreparedCorpus.open(folder).annotations()[name]["arcs"]:
            raise without_arcs("some tree", ", ".join(map(str, source.given.values())))
        return folder / name

    def _parser(self) -> StanzaParser | None:
        known = self.of.parsers.known
        parser = known[self.side].parser if known else None
        if parser is None or self.of.words.known is None:
            return parser
        return self.of.words.parser_with_trees(parser, self.side, SPLITS)

    def make(self) -> Path:
        source, folder = self.of.parsers.result[self.side], self.of.pieces.result
        paths, arcs = source.given, source.arcs
        if parser := self._parser():
            arcs = parser.arcs
            paths = {split: self.of.words.parse(self.side, split, parser) for split in SPLITS}
        annotate(
            folder,
            self.of.task.result,
            paths,
            parser=source.description(arcs=arcs),
            side=self.side,
            arcs=arcs,
            whole=source.whole,
            constituents=source.constituents,
        )
        return self._with_arcs(source.name(arcs=arcs))

    def estimate(self) -> Iterator[Estimate]:
        if self.known:
            yield Estimate(f"{self.name}: {self.known}", "done")
            return
        if not self.of.parsers.given(self.side):
            yield from self.of.words.parse_steps(self.side, SPLITS, self._parser())
        yield Estimate(self.name, "to do")

    def cost(self) -> Mapping[str, Any] | None:
        """Read what the trees cost; the same text may also have been parsed with probabilities, or
        without."""
        source = self.of.parsers.result[self.side]
        if source.parser is None:
            return None
        parser = (
            source.parser.with_arcs()
            if self.result.name == source.name(arcs=True)
            else source.parser
        )
        return read_parse_cost(self.of.words.trees(self.side, ["train"], parser)[0])


def relation_warnings(
    requirements: Mapping[Side, TreeRequirements],
    prepared: PreparedCorpus,
    trees: Mapping[Side, str],
) -> list[str]:
    """List what is unexpected in the relations and tags of the training text, according to the
    variants.

    trees: by side, the name of the annotation.
    """
    warnings = []
    for side, name in trees.items():
        facts = prepared.annotations()[name]
        for variant in requirements[side].variants:
            needs = {signal.needs for signal in variant.signals}
            counts = facts["arc_relations" if facts["arcs"] and "arcs" in needs else "relations"][
                "train"
            ]
            warnings += variant.kind.relation_warnings(counts, **variant.options)
            if "tags" in needs:
                warnings += _tag_warnings(variant.kind.recipe_name(), facts["tags"])
    return list(dict.fromkeys(warnings))


def _tag_warnings(variant: str, tags: Iterable[str]) -> list[str]:
    unknown = [tag for tag in tags if tag not in (*UNIVERSAL_TAGS, "_")]
    listed = ", ".join(unknown[:5]) + ", …" * (len(unknown) > 5)
    about = f"{variant} knows the tags of Universal Dependencies; other tags share one embedding"
    return [f"{about}: {listed}"] if unknown else []
