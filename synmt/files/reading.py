"""Reads plain text line by line, hashes files, and names the cache folder."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import re
import sys
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from synmt.errors import SynmtError, UsageError
from synmt.files.writing import AnyPath, write_json

_BEGINNING = 8192
"""Bytes that tell what a file is."""

LONGEST = 10_000_000
"""Bytes of a line. A small compressed file may have one that fills the memory."""

_LARGE = 32 << 20
"""Bytes. Hashing a smaller file takes less time than finding its stored hash."""


# a line of text may begin with `<`, `{`, `[` or `#`: each pattern needs more than what a sentence
# has
_FORMATS = (
    (
        "a compressed file",
        rb"\x1f\x8b\x08|BZh[1-9]1AY&SY|\xfd7zXZ\0|\x28\xb5\x2f\xfd|PK\x03\x04",
        "Unpack it; only gzip files whose name ends in .gz are read",
    ),
    ("UTF-16", rb"\xff\xfe|\xfe\xff", "Convert it with `iconv -f utf-16 -t utf-8`"),
    (
        "XML or HTML",
        rb"\s*(?:<\?xml\s[^>]*>\s*(?:<|$)|<!DOCTYPE\s[^>]*>\s*<|<mteval>\s*<|<html[^>]*>\s*<"
        rb"|<url>[^<\n]*</url>\s*<|<(?:tmx|xliff|srcset|refset|tstset)\s[^>]*="
        rb"|<doc\s[^>]*\b(?:docid|sysid|genre|origlang)=)",
        "Take out its sentences, one per line. A recipe reads public corpora by their id, such as "
        "`corpus.test: [wmt17]` (synmt --docs corpora)",
    ),
    (
        "CoNLL-U",
        rb"(?:#[^\n]*\n|\s)*1(?:-\d+)?\t(?:[^\t\n]+\t){8}[^\t\n]+(?:\n|$)",
        "Trees belong in `--parses` or in `source_parses` of a recipe; "
        "`sed -n 's/^# text = //p'` takes out the text",
    ),
    (
        "JSON",
        rb'\s*(?:\[\s*)?\{\s*"[^"\n]*"\s*:\s*["\[{\d.tfn-]|\s*\[\s*\n\s*"|\s*\["[^\n]*"\]\s*$',
        "`synmt translate` reads JSON lines with `--jsonl`",
    ),
)
"""Names, patterns of the beginning, and what to do."""
ANY_FORMAT = frozenset(name for name, _, _ in _FORMATS)


def read_lines(path: AnyPath, *, allowed: Collection[str] = ()) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 text, without their ends; `-` is standard input, `.gz` is
    decompressed.

    Lines end at `\n`, or at `\r\n` as Windows writes it: U+2028, `\x85` and a `\r` elsewhere are
    ordinary characters. A byte order mark at the start is dropped.

    allowed: the same as for `open_binary`.
    """
    with open_binary(path, allowed=allowed) as stream:
        yield from decode_lines(
            raw_lines(stream), where=str(path) if str(path) != "-" else "standard input"
        )


