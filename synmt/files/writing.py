"""Writes files that appear only when complete and standard streams, and locks folders."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import shutil
import sys
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from synmt.errors import SynmtError

AnyPath = str | Path
"""A path as a program may give it."""
UNFINISHED = ".unfinished"
"""The end of the names of temporary files and folders, which begin with a dot and the name of the
finished one."""


@contextlib.contextmanager
def write_atomically(
    path: AnyPath, *, binary: bool = False, packed: bool = False, follow: bool = False
) -> Iterator[IO]:
    r"""Open a file that gets its name only if the block ends without an error (write, fsync,
    rename).

    Text is UTF-8 with `\n` line ends; `.gz` is compressed, without a time stamp. A symbolic link is
    replaced: in a run of somebody else it may lead to any file. A pipe, a device and `/dev/stdout`
    are written directly.

    packed: what is written for `.gz` is compressed already.
    follow: write what a link leads to.
    """
    path = Path(path)
    place = Path(os.path.realpath(path)) if follow and not is_stream(path) else path
    with _opened(place) as raw, _compressed(raw, path, packed=packed) as target:
        if binary:
            yield target
        else:
            text = io.TextIOWrapper(target, encoding="utf-8", newline="\n")  # type: ignore[arg-type]
            yield text
            text.detach()


def write_content(path: Path, content: str | bytes) -> None:
    """Write a whole file as `write_atomically` does."""
    with write_atomically(path, binary=isinstance(content, bytes)) as stream:
        stream.write(content)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as `write_atomically` does."""
    with write_atomically(path) as stream:
        stream.writelines(f"{line}\n" for line in lines)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file as `write_atomically` writes."""
    with write_atomically(target, binary=True) as out, open(source, "rb") as stream:
        shutil.copyfileobj(stream, out)


def write_output(path: Path | None) -> contextlib.AbstractContextManager[IO[str]]:
    """Open the output of a command as `write_atomically` does, but behind a symbolic link; None is
    standard output."""
    if path is None:
        return contextlib.nullcontext(sys.stdout)
    return write_atomically(path, follow=True)


def without_link(path: Path) -> Path:
    """Remove a symbolic link in the place of a file that is written piece by piece: in a run of
    somebody else it may lead to any file."""
    if path.is_symlink():
        path.unlink()
    return path


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with reporting_os_errors(path):
        if is_stream(path):
            # what a shell has written to it before stays
            with open(path, "ab") as raw:
                yield raw
            return
        with _replacing(path) as temporary, open(temporary, "xb") as raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Name a temporary file or folder, which takes the place of another one, or of a link, if the
    block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{UNFINISHED}")
    try:
        yield temporary
        if temporary.is_dir():
            remove(path)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError, SynmtError):
            remove(temporary)
        raise


def _compressed(
    raw: BinaryIO, path: Path, *, packed: bool
) -> contextlib.AbstractContextManager[IO[bytes]]:
    if packed or path.suffix != ".gz":
        return contextlib.nullcontext(raw)
    # without a name and a time, so that the same content makes the same bytes
    return gzip.GzipFile("", "wb", fileobj=raw, mtime=0)  # type: ignore[return-value]


def is_stream(path: Path) -> bool:
    """Return whether a path names a pipe, a device or an open stream, which are written as they
    are."""
    return str(path.parent) in ("/dev", "/dev/fd") or (
        path.exists() and not (path.is_file() or path.is_dir())
    )


def write_json(path: Path, values: Any, **options: Any) -> None:
    """Write plain data atomically, with the options of `json.dumps`."""
    write_content(path, json.dumps(values, **options) + "\n")


@contextlib.contextmanager
def write_folder_atomically(path: AnyPath) -> Iterator[Path]:
    """Provide a folder to fill. It replaces an older one, or a link, if the block ends without
    error."""
    path = Path(path)
    with reporting_os_errors(path):
        with _replacing(path) as temporary:
            temporary.mkdir()
            yield temporary
            for file in filter(Path.is_file, temporary.rglob("*")):
                sync(file)
        sync(path.parent)


def remove(path: Path) -> None:
    """Remove a file or a folder if it is there; of a link, what it leads to stays."""
    with reporting_os_errors(path):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def reporting_os_errors(path: AnyPath) -> Iterator[None]:
    """Turn operating system errors, such as a full disk, into a SynmtError that names the path."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.strerror is None:
            raise
        raise SynmtError(
            f"cannot write: {error.strerror}",
            where=path,
            do="Make room or choose another folder, and run the same command again",
        ) from error


@contextlib.contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Make a folder, and lock it against other processes; raises SynmtError if one has locked
    it."""
    # `synmt --help` does not need it
    from filelock import FileLock, Timeout

    lock = FileLock(without_link(folder / "lock"), timeout=0)
    try:
        with reporting_os_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
    except Timeout:
        raise SynmtError(
            f"another process is writing {what}", where=folder, do="Wait for it to end"
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock, so that one process at a time makes a file or folder; the others wait."""
    # `synmt --help` does not need it
    from filelock import FileLock

    with reporting_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f".{path.name}.lock")).acquire()
    with lock:
        yield


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk; Windows does so with neither."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_streams() -> None:
    """Prepare the standard streams: UTF-8 with plain line ends. A closed input is empty; to write
    to a closed output raises OSError."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            setattr(sys, name, os.fdopen(handle, mode))
    # the name of a file may be no UTF-8
    for stream, errors in ((sys.stdin, "strict"), (sys.stdout, "surrogateescape")):
        stream.reconfigure(encoding="utf-8", newline="\n", errors=errors)  # type: ignore[union-attr]


def discard_unwritten() -> None:
    """Drop what the streams do not take: Python would try again at exit, report an error, and exit
    with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
