"""Reads text line by line, writes files that appear only when complete, and hashes them."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import shutil
import sys
import tempfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO

from synmt.errors import SynmtError, not_utf8

# filelock and platformdirs are imported inside functions, because `synmt --help` needs neither

Packer = Callable[[IO[bytes]], contextlib.AbstractContextManager[IO[bytes]]]

_LARGE = 32 << 20
"""Bytes. Hashing a smaller file takes less time than finding its stored hash."""


def read_lines(path: str | Path) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 text, without their `\n`; `-` is standard input, `.gz` is decompressed.

    Lines end only at `\n`: U+2028 and `\x85` are ordinary characters. A byte order mark at the start is dropped.
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
        yield line[:-1] if line.endswith("\n") else line


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
            raise SynmtError(f"not a complete gzip file ({error})", where=str(path)) from None


def count_lines(path: str | Path) -> int:
    """Count the lines of a text as `read_lines` yields them."""
    with open_binary(path) as stream:
        return sum(1 for _ in stream)


@contextlib.contextmanager
def write_atomically(path: str | Path, *, binary: bool = False, pack: Packer | None = None) -> Iterator[IO]:
    r"""Open a file that gets its name only if the block ends without an error (write, fsync, rename).

    Text is UTF-8 with `\n` line ends; `.gz` is compressed, without a time stamp. A symbolic link stays, and its target
    is replaced. A pipe, a device and `/dev/stdout` are written directly.

    pack: compresses into `.gz`, in place of the gzip module.
    """
    path = Path(path)
    packed: Any = pack or (lambda raw: gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
    with _opened(path) as raw, (packed if path.suffix == ".gz" else contextlib.nullcontext)(raw) as target:
        text = None if binary else io.TextIOWrapper(target, encoding="utf-8", newline="\n")  # type: ignore[arg-type]
        yield text or target
        if text:
            text.detach()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if is_stream(path):
        # a stream that is open keeps its place in a file, to which a shell appends, or other commands write next
        own = {"/dev/stdout": "1", "/dev/stderr": "2"}.get(str(path), path.name * (str(path.parent) == "/dev/fd"))
        # a number of more digits is that of no stream, and too large for `dup`
        numbered = own.isdecimal() and len(own) < 10
        do = "Choose another output"
        with reporting_os_errors(path, do=do), open(os.dup(int(own)) if numbered else path, "wb") as raw:
            yield raw
        return
    path = Path(os.path.realpath(path))
    with reporting_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as raw:
                yield raw
                raw.flush()
                os.fsync(raw.fileno())
            set_usual_mode(temporary)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def is_stream(path: Path) -> bool:
    """Tell whether a path names a pipe, a device or an open stream, which are written as they are."""
    return str(path.parent) in ("/dev", "/dev/fd") or (path.exists() and not (path.is_file() or path.is_dir()))


def write_json(path: Path, values: Any, **options: Any) -> None:
    """Write plain data atomically, with the options of `json.dumps`."""
    with write_atomically(path) as stream:
        stream.write(json.dumps(values, **options) + "\n")


@contextlib.contextmanager
def write_folder_atomically(path: str | Path) -> Iterator[Path]:
    """Provide a folder to fill. It replaces an older one, or the one behind a link, if the block ends without error."""
    path = Path(os.path.realpath(path))
    with reporting_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            yield temporary
            for file in filter(Path.is_file, temporary.rglob("*")):
                sync(file)
            set_usual_mode(temporary)
            if path.exists():
                shutil.rmtree(path)
            os.replace(temporary, path)
            sync(path.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


@contextlib.contextmanager
def reporting_os_errors(
    path: str | Path, *, do: str = "Make room or choose another folder, and run the same command again"
) -> Iterator[None]:
    """Turn operating system errors, such as a full disk, into a SynmtError that names the path."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.strerror is None:
            raise
        raise SynmtError(f"cannot write: {error.strerror}", where=str(path), do=do) from error


@contextlib.contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Make a folder and lock it against other processes; raises SynmtError if one has locked it already."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / "lock", timeout=0)
    try:
        with reporting_os_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
    except Timeout:
        raise SynmtError(f"another process is writing {what}", where=str(folder), do="Wait for it to end") from None
    try:
        yield
    finally:
        lock.release()


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_usual_mode(path: str | Path) -> None:
    """Give a file or folder the permissions of any new one; temporary ones are readable by their owner only."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, (0o777 if os.path.isdir(path) else 0o666) & ~mask)


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
    import platformdirs

    chosen = os.environ.get("SYNMT_CACHE")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("synmt", appauthor=False))


def offline() -> bool:
    """Tell whether `SYNMT_OFFLINE` forbids the network."""
    return os.environ.get("SYNMT_OFFLINE", "") not in ("", "0")
