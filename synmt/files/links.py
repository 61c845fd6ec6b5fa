"""Links in folders that synmt makes: others may have put them there, so nothing is written or
removed through one."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from synmt.errors import SynmtError

_own: set[Path] = set()


def own_folder(folder: Path) -> Path:
    """Declare a folder that synmt makes: a run, a prepared corpus, the cache. The folder itself may
    be a link."""
    _own.add(Path(os.path.abspath(folder)))
    return folder


def is_own(path: Path) -> bool:
    """Return whether a path lies in a folder that synmt makes."""
    return not _own.isdisjoint(Path(os.path.abspath(path)).parents)


def place_of(path: Path) -> Path:
    """Find where a file or folder is written: in a folder that synmt makes in place of a link,
    elsewhere behind it.

    Raises SynmtError if a folder on the way there is a link.
    """
    whole = Path(os.path.abspath(path))
    owners = [folder for folder in whole.parents if folder in _own]
    if not owners:
        return Path(os.path.realpath(path))
    for folder in whole.parents[: whole.parents.index(owners[-1])]:
        if folder.is_symlink():
            raise SynmtError(
                f"is a link, and nothing is written through links inside {owners[-1]}",
                where=str(folder),
                do="Put what it leads to in its place, or make the outer folder a link",
            )
    return whole


def in_place(path: Path) -> Path:
    """Find where a file that is not replaced is written; a link that is there, also a hard one, is
    removed."""
    place = place_of(path)
    with suppress(FileNotFoundError, NotADirectoryError):
        there = os.lstat(place)
        if is_own(path) and (
            stat.S_ISLNK(there.st_mode) or (stat.S_ISREG(there.st_mode) and there.st_nlink > 1)
        ):
            os.unlink(place)
    return place


def remove(path: Path) -> None:
    """Remove a file or a folder if it is there; of a link, what it leads to stays."""
    place_of(path)
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise SynmtError(
            f"cannot be removed: {error.strerror}", where=str(path), do="Check its permissions"
        ) from error
