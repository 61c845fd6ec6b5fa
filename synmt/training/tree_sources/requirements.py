"""Which trees the model of a recipe needs, and the files and parsers that provide them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from synmt.arrays import SIDES, Side
from synmt.corpora.corpus import Corpus
from synmt.errors import SynmtError, UsageError
from synmt.files.reading import fingerprint, stored_sha256
from synmt.model.build import place_variants
from synmt.model.placement import PlacedVariant
from synmt.parsing.models import check_features
from synmt.parsing.official import is_complete
from synmt.parsing.parser import StanzaParser
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.data import ParserRecipe
from synmt.recipe.schema import Recipe
from synmt.syntax.conllu import is_brackets, read_conllu
from synmt.syntax.constituents import without_dependencies
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
    arcs: names of the variants that need probabilities of arcs.
    dependencies, constituents: names of the variants that need them; constituents that are built
    from dependencies are
        among the dependencies only.
    as_text: whether the trees are the text itself (`tasks.mixed_only`), so that no variant reads
        them.
    features: what they need to know of words besides tag and relation, some of
        feature_signals.STORED.
    variants: those of the side, once for each layer.
    """

    to_run: bool
    to_learn: bool
    arcs: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    constituents: tuple[str, ...] = ()
    as_text: bool = False
    features: tuple[str, ...] = ()
    variants: tuple[PlacedVariant, ...] = ()

    @property
    def parses(self) -> bool:
        """Whether the prepared training text needs trees."""
        return (self.to_run or self.to_learn) and not self.as_text

    @property
    def of_parser(self) -> tuple[str, ...]:
        """The features that the parser has to give; the case of a word can be seen."""
        return tuple(name for name in self.features if name in FEATURES)


def tree_requirements(recipe: Recipe, code: Path | None = None) -> dict[Side, TreeRequirements]:
    """Check the variants of a recipe and find what trees they need; nothing is built.

    Raises UsageError for options, places, parsers and tasks that do not fit together.

    code: where the run keeps the source of variants outside synmt.
    """
    placed = place_variants(recipe.model, recipe.syntax, code=code)
    variants = {side: [variant for layer in placed[side] for variant in layer] for side in SIDES}
    requirements: dict[Side, TreeRequirements] = {
        side: _requirements(variants[side], recipe.parser_of(side)) for side in SIDES
    }
    readers = _names(variant for side in SIDES for variant in variants[side] if variant.signals)
    if recipe.tasks.trees != "none" and readers:
        what = "trees as sources"
        if recipe.tasks.mixed == "none":
            what = "tags into the source and parses into the target"
        raise UsageError(
            f"tasks.{recipe.tasks.key} puts {what}, so {readers[0]} finds no trees",
            where="syntax.variants",
            do=f"Use either tasks.{recipe.tasks.key} or this variant",
        )
    if recipe.tasks.mixed_only:
        requirements["source"] = TreeRequirements(
            True, True, dependencies=("tasks.mixed_only",), as_text=True
        )
    for side in SIDES:
        if recipe.parser_of(side).constituents == "given" and not requirements[side].constituents:
            raise UsageError(
                f"{parser_section(side)}.constituents is given, but nothing in this recipe reads "
                f"constituents of the {side}",
                do="Leave it out, or add a variant that reads constituents",
            )
        _check_control(recipe, side, _signals(variants[side]))
    return requirements


def sides_with_trees(
    requirements: Mapping[Side, TreeRequirements], *, source_trees: bool = False
) -> list[Side]:
    """List the sides whose training text needs trees; `source_trees` adds the source."""
    extra = ("source",) if source_trees else ()
    return [side for side, needs in requirements.items() if needs.parses or side in extra]


def _signals(variants: Iterable[PlacedVariant]) -> list[Signal]:
    return [signal for variant in variants for signal in variant.signals]


def _requirements(variants: list[PlacedVariant], parser: ParserRecipe) -> TreeRequirements:
    are_given = parser.constituents == "given"

    def needing(what: str) -> tuple[str, ...]:
        return _names(v for v in variants if any(signal.needs == what for signal in v.signals))

    return TreeRequirements(
        any(variant.reads for variant in variants),
        any(variant.learns for variant in variants),
        # arcs of gold trees and of controls have probability 1
        needing("arcs") if parser.control == "none" else (),
        _names(
            variant for variant in variants if needs_dependencies(variant.signals, given=are_given)
        ),
        needing("constituents") if are_given else (),
        features=needed_features(_signals(variants)),
        variants=tuple(variants),
    )


def _names(variants: Iterable[PlacedVariant]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(variant.kind.recipe_name() for variant in variants))


def _check_control(recipe: Recipe, side: Side, signals: Sequence[Signal]) -> None:
    """Refuse a control that changes nothing of what is read."""
    parser, section = recipe.parser_of(side), parser_section(side)
    is_read_by_task = side == "source" and recipe.tasks.trees == "dependencies"
    moves_relations = parser.control not in ("none", "gold")
    if is_read_by_task or needs_parents(signals) or not (moves_relations or parser.rewire):
        return
    if not any(signal.needs == "labels" for signal in signals):
        raise UsageError(
            f"{section}.control and {section}.rewire change trees of the {side}, but nothing in "
            "this recipe reads them",
            do="Leave them out, or add a variant that reads parents or relations",
        )
    if not moves_relations:
        raise UsageError(
            f"{section}.rewire changes parents in the {side}, but this recipe reads relations "
            "only, which it keeps",
            do=f"Leave it out, or set {section}.control=shuffled, which moves relations with "
            "their arcs",
        )


