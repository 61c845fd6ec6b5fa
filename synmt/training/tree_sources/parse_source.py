"""Where the trees of a side come from: files that come with the text, or a parser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synmt.arrays import Side
from synmt.corpora.corpus import Corpus
from synmt.data.annotate import annotation_name, describe_files
from synmt.parsing.models import ADDED
from synmt.parsing.parser import NOT_IN_TREES, StanzaParser
from synmt.recipe.schema import Recipe
from synmt.training.tree_sources.requirements import TreeRequirements, all_given_trees, make_parser


@dataclass(frozen=True)
class ParseSource:
    """Where the trees of a side come from: given files of train and valid, or a parser.

    arcs: whether they need probabilities of arcs.
    whole: whether those of train must fit every segmentation, for BPE dropout.
    constituents: whether the files must have constituents.
    features: what has to be stored of words besides tag and relation.
    """

    side: Side
    arcs: bool
    given: Mapping[str, Path]
    parser: StanzaParser | None
    whole: bool = False
    constituents: bool = False
    features: tuple[str, ...] = ()

    @property
    def identity(self) -> Mapping[str, Any] | None:
        """Description of the parser, the same with and without arcs and features; None for given
        files."""
        return (
            None
            if self.parser is None
            else {k: v for k, v in self.parser.identity.items() if k not in ADDED}
        )

    def description(self, *, arcs: bool = False) -> dict[str, Any]:
        """Describe the annotation: where its trees come from, and what it stores; in values for
        JSON."""
        stored = {"features": list(self.features)} if self.features else {}
        return {**self._origin, **({"arcs": True} if arcs and self.parser else {}), **stored}

    @property
    def _origin(self) -> dict[str, Any]:
        whole = {"whole": True} if self.whole else {}
        if self.identity is None:
            constituents = {"constituents": True} if self.constituents else {}
            return describe_files(self.given) | whole | constituents
        return {
            key: value for key, value in self.identity.items() if key not in NOT_IN_TREES
        } | whole

    def name(self, *, arcs: bool = False) -> str:
        """Name the annotation."""
        return annotation_name(self.side, self.description(arcs=arcs))

    @property
    def trees(self) -> str:
        """Name the trees: two annotations of the same trees that store more or less of them have
        one such name."""
        return annotation_name(self.side, self._origin)

    def annotation_in(self, prepared: Path) -> str | None:
        """Find the annotation of a prepared corpus; one with probabilities also serves without."""
        names = [self.name(arcs=arcs) for arcs in ([True] if self.arcs else [False, True])]
        return next(
            (name for name in names if (prepared / name / "annotation.json").is_file()), None
        )


def find_parse_source(
    recipe: Recipe, corpus: Corpus, side: Side, requirements: TreeRequirements
) -> ParseSource:
    """Find where the trees of a side come from; loads the parser, so that missing models are
    reported now."""
    arcs, whole = bool(requirements.arcs), recipe.vocabulary.dropout > 0
    if given := all_given_trees(recipe, corpus, side, requirements):
        files = {name: given[name] for name in ("train", "valid")}
        return ParseSource(
            side, arcs, files, None, whole, bool(requirements.constituents), requirements.features
        )
    parser = make_parser(recipe, side, arcs=arcs)
    if requirements.of_parser:
        parser = parser.with_features(requirements.of_parser)
    source = ParseSource(side, arcs, {}, parser, whole, features=requirements.features)
    # the name depends on the files of the model, so this loads it
    source.name()
    return source
