"""Downloads public files into the cache, over connections that may break: continues what broke off,
checks size and hash, never twice at once."""

from __future__ import annotations

import hashlib
import http.client
import logging
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synmt import __version__
from synmt.errors import SynmtError
from synmt.files.reading import cache_folder, fingerprint, offline, sha256, stored_sha256
from synmt.files.writing import alone, reporting_os_errors, without_link
from synmt.reporting.progress import progress

_logger = logging.getLogger(__name__)

PAUSES = (1.0, 4.0, 15.0)
"""Seconds before each new attempt after a connection broke; an attempt that got further starts
over."""

TIMEOUT = 60
"""Seconds without any byte."""

_BLOCK = 1 << 20
_MEGABYTE = 1e6
_MAY_ANSWER_LATER = (408, 416, 425, 429, 500, 502, 503, 504)


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


def download_all(files: Iterable[RemoteFile]) -> list[Path]:
    """Download the files that are missing; returns their local paths."""
    files = list(files)
    if problem := network_problem(files):
        raise problem
    try:
        return [_local_copy(file) for file in files]
    except _Unavailable as error:
        raise _missing(str(error), files) from None


def network_problem(files: Iterable[RemoteFile]) -> SynmtError | None:
    """Make the error that lists all files that are missing if the network is off."""
    if offline() and not all(map(is_there, files)):
        return _missing("SYNMT_OFFLINE is set", files)
    return None


def _missing(reason: str, files: Iterable[RemoteFile]) -> SynmtError:
    """Make the error that lists the missing files with the places where they can be put by hand."""
    places = [
        f"  {_request_address(file.address)}\n    -> {local_path(file)}"
        for file in files
        if not is_there(file)
    ]
    return SynmtError(
        f"{len(places)} file(s) cannot be downloaded ({reason}):\n"
        + "\n".join(places)
        + "\nPut them there by hand, or run the same command again with a network: a download "
        "continues where it broke off"
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


def _local_copy(file: RemoteFile) -> Path:
    path = local_path(file)
    if path.is_file():
        _check(file, path, stored_sha256)
        return path
    with alone(path):
        if not path.is_file():
            _fetch(file, path)
    return path


def _check(file: RemoteFile, path: Path, hashed: Callable[[Path], str]) -> None:
    """Compare a local file with what is known of it."""
    measures = (
        ("size", file.size, _size),
        ("SHA-256", file.sha256, hashed),
        ("MD5", file.md5, _md5),
    )
    for name, expected, measure in measures:
        if expected and (measured := measure(path)) != expected:
            raise SynmtError(
                f"the file has changed: its {name} is {measured}, not {expected}",
                where=file.address,
                do=f"Put the original file at {local_path(file)}",
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


# one file; its beginning has the ending `.partial` until the rest is there, and the version that
# the server calls it by is beside it


def _fetch(file: RemoteFile, path: Path) -> None:
    """Download a file; raises _Unavailable if that does not work now."""
    address, partial = _request_address(file.address), path.with_name(f"{path.name}.partial")
    attempts = 0
    while True:
        before = _size(partial)
        try:
            _attempt(partial, address)
            break
        except _Broken as error:
            attempts = 1 if _size(partial) > before else attempts + 1
            if attempts > len(PAUSES):
                raise _Unavailable(f"{address}: {error}") from None
            time.sleep(PAUSES[attempts - 1])
    try:
        _check(file, partial, sha256)
        with reporting_os_errors(path):
            os.replace(partial, path)
    finally:
        # what is wrong does not become right by continuing
        _forget(partial)
    _logger.info("downloaded %s", path)


def _attempt(partial: Path, address: str) -> None:
    """Download a file, or its rest if the version of its beginning is known."""
    there, version = _size(partial), _version_path(partial)
    headers = {"User-Agent": f"synmt/{__version__}"}
    if there and version.exists():
        headers |= {"Range": f"bytes={there}-", "If-Range": version.read_text(encoding="utf-8")}
    try:
        request = urllib.request.Request(address, headers=headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            _receive(response, partial, there if response.status == 206 else 0)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:
            # what is there is not a beginning of the file that the server has now
            _forget(partial)
        what = f"the server answers {error.code} {error.reason}"
        if error.code in _MAY_ANSWER_LATER:
            raise _Broken(what) from None
        raise _Unavailable(f"{address}: {what}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        # without a network nothing changes in a few seconds, unless it was there a moment ago
        if there:
            raise _Broken(str(reason)) from None
        raise _Unavailable(f"{address}: {reason}") from None


def _receive(response: Any, partial: Path, done: int) -> None:
    """Append an answer to the first `done` bytes; raises _Broken if it ends too early."""
    length = response.headers.get("Content-Length")
    total = done + int(length) if length else 0
    version = response.headers.get("ETag", "")
    if not version or version.startswith("W/"):
        version = response.headers.get("Last-Modified", "")
    _version_path(partial).unlink(missing_ok=True)
    with (
        progress(f"download {partial.stem}", total / _MEGABYTE or None, "MB") as advance,
        reporting_os_errors(partial),
        open(without_link(partial), "ab" if done else "wb") as stream,
    ):
        if version:
            # without it, a download cannot be continued
            _version_path(partial).write_text(version, encoding="utf-8")
        advance(done / _MEGABYTE)
        for block in _blocks(response):
            stream.write(block)
            done += len(block)
            advance(len(block) / _MEGABYTE)
        os.fsync(stream.fileno())
    if done < total:
        raise _Broken(f"the connection broke after {done:,} of {total:,} bytes")


def _blocks(response: Any) -> Iterator[bytes]:
    try:
        while block := response.read(_BLOCK):
            yield block
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(str(error)) from None


def _size(path: Path) -> int:
    """Return the bytes of a file; 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


def _version_path(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.version")


def _forget(partial: Path) -> None:
    """Remove the beginning of a file, and its version."""
    for path in (partial, _version_path(partial)):
        path.unlink(missing_ok=True)
