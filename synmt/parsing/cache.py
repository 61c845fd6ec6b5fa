"""Cached trees: a line that a parser has parsed once is not parsed again by it, in later runs
either.

    $SYNMT_CACHE/parses/<fingerprint of the parser>.sqlite

The fingerprint covers the files of the model, Stanza's version and whether there are arc
probabilities, so each parser has its own file. The key of a line is its SHA-256, and words are
taken from the line again, so the file contains no text. It holds a million trees at most; the
oldest are deleted first. Deleting the file costs time only.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from synmt.arrays import int_pairs
from synmt.errors import SynmtError
from synmt.files.reading import cache_folder
from synmt.parsing.parser import OnFailure, StanzaParser
from synmt.syntax.parse import Arcs, Parse, words_at

T = TypeVar("T")

_logger = logging.getLogger(__name__)
_FORMAT = 2
"""The first byte of a stored tree; a tree in another format is parsed again."""
MOST_TREES = 1_000_000
_TIMEOUT = 5.0
"""Seconds to wait for another process that writes."""


class CachedParser:
    """A parser that keeps its trees between runs.

    parser: makes the trees that are not in the cache.

    A cached tree equals the one that was stored bit by bit. The arc probabilities of a newly parsed
    tree may differ in their last bits, because sums of float32 depend on the padding of the batch.
    Lines that failed are not stored. If the cache cannot be used, the reason is logged once, and
    every line is parsed.
    """

    def __init__(self, parser: StanzaParser) -> None:
        self.parser, self._unusable = parser, False

    @cached_property
    def path(self) -> Path:
        """The cache file of this parser."""
        return cache_folder() / "parses" / f"{self.parser.fingerprint}.sqlite"

    def parse(self, lines: Sequence[str], *, on_failure: OnFailure | None = None) -> list[Parse]:
        """Parse lines as the parser does: one tree each, in their order."""
        parses = self._load(lines)
        if missing := [line for line in lines if line not in parses]:
            failures: dict[str, str] = {}
            new = self.parser.parse(
                missing, on_failure=lambda index, why: failures.update({missing[index]: why})
            )
            parses |= zip(missing, new, strict=True)
            self._store({line: parses[line] for line in missing if line not in failures})
            for index, line in enumerate(lines):
                if on_failure and line in failures:
                    on_failure(index, failures[line])
        return [parses[line] for line in lines]

    def _load(self, lines: Sequence[str]) -> dict[str, Parse]:
        line_of = {_key(line): line for line in lines}
        query = "SELECT key, tree FROM parses WHERE key = ?"
        stored = self._connected(
            lambda database: [row for key in line_of for row in database.execute(query, [key])]
        )
        parses = {line_of[key]: decode_parse(tree, line_of[key]) for key, tree in stored or ()}
        return {line: parse for line, parse in parses.items() if parse is not None}

    def _store(self, parses: Mapping[str, Parse]) -> None:
        rows = [(_key(line), encode_parse(parse)) for line, parse in parses.items()]
        if rows:
            self._connected(lambda database: _insert(database, rows))

    def _connected(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        """Apply an action to the cache file; after an error, log it once and never try again."""
        if self._unusable:
            return None
        path = self.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # a new connection for each call, since a process may fork, and threads may not share a
            # connection
            with closing(
                sqlite3.connect(path, timeout=_TIMEOUT, isolation_level="IMMEDIATE")
            ) as database:
                _set_up(database)
                return action(database)
        except (sqlite3.Error, OSError, SynmtError) as error:
            self._unusable = True
            _logger.info(f"the cache of trees cannot be used: {path}: {error}")
            return None


def encode_parse(parse: Parse) -> bytes:
    """Serialize a tree without its words, which are those of the line at its spans."""
    arcs = parse.arcs
    values = {
        "spans": parse.spans.tolist(),
        "parents": parse.parents.tolist(),
        "relations": parse.relations,
        "tags": parse.tags,
        "features": dict(parse.features),
        "arcs": arcs and [column.tolist() for column in arcs.columns],
        "names": arcs and arcs.names,
    }
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return bytes([_FORMAT]) + zlib.compress(text.encode(), 1)


def decode_parse(tree: bytes, line: str) -> Parse | None:
    """Read a tree that `encode_parse` serialized; None if it is damaged or in another format."""
    try:
        return _read(zlib.decompress(tree[1:]), line) if tree[0] == _FORMAT else None
    except (zlib.error, ValueError, LookupError, TypeError):
        return None


def _read(stored: bytes, line: str) -> Parse:
    values, arcs = json.loads(stored), None
    if values["arcs"] is not None:
        *columns, probabilities = values["arcs"]
        arcs = Arcs(
            *(np.array(column, dtype=np.int64) for column in columns),
            probabilities=np.array(probabilities, dtype=np.float32),
            names=tuple(values["names"]),
        )
    spans = int_pairs(values["spans"])
    return Parse(
        words_at(line, spans),
        spans,
        np.array(values["parents"], dtype=np.int64),
        values["relations"],
        values["tags"],
        arcs,
        features=values["features"],
    )


def _key(line: str) -> bytes:
    return hashlib.sha256(line.encode()).digest()


def _set_up(database: sqlite3.Connection) -> None:
    # if two processes create the file at once, one gets "locked"; the other one has set the mode
    with suppress(sqlite3.OperationalError):
        # with it, readers and a writer do not wait for each other
        database.execute("PRAGMA journal_mode = WAL")
    # a power cut may lose the last trees, which are parsed again then
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute(
        "CREATE TABLE IF NOT EXISTS parses (number INTEGER PRIMARY KEY, key BLOB UNIQUE, tree BLOB)"
    )


def _insert(database: sqlite3.Connection, rows: list[tuple[bytes, bytes]]) -> None:
    newest = "SELECT max(number) FROM parses"
    with database:
        database.executemany("INSERT OR REPLACE INTO parses (key, tree) VALUES (?, ?)", rows)
        database.execute(f"DELETE FROM parses WHERE number <= ({newest}) - ?", [MOST_TREES])
