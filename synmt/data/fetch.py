"""Downloads public files."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import IO

from synmt.errors import SynmtError
from synmt.files import offline, reporting_os_errors

_TIMEOUT = 60
"""Seconds."""


def fetch(address: str, path: Path, expected: str) -> None:
    """Download a file; it gets its name only if its SHA-256 is the expected one."""
    assert not offline(), address
    # with the number of the process: another one may download the same file
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with reporting_os_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        found = _copy(address, partial, path)
        if found != expected:
            raise SynmtError(
                f"the file at {address} has changed: its SHA-256 is {found}",
                allowed=f"Expected: {expected}",
                do=f"Put the original file at {path}",
            )
        with reporting_os_errors(path):
            os.replace(partial, path)
    finally:
        with suppress(OSError):
            partial.unlink()


def _copy(address: str, partial: Path, path: Path) -> str:
    digest = hashlib.sha256()
    try:
        response = urllib.request.urlopen(address, timeout=_TIMEOUT)
    except OSError as error:
        raise _unreachable(address, path, error) from None
    with response, reporting_os_errors(partial), open(partial, "wb") as stream:
        while block := _read(response, address, path):
            digest.update(block)
            stream.write(block)
        stream.flush()
        os.fsync(stream.fileno())
    return digest.hexdigest()


def _read(response: IO[bytes], address: str, path: Path) -> bytes:
    try:
        return response.read(1 << 20)
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(address, path, error) from None


def _unreachable(address: str, path: Path, error: Exception) -> SynmtError:
    return SynmtError(f"cannot download {address} ({error})", do=f"Try again, or put the file at {path}")
