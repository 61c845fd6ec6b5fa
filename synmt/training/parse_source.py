"""Where the trees of a side come from: files that were given, or a parser of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synmt.arrays import Side
from synmt.data.annotate import annotation_name, describe_files
from synmt.data.corpora import Corpus
from synmt.parsing.parser import StanzaParser
from synmt.recipe.schema import Recipe
from synmt.training.tree_requirements import TreeRequirements, all_given_trees, make_parser


@dataclass(frozen=True)
class ParseSource:
    """Where the trees of a side come from: given files of train and valid, or our parser.

    arcs: whether they must have probabilities of arcs.
    """

    side: Side
    arcs: bool
    given: Mapping[str, Path]
    parser: StanzaParser | None

    @property
    def identity(self) -> Mapping[str, Any] | None:
        """What describes our parser, with or without arcs."""
        return None if self.parser is None else {k: v for k, v in self.parser.identity.items() if k != "arcs"}

    def description(self, *, arcs: bool = False) -> dict[str, Any]:
        """Describe what made the trees, by values that fit into JSON."""
        if self.identity is None:
            return describe_files(self.given)
        # where the model files lie does not change the trees
        description = {key: value for key, value in self.identity.items() if key != "model"}
        return {**description, "arcs": True} if arcs else description

    def name(self, *, arcs: bool = False) -> str:
        """Name the annotation."""
        return annotation_name(self.side, self.description(arcs=arcs))


def find_parse_source(recipe: Recipe, corpus: Corpus, side: Side, needs: TreeRequirements) -> ParseSource:
    """Find out where the trees of a side come from; a parser is loaded, so that what is missing is missed now."""
    if given := all_given_trees(recipe, corpus, side, needs):
        return ParseSource(side, bool(needs.arcs), {name: given[name] for name in ("train", "valid")}, None)
    origin = ParseSource(side, bool(needs.arcs), {}, make_parser(recipe, side, arcs=bool(needs.arcs)))
    # the name is made of the parser's files, for which it is loaded
    origin.name()
    return origin
