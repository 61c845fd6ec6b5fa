"""Writes files that appear only when complete and standard streams, and locks folders.

Lost output is an error, a lost message is not.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from glob import escape
from pathlib import Path
from typing import IO, Any, BinaryIO

from synmt.errors import SynmtError, UsageError
from synmt.files.links import in_place, is_own, own_folder, place_of, remove

UNFINISHED = ".unfinished"
"""The end of the names of temporary files and folders, which begin with a dot and the name of the
finished one."""

# where a file that a process has open can neither be renamed nor removed, and needs no lock
_WINDOWS = os.name == "nt"
_logger = logging.getLogger(__name__)

Packer = Callable[[IO[bytes]], contextlib.AbstractContextManager[IO[bytes]]]


@contextlib.contextmanager
def write_atomically(
    path: str | Path, *, binary: bool = False, pack: Packer | None = None, keep: bool = False
) -> Iterator[IO]:
    r"""Open a file that gets its name only if the block ends without an error (write, fsync,
    rename).

    Text is UTF-8 with `\n` line ends; `.gz` is compressed, without a time stamp. A symbolic link
    stays, and its target is replaced, but not in a folder that synmt makes. A pipe, a device and
    `/dev/stdout` are written directly.

    pack: compresses into `.gz`, in place of the gzip module.
    keep: what an error interrupts stays, under another name, until the file is complete.
    """
    path = Path(path)
    opened = (
        _open_stream(path)
        if is_stream(path) and not is_own(path)
        else _replace_file(path, keep=keep)
    )
    with opened as raw, _compressed(raw, path, pack) as target:
        if binary:
            yield target
        else:
            text = io.TextIOWrapper(target, encoding="utf-8", newline="\n")  # type: ignore[arg-type]
            try:
                yield text
            except BaseException:
                if keep:
                    with contextlib.suppress(OSError):
                        text.flush()
                raise
            text.detach()


def write_output(
    path: Path | None, *, pack: Packer | None = None, keep: bool = False
) -> contextlib.AbstractContextManager[IO[str]]:
    """Open the output of a command as `write_atomically` does, with the same options; None is
    standard output.

    What killed commands left of the same output is removed.
    """
    if path is None:
        return contextlib.nullcontext(sys.stdout)
    if not is_stream(path):
        _remove_abandoned(place_of(path))
    return write_atomically(path, pack=pack, keep=keep)


@contextlib.contextmanager
def _open_stream(path: Path) -> Iterator[BinaryIO]:
    with reporting_os_errors(path, do="Choose another output"):
        number = {"/dev/stdout": 1, "/dev/stderr": 2}.get(str(path))
        # a number of more digits is that of no stream, and too large for `dup`
        if str(path.parent) == "/dev/fd" and path.name.isdecimal() and len(path.name) < 10:
            number = int(path.name)
        # a stream that is open keeps its place in a file, to which a shell appends, or other
        # commands write next
        with open(path if number is None else os.dup(number), "wb") as raw:
            yield raw


@contextlib.contextmanager
def _replace_file(path: Path, *, keep: bool) -> Iterator[BinaryIO]:
    path = place_of(path)
    # gunzip wants the ending
    kept = (
        path.with_suffix(f"{UNFINISHED}.gz")
        if path.suffix == ".gz"
        else Path(f"{path}{UNFINISHED}")
    )
    with reporting_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = _make_unfinished(path)
        try:
            with os.fdopen(handle, "wb") as raw:
                yield raw
                raw.flush()
                os.fsync(raw.fileno())
                set_usual_mode(temporary)
                # elsewhere, it stays locked until it has its name
                if _WINDOWS:
                    raw.close()
                os.replace(temporary, path)
            if keep:
                with contextlib.suppress(OSError):
                    kept.unlink()
        except BaseException:
            with contextlib.suppress(OSError):
                # a gzip file of nothing has 20 bytes
                if keep and os.path.getsize(temporary) > (20 if path.suffix == ".gz" else 0):
                    _keep(Path(temporary), kept)
                os.unlink(temporary)
            raise


def _keep(temporary: Path, kept: Path) -> None:
    """Keep what is finished, unless an earlier command has finished more."""
    if not kept.exists() or kept.stat().st_size <= temporary.stat().st_size:
        set_usual_mode(temporary)
        os.replace(temporary, kept)
    _logger.warning("the output is not complete: what is finished is in %s", kept)


def _make_unfinished(path: Path) -> tuple[int, str]:
    """Make an empty file next to `path`, locked as long as it is open, so that no other process
    thinks it abandoned."""
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=UNFINISHED, dir=path.parent)
        _lock(handle, wait=True)
        # another process may have removed it before it was locked
        if os.fstat(handle).st_nlink:
            return handle, name
        os.close(handle)


def _remove_abandoned(path: Path) -> None:
    """Remove unfinished files of `path` that no process has open."""
    for left in path.parent.glob(f".{escape(path.name)}.*{UNFINISHED}"):
        with (
            contextlib.suppress(OSError),
            contextlib.nullcontext() if _WINDOWS else open(left, "rb+") as stream,
        ):
            if stream is None or _lock(stream.fileno(), wait=False):
                left.unlink()


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock an open file; False if another process has locked it, and where the disk has no
    locks."""
    with contextlib.suppress(OSError, ImportError):
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _compressed(
    raw: BinaryIO, path: Path, pack: Packer | None
) -> contextlib.AbstractContextManager[IO[bytes]]:
    if path.suffix != ".gz":
        return contextlib.nullcontext(raw)
    # without a name and a time, so that the same content makes the same bytes
    return pack(raw) if pack else gzip.GzipFile("", "wb", fileobj=raw, mtime=0)  # type: ignore[return-value]


