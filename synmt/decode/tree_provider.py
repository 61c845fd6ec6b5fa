"""The trees that loaded models read: given ones, or those of the parser that made a model's
training trees."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from synmt.decode.inputs import Trees
from synmt.decode.loaded_model import LoadedModel
from synmt.errors import SynmtError, UsageError
from synmt.files.json_files import read_cached_json
from synmt.files.reading import fingerprint
from synmt.files.schemas import MadeByParser, ParserIdentity
from synmt.parsing.cache import CachedParser
from synmt.parsing.lines import warn_of_failure
from synmt.parsing.models import ADDED
from synmt.parsing.parser import NOT_IN_TREES, StanzaParser
from synmt.syntax.arcs import without_arcs
from synmt.syntax.feature_signals import without_scenes
from synmt.syntax.parse import SCENES, flat_parse, without_whitespace

_logger = logging.getLogger(__name__)


class TreeProvider:
    """Finds the trees that each model of an ensemble reads; models with the same parser share it.

    device: of the parsers.
    cached: whether trees are stored for later runs (see `synmt.parsing.cache`).
    """

    def __init__(self, models: Sequence[LoadedModel], *, device: str, cached: bool) -> None:
        self._needs_arcs = any(model.needs_arcs for model in models)
        names = dict.fromkeys(name for model in models for name in model.reading.of_parser)
        self._features = [*names, *[SCENES] * any(model.reading.scenes for model in models)]
        # features and arcs do not change the trees, so models that do not read them share the
        # parser too
        keys = [_parser_key(model.parser) for model in models]
        parsers: dict[str, _LazyParser] = {}
        for key in keys:
            sharing = [model for model, own in zip(models, keys, strict=True) if own == key]
            parsers[key] = _LazyParser(sharing, device, cached=cached)
        self._first = parsers[keys[0]]
        self._readers = [
            parsers[key] if model.reads_trees else None
            for key, model in zip(keys, models, strict=True)
        ]

    def parser(self) -> StanzaParser:
        """Load the parser of the first model; raises SynmtError if its run does not record one."""
        return self._first.parser

    def trees(
        self, lines: Sequence[str], given: Trees | None = None, number: int = 1
    ) -> list[Trees]:
        """Find the trees that each model reads: the given tree of a line, else that of the model's
        parser.

        number: line number of the first line, for messages.
        """
        no_trees: Trees = [None] * len(lines)
        given = no_trees if given is None else given
        for line, tree in enumerate(given, start=number):
            if self._needs_arcs and tree is not None and tree.arcs is None and len(tree):
                raise without_arcs("the tree", f"line {line}")
        self._warn_of_lacking(given)
        found = {
            parser: parser.complete(lines, given, number) if parser else no_trees
            for parser in set(self._readers)
        }
        return [found[parser] for parser in self._readers]

    def _warn_of_lacking(self, given: Trees) -> None:
        """Warn once that given trees lack a feature that a model reads."""
        present = [tree.features.keys() for tree in given if tree is not None and len(tree)]
        lacking = sorted(set(self._features).difference(*present), key=self._features.index)
        if present and lacking:
            self._features = [name for name in self._features if name not in lacking]
            _logger.warning(
                f"the model reads {', '.join(lacking)}, which the given trees do not have"
            )


class _LazyParser:
    """The parser that the runs of some models have recorded, loaded when it is first needed."""

    def __init__(self, models: Sequence[LoadedModel], device: str, *, cached: bool) -> None:
        self._models, self._device, self._cached = models, device, cached

    @cached_property
    def parser(self) -> StanzaParser:
        if any(model.reading.scenes for model in self._models):
            raise without_scenes(
                do="Provide a tree with scenes for each line with `--parses FILE.conllu`"
            )
        arcs = any(model.needs_arcs for model in self._models)
        parser = recorded_parser(self._models[0].parser, self._device, arcs=arcs)
        features = {name for model in self._models for name in model.reading.of_parser}
        return parser.with_features(features) if features else parser

    @cached_property
    def _cache(self) -> CachedParser | StanzaParser:
        return CachedParser(self.parser) if self._cached else self.parser

    def complete(self, lines: Sequence[str], given: Trees, number: int) -> Trees:
        """Parse the lines that have no tree; lines without text get an empty tree."""
        trees = list(given)
        for index, line in enumerate(lines):
            if trees[index] is None and not without_whitespace(line):
                trees[index] = flat_parse(line)
        missing = [index for index, tree in enumerate(trees) if tree is None]
        # where every line has a tree, the parser need not be installed
        if not missing:
            return trees

        def warn(index: int, reason: str) -> None:
            warn_of_failure(number + missing[index], reason)

        parsed = self._cache.parse([lines[index] for index in missing], on_failure=warn)
        for index, tree in zip(missing, parsed, strict=True):
            trees[index] = tree
        return trees


def recorded_parser(identity: Mapping[str, Any] | None, device: str, *, arcs: bool) -> StanzaParser:
    """Load the parser that made the training trees, and warn if it has changed since.

    arcs: whether the model reads arc probabilities.
    """
    if identity is None:
        raise unknown_parser(do="Provide a tree for each line with `--parses FILE.conllu`")
    try:
        parser = StanzaParser.from_identity(identity, device=device, arcs=arcs)
    except SynmtError as error:
        do = (
            "Give its new folder with `--parser FOLDER` (translate, score), or the trees with "
            "`--parses FILE.conllu`"
        )
        raise error.with_advice(do) from None
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


def parser_difference(recorded: Mapping[str, Any], present: Mapping[str, Any]) -> str:
    """Describe how the trees of two parsers may differ; empty if the parsers are the same, in
    whatever folders."""
    differences = []
    for name in _differing(recorded, present):
        value, other = recorded.get(name), present.get(name)
        if name == "files":
            changed = ", ".join(_differing(value or {}, other or {}))
            differences.append(f"other model files ({changed})")
        elif name not in _NOT_IN_TREES:
            differences.append(f"{name} {other} instead of {value}")
    return ", ".join(differences)


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


_NOT_IN_TREES = NOT_IN_TREES | ADDED


def _parser_key(identity: Mapping[str, Any] | None) -> str:
    """Return equal keys for parsers with equal trees."""
    return fingerprint(
        sorted(item for item in (identity or {}).items() if item[0] not in _NOT_IN_TREES)
    )


def parser_of_trees(facts: Path) -> ParserIdentity | None:
    """Read which parser made trees from the file next to them; None if the file is about something
    else."""
    found = read_cached_json(facts, MadeByParser)
    return found["parser"] if found else None
