"""Which trees a recipe needs, and where they come from: files beside the text, or a parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from synmt.arrays import SIDES, Side, Strings, Values
from synmt.corpora.corpus import Corpus
from synmt.data.annotate import annotation_name, describe_files
from synmt.errors import UsageError
from synmt.model.build import place_variants
from synmt.model.placement import PlacedVariant
from synmt.parsing.models import ADDED, check_features
from synmt.parsing.parser import NOT_IN_TREES, StanzaParser
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.data import ParserRecipe
from synmt.recipe.schema import Recipe
from synmt.syntax.conllu import is_brackets, read_conllu
from synmt.syntax.feature_signals import without_scenes
from synmt.syntax.parse import FEATURES, SCENES
from synmt.syntax.reading import needed_features
from synmt.syntax.signals import Signal, needs_dependencies, needs_parents

_FIRST = 1000
"""Sentences of a file in which every feature must occur."""


@dataclass(frozen=True)
class TreeRequirements:
    """What a recipe needs of one side's trees.

    to_run, to_learn: whether they are needed whenever the model runs, or in training only.
    arcs: whether they need probabilities of arcs.
    dependencies, constituents: whether they are read; constituents that are built from
        dependencies count as dependencies only.
    as_text: whether `tasks` writes the trees into the text, so that no variant reads them.
    features: what they need to know of words besides tag and relation, some of
        feature_signals.STORED.
    variants: those of the side, once for each layer.
    splits: those whose trees are read before training.
    """

    to_run: bool
    to_learn: bool
    arcs: bool = False
    dependencies: bool = False
    constituents: bool = False
    as_text: bool = False
    features: Strings = ()
    variants: tuple[PlacedVariant, ...] = ()
    splits: Strings = ("train", "valid")

    @property
    def of_parser(self) -> Strings:
        """The features that the parser has to give; the case of a word can be seen."""
        return tuple(name for name in self.features if name in FEATURES)


Requirements = Mapping[Side, TreeRequirements]
"""What a recipe needs of the trees of each side."""


def tree_requirements(recipe: Recipe) -> dict[Side, TreeRequirements]:
    """Check the variants of a recipe and find what trees they need; nothing is built.

    Raises UsageError for options, places, parsers and tasks that do not fit together.

    """
    placed, tasks = place_variants(recipe.model, recipe.syntax), recipe.tasks
    requirements: dict[Side, TreeRequirements] = {}
    for side in SIDES:
        variants = [variant for layer in placed[side] for variant in layer]
        signals = [signal for variant in variants for signal in variant.signals]
        if signals and tasks.trees != "none":
            raise UsageError(
                f"tasks.{tasks.key} puts trees or tags into the text, so variants find no trees",
                where="syntax.variants",
                do=f"Use either tasks.{tasks.key} or variants that read trees",
            )
        _check_control(recipe, side, signals)
        requirements[side] = _requirements(variants, signals, recipe.parser_of(side))
    if tasks.trees != "none":
        requirements["source"] = TreeRequirements(
            to_run=tasks.mixed_only,
            to_learn=True,
            dependencies=tasks.trees == "dependencies",
            as_text=True,
            splits=("train", "valid") if tasks.mixed_only else ("train",),
        )
    return requirements


def _requirements(
    variants: Sequence[PlacedVariant], signals: Sequence[Signal], parser: ParserRecipe
) -> TreeRequirements:
    needed, are_given = {signal.needs for signal in signals}, parser.constituents == "given"
    return TreeRequirements(
        any(variant.reads for variant in variants),
        any(variant.learns for variant in variants),
        # arcs of gold trees and of controls have probability 1
        arcs="arcs" in needed and parser.control == "none",
        dependencies=needs_dependencies(signals, given=are_given),
        constituents="constituents" in needed and are_given,
        features=needed_features(signals),
        variants=tuple(variants),
    )


def _check_control(recipe: Recipe, side: Side, signals: Sequence[Signal]) -> None:
    """Refuse a control that changes nothing of what is read."""
    parser, section = recipe.parser_of(side), parser_section(side)
    is_read_by_task = side == "source" and recipe.tasks.trees == "dependencies"
    moves_relations = parser.control not in ("none", "gold")
    if is_read_by_task or needs_parents(signals) or not (moves_relations or parser.rewire):
        return
    if not moves_relations or not any(signal.needs == "labels" for signal in signals):
        raise UsageError(
            f"{section}.control and {section}.rewire change trees of the {side}, but nothing in "
            "this recipe reads what they change",
            do="Leave them out, or add a variant that reads parents, or relations (which "
            f"{section}.control changes, but {section}.rewire does not)",
        )


def parser_section(side: Side) -> str:
    """Name the section of a recipe for the parser of a side."""
    return "parser" if side == "source" else "target_parser"


@dataclass(frozen=True)
class TreeSource:
    """Where the trees of a side come from: given files of the splits, or a parser.

    needs: what they are read for.
    whole: whether those of train must fit every segmentation, for BPE dropout.
    """

    side: Side
    needs: TreeRequirements
    given: Mapping[str, Path]
    parser: StanzaParser | None
    whole: bool

    @property
    def identity(self) -> Values | None:
        """Description of the parser, the same with and without arcs and features; None for given
        files."""
        if self.parser is None:
            return None
        return {key: value for key, value in self.parser.identity.items() if key not in ADDED}

    @property
    def _origin(self) -> Values:
        whole = {"whole": True} if self.whole else {}
        if self.identity is None:
            constituents = {"constituents": True} if self.needs.constituents else {}
            return describe_files(self.given) | whole | constituents
        return {
            key: value for key, value in self.identity.items() if key not in NOT_IN_TREES
        } | whole

    @property
    def trees(self) -> str:
        """Name the trees: two annotations of the same trees that store more or less of them have
        one such name."""
        return annotation_name(self.side, self._origin)

    @property
    def description(self) -> Values:
        """Describe the annotation: where its trees come from, and what it stores; in values for
        JSON."""
        arcs = {"arcs": True} if self.needs.arcs and self.parser else {}
        features = {"features": list(self.needs.features)} if self.needs.features else {}
        return self._origin | arcs | features

    @property
    def name(self) -> str:
        """Name the annotation."""
        return annotation_name(self.side, self.description)


def find_source(
    recipe: Recipe, corpus: Corpus, side: Side, requirements: TreeRequirements
) -> TreeSource:
    """Find where the trees of a side come from; raises SynmtError for a parser whose model is
    missing."""
    given_trees = all_given_trees(recipe, corpus, side, requirements)
    parser = None
    if not given_trees:
        parser = make_parser(recipe, side)
        if requirements.arcs:
            parser = parser.with_arcs()
        if requirements.of_parser:
            parser = parser.with_features(requirements.of_parser)
    files = {split: path for split, path in given_trees.items() if split in requirements.splits}
    source = TreeSource(side, requirements, files, parser, whole=recipe.vocabulary.dropout > 0)
    # the name depends on the files of the model, so this looks for them
    assert source.name
    return source


def given_trees(recipe: Recipe, files: SplitFiles, side: Side) -> Path | None:
    """Find the file of trees that comes with a text, if the recipe uses it instead of a parser."""
    path: Path | None = getattr(files, f"{side}_parses")
    settings, section, tasks = recipe.parser_of(side), parser_section(side), recipe.tasks
    if tasks.trees == "bracketings":
        path = files.source_bracketings
        lacking = f"tasks.{tasks.key} is bracketings, but this text comes without brackets"
    elif settings.constituents == "given":
        path = getattr(files, f"{side}_bracketings") or path
        lacking = f"{section}.constituents is given, but this text comes without brackets"
    elif settings.control == "gold":
        lacking = f"{section}.control is gold, but this text comes without trees"
    else:
        # trees next to a known corpus or in a folder are its gold trees
        named = {
            tree
            for item in recipe.corpus.items
            for tree in (item.source_parses, item.target_parses)
        }
        return path if path in named else None
    if path is None:
        raise UsageError(lacking, where=getattr(files, side))
    return path


def all_given_trees(
    recipe: Recipe, corpus: Corpus, side: Side, requirements: TreeRequirements
) -> dict[str, Path]:
    """Find the files of trees for every split that needs trees; empty if the recipe's parser makes
    them.

    Either all splits come with trees or none: a model must not read trees of one origin and learn
    from another.
    """
    splits = corpus.splits()
    paths = {
        split: given_trees(recipe, splits[split], side)
        for split in (splits if requirements.to_run else requirements.splits)
    }
    files = {split: path for split, path in paths.items() if path is not None}
    missing = [split for split in paths if split not in files]
    if files and missing:
        raise UsageError(
            f"there are trees for {', '.join(files)}, but not for {', '.join(missing)}",
            where=f"{side}_parses",
            do="Give trees for every text under corpus, or for none: then the recipe's parser "
            "makes all of them",
        )
    for path in files.values():
        _check_features(path, requirements)
    if SCENES in requirements.features and not files:
        raise without_scenes(f"{side}_parses")
    return files


def _check_features(path: Path, requirements: TreeRequirements) -> None:
    """Refuse a file that lacks features of words, by its first trees."""
    if not requirements.features:
        return
    parses = [] if is_brackets(path) else [parse for _, parse in islice(read_conllu(path), _FIRST)]
    given = {name for parse in parses for name in parse.features}
    if requirements.of_parser:
        features = [name for name in FEATURES if name in given]
        check_features(requirements.of_parser, features, str(path))
    if SCENES in requirements.features and SCENES not in given:
        raise without_scenes(str(path))


def make_parser(recipe: Recipe, side: Side, model: str | None = None) -> StanzaParser:
    """Make a parser of one side, with this model or that of the recipe; it is loaded when it first
    parses.

    An official model that is missing is downloaded.
    """
    settings = recipe.parser_of(side)
    return StanzaParser(
        recipe.language_of(side),
        model=model or settings.model,
        # the recipe's package belongs to the recipe's model
        package=settings.package if model in (None, settings.model) else "default",
        device=settings.device,
        download=True,
        pretokenized=recipe.text_of(side).tokenizes,
    )
