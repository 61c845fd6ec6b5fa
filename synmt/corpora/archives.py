"""Reads files inside archives as streams; nothing is unpacked to disk under a name that the archive
chose."""

from __future__ import annotations

import bz2
import fnmatch
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from synmt.arrays import Strings
from synmt.errors import SynmtError, listed

_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, OSError)
"""What the standard library raises for damaged archives; gzip and bz2 raise an OSError."""

_WHEN_OPENED = (RuntimeError, ValueError, LookupError, ArithmeticError, struct.error)
"""What it raises in addition when it opens an archive that is encrypted, or packed in a way that it
cannot read."""

_PACKED = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", lzma.open))
_ZIP = b"PK\x03\x04"


@dataclass(frozen=True)
class Packed:
    """A text inside a file.

    files: the local file, or the parts of one that was split (`.00`, `.01`, …), in order.
    names: the way in: the name inside the archive, then the name inside the archive of that name,
        and so on; each may be a pattern with `*`, for the first file that matches. Without names,
        the file itself is the text.

    Compression is found by the first bytes, at each level: gz, bz2, xz.
    """

    files: tuple[Path, ...]
    names: Strings = ()

    @property
    def label(self) -> str:
        """Where the text is, for messages."""
        return ", ".join([str(self.files[0]), *self.names])

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the text as a stream of bytes; raises SynmtError if the archive is damaged or
        lacks it."""
        with reporting_damage(self), ExitStack() as stack:
            with reporting_damage(self, _WHEN_OPENED):
                stream = _unpacked(stack, _raw(stack, self.files))
                for name in self.names:
                    stream = _unpacked(stack, _inside(stack, stream, name, self))
            yield cast(BinaryIO, stream)


@contextmanager
def reporting_damage(text: Packed, more: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn what a damaged archive raises while it is read into a SynmtError that says what to do.

    more: exceptions that only damage can raise here.
    """
    try:
        yield
    except (*_DAMAGE, *more) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise SynmtError(
            f"the file is damaged ({error or type(error).__name__})",
            where=text.label,
            do=f"Remove {text.files[0]}; it is downloaded again by the same command",
        ) from error


def _raw(stack: ExitStack, files: Sequence[Path]) -> Any:
    """Open a file, or the parts of one that was split."""
    streams = [stack.enter_context(open(file, "rb")) for file in files]  # noqa: SIM115
    if len(streams) == 1:
        return streams[0]
    return io.BufferedReader(_Forward(*streams), 1 << 20)


class _Forward(io.RawIOBase):
    """Streams that are read one after the other, and only forward.

    tarfile calls a file of an archive seekable, and then cannot seek.
    """

    def __init__(self, *streams: Any) -> None:
        self._streams = streams

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        for stream in self._streams:
            if block := stream.read(len(buffer)):
                buffer[: len(block)] = block
                return len(block)
        return 0


def _unpacked(stack: ExitStack, stream: Any) -> io.BufferedReader:
    """Decompress a stream if its first bytes say that it is compressed."""
    stream = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream, 1 << 16)
    start = stream.peek(6)[:6]
    for magic, opened in _PACKED:
        if start.startswith(magic):
            return stack.enter_context(io.BufferedReader(cast(Any, opened(stream, "rb")), 1 << 16))
    return stream


def _inside(stack: ExitStack, stream: io.BufferedReader, name: str, packed: Packed) -> Any:
    """Open a file of an archive."""
    others: list[str] = []
    for member, opened in _members(stack, stream):
        if member == name or fnmatch.fnmatchcase(member, name):
            return opened()
        others.append(member)
    raise SynmtError(
        f"the archive has no file {name}",
        where=packed.files[0],
        allowed=f"It has {listed(others, 10)}",
        do=f"If it is not the right file, remove {packed.files[0]}",
    )


def _members(stack: ExitStack, stream: io.BufferedReader) -> Iterator[tuple[str, Any]]:
    """Yield the name of each file of an archive, without `./`, and a function that opens it; links
    are left out.

    The function must be called before the next name is read.
    """
    if stream.peek(4)[:4] == _ZIP:
        yield from _of_zip(stack, stream)
        return
    archive = stack.enter_context(tarfile.open(fileobj=stream, mode="r|"))  # noqa: SIM115
    for member in archive:
        if member.isfile():
            yield (
                str(PurePosixPath(member.name)),
                lambda member=member: _Forward(archive.extractfile(member)),
            )


def _of_zip(stack: ExitStack, stream: io.BufferedReader) -> Iterator[tuple[str, Any]]:
    if not stream.seekable():
        # the table of a zip file is at its end; only small archives are inside others
        stream = cast(Any, io.BytesIO(stream.read()))
    archive = stack.enter_context(zipfile.ZipFile(stream))
    for member in archive.infolist():
        is_link = member.external_attr >> 28 == 0o12
        if not member.is_dir() and not is_link:
            yield (
                str(PurePosixPath(member.filename)),
                lambda member=member: stack.enter_context(archive.open(member)),
            )
