"""What a recipe's model wants of trees, and where those trees come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from synmt.arrays import SIDES, Side
from synmt.data.corpora import Corpus
from synmt.data.corpus import PreparedCorpus
from synmt.errors import SynmtError, UsageError, all_in_one
from synmt.files import fingerprint, stored_sha256
from synmt.model.build import place_variants
from synmt.model.variant import Variant
from synmt.parsing.parser import StanzaParser
from synmt.recipe.data import ParserRecipe, SplitFiles
from synmt.recipe.schema import Recipe
from synmt.syntax.conllu import read_conllu


@dataclass(frozen=True)
class TreeRequirements:
    """What the variants of a recipe want of one side's trees.

    to_run, to_learn: trees whenever the model runs, or in training only.
    arcs: the variants that want probabilities of arcs, too.
    """

    to_run: bool
    to_learn: bool
    arcs: tuple[str, ...] = ()

    @property
    def parses(self) -> bool:
        """Tell whether the training text has to be parsed."""
        return self.to_run or self.to_learn


def tree_requirements(recipe: Recipe) -> dict[Side, TreeRequirements]:
    """Make every variant once, so that all misfits are reported before anything runs."""
    placed = _place_all(recipe)
    for variant in placed["target"]:
        if variant.reads:
            raise UsageError(
                f"{type(variant).__name__} reads trees whenever the model runs, and a translation has none before it "
                "is there",
                where="syntax.variants",
                allowed="side: source",
            )
    wanting = [type(v).__name__ for variants in placed.values() for v in variants if v.reads + v.learns]
    if recipe.tasks.parsing != "none" and wanting:
        raise UsageError(
            f"tasks.parsing puts tags into the source text and parses into the target, and {wanting[0]} wants trees",
            where="syntax.variants",
            do="Give one of the two up",
        )
    found: dict[Side, TreeRequirements] = {
        side: _needs(variants, parser_recipe(recipe, side)) for side, variants in placed.items()
    }
    for side, needs in found.items():
        _check_control(recipe, side, needs)
    return found


def _check_control(recipe: Recipe, side: Side, needs: TreeRequirements) -> None:
    parser = parser_recipe(recipe, side)
    read_by_tasks = side == "source" and recipe.tasks.parsing == "dependencies"
    if (parser.control in ("none", "gold") and not parser.rewire) or needs.parses or read_by_tasks:
        return
    section = parser_section(side)
    raise UsageError(
        f"{section}.control and {section}.rewire change trees of the {side}, and nothing in this recipe reads any",
        do="Leave them out, or name a variant that reads trees",
    )


def _place_all(recipe: Recipe) -> dict[Side, list[Variant]]:
    placed: dict[Side, list[Variant]] = {}
    errors: list[SynmtError] = []
    for side in SIDES:
        try:
            placed[side] = variants_of(recipe, side)
        except SynmtError as error:
            errors.append(error)
    if errors:
        raise all_in_one(errors)
    return placed


def variants_of(recipe: Recipe, side: Side) -> list[Variant]:
    """Make the variants of one side, in the order of layers."""
    return [variant for layer in place_variants(recipe.model, recipe.syntax, side) for variant in layer]


def _needs(variants: list[Variant], parser: ParserRecipe) -> TreeRequirements:
    # the arcs of a control, and of gold trees, are certain
    certain = parser.control != "none"
    want_arcs = {type(variant).__name__: None for variant in variants if _reads_arcs(variant) and not certain}
    return TreeRequirements(any(v.reads for v in variants), any(v.learns for v in variants), tuple(want_arcs))


def _reads_arcs(variant: Variant) -> bool:
    return any(signal.needs == "arcs" for signal in variant.reads + variant.learns)


def parser_section(side: Side) -> str:
    """Name the section of a recipe that says how a side is parsed."""
    return "parser" if side == "source" else "target_parser"


def parser_recipe(recipe: Recipe, side: Side) -> ParserRecipe:
    """Give the section that says how a side is parsed."""
    return recipe.parser if side == "source" else recipe.target_parser


def given_trees(recipe: Recipe, files: SplitFiles, side: Side) -> Path | None:
    """Give the trees that come with the text, where the recipe wants them instead of a parser's."""
    found = files.source_parses if side == "source" else files.target_parses
    gold = parser_recipe(recipe, side).control == "gold"
    if gold and found is None:
        raise UsageError(
            f"there are no trees beside this text, but {parser_section(side)}.control asks for gold ones",
            where=str(getattr(files, side)),
        )
    return found if gold or recipe.corpus.train is not None else None