def raw_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a stream; of one that is too long, only a beginning that is also too
    long."""
    return iter(partial(stream.readline, LONGEST + 1), b"")


def decode_lines(stream: Iterable[bytes], *, where: str, first: int = 0) -> Iterator[str]:
    """Decode raw lines that follow the `first` ones; raises SynmtError with the number of a line
    that is wrong."""
    for number, raw in enumerate(stream, start=first + 1):
        if len(raw) > LONGEST:
            raise too_long(number, where)
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise SynmtError(
                f"line {number} is not UTF-8",
                where=where,
                do="Convert the file, for example with `iconv -f latin1 -t utf-8`",
            ) from None
        yield line.removesuffix("\n").removesuffix("\r")


def too_long(number: int, where: str) -> SynmtError:
    """Make the error for a line, counted from 1, that is longer than LONGEST."""
    do = "Check that the file is the right one, and that its text has one sentence per line"
    return SynmtError(f"line {number:,} is longer than {LONGEST / 1e6:g} MB", where=where, do=do)


def read_available_lines(stream: BinaryIO, size: int, *, where: str) -> Iterator[list[str]]:
    """Yield the lines of a stream in groups of at most `size`, as they arrive, without waiting for
    more."""
    number, rest = 0, b""
    # read1 returns the available bytes; a plain file has no such method, and never waits
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    while (chunk := read(1 << 16)) and len(rest) <= LONGEST:
        *complete, rest = (rest + chunk).split(b"\n")
        for start in range(0, len(complete), size):
            group = complete[start : start + size]
            yield list(decode_lines(group, where=where, first=number))
            number += len(group)
    if rest:
        yield list(decode_lines([rest], where=where, first=number))


@contextlib.contextmanager
def open_binary(path: AnyPath, *, allowed: Collection[str] = ()) -> Iterator[BinaryIO]:
    """Open a text for reading bytes; `-` is standard input, `.gz` is decompressed.

    allowed: formats that it may have; any other is refused (see `_FORMATS`).
    """
    if str(path) == "-":
        stream = sys.stdin.buffer
        _refuse_other_formats(stream, "standard input", allowed)
        yield stream
        return
    try:
        stream = (gzip.open if str(path).endswith(".gz") else open)(path, "rb")
    except OSError as error:
        raise SynmtError(f"cannot read the file ({error.strerror})", where=path) from None
    with stream:
        try:
            text = io.BufferedReader(stream) if isinstance(stream, gzip.GzipFile) else stream  # type: ignore[type-var]
            _refuse_other_formats(text, str(path), allowed)
            yield text
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            do = "Copy it or compress it again; if it isn't compressed, take .gz off its name"
            raise SynmtError(f"not a complete gzip file ({error})", where=path, do=do) from None


def _refuse_other_formats(stream: Any, where: str, allowed: Collection[str]) -> None:
    """Raise UsageError for a stream that is not plain text, by its first bytes, as far as they have
    arrived."""
    beginning = stream.peek(_BEGINNING)[:_BEGINNING] if hasattr(stream, "peek") else b""
    text = beginning.removeprefix(BOM_UTF8)
    for name, pattern, do in _FORMATS:
        if name not in allowed and re.match(pattern, text, re.DOTALL | re.IGNORECASE):
            raise UsageError(f"this is {name}, not one sentence per line", where=where, do=do)


def count_lines(path: AnyPath, *, allowed: Collection[str] = ANY_FORMAT) -> int:
    """Count the lines of a file as `read_lines` yields them."""
    number = 0
    with open_binary(path, allowed=allowed) as stream:
        for number, raw in enumerate(raw_lines(stream), start=1):
            if len(raw) > LONGEST:
                raise too_long(number, str(path))
    return number


def known_lines(path: AnyPath) -> int | None:
    """Count the lines of a file; None for standard input (even if a file is named `-`) and pipes:
    it consumes them."""
    return count_lines(path) if str(path) != "-" and Path(path).is_file() else None


def sha256(path: AnyPath, *, unpacked: bool = False) -> str:
    """Hash the bytes of a file; `unpacked` decompresses those of `.gz`."""
    with open_binary(path, allowed=ANY_FORMAT) if unpacked else open(path, "rb") as stream:
        digest = hashlib.sha256()
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def fingerprint(*parts: object) -> str:
    """Hash values into 12 hexadecimal digits, for names of results that depend on these values."""
    return hashlib.sha256("\0".join(map(repr, parts)).encode()).hexdigest()[:12]


def stored_sha256(path: Path, *, unpacked: bool = False) -> str:
    """Hash a file as `sha256` does; the hash of a large one is stored until its size or
    modification time changes."""
    unpacked = unpacked and path.suffix == ".gz"
    try:
        state = path.stat()
        if state.st_size < _LARGE:
            return sha256(path, unpacked=unpacked)
    except OSError as error:
        raise SynmtError(f"cannot read the file ({error.strerror})", where=path) from None
    name = fingerprint(
        str(path.resolve()), state.st_size, state.st_mtime_ns, *["unpacked"] * unpacked
    )
    stored = cache_folder() / "hashes" / f"{name}.json"
    # pydantic, which `synmt --help` does not need
    from synmt.files.json_files import read_cached_json

    if known := (read_cached_json(stored, dict[str, str]) or {}).get("sha256"):
        return known
    digest = sha256(path, unpacked=unpacked)
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
    return Path(chosen or default).expanduser()


def offline() -> bool:
    """Return whether `SYNMT_OFFLINE` forbids the network."""
    return os.environ.get("SYNMT_OFFLINE", "") not in ("", "0")
