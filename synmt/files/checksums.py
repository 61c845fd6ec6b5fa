"""Checksums of the files of a folder, in a file that `sha256sum -c checksums.sha256` reads as
well."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from synmt.errors import SynmtError
from synmt.files.reading import read_lines, sha256
from synmt.files.writing import UNFINISHED, write_content

RECORD = "checksums.sha256"

_LARGE = (".safetensors", ".arrow")
"""Files that may be large: they are compared when training resumes and with `--verify`."""
_QUICK = 32 << 20
"""Bytes. Hashing a smaller file takes little of the time of a command that reads it as a whole."""
_EDITABLE = "recipe.yaml"
"""The user may edit it, for example its `decoding`."""

_options = {"verify": False}


def verify_large_files(wanted: bool) -> None:
    """Choose whether this process compares large files as well: the option `--verify`."""
    _options["verify"] = wanted


@contextmanager
def recording(folder: Path, *patterns: str) -> Iterator[None]:
    """Record the files that the block writes; while it runs, and if it is interrupted, they have no
    checksums."""
    before = _read(folder)
    others = {
        name: digest
        for name, digest in before.items()
        if not any(fnmatch(name, pattern) for pattern in patterns)
    }
    if others != before:
        _write(folder, others)
    yield
    _write(folder, others | hashes(folder, *patterns))


def write_last(folder: Path, name: str, values: Any, *patterns: str, **options: Any) -> None:
    """Record the files of a folder, then write the JSON file that makes it complete, with options
    of `json.dumps`."""
    text = json.dumps(values, **options) + "\n"
    _write(folder, hashes(folder, *patterns) | {name: hashlib.sha256(text.encode()).hexdigest()})
    write_content(folder / name, text)


def verify(folder: Path, *, large: bool = False) -> None:
    """Compare the files of a folder, and of the folders in it, with their checksums.

    Raises SynmtError for a file that has changed. What earlier versions wrote has no checksums.

    large: also files that may be large.
    """
    for record in sorted(folder.rglob(RECORD)):
        if UNFINISHED in str(record.relative_to(folder)):
            continue
        for name in _read(record.parent):
            if large or _options["verify"] or not name.endswith(_LARGE):
                _compare(record.parent, name)


def verify_file(path: Path, *, large: bool = False) -> None:
    """Compare one file that is going to be read with its checksum, as `verify` does, unless it
    takes long."""
    if path.is_file() and (large or _options["verify"] or path.stat().st_size <= _QUICK):
        _compare(path.parent, path.name)


def changed(path: Path, checksum: str) -> SynmtError:
    """Make the error for a file that differs from its checksum."""
    return SynmtError(
        "broken: its content has changed since it was written",
        where=path,
        do=f"Restore it from a copy. If the change is intended, remove {checksum}",
    )


def _compare(folder: Path, name: str) -> None:
    path, expected = folder / name, _read(folder).get(name)
    if expected and name != _EDITABLE and path.is_file() and sha256(path) != expected:
        raise changed(path, f"its line from {folder / RECORD}")


def hashes(folder: Path, *patterns: str) -> dict[str, str]:
    """Hash the files of a folder that match."""
    paths = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    return {path.relative_to(folder).as_posix(): sha256(path) for path in paths}


def _read(folder: Path) -> dict[str, str]:
    path = folder / RECORD
    lines = read_lines(path) if path.exists() else ()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def as_text(digests: Mapping[str, str]) -> str:
    """Write checksums by file as the text of a record."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def _write(folder: Path, digests: Mapping[str, str]) -> None:
    write_content(folder / RECORD, as_text(digests))
