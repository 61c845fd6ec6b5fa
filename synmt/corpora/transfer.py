"""Copies a remote file to disk, over a connection that may break."""

from __future__ import annotations

import http.client
import os
import shutil
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from synmt import __version__
from synmt.errors import SynmtError
from synmt.files.json_files import read_cached_json
from synmt.files.links import in_place
from synmt.files.writing import reporting_os_errors, write_json
from synmt.reporting.progress import progress

PAUSES = (1.0, 4.0, 15.0)
"""Seconds before each new attempt after a connection broke; an attempt that got further starts
over."""

TIMEOUT = 60
"""Seconds without any byte."""

_BLOCK = 1 << 20
_BUSY = (408, 425, 429, 500, 502, 503, 504)
"""Status codes of servers that may answer later."""


class Unavailable(Exception):
    """The server cannot be reached, or does not have the file; the text says which."""


class NotTheFile(Exception):
    """The server answers with something else than the file."""


class _Broken(Exception):
    """The connection broke; the next attempt continues."""


class _Version(TypedDict, total=False):
    """What a server calls the version of a file of which the beginning is here, and the size of the
    whole."""

    version: str
    size: int | None


def partial_of(path: Path) -> Path:
    """Name the place of the beginning of a file."""
    return path.with_name(f"{path.name}.partial")


def read_into(partial: Path, address: str, *, size: int = 0) -> None:
    """Download an address into a file that may have its beginning.

    size: what the whole file must have, if known.
    Raises Unavailable or NotTheFile; what has arrived stays for the next time, with the version of
    the file beside it.
    """
    in_place(partial)
    furthest, attempts = size_of(partial), 0
    if furthest and furthest == _version(partial).get("size"):
        return
    while True:
        try:
            _attempt(partial, address, size)
            return
        except _Broken as error:
            attempts = 1 if size_of(partial) > furthest else attempts + 1
            furthest = max(furthest, size_of(partial))
            if attempts > len(PAUSES):
                raise Unavailable(f"{address}: {error}") from None
            time.sleep(PAUSES[attempts - 1])


def forget(partial: Path) -> None:
    """Remove the beginning of a file, and the note on its version."""
    for path in (partial, _note(partial)):
        path.unlink(missing_ok=True)


def head(address: str) -> int | None:
    """Ask a server for the size of a file in bytes; None if it does not say."""
    with (
        suppress(OSError, http.client.HTTPException, ValueError),
        _open(address, {}, method="HEAD") as response,
    ):
        length = response.headers.get("Content-Length")
        return int(length) if length and not _is_web_page(address, response.headers) else None
    return None


def size_of(path: Path) -> int:
    """Return the bytes of a file; 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _attempt(partial: Path, address: str, size: int) -> None:
    with _answer(partial, address) as response:
        done, total = _start_of(response, partial)
        if _is_web_page(address, response.headers):
            raise NotTheFile("the address answers with a web page, not with the file")
        if size and total and total != size:
            raise NotTheFile(f"the file has changed: it has {total:,} bytes instead of {size:,}")
        _check_room(partial, (total or size) - done)
        # without the name of the version a download cannot be continued
        tag = response.headers.get("ETag", "")
        version = (
            response.headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag
        )
        write_json(_note(partial), {"version": version, "size": total})
        done = _copy(response, partial, done, total or size)
    if total and done < total:
        raise _Broken(f"the connection broke after {done:,} of {total:,} bytes")
    if total and done > total:
        forget(partial)
        raise NotTheFile(f"the server sent {done:,} bytes instead of {total:,}")


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
        stream.flush()
        os.fsync(stream.fileno())
    return done


def _answer(partial: Path, address: str) -> Any:
    """Ask for the file, or for the rest of it if the version of its beginning is known."""
    there, version = size_of(partial), _version(partial).get("version")
    headers = {"Range": f"bytes={there}-", "If-Range": version} if there and version else {}
    try:
        return _open(address, headers)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and there:
            # what is there is not a beginning of the file that the server has now
            forget(partial)
            raise _Broken("the server does not have the rest of the file") from None
        if error.code in _BUSY:
            raise _Broken(f"the server answers {error.code} {error.reason}") from None
        raise Unavailable(f"{address}: the server answers {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        # without a network nothing changes in a few seconds, unless it was there a moment ago
        if there or isinstance(reason, ConnectionResetError | http.client.HTTPException):
            raise _Broken(_reason(reason)) from None
        raise Unavailable(f"{address}: {_reason(reason)}") from None
    except ValueError as error:
        raise Unavailable(f"{address}: {error}") from None


def _open(address: str, headers: dict[str, str], method: str = "GET") -> Any:
    name = {"User-Agent": f"synmt/{__version__}"}
    request = urllib.request.Request(address, headers=name | headers, method=method)
    return urllib.request.urlopen(request, timeout=TIMEOUT)


def _start_of(response: Any, partial: Path) -> tuple[int, int]:
    """Return the byte at which the answer starts, and how many the whole file has (0 if the server
    does not say)."""
    length = response.headers.get("Content-Length", "")
    rest = int(length) if length.isdigit() else 0
    if getattr(response, "status", None) != 206:
        return 0, rest
    # bytes 100-199/200
    span, _, total = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    there = size_of(partial)
    if span.partition("-")[0] != str(there):
        forget(partial)
        raise _Broken("the server answers with another part of the file")
    return there, int(total) if total.isdigit() else rest and there + rest


def _reason(error: object) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _is_web_page(address: str, headers: Any) -> bool:
    return headers.get_content_type() == "text/html" and not address.endswith((".html", ".htm"))


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


def _note(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.json")


def _version(partial: Path) -> _Version:
    return read_cached_json(_note(partial), _Version) or {}
