"""Downloads public files into the cache: continues what broke off, checks size and hash, never
twice at once."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from synmt.corpora.transfer import (
    NotTheFile,
    Unavailable,
    forget,
    head,
    partial_of,
    read_into,
    size_of,
)
from synmt.errors import SynmtError
from synmt.files.links import in_place
from synmt.files.reading import cache_folder, fingerprint, offline, sha256, stored_sha256
from synmt.files.writing import reporting_os_errors

_logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")


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


def download(file: RemoteFile) -> Path:
    """Return the local copy of a file, downloaded if it is missing."""
    return download_all([file])[0]


def download_all(files: Iterable[RemoteFile], what: str = "") -> list[Path]:
    """Download the files that are missing; returns their local paths.

    what: the name of what they belong to, for the error that lists all that is missing if there is
        no network.
    """
    files = list(files)
    check_network(files, what)
    try:
        return [_local_copy(file) for file in files]
    except Unavailable as error:
        do = ", or try again: a download continues where it broke off"
        missing = [file for file in files if not is_there(file)]
        raise SynmtError(_list_missing(str(error), missing, what) + do) from None


def check_network(files: Iterable[RemoteFile], what: str = "") -> None:
    """Raise SynmtError that lists all files that are missing if the network is off."""
    missing = [file for file in files if not is_there(file)]
    if offline() and missing:
        raise SynmtError(
            _list_missing("SYNMT_OFFLINE is set", missing, what) + ", or unset SYNMT_OFFLINE"
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
    """Tell whether a file has been downloaded, or was put into its place by hand."""
    return local_path(file).is_file()


def bytes_to_fetch(file: RemoteFile) -> int | None:
    """Return how much of a file is still to be downloaded; None if only the server knows and does
    not say."""
    if is_there(file):
        return 0
    size = file.size or (None if offline() else head(_request_address(file.address)))
    return size if size is None else max(size - size_of(partial_of(local_path(file))), 0)


@contextmanager
def alone(path: Path, doing: str) -> Iterator[None]:
    """Let one process at a time make a file or folder; the others wait.

    doing: what the other process does, for the remark while this one waits.
    """
    from filelock import FileLock, Timeout

    with reporting_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(in_place(path.with_name(f".{path.name}.lock")))
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


def _fetch(file: RemoteFile, path: Path) -> None:
    address, partial = _request_address(file.address), partial_of(path)
    try:
        read_into(partial, address, size=file.size)
    except NotTheFile as error:
        raise SynmtError(str(error), where=address, do=f"Put the file at {path}") from None
    try:
        _check(file, partial, sha256)
    except SynmtError:
        # what is wrong does not become right by continuing
        forget(partial)
        raise
    with reporting_os_errors(path):
        os.replace(partial, path)
    forget(partial)
    _logger.info("downloaded %s", path)


def _check(file: RemoteFile, path: Path, hashed: Callable[[Path], str]) -> None:
    """Compare a local file with what is known of it."""
    target = local_path(file)
    measures: tuple[tuple[str, int | str, Callable[[], int | str]], ...] = (
        ("{:,} bytes", file.size, lambda: path.stat().st_size),
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
    with open(path, "rb") as stream:
        digest = hashlib.md5(usedforsecurity=False)
        for block in iter(lambda: stream.read(1 << 20), b""):
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


def _list_missing(reason: str, files: list[RemoteFile], what: str) -> str:
    """List files with the places that they can be put into by hand, a line each."""
    places = "\n".join(
        f"  {_request_address(file.address)}\n    -> {local_path(file)}" for file in files
    )
    belonging, several = f" of {what}" if what else "", len(files) > 1
    return (
        f"{len(files)} file{'s' * several}{belonging} cannot be downloaded ({reason}):\n{places}\n"
        f"Put {'them' if several else 'it'} there by hand"
    )
