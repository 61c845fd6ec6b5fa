"""The trees that loaded models read: given ones, or those of the parser that made a model's
training trees."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

from synmt.arrays import Facts
from synmt.decode.inputs import Trees
from synmt.decode.loaded_model import LoadedModel
from synmt.errors import SynmtError, UsageError, adding_advice
from synmt.parsing.cache import CachedParser
from synmt.parsing.lines import warn_of_failure
from synmt.parsing.models import ADDED
from synmt.parsing.parser import NOT_IN_TREES, StanzaParser
from synmt.syntax.arcs import parent_probabilities
from synmt.syntax.controls import Control, with_heads
from synmt.syntax.parse import Parse, flat_parse, without_whitespace

_logger = logging.getLogger(__name__)


WantedTree = Parse | Control | Sequence[int] | None
"""A tree to show: a given one, one made by a control of the parser's, or the parser's with these
parents, counted from 1 and 0 for the root; None: the parser's."""


class TreeProvider:
    """Finds the trees that each model of an ensemble reads; models with the same parser share it,
    which is loaded when it is first needed.

    device: of the parsers.
    cached: whether trees are stored for later runs (see `synmt.parsing.cache`).
    """

    def __init__(self, models: Sequence[LoadedModel], *, device: str, cached: bool) -> None:
        self._models, self._device, self._cached = models, device, cached
        self._needs_arcs = any(model.reading.arcs and not model.reading.certain for model in models)
        self._unseen = {name for model in models for name in model.features}
        self._parsers: dict[str, StanzaParser] = {}
        self._caches: dict[str, CachedParser] = {}
        # threads parse one after the other
        self._turn = threading.Lock()

    def parser(self, key: str) -> StanzaParser:
        """Load the parser of the models with this `parser_key`; raises SynmtError if their runs do
        not record one."""
        if key not in self._parsers:
            sharing = [model for model in self._models if model.parser_key == key]
            features = {name for model in sharing for name in model.features}
            # arcs and features do not change the trees
            parser = recorded_parser(sharing[0].parser, self._device, arcs=self._needs_arcs)
            self._parsers[key] = parser.with_features(features) if features else parser
        return self._parsers[key]

    def shown(self, line: str, wanted: WantedTree) -> tuple[Parse | None, list[float]]:
        """Find a tree to show of a line: a given one, else that of a parser, perhaps under a
        control or with other parents; None without a parser.

        Returns with it the probability of each parent by the parser, if there is one.
        """
        parser = self._shown_parser
        own = tree = parser.parse([line])[0] if parser else None
        if isinstance(wanted, Control):
            tree = own and wanted.apply(own, line.encode())
        elif isinstance(wanted, Parse):
            tree = wanted
        elif wanted is not None and own is not None:
            tree = with_heads(own, wanted)
        elif wanted is not None:
            raise UsageError("there is no parser of this language, so the words are unknown")
        if not own or not tree or own.arcs is None or len(own) != len(tree):
            return tree, []
        return tree, parent_probabilities(own.arcs, tree.parents).tolist()

    @cached_property
    def _shown_parser(self) -> StanzaParser | None:
        """The parser of the first model; of a model that never saw trees, the one that ships for
        its language, or that was downloaded before."""
        model = self._models[0]
        if model.parser is not None:
            return self.parser(model.parser_key).with_arcs()
        with suppress(SynmtError):
            return StanzaParser(model.recipe.source, device=self._device, arcs=True)
        return None

    def trees(self, lines: Sequence[str], given: Trees, number: int) -> list[Trees]:
        """Find the trees that each model reads: the given tree of a line, else that of the model's
        parser.

        number: line number of the first line, for messages.
        """
        self._warn_of_lacking(given)
        no_trees = [None] * len(lines)
        by_parser: dict[str, Trees] = {}
        for key in dict.fromkeys(model.parser_key for model in self._models if model.reads_trees):
            by_parser[key] = self._complete(key, lines, given, number)
        return [
            by_parser[model.parser_key] if model.reads_trees else no_trees for model in self._models
        ]

    def _warn_of_lacking(self, given: Trees) -> None:
        """Warn once that given trees lack a feature that a model reads."""
        present = [tree.features for tree in given if tree is not None and len(tree)]
        lacking = self._unseen.difference(*present)
        if present and lacking:
            self._unseen = set()
            names = ", ".join(sorted(lacking))
            _logger.warning(f"the given trees lack what the model reads: {names}")

    def _complete(self, key: str, lines: Sequence[str], given: Trees, number: int) -> Trees:
        """Parse the lines that have no tree; lines without text get an empty tree."""
        trees = [
            flat_parse(line) if tree is None and not without_whitespace(line) else tree
            for line, tree in zip(lines, given, strict=True)
        ]
        missing = [index for index, tree in enumerate(trees) if tree is None]
        # where every line has a tree, the parser need not be installed
        if not missing:
            return trees

        def warn(index: int, reason: str) -> None:
            warn_of_failure(number + missing[index], reason)

        with self._turn:
            parser = self.parser(key)
            if self._cached:
                parser = self._caches.setdefault(key, CachedParser(parser))
            parsed = parser.parse([lines[index] for index in missing], on_failure=warn)
        for index, tree in zip(missing, parsed, strict=True):
            trees[index] = tree
        return trees


def recorded_parser(identity: Facts | None, device: str, *, arcs: bool) -> StanzaParser:
    """Load the parser that made the training trees, and warn if it has changed since.

    arcs: whether the model reads arc probabilities.
    """
    if identity is None:
        raise unknown_parser(do="Provide a tree for each line with `--parses FILE.conllu`")
    do = "Give its new folder with `--parser FOLDER`, or the trees with `--parses FILE.conllu`"
    with adding_advice(do):
        parser = StanzaParser.from_identity(identity, device=device, arcs=arcs)
    if difference := parser_difference(identity, parser.identity):
        _logger.warning(f"the parser is not the one that the model was trained with: {difference}")
    return parser


def unknown_parser(*, where: str = "", do: str) -> UsageError:
    """Make the error for a model that reads trees if its run does not record their parser."""
    return UsageError(
        "the model reads dependency trees, and its run does not say which parser makes them",
        where=where,
        do=do,
    )


def parser_difference(recorded: Facts, present: Facts) -> str:
    """Describe how the trees of two parsers may differ; empty if the parsers are the same, in
    whatever folders."""
    return ", ".join(
        "other model files"
        if name == "files"
        else f"{name} {present.get(name)} instead of {recorded.get(name)}"
        for name in sorted((recorded.keys() | present.keys()) - NOT_IN_TREES - ADDED)
        if recorded.get(name) != present.get(name)
    )
