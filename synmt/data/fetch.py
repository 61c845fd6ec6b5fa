"""Public files, fetched into the cache."""

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

_PATIENCE = 60


def fetch(address: str, path: Path, expected: str) -> None:
    """Copy a public file; it takes its name only when its SHA-256 is the expected one."""
    assert not offline(), address
    # the number keeps two processes that fetch the same file apart
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with reporting_os_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        found = _copy(address, partial, path)
        if found != expected:
            raise SynmtError(
                f"the file at {address} is not the one that synmt knows: its SHA-256 is {found}",
                allowed=f"Expected: {expected}",
                do=f"Put the right file at {path}",
            )
        with reporting_os_errors(path):
            os.replace(partial, path)
    finally:
        with suppress(OSError):
            partial.unlink()


def _copy(address: str, partial: Path, path: Path) -> str:
    digest = hashlib.sha256()
    try:
        answer = urllib.request.urlopen(address, timeout=_PATIENCE)
    except OSError as error:
        raise _unreachable(address, path, error) from None
    with answer, reporting_os_errors(partial), open(partial, "wb") as stream:
        while block := _read(answer, address, path):
            digest.update(block)
            stream.write(block)
        stream.flush()
        os.fsync(stream.fileno())
    return digest.hexdigest()


def _read(answer: IO[bytes], address: str, path: Path) -> bytes:
    try:
        return answer.read(1 << 20)
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(address, path, error) from None


def _unreachable(address: str, path: Path, error: Exception) -> SynmtError:
    return SynmtError(
        f"cannot fetch {address} ({error})",
        do=f"Try again, or put the file at {path}",
    )
