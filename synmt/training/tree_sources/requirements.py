"""Which trees the model of a recipe needs, and the files and parsers that provide them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from synmt.arrays import SIDES, Side
from synmt.corpora.corpus import Corpus
from synmt.errors import SynmtError, UsageError
from synmt.files.links import own_folder
from synmt.files.reading import fingerprint, stored_sha256
from synmt.model.build import place_variants
from synmt.model.placement import PlacedVariant
from synmt.parsing.official import is_complete
from synmt.parsing.parser import StanzaParser
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.data import ParserRecipe
from synmt.recipe.schema import Recipe
from synmt.syntax.conllu import is_brackets
from synmt.syntax.constituents import without_dependencies
from synmt.syntax.feature_signals import no_parser_makes_scenes
from synmt.syntax.parse import FEATURES, SCENES
from synmt.syntax.reading import needed_features
from synmt.syntax.signals import Signal, needs_dependencies, needs_parents
from synmt.training.tree_sources.given import check_given


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
        """Tell whether the prepared training text needs trees."""
        return (self.to_run or self.to_learn) and not self.as_text

    @property
    def of_parser(self) -> tuple[str, ...]:
        """List the features that the parser has to give; the case of a word can be seen."""
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
        what = (
            "tags into the source and parses into the target"
            if recipe.tasks.mixed == "none"
            else "trees as sources"
        )
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
                "constituents of the "
                f"{side}",
                do="Leave it out, or add a variant that reads constituents",
            )
        _check_control(recipe, side, _signals(variants[side]))
    return requirements


def sides_with_trees(
    requirements: Mapping[Side, TreeRequirements], *, source_trees: bool = False
) -> list[Side]:
    """List the sides whose training text needs trees; `source_trees` adds the source."""
    return [
        side
        for side, needs in requirements.items()
        if needs.parses or (source_trees and side == "source")
    ]


def _signals(variants: Iterable[PlacedVariant]) -> list[Signal]:
    return [signal for variant in variants for signal in variant.signals]


def _requirements(variants: list[PlacedVariant], parser: ParserRecipe) -> TreeRequirements:
    # arcs of gold trees and of controls have probability 1
    arcs, given = parser.control == "none", parser.constituents == "given"
    return TreeRequirements(
        any(variant.reads for variant in variants),
        any(variant.learns for variant in variants),
        _needing("arcs", variants) if arcs else (),
        _names(variant for variant in variants if needs_dependencies(variant.signals, given=given)),
        _needing("constituents", variants) if given else (),
        features=needed_features(_signals(variants)),
        variants=tuple(variants),
    )


def _needing(what: str, variants: Iterable[PlacedVariant]) -> tuple[str, ...]:
    return _names(
        variant for variant in variants if any(signal.needs == what for signal in variant.signals)
    )


def _names(variants: Iterable[PlacedVariant]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(variant.kind.recipe_name() for variant in variants))


def _check_control(recipe: Recipe, side: Side, signals: Sequence[Signal]) -> None:
    """Refuse a control that changes nothing of what is read."""
    parser, section = recipe.parser_of(side), parser_section(side)
    read_by_task = side == "source" and recipe.tasks.trees == "dependencies"
    as_they_are = parser.control in ("none", "gold")
    if read_by_task or needs_parents(signals) or (as_they_are and not parser.rewire):
        return
    if not any(signal.needs == "labels" for signal in signals):
        raise UsageError(
            f"{section}.control and {section}.rewire change trees of the {side}, but nothing in "
            "this recipe reads them",
            do="Leave them out, or add a variant that reads parents or relations",
        )
    if as_they_are:
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
    path = files.source_parses if side == "source" else files.target_parses
    brackets = files.source_bracketings if side == "source" else files.target_bracketings
    if recipe.parser_of(side).constituents == "given":
        if brackets is None and path is None:
            raise UsageError(
                f"{parser_section(side)}.constituents is given, but this text comes without "
                "brackets",
                where=str(getattr(files, side)),
                do=f"Put them next to it as <name>.{recipe.language_of(side)}.brackets, or into a "
                "CoNLL-U file",
            )
        return brackets or path
    gold = recipe.parser_of(side).control == "gold"
    if gold and path is None:
        raise UsageError(
            f"{parser_section(side)}.control is gold, but this text comes without trees",
            where=str(getattr(files, side)),
        )
    # trees next to a known corpus or in a folder are its gold trees
    named = {
        tree for item in recipe.corpus.items for tree in (item.source_parses, item.target_parses)
    }
    return path if gold or path in named else None


def all_given_trees(
    recipe: Recipe, corpus: Corpus, side: Side, requirements: TreeRequirements
) -> dict[str, Path]:
    """Find the files of trees for every split that needs trees; empty if the recipe's parser makes
    them.

    Either all splits come with trees or none: a model must not read trees of one origin and learn
    from another.
    """
    splits = (
        corpus.splits() if requirements.to_run else {"train": corpus.train, "valid": corpus.valid}
    )
    paths = {name: given_trees(recipe, files, side) for name, files in splits.items()}
    found = {name: path for name, path in paths.items() if path is not None}
    missing = ", ".join(name for name in paths if name not in found)
    if found and missing:
        raise UsageError(
            f"there are trees for {', '.join(found)}, but not for {missing}",
            where=f"{side}_parses",
            do="Give trees for every text under corpus, or for none: then the recipe's parser "
            "makes all of them",
        )
    for path in found.values():
        if is_brackets(path) and requirements.dependencies:
            raise without_dependencies(
                f"what {', '.join(requirements.dependencies)} reads", str(path)
            )
        check_given(path, arcs=requirements.arcs, features=requirements.features)
    if SCENES in requirements.features and not found:
        raise no_parser_makes_scenes(f"{side}_parses")
    return found


def lacks_parser(recipe: Recipe, side: Side) -> bool:
    """Tell whether an official model has to be downloaded; raises SynmtError for a parser that
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
    try:
        return _parser(recipe, side, recipe.parser_of(side).model, arcs=arcs, download=download)
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
    return (
        own_folder(data / "parses")
        / f"{corpus.name}-{text.name.removesuffix('.gz')}-{key}.conllu.gz"
    )
