"""Trees kept between runs, so that a line that one parser has seen is not parsed by it again.

    $SYNMT_CACHE/parses/<fingerprint of the parser>.sqlite

The fingerprint covers the files of the model, Stanza's version and whether arcs were asked for: another parser has
another file. A line is named by its SHA-256, and its words are read off the line again, so the file holds no text. It
keeps 500 MB at most; the trees that have lain longest make room. Deleting it costs time only.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from synmt import files
from synmt.parsing.parser import OnFailure, Parser
from synmt.syntax.parse import Arcs, Parse

T = TypeVar("T")

_FORMAT = 1
"""Of a tree; one of another format is made anew."""
_LARGEST = 500 << 20
_PATIENCE = 5.0
"""Seconds to wait for another process that writes."""
_AT_ONCE = 500
"""SQLite takes 999 values in a statement."""
_SHARE = 8
"""Where there is no room, an eighth of the trees goes, so that it does not happen at every call."""


class CachedParser:
    """A parser that remembers its trees between runs.

    parser: makes the trees that are not known yet.
    largest: bytes that its file may hold.
    remark: told, once, why the cache cannot be used; the trees are then made as if there were none.

    A remembered tree is the one that was made, to the last bit. Made afresh it may differ from it in the last bits of
    the probabilities of arcs, as always when a line is parsed beside other lines: batches are padded, and sums of
    float32 depend on that. What has failed (a flat tree, or one in pieces) is tried again each time.
    """

    def __init__(
        self, parser: Parser, *, largest: int = _LARGEST, remark: Callable[[str], None] = lambda text: None
    ) -> None:
        self.parser, self.largest, self.remark = parser, largest, remark
        self._broken = False

    @cached_property
    def path(self) -> Path:
        """The file of this parser's trees."""
        return files.cache_folder() / "parses" / f"{self.parser.fingerprint}.sqlite"

    def parse(self, lines: Sequence[str], *, on_failure: OnFailure | None = None) -> list[Parse]:
        """Parse lines as the parser does: one tree each, in their order."""
        distinct = list(dict.fromkeys(lines))
        found = self._known(distinct)
        missing = [line for line in distinct if line not in found]
        reasons: dict[str, str] = {}
        if missing:
            made = self.parser.parse(missing, on_failure=lambda index, why: reasons.update({missing[index]: why}))
            fresh = dict(zip(missing, made, strict=True))
            found |= fresh
            self._keep({line: parse for line, parse in fresh.items() if line not in reasons})
        for index, line in enumerate(lines):
            if on_failure and line in reasons:
                on_failure(index, reasons[line])
        return [found[line] for line in lines]

    def _known(self, lines: Sequence[str]) -> dict[str, Parse]:
        by_key = {_key(line): line for line in lines}
        parses = {
            by_key[key]: decode_parse(tree, by_key[key])
            for key, tree in self._tried(lambda database: _select(database, list(by_key))) or []
        }
        return {line: parse for line, parse in parses.items() if parse is not None}

    def _keep(self, parses: Mapping[str, Parse]) -> None:
        rows = [(_key(line), tree) for line, parse in parses.items() if (tree := encode_parse(parse, line)) is not None]
        if rows:
            self._tried(lambda database: _insert(database, rows, self.largest))

    def _tried(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do something with the file; where it is of no use, say so and never try again."""
        if self._broken:
            return None
        path = self.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # opened for each call, since a process may fork, and threads may not share a connection
            with closing(sqlite3.connect(path, timeout=_PATIENCE, isolation_level="IMMEDIATE")) as database:
                _set_up(database)
                return action(database)
        except (sqlite3.Error, OSError) as error:
            self._broken = True
            why = error.strerror if isinstance(error, OSError) else error
            self.remark(f"trees are not kept between runs: {path}: {why}")
            return None


def encode_parse(parse: Parse, line: str) -> bytes | None:
    """Write a tree, all but its words, which stand in the line; None where that would not be the same tree."""
    arcs = parse.arcs
    names = {"relations": parse.relations, "tags": parse.tags, "names": arcs and list(arcs.names)}
    text = json.dumps(names, ensure_ascii=False, separators=(",", ":")).encode()
    numbers = [parse.spans, parse.parents]
    if arcs is not None:
        numbers += [arcs.words, arcs.parents, arcs.relations]
    parts = [
        _HEADER.pack(len(text), len(parse), 0 if arcs is None else len(arcs.words)),
        text,
        *(np.ascontiguousarray(array, dtype="<i8").tobytes() for array in numbers),
        b"" if arcs is None else np.ascontiguousarray(arcs.probabilities, dtype="<f4").tobytes(),
    ]
    tree = bytes([_FORMAT]) + zlib.compress(b"".join(parts), 1)
    return tree if decode_parse(tree, line) == parse else None


def decode_parse(tree: bytes, line: str) -> Parse | None:
    """Read what `encode_parse` has written; None where it is damaged, or of another format."""
    try:
        if tree[0] != _FORMAT:
            return None
        return _read(zlib.decompress(tree[1:]), line)
    except (zlib.error, struct.error, ValueError, KeyError, IndexError, TypeError):
        return None


_HEADER = struct.Struct("<III")


def _read(stored: bytes, line: str) -> Parse:
    length, words, entries = _HEADER.unpack_from(stored)
    text = json.loads(stored[_HEADER.size : _HEADER.size + length])
    at = _HEADER.size + length

    def take(kind: str, count: int) -> npt.NDArray[Any]:
        nonlocal at
        array = np.frombuffer(stored, kind, count, at)
        at += array.nbytes
        # a copy, because what lies in bytes cannot be written to, and a fresh tree can
        return array.astype(kind[1:])

    spans, parents = take("<i8", 2 * words).reshape(-1, 2), take("<i8", words)
    arcs = None
    if text["names"] is not None:
        columns = [take("<i8", entries) for _ in range(3)]
        arcs = Arcs(*columns, probabilities=take("<f4", entries), names=tuple(text["names"]))
    pieces = [line[start:end] for start, end in spans.tolist()]
    return Parse(pieces, spans, parents, text["relations"], text["tags"], arcs)


def _key(line: str) -> bytes:
    return hashlib.sha256(line.encode()).digest()


def _set_up(database: sqlite3.Connection) -> None:
    # where two processes begin a file at once, one is told that it is locked; the other one has set it then
    with suppress(sqlite3.OperationalError):
        # readers and a writer do not wait for each other
        database.execute("PRAGMA journal_mode = WAL")
    # losing the last trees to a power cut is no harm
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("CREATE TABLE IF NOT EXISTS parses (number INTEGER PRIMARY KEY, key BLOB UNIQUE, tree BLOB)")


def _select(database: sqlite3.Connection, keys: list[bytes]) -> list[tuple[bytes, bytes]]:
    found: list[tuple[bytes, bytes]] = []
    for first in range(0, len(keys), _AT_ONCE):
        some = keys[first : first + _AT_ONCE]
        marks = ",".join("?" * len(some))
        found += database.execute(f"SELECT key, tree FROM parses WHERE key IN ({marks})", some)
    return found


def _insert(database: sqlite3.Connection, rows: list[tuple[bytes, bytes]], largest: int) -> None:
    with database:
        database.executemany("INSERT OR REPLACE INTO parses (key, tree) VALUES (?, ?)", rows)
    removed = 1
    while removed and _used(database) > largest:
        share = f"SELECT 1 + count(*) / {_SHARE} FROM parses"
        oldest = f"SELECT number FROM parses ORDER BY number LIMIT ({share})"
        with database:
            removed = database.execute(f"DELETE FROM parses WHERE number IN ({oldest})").rowcount


def _used(database: sqlite3.Connection) -> int:
    """Count the bytes in use; those of deleted rows are used again."""
    pages, free, size = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in _SIZES)
    return (pages - free) * size


_SIZES = ("page_count", "freelist_count", "page_size")
