"""Hashes of large files, remembered as long as a file does not change."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from synmt.errors import SynmtError
from synmt.files import cache_folder, fingerprint, sha256, write_atomically

# a smaller file is hashed faster than its memory is found
_LARGE = 32 << 20


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
    with suppress(OSError, ValueError, KeyError):
        return json.loads(memory.read_text())["sha256"]
    found = sha256(path)
    # a cache that cannot be written to costs time only
    with suppress(SynmtError), write_atomically(memory) as stream:
        json.dump({"sha256": found}, stream)
    return found