def all_given_trees(recipe: Recipe, corpus: Corpus, side: Side, needs: TreeRequirements) -> dict[str, Path]:
    """Give the trees of every split that the model needs them of; none where its parser makes them.

    Trees of two origins are never mixed: a model does not read in one text what it has not learnt in another.
    """
    splits = corpus.splits() if needs.to_run else {"train": corpus.train, "valid": corpus.valid}
    given = {name: given_trees(recipe, files, side) for name, files in splits.items()}
    found = {name: path for name, path in given.items() if path is not None}
    without = ", ".join(name for name in given if name not in found)
    if found and without:
        raise UsageError(
            f"trees come with {', '.join(found)}, but not with {without}",
            where=f"{side}_parses",
            do="Name those of every text under corpus, or none: then the recipe's parser makes them all",
        )
    if needs.arcs:
        for path in found.values():
            _check_arcs(path, needs.arcs)
    return found


def _check_arcs(path: Path, variants: tuple[str, ...]) -> None:
    first = next((parse for _, parse in read_conllu(path) if len(parse)), None)
    if first is not None and first.arcs is None:
        raise UsageError(
            f"{', '.join(variants)} reads probabilities of arcs, and these trees were parsed without",
            where=str(path),
            do="Parse the text again with `synmt parse --arcs`, or let these arcs be certain with parser.control=gold",
        )


def make_parser(recipe: Recipe, side: Side, *, arcs: bool = False) -> StanzaParser:
    """Make the parser of one side; it loads when it first parses."""
    settings = parser_recipe(recipe, side)
    language = recipe.source if side == "source" else recipe.target
    try:
        return StanzaParser(language, model=settings.model, package=settings.package, device=settings.device, arcs=arcs)
    except SynmtError as error:
        where = f"{parser_section(side)}.model, {error.where}".removesuffix(", ")
        raise error.with_(where=where) from error


def make_analysis_parser(recipe: Recipe, side: Side, *, model: str | None = None) -> StanzaParser:
    """Make a parser to look at one side with: the model given, the recipe's, or Stanza's own.

    Stanza's own serves a recipe that asks for a compact one, where none has the language.
    """
    settings = parser_recipe(recipe, side)
    language = recipe.source if side == "source" else recipe.target
    if model is not None:
        # the recipe's package is one of the recipe's model
        package = settings.package if model == settings.model else "default"
        return StanzaParser(language, model=model, package=package, device=settings.device)
    try:
        return make_parser(recipe, side)
    except SynmtError:
        if settings.model != "compact":
            raise
    return StanzaParser(language, model="official", package=settings.package, device=settings.device)


def trees_path(data: Path, corpus: Corpus, text: Path, parser: StanzaParser) -> Path:
    """Name the file of a text's trees: the same text and parser have the same one."""
    key = fingerprint(stored_sha256(text), parser.fingerprint)
    return data / "parses" / f"{corpus.name}-{text.name.removesuffix('.gz')}-{key}.conllu.gz"


def remarks(recipe: Recipe, prepared: PreparedCorpus, trees: Mapping[Side, str]) -> Iterator[str]:
    """Yield what the variants have to say of the relations in the training text, each thing once."""
    said = set[str]()
    for side, name in trees.items():
        facts = prepared.annotations()[name]
        for variant in variants_of(recipe, side):
            counted = "arc_relations" if facts["arcs"] and _reads_arcs(variant) else "relations"
            text = variant.remark(facts[counted]["train"])
            if text and text not in said:
                said.add(text)
                yield text
