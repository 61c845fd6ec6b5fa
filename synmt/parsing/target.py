"""A file of trees, and what is next to it: a summary, and the shards as long as it is not
finished."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from synmt.arrays import Values
from synmt.errors import SynmtError, UsageError
from synmt.files.json_files import Count, read_cached_json
from synmt.files.writing import is_stream

FOREIGN = "exists, and is not a finished file of `synmt parse`"


@dataclass(frozen=True)
class Summary:
    """The content of `<target>.json`: how the trees were made, and from what. It has no times, so
    it is reproducible.

    input, output: SHA-256 of the text, and of the file of trees.
    """

    parser: Values
    fingerprint: str
    lines: Count
    words: Count
    failures: Count
    input: str
    output: str


def read_summary(target: Path) -> Summary | None:
    """Read how trees were made; None if `synmt parse` has not finished them."""
    return read_cached_json(summary_path(target), Summary)


def summary_path(target: Path) -> Path:
    """Name the file that says how trees were made."""
    return target.with_name(f"{target.name}.json")


def parts_folder(target: Path) -> Path:
    """Name the folder of the shards."""
    return target.with_name(f"{target.name}.parts")


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse a target that is not a file, or whose summary and shards would replace files that are
    not synmt's."""
    if target.is_dir() or is_stream(target):
        raise UsageError(
            "the output is not a file",
            where=target,
            do="Name a file, or leave the output out and redirect standard output",
        )
    folder, summary = parts_folder(target), summary_path(target)
    if any(folder.glob("*")) and not (folder / "lock").exists():
        # not even on request: the user hardly means this folder by --overwrite
        raise SynmtError(
            "exists, and `synmt parse` did not make it",
            where=folder,
            do="Choose another output",
        )
    if summary.exists() and not overwrite and not target.exists() and read_summary(target) is None:
        raise not_overwritten(FOREIGN, summary)


def not_overwritten(what: str, where: Path) -> SynmtError:
    """Make the error for a file or folder that is replaced on request only."""
    do = "Choose another output, or remove it, as `synmt parse --overwrite` does"
    return SynmtError(what, where=where, do=do)
