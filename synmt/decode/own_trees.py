"""The trees that models read, made by the parsers that they have learnt from: each line once for each parser."""

from __future__ import annotations

from collections.abc import Sequence

from synmt.decode.reader import Reader
from synmt.decode.source import Remark, check_arcs, recorded_parser
from synmt.files import fingerprint
from synmt.syntax.parse import Parse
from synmt.syntax.parse_cache import CachedParser
from synmt.syntax.parsers import StanzaParser

Trees = Sequence[Parse | None]
"""One for each line; None where a model reads none."""


class OwnTrees:
    """What makes the trees of some readers; a parser loads when it is first needed.

    cached: whether trees are kept between runs (see synmt/syntax/parse_cache.py).
    remark: told what a person should know, once.
    """

    def __init__(self, readers: Sequence[Reader], *, device: str, cached: bool, remark: Remark) -> None:
        self.readers, self.device, self.cached, self.remark = readers, device, cached, remark
        self._parsers: dict[str, StanzaParser] = {}
        self._caches: dict[str, CachedParser] = {}

    def of(self, lines: Sequence[str], given: Sequence[Parse] | None = None, number: int = 1) -> list[Trees]:
        """Find what each reader reads of each line: trees that are given, or its own parser's.

        number: of the first line, for messages.
        """
        found: dict[str, Trees] = {"": [None] * len(lines)}
        if given is not None and any(reader.wants_arcs for reader in self.readers):
            check_arcs(given, number)
        for reader in self.readers:
            name = self._name(reader)
            if name not in found:
                found[name] = given if given is not None else self._parsed(reader, lines, number)
        return [found[self._name(reader)] for reader in self.readers]

    def parser(self, reader: Reader) -> StanzaParser:
        """Give the parser of a reader; an error where its run does not record it."""
        name = self._name(reader)
        if name not in self._parsers:
            # those with probabilities are the same trees, so they serve all readers of the parser
            arcs = any(other.wants_arcs for other in self.readers if self._name(other) == name)
            self._parsers[name] = recorded_parser(reader.parser, self.device, self.remark, arcs=arcs)
        return self._parsers[name]

    def _parsed(self, reader: Reader, lines: Sequence[str], number: int) -> list[Parse]:
        name, parser = self._name(reader), self.parser(reader)
        if self.cached and name not in self._caches:
            self._caches[name] = CachedParser(parser, remark=self.remark)
        return self._caches.get(name, parser).parse(
            lines,
            on_failure=lambda index, why: self.remark(f"line {number + index}: its tree is flat or pieced: {why}"),
        )

    @staticmethod
    def _name(reader: Reader) -> str:
        """Name what a reader reads: equal for the same parser, wherever its files lie; empty for no trees."""
        if not reader.reads_trees:
            return ""
        identity = reader.parser or {}
        return fingerprint(sorted((key, value) for key, value in identity.items() if key not in ("model", "arcs")))
