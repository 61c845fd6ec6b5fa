"""The folder in which shards wait for the rest of their file: for one parser, and one process at a time."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from synmt import files
from synmt.errors import SynmtError


def exists_already(what: str, where: Path) -> SynmtError:
    """Say that something stands in the way that is not overwritten unasked."""
    return SynmtError(what, where=str(where), do="Choose another output, or replace it with --overwrite")


def parts_folder(target: Path) -> Path:
    """Name the folder of the shards of a file."""
    return target.with_name(f"{target.name}.parts")


@contextlib.contextmanager
def work_folder(target: Path, fingerprint: str, overwrite: bool) -> Iterator[Path]:
    """Give the folder for the shards of one parser; it is removed when the block ends well."""
    folder = parts_folder(target)
    state = folder / "parser"
    if not folder.exists() and target.exists() and not overwrite:
        raise exists_already("exists, and is no finished file of `synmt parse`", target)
    with files.reporting_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with files.locked(folder, "these trees"):
        if state.exists() and state.read_text() != fingerprint:
            if not overwrite:
                raise exists_already("holds trees of another parser, from a run that was interrupted", folder)
            for file in folder.glob("[0-9]*"):
                file.unlink()
        with files.write_atomically(state) as stream:
            stream.write(fingerprint)
        yield folder
        shutil.rmtree(folder, ignore_errors=True)
