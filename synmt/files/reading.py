"""Reads text line by line, hashes files, and names the cache folder."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from synmt.errors import SynmtError, not_utf8
from synmt.files.links import own_folder
from synmt.files.writing import write_json

_LARGE = 32 << 20
"""Bytes. Hashing a smaller file takes less time than finding its stored hash."""


def read_lines(path: str | Path) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 text, without their ends; `-` is standard input, `.gz` is decompressed.

    Lines end at `\n`, or at `\r\n` as Windows writes it: U+2028, `\x85` and a `\r` elsewhere are ordinary characters.
    A byte order mark at the start is dropped.
    """
    with open_binary(path) as stream:
        yield from decode_lines(stream, where=str(path) if str(path) != "-" else "standard input")


def decode_lines(stream: Iterable[bytes], *, where: str, first: int = 0) -> Iterator[str]:
    """Decode raw lines that follow the `first` ones; raises SynmtError with the number of a line that is not UTF-8."""
    for number, raw in enumerate(stream, start=first + 1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise not_utf8(raw, number, error, where=where) from None
        yield line.removesuffix("\n").removesuffix("\r")


def read_available_lines(stream: BinaryIO, size: int, *, where: str) -> Iterator[list[str]]:
    """Yield the lines of a stream in groups of at most `size`, as they arrive, without waiting for more."""
    waiting: deque[bytes] = deque()
    lines = decode_lines(iter(waiting.popleft, None), where=where)
    rest = b""
    # read1 returns the available bytes; a plain file has no such method, and never waits
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    while chunk := read(1 << 16):
        *complete, rest = (rest + chunk).split(b"\n")
        waiting.extend(complete)
        while waiting:
            yield list(islice(lines, min(size, len(waiting))))
    if rest:
        waiting.append(rest)
        yield list(islice(lines, 1))


@contextlib.contextmanager
def open_binary(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; `-` is standard input, `.gz` is decompressed."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = (gzip.open if str(path).endswith(".gz") else open)(path, "rb")
    except OSError as error:
        raise SynmtError(f"cannot read the file ({error.strerror})", where=str(path)) from None
    with stream:
        try:
            yield io.BufferedReader(stream) if isinstance(stream, gzip.GzipFile) else stream  # type: ignore[misc]
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            do = "Copy it or compress it again; if it isn't compressed, take .gz off its name"
            raise SynmtError(f"not a complete gzip file ({error})", where=str(path), do=do) from None


def count_lines(path: str | Path) -> int:
    """Count the lines of a text as `read_lines` yields them."""
    with open_binary(path) as stream:
        return sum(1 for _ in stream)


def known_lines(path: str | Path) -> int | None:
    """Count the lines of a file; None for standard input (even if a file is named `-`) and pipes: it consumes them."""
    return count_lines(path) if str(path) != "-" and Path(path).is_file() else None


def sha256(path: str | Path) -> str:
    """Hash the bytes of a file, without decompressing them."""
    with open(path, "rb") as stream:
        digest = hashlib.sha256()
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def fingerprint(*parts: object) -> str:
    """Hash values into 12 hexadecimal digits, for names of results that depend on these values."""
    return hashlib.sha256("\0".join(map(repr, parts)).encode()).hexdigest()[:12]


def stored_sha256(path: Path) -> str:
    """Hash a file; the hash of a large one is stored until its size or modification time changes."""
    try:
        state = path.stat()
        if state.st_size < _LARGE:
            return sha256(path)
    except OSError as error:
        raise SynmtError(f"cannot read the file ({error.strerror})", where=str(path)) from None
    name = fingerprint(str(path.resolve()), state.st_size, state.st_mtime_ns)
    stored = cache_folder() / "hashes" / f"{name}.json"
    with contextlib.suppress(OSError, ValueError, KeyError):
        return json.loads(stored.read_text())["sha256"]
    digest = sha256(path)
    # without a writable cache, hashing only takes longer
    with contextlib.suppress(SynmtError):
        write_json(stored, {"sha256": digest})
    return digest


def cache_folder() -> Path:
    """Name the cache folder: `SYNMT_CACHE`, or the default of the platform."""
    # `synmt --help` does not need it
    import platformdirs

    chosen = os.environ.get("SYNMT_CACHE")
    default = platformdirs.user_cache_dir("synmt", appauthor=False)
    return own_folder(Path(chosen).expanduser() if chosen else Path(default))


def offline() -> bool:
    """Tell whether `SYNMT_OFFLINE` forbids the network."""
    return os.environ.get("SYNMT_OFFLINE", "") not in ("", "0")