def parser_section(side: Side) -> str:
    """Name the section of a recipe for the parser of a side."""
    return "parser" if side == "source" else "target_parser"


def given_trees(recipe: Recipe, files: SplitFiles, side: Side) -> Path | None:
    """Find the file of trees that comes with a text, if the recipe uses it instead of a parser."""
    path: Path | None = getattr(files, f"{side}_parses")
    settings, section, text = recipe.parser_of(side), parser_section(side), getattr(files, side)
    if settings.constituents == "given":
        brackets = getattr(files, f"{side}_bracketings")
        if brackets is None and path is None:
            raise UsageError(
                f"{section}.constituents is given, but this text comes without brackets",
                where=str(text),
                do=f"Put them next to it as <name>.{recipe.language_of(side)}.brackets, or into a "
                "CoNLL-U file",
            )
        return brackets or path
    if settings.control == "gold":
        if path is None:
            what = f"{section}.control is gold, but this text comes without trees"
            raise UsageError(what, where=str(text))
        return path
    # trees next to a known corpus or in a folder are its gold trees
    named = {
        tree for item in recipe.corpus.items for tree in (item.source_parses, item.target_parses)
    }
    return path if path in named else None


def all_given_trees(
    recipe: Recipe, corpus: Corpus, side: Side, requirements: TreeRequirements
) -> dict[str, Path]:
    """Find the files of trees for every split that needs trees; empty if the recipe's parser makes
    them.

    Either all splits come with trees or none: a model must not read trees of one origin and learn
    from another.
    """
    splits = corpus.splits()
    if not requirements.to_run:
        splits = {"train": corpus.train, "valid": corpus.valid}
    paths = {name: given_trees(recipe, files, side) for name, files in splits.items()}
    found = {name: path for name, path in paths.items() if path is not None}
    missing = [name for name in paths if name not in found]
    if found and missing:
        raise UsageError(
            f"there are trees for {', '.join(found)}, but not for {', '.join(missing)}",
            where=f"{side}_parses",
            do="Give trees for every text under corpus, or for none: then the recipe's parser "
            "makes all of them",
        )
    for path in found.values():
        if is_brackets(path) and requirements.dependencies:
            raise without_dependencies(
                f"what {', '.join(requirements.dependencies)} reads", str(path)
            )
        _check_given(path, arcs=requirements.arcs, features=requirements.features)
    if SCENES in requirements.features and not found:
        raise without_scenes(f"{side}_parses")
    return found


def _check_given(path: Path, *, arcs: Collection[str], features: Collection[str]) -> None:
    """Refuse a file that lacks probabilities of arcs or features of words.

    arcs: the variants that read probabilities.
    features: what is read of words, some of feature_signals.STORED.
    """
    if arcs:
        first = next((parse for _, parse in read_conllu(path) if len(parse)), None)
        if first is not None and first.arcs is None:
            raise UsageError(
                f"{', '.join(arcs)} reads probabilities of arcs, and these trees have none",
                where=str(path),
                do="Parse the text again with `synmt parse --arcs`, or give every arc probability "
                "1 by parser.control=gold",
            )
    columns = [name for name in FEATURES if name in features]
    if not columns and SCENES not in features:
        return
    if is_brackets(path):
        raise without_scenes(str(path))
    found = {name for _, parse in islice(read_conllu(path), _FIRST) for name in parse.features}
    if columns:
        check_features(columns, [name for name in FEATURES if name in found], str(path))
    if SCENES in features and SCENES not in found:
        raise without_scenes(str(path))


def lacks_parser(recipe: Recipe, side: Side) -> bool:
    """Check whether an official model has to be downloaded; raises SynmtError for a parser that
    cannot be had."""
    settings = recipe.parser_of(side)
    if settings.model == "official" and not is_complete(recipe.language_of(side), settings.package):
        return True
    make_parser(recipe, side)
    return False


def make_parser(
    recipe: Recipe, side: Side, *, arcs: bool = False, download: bool = False
) -> StanzaParser:
    """Make the parser of one side; it loads its model when it first parses."""
    model = recipe.parser_of(side).model
    try:
        return _parser(recipe, side, model, arcs=arcs, download=download)
    except SynmtError as error:
        where = f"{parser_section(side)}.model, {error.where}".removesuffix(", ")
        raise error.with_(where=where) from error


def make_analysis_parser(recipe: Recipe, side: Side, *, model: str | None = None) -> StanzaParser:
    """Make a parser to analyse one side: with `model`, else that of the recipe."""
    if model is None:
        return make_parser(recipe, side, download=True)
    return _parser(recipe, side, model, arcs=False, download=True)


def _parser(recipe: Recipe, side: Side, model: str, *, arcs: bool, download: bool) -> StanzaParser:
    settings = recipe.parser_of(side)
    return StanzaParser(
        recipe.language_of(side),
        model=model,
        # the recipe's package belongs to the recipe's model
        package=settings.package if model == settings.model else "default",
        device=settings.device,
        arcs=arcs,
        download=download,
        pretokenized=recipe.text_of(side).tokenizes,
    )


def trees_path(data: Path, corpus: Corpus, text: Path, parser: StanzaParser) -> Path:
    """Name the file for the trees of a text, the same for the same text and parser."""
    key = fingerprint(stored_sha256(text), parser.fingerprint)
    return data / "parses" / f"{corpus.name}-{text.name.removesuffix('.gz')}-{key}.conllu.gz"
