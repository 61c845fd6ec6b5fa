"""Downloads public files into the cache, over connections that may break: continues what broke off,
checks size and hash, never twice at once."""

from __future__ import annotations

import hashlib
import http.client
import logging
import os
import re
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from synmt import __version__
from synmt.errors import SynmtError
from synmt.files.json_files import read_cached_json
from synmt.files.reading import cache_folder, fingerprint, offline, sha256, stored_sha256
from synmt.files.writing import reporting_os_errors, write_json
from synmt.reporting.progress import progress

_logger = logging.getLogger(__name__)

PAUSES = (1.0, 4.0, 15.0)
"""Seconds before each new attempt after a connection broke; an attempt that got further starts
over."""

TIMEOUT = 60
"""Seconds without any byte."""

_BLOCK = 1 << 20
_BUSY = (408, 425, 429, 500, 502, 503, 504)
"""Status codes of servers that may answer later."""


@dataclass(frozen=True)
class RemoteFile:
    """A public file.

    address: its URL.
    sha256, md5: in hexadecimal digits; empty if unknown. `md5` is for lists that have no SHA-256.
    size: in bytes; 0 if unknown.
    name: what the file is called, if its address ends in a query.
    """

    address: str
    sha256: str = ""
    size: int = 0
    md5: str = ""
    name: str = ""


class _Unavailable(Exception):
    """The server cannot be reached, or does not have the file; the text says which."""


class _Broken(Exception):
    """The connection broke; the next attempt continues."""


def download_all(files: Iterable[RemoteFile], what: str = "") -> list[Path]:
    """Download the files that are missing; returns their local paths.

    what: the name of what they belong to, for the error that lists all that is missing if there is
        no network.
    """
    files = list(files)
    check_network(files, what)
    try:
        return [_local_copy(file) for file in files]
    except _Unavailable as error:
        do = ", or try again: a download continues where it broke off"
        raise SynmtError(_list_missing(str(error), files, what) + do) from None


def check_network(files: Iterable[RemoteFile], what: str = "") -> None:
    """Raise SynmtError that lists all files that are missing if the network is off."""
    if offline() and not all(map(is_there, files)):
        raise SynmtError(
            _list_missing("SYNMT_OFFLINE is set", files, what) + ", or unset SYNMT_OFFLINE"
        )


def local_path(file: RemoteFile) -> Path:
    """Name the place of a file in the cache: `downloads/<host>/<path>`."""
    parts = urllib.parse.urlsplit(file.address)
    segments = [
        part for part in urllib.parse.unquote(parts.path).split("/") if part not in ("", ".", "..")
    ]
    *folders, name = [
        re.sub(r"[^\w.+=-]", "_", part) for part in [parts.netloc or "local", *segments]
    ]
    if parts.query:
        # several files at one path, as on servers that take a number
        name = f"{fingerprint(parts.query)}-{file.name or name}"
    return cache_folder().joinpath("downloads", *folders, name)


def is_there(file: RemoteFile) -> bool:
    """Check whether a file has been downloaded, or was put into its place by hand."""
    return local_path(file).is_file()


def bytes_to_fetch(file: RemoteFile) -> int | None:
    """Return how much of a file is still to be downloaded; None if only the server knows and does
    not say."""
    if is_there(file):
        return 0
    size = file.size or (None if offline() else _size_on_server(_request_address(file.address)))
    return size if size is None else max(size - _size(_partial(local_path(file))), 0)


@contextmanager
def alone(path: Path, doing: str) -> Iterator[None]:
    """Hold a lock, so that one process at a time makes a file or folder; the others wait.

    doing: what the other process does, for the remark while this one waits.
    """
    from filelock import FileLock, Timeout

    with reporting_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f".{path.name}.lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            _logger.info("waiting for another process that %s", doing)
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _local_copy(file: RemoteFile) -> Path:
    path = local_path(file)
    if path.is_file():
        _check(file, path, stored_sha256)
        return path
    with alone(path, f"downloads {file.address}"):
        if not path.is_file():
            _fetch(file, path)
    return path