def wrong_compression(path: Path) -> UsageError | None:
    """Make the error for an output whose name promises another compression than gzip's, the only
    one synmt reads."""
    if path.suffix not in (".xz", ".bz2", ".zst", ".zip"):
        return None
    return UsageError(
        "outputs are compressed with gzip only", where=str(path), do="Let the name end in .gz"
    )


def is_stream(path: Path) -> bool:
    """Return whether a path names a pipe, a device or an open stream, which are written as they
    are."""
    return str(path.parent) in ("/dev", "/dev/fd") or (
        path.exists() and not (path.is_file() or path.is_dir())
    )


def write_json(path: Path, values: Any, **options: Any) -> None:
    """Write plain data atomically, with the options of `json.dumps`."""
    with write_atomically(path) as stream:
        stream.write(json.dumps(values, **options) + "\n")


@contextlib.contextmanager
def write_folder_atomically(path: str | Path) -> Iterator[Path]:
    """Provide a folder to fill. It replaces an older one, or the one behind a link, if the block
    ends without error."""
    path = place_of(Path(path))
    with reporting_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(
            tempfile.mkdtemp(prefix=f".{path.name}.", suffix=UNFINISHED, dir=path.parent)
        )
        try:
            yield temporary
            for file in filter(Path.is_file, temporary.rglob("*")):
                sync(file)
            set_usual_mode(temporary)
            remove(path)
            os.replace(temporary, path)
            sync(path.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


@contextlib.contextmanager
def reporting_os_errors(path: str | Path, *, do: str = "") -> Iterator[None]:
    """Turn operating system errors, such as a full disk, into a SynmtError that names the path.

    do: what to do; by default, it depends on the error.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.strerror is None:
            raise
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        do = (
            do
            or f"{'Make room or choose' if full else 'Choose'} another folder, and run the same "
            "command again"
        )
        raise SynmtError(f"cannot write: {error.strerror}", where=str(path), do=do) from error


@contextlib.contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Make a folder of synmt's own, and lock it against other processes; raises SynmtError if one
    has locked it."""
    # `synmt --help` does not need it
    from filelock import FileLock, Timeout

    lock = FileLock(in_place(own_folder(folder) / "lock"), timeout=0)
    try:
        with reporting_os_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
    except Timeout:
        raise SynmtError(
            f"another process is writing {what}", where=str(folder), do="Wait for it to end"
        ) from None
    try:
        yield
    finally:
        lock.release()


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk; Windows does so with neither."""
    if _WINDOWS:
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_usual_mode(path: str | Path) -> None:
    """Give a file or folder the permissions of any new one; temporary ones are readable by their
    owner only."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, (0o777 if os.path.isdir(path) else 0o666) & ~mask)


def open_streams() -> None:
    """Prepare the standard streams; writing to a standard output that is closed then raises
    OSError.

    Python has None for a closed stream. A file that is opened later must not get its number, and
    with it what libraries and other processes print.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            os.set_inheritable(handle, True)
            # `open_binary` reports a closed standard input
            if name != "stdin":
                setattr(sys, name, os.fdopen(handle, "w"))
    try:
        # nohup lets a command have an input that cannot be read
        os.read(0, 0)
    except OSError:
        sys.stdin = None
    for stream in (sys.stdin, sys.stdout):
        # the name of a file may be no UTF-8
        errors = "surrogateescape" if stream is sys.stdout else "strict"
        if stream is not None:
            stream.reconfigure(encoding="utf-8", newline="\n", errors=errors)  # type: ignore[union-attr]
    if sys.stderr is sys.__stderr__:
        raw = io.BufferedWriter(_Messages(2, "w", closefd=False))
        sys.stderr = io.TextIOWrapper(
            raw, sys.stderr.encoding, sys.stderr.errors, line_buffering=True
        )


class _Messages(io.FileIO):
    """Standard error: a full disk does not stop the command, but a closed pipe does."""

    def write(self, data: Any, /) -> int | None:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return len(data)


def discard_unwritten() -> None:
    """Drop what the streams do not take: Python would try again at exit, report an error, and exit
    with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
