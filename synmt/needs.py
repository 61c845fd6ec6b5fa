"""What a recipe's model wants of trees, and where those trees come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from synmt.corpora import Corpus
from synmt.corpus import SIDES, PreparedCorpus, Side
from synmt.errors import SynmtError, UsageError
from synmt.files import fingerprint, sha256
from synmt.model.build import place_variants
from synmt.model.variant import Variant
from synmt.recipe import Recipe
from synmt.recipe_data import ParserRecipe, SplitFiles
from synmt.syntax.conllu import read_conllu
from synmt.syntax.parsers import StanzaParser


@dataclass(frozen=True)
class Needs:
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


def check_variants(recipe: Recipe) -> dict[Side, Needs]:
    """Make every variant once, so that all misfits are reported before anything runs."""
    placed: dict[Side, list[Variant]] = {side: variants_of(recipe, side) for side in SIDES}
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
    return {side: _needs(variants) for side, variants in placed.items()}


def variants_of(recipe: Recipe, side: Side) -> list[Variant]:
    """Make the variants of one side, in the order of layers."""
    return [variant for layer in place_variants(recipe.model, recipe.syntax, side) for variant in layer]


def _needs(variants: list[Variant]) -> Needs:
    want_arcs = {
        type(variant).__name__: None
        for variant in variants
        for signal in variant.reads + variant.learns
        if signal.needs == "arcs"
    }
    return Needs(any(v.reads for v in variants), any(v.learns for v in variants), tuple(want_arcs))


def parser_recipe(recipe: Recipe, side: Side) -> ParserRecipe:
    """Give the section that says how a side is parsed."""
    return recipe.parser if side == "source" else recipe.target_parser


def given_trees(recipe: Recipe, files: SplitFiles, side: Side) -> Path | None:
    """Give the trees that come with the text, where the recipe wants them instead of a parser's."""
    found = files.source_parses if side == "source" else files.target_parses
    gold = parser_recipe(recipe, side).control == "gold"
    if gold and found is None:
        section = "parser" if side == "source" else "target_parser"
        raise UsageError(
            f"there are no trees beside this text, but {section}.control asks for gold ones",
            where=str(getattr(files, side)),
        )
    return found if gold or recipe.corpus.train is not None else None


def all_given_trees(recipe: Recipe, corpus: Corpus, side: Side) -> dict[str, Path]:
    """Give the trees of every split that the model needs them of; none where its parser makes them.

    Trees of two origins are never mixed: a model does not read in one text what it has not learnt in another.
    """
    needs = check_variants(recipe)[side]
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
        raise no_arcs(variants, str(path))


def no_arcs(variants: tuple[str, ...], where: str) -> SynmtError:
    """Say that trees lack what a variant wants."""
    return UsageError(
        f"{', '.join(variants)} reads probabilities of arcs, and these trees were parsed without",
        where=where,
        do="Parse the text again with `synmt parse --arcs`",
    )


def make_parser(recipe: Recipe, side: Side, *, arcs: bool = False) -> StanzaParser:
    """Make the parser of one side; it loads when it first parses."""
    settings = parser_recipe(recipe, side)
    language = recipe.source if side == "source" else recipe.target
    return StanzaParser(language, model=settings.model, package=settings.package, device=settings.device, arcs=arcs)


def trees_path(data: Path, corpus: Corpus, text: Path, parser: StanzaParser) -> Path:
    """Name the file of a text's trees: the same text and parser have the same one."""
    key = fingerprint(sha256(text), parser.fingerprint)
    return data / "parses" / f"{corpus.name}-{text.name.removesuffix('.gz')}-{key}.conllu.gz"


def remarks(recipe: Recipe, prepared: PreparedCorpus, trees: Mapping[Side, str]) -> Iterator[str]:
    """Yield what the variants have to say of the relations in the training text, each thing once."""
    said = set[str]()
    for side, name in trees.items():
        relations = prepared.annotations()[name]["relations"]["train"]
        for variant in variants_of(recipe, side):
            text = variant.remark(relations)
            if text and text not in said:
                said.add(text)
                yield text
