"""Files that are read line by line and appear only when they are complete."""

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

from synmt.errors import SynmtError

# filelock and platformdirs are imported where they are used: `synmt --help` needs neither

# a smaller file is hashed faster than its stored hash is found
_LARGE = 32 << 20


def read_lines(path: str | Path) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 text, without their `\n`; `-` is standard input, `.gz` is unpacked.

    Lines end at `\n` and nowhere else: U+2028 and `\x85` are characters of a line. A byte order mark at the
    start of the text is dropped.
    """
    with open_binary(path) as stream:
        yield from decode_lines(stream, where=str(path) if str(path) != "-" else "standard input")


def decode_lines(stream: Iterable[bytes], *, where: str) -> Iterator[str]:
    """Decode raw lines; a line that is not UTF-8 raises a SynmtError that names it."""
    for number, raw in enumerate(stream, start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise SynmtError(
                f"line {number} is not UTF-8 (byte {error.start + 1} of the line is 0x{raw[error.start]:02x})",
                where=where,
                do="Convert the file, for example with `iconv -f latin1 -t utf-8`",
            ) from None
        except EOFError as error:
            raise SynmtError(f"the file ends too early: {error}", where=where) from None
        yield line[:-1] if line.endswith("\n") else line


def read_available_lines(stream: BinaryIO, size: int, *, where: str) -> Iterator[list[str]]:
    """Group the lines of a stream as they come in, without waiting for more: at most `size` at once."""
    waiting: deque[bytes] = deque()
    lines = decode_lines(iter(waiting.popleft, None), where=where)
    rest = b""
    # read1 gives what is there; a plain file has no such method, and never lets one wait
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
    """Open a file for reading bytes; `-` is standard input, `.gz` is unpacked."""
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
        except IsADirectoryError:
            raise SynmtError("is a folder, a file was expected", where=str(path)) from None


def count_lines(path: str | Path) -> int:
    """Count the lines of a text as `read_lines` yields them."""
    with open_binary(path) as stream:
        return sum(1 for _ in stream)


@contextlib.contextmanager
def write_atomically(path: str | Path, *, binary: bool = False) -> Iterator[IO]:
    r"""Open a file that takes its name only when the block ends without an error (write, fsync, rename).

    Text is UTF-8 with `\n` line ends; a name that ends in `.gz` is packed, without a time stamp. A link stays one, and
    what it leads to is replaced; a pipe or a device is written as it comes.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not (path.is_file() or path.is_dir()):
        with reporting_os_errors(path), open(path, "wb") as raw, _written(raw, path, binary=binary) as stream:
            yield stream
        return
    with reporting_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with reporting_os_errors(path):
            with os.fdopen(handle, "wb") as raw:
                with _written(raw, path, binary=binary) as stream:
                    yield stream
                raw.flush()
                os.fsync(raw.fileno())
            set_usual_mode(temporary)
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def _written(raw: BinaryIO, path: Path, *, binary: bool) -> Iterator[IO]:
    """Give what writes into a file as its name and the caller ask: packed, as text."""
    packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else None
    target: Any = packed or raw
    text = None if binary else io.TextIOWrapper(target, encoding="utf-8", newline="\n")
    yield text or target
    if text:
        text.detach()
    if packed:
        packed.close()


@contextlib.contextmanager
def write_folder_atomically(path: str | Path) -> Iterator[Path]:
    """Give a folder to fill; it takes its name (replacing an older one) only when the block ends well."""
    path = Path(path)
    with reporting_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        with reporting_os_errors(path):
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    sync(file)
            os.chmod(temporary, 0o777 & ~_umask())
            if path.exists():
                shutil.rmtree(path)
            os.replace(temporary, path)
            sync(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextlib.contextmanager
def reporting_os_errors(path: str | Path) -> Iterator[None]:
    """Turn a full disk, a read-only folder and their like into a SynmtError that names the path."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.strerror is None:
            raise
        raise SynmtError(
            f"cannot write: {error.strerror}",
            where=str(path),
            do="Make room or choose another folder, and run the same command again",
        ) from error


@contextlib.contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Keep other processes out of a folder; raises SynmtError where one is already working in it."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / "lock", timeout=0)
    try:
        with reporting_os_errors(folder):
            lock.acquire()
    except Timeout:
        raise SynmtError(f"another process is writing {what}", where=str(folder), do="Wait for it to end") from None
    try:
        yield
    finally:
        lock.release()


def sync(path: Path) -> None:
    """Make sure that a file or a folder's listing is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_usual_mode(path: str | Path) -> None:
    """Give a file the mode of any new one: temporary files can be read by their owner alone."""
    os.chmod(path, 0o666 & ~_umask())


def sha256(path: str | Path) -> str:
    """Hash a file's bytes as they lie on disk."""
    with open(path, "rb") as stream:
        digest = hashlib.sha256()
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def fingerprint(*parts: object) -> str:
    """Hash a few values into 12 hexadecimal digits that name what was made from them."""
    return hashlib.sha256("\0".join(map(repr, parts)).encode()).hexdigest()[:12]


def stored_sha256(path: Path) -> str:
    """Hash a file; a large one is read again only when its size or its time has changed."""
    try:
        state = path.stat()
        if state.st_size < _LARGE:
            return sha256(path)
    except OSError as error:
        raise SynmtError(f"cannot read the file ({error.strerror})", where=str(path)) from None
    name = fingerprint(str(path.resolve()), state.st_size, state.st_mtime_ns)
    memory = cache_folder() / "hashes" / f"{name}.json"
    with contextlib.suppress(OSError, ValueError, KeyError):
        return json.loads(memory.read_text())["sha256"]
    found = sha256(path)
    # a cache that cannot be written to costs time only
    with contextlib.suppress(SynmtError), write_atomically(memory) as stream:
        json.dump({"sha256": found}, stream)
    return found


def cache_folder() -> Path:
    """Find the cache: `SYNMT_CACHE`, else the platform's own place."""
    import platformdirs

    given = os.environ.get("SYNMT_CACHE")
    return Path(given).expanduser() if given else Path(platformdirs.user_cache_dir("synmt", appauthor=False))


def offline() -> bool:
    """Tell whether `SYNMT_OFFLINE` forbids the network."""
    return os.environ.get("SYNMT_OFFLINE", "") not in ("", "0")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