def _check(file: RemoteFile, path: Path, hashed: Callable[[Path], str]) -> None:
    """Compare a local file with what is known of it."""
    target = local_path(file)
    measures: tuple[tuple[str, int | str, Callable[[], int | str]], ...] = (
        ("{:,} bytes", file.size, lambda: _size(path)),
        ("SHA-256 {}", file.sha256, lambda: hashed(path)),
        ("MD5 {}", file.md5, lambda: _md5(path)),
    )
    for words, expected, measure in measures:
        if expected and (found := measure()) != expected:
            raise SynmtError(
                f"the file has changed: it has {words.format(found)}",
                where=str(path) if path == target else file.address,
                allowed=f"Expected: {words.format(expected)}",
                do=f"Put the original file at {target}",
            )


def _md5(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _request_address(address: str) -> str:
    """Apply `SYNMT_MIRROR`, a copy of the public servers by host name: it replaces `http://` of
    every address."""
    mirror = os.environ.get("SYNMT_MIRROR")
    if not mirror:
        return address
    if "://" not in mirror:
        mirror = Path(mirror).expanduser().resolve().as_uri()
    return f"{mirror.rstrip('/')}/{address.partition('://')[2]}"


def _list_missing(reason: str, files: Iterable[RemoteFile], what: str) -> str:
    """List the files that are missing with the places that they can be put into by hand, a line
    each."""
    places = [
        f"  {_request_address(file.address)}\n    -> {local_path(file)}"
        for file in files
        if not is_there(file)
    ]
    noun, them = ("file", "it") if len(places) == 1 else ("files", "them")
    belonging = f" of {what}" if what else ""
    return (
        f"{len(places)} {noun}{belonging} cannot be downloaded ({reason}):\n"
        + "\n".join(places)
        + f"\nPut {them} there by hand"
    )


# one file; its beginning has the ending `.partial` until the rest is there


class _Note(TypedDict, total=False):
    """What a server calls the version of a file of which the beginning is here, and the size of the
    whole."""

    version: str
    size: int | None


def _fetch(file: RemoteFile, path: Path) -> None:
    """Download a file; raises _Unavailable, or SynmtError for something else than the file.

    What has arrived stays for the next time, with the version of the file beside it.
    """
    address, partial = _request_address(file.address), _partial(path)
    furthest, attempts = _size(partial), 0
    while not furthest or furthest != _note(partial).get("size"):
        try:
            _attempt(partial, address, file.size)
            break
        except _Broken as error:
            attempts = 1 if _size(partial) > furthest else attempts + 1
            furthest = max(furthest, _size(partial))
            if attempts > len(PAUSES):
                raise _Unavailable(f"{address}: {error}") from None
            time.sleep(PAUSES[attempts - 1])
    try:
        _check(file, partial, sha256)
    except SynmtError:
        # what is wrong does not become right by continuing
        _forget(partial)
        raise
    with reporting_os_errors(path):
        os.replace(partial, path)
    _forget(partial)
    _logger.info("downloaded %s", path)


def _attempt(partial: Path, address: str, size: int) -> None:
    with _answer(partial, address) as response:
        done, total = _start_of(response, partial)
        if _is_web_page(address, response.headers):
            raise _refused(
                partial, address, "the address answers with a web page, not with the file"
            )
        if size and total and total != size:
            what = f"the file has changed: it has {total:,} bytes instead of {size:,}"
            raise _refused(partial, address, what)
        _check_room(partial, (total or size) - done)
        # without the name of the version a download cannot be continued
        tag = response.headers.get("ETag", "")
        if not tag or tag.startswith("W/"):
            tag = response.headers.get("Last-Modified", "")
        write_json(_note_path(partial), {"version": tag, "size": total})
        done = _copy(response, partial, done, total or size)
    if total and done < total:
        raise _Broken(f"the connection broke after {done:,} of {total:,} bytes")


def _copy(response: Any, partial: Path, done: int, total: int) -> int:
    """Append what arrives to the first `done` bytes; returns how many bytes there are then."""
    megabyte = 1e6
    with (
        progress(f"download {partial.stem}", total / megabyte or None, "MB") as advance,
        reporting_os_errors(partial),
        open(partial, "ab" if done else "wb") as stream,
    ):
        advance(done / megabyte)
        while True:
            try:
                block = response.read(_BLOCK)
            except (OSError, http.client.HTTPException) as error:
                raise _Broken(_reason(error)) from None
            if not block:
                break
            stream.write(block)
            done += len(block)
            advance(len(block) / megabyte)
        os.fsync(stream.fileno())
    return done


def _answer(partial: Path, address: str) -> Any:
    """Ask for the file, or for the rest of it if the version of its beginning is known."""
    there, version = _size(partial), _note(partial).get("version")
    headers = {"Range": f"bytes={there}-", "If-Range": version} if there and version else {}
    try:
        return _open(address, headers)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and there:
            # what is there is not a beginning of the file that the server has now
            _forget(partial)
            raise _Broken("the server does not have the rest of the file") from None
        what = f"the server answers {error.code} {error.reason}"
        if error.code in _BUSY:
            raise _Broken(what) from None
        raise _Unavailable(f"{address}: {what}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        # without a network nothing changes in a few seconds, unless it was there a moment ago
        if there or isinstance(reason, ConnectionResetError | http.client.HTTPException):
            raise _Broken(_reason(reason)) from None
        raise _Unavailable(f"{address}: {_reason(reason)}") from None


def _open(address: str, headers: dict[str, str], method: str = "GET") -> Any:
    name = {"User-Agent": f"synmt/{__version__}"}
    request = urllib.request.Request(address, headers=name | headers, method=method)
    return urllib.request.urlopen(request, timeout=TIMEOUT)


def _size_on_server(address: str) -> int | None:
    """Ask a server for the size of a file in bytes; None if it does not say."""
    with (
        suppress(OSError, http.client.HTTPException, ValueError),
        _open(address, {}, method="HEAD") as response,
    ):
        length = response.headers.get("Content-Length")
        return int(length) if length and not _is_web_page(address, response.headers) else None
    return None


def _start_of(response: Any, partial: Path) -> tuple[int, int]:
    """Return the byte at which the answer starts, and how many the whole file has (0 if the server
    does not say)."""
    length = response.headers.get("Content-Length", "")
    rest = int(length) if length.isdigit() else 0
    if getattr(response, "status", None) != 206:
        return 0, rest
    # bytes 100-199/200
    span, _, total = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    there = _size(partial)
    if span.partition("-")[0] != str(there):
        _forget(partial)
        raise _Broken("the server answers with another part of the file")
    return there, int(total) if total.isdigit() else rest and there + rest


def _reason(error: object) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _is_web_page(address: str, headers: Any) -> bool:
    return headers.get_content_type() == "text/html" and not address.endswith((".html", ".htm"))


def _refused(partial: Path, address: str, what: str) -> SynmtError:
    return SynmtError(what, where=address, do=f"Put the file at {partial.with_suffix('')}")


def _check_room(partial: Path, needed: int) -> None:
    free = shutil.disk_usage(partial.parent).free
    if needed > free:
        raise SynmtError(
            f"the disk is too full: the download needs {needed / 1e9:,.1f} GB more, and "
            f"{free / 1e9:,.1f} GB are free",
            where=str(partial),
            do="Make room, or set SYNMT_CACHE to a folder on another disk, and run the same "
            "command again",
        )


def _size(path: Path) -> int:
    """Return the bytes of a file; 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")


def _note_path(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.json")


def _note(partial: Path) -> _Note:
    return read_cached_json(_note_path(partial), _Note) or {}


def _forget(partial: Path) -> None:
    """Remove the beginning of a file, and the note on its version."""
    for path in (partial, _note_path(partial)):
        path.unlink(missing_ok=True)
