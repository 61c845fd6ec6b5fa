"""Which paths are one system: patterns and seeds, and the names that systems have in tables."""

from __future__ import annotations

import glob
import logging
from collections.abc import Sequence
from pathlib import Path

from synmt.errors import SynmtError, all_in_one, counted, did_you_mean_path
from synmt.evaluation.metrics import printable
from synmt.evaluation.seeds import check_one_system, group_by_seed

_logger = logging.getLogger(__name__)


def group_paths(
    paths: Sequence[Path], *, group_seeds: bool = False, apart: bool = False
) -> list[tuple[str, list[Path]]]:
    """Group files and run folders as seeds of systems: name and paths of each system.

    paths: `-`, files, run folders, and patterns of these; the matches of a pattern are seeds of one system.
    group_seeds: whether paths that differ only in a seed, or after their last dot, are one system.
    apart: whether each match of a pattern is a system instead.

    The log names the paths that a pattern matches, or that were grouped by their seeds. Raises
    SynmtError for a pattern that matches nothing, UsageError for runs that are not seeds of one system.
    """
    groups = [(str(path), matching(path)) for path in paths]
    if group_seeds:
        groups = group_by_seed([path for _, members in groups for path in members])
    for name, members in groups:
        if [name] != list(map(str, members)):
            names = ", ".join(printable(path.name) for path in members)
            what = counted(len(members), "system" if apart else "seed")
            _logger.info(f"{printable(name)}: {what}: {names}")
        if not apart:
            check_one_system([path for path in members if path.is_dir()])
    if apart:
        return [(str(path), [path]) for _, members in groups for path in members]
    return [(name if len(members) > 1 else str(members[0]), members) for name, members in groups]


def check_existence(paths: Sequence[Path]) -> None:
    """Raise SynmtError that names all paths that do not exist, except patterns and `-`."""
    missing = [path for path in paths if not (str(path) == "-" or glob.has_magic(str(path)) or path.exists())]
    if missing:
        what = "no such file or run folder"
        raise all_in_one(
            [SynmtError(what, where=printable(path), do=printable(did_you_mean_path(path))) for path in missing]
        )


def matching(path: Path) -> list[Path]:
    """List the paths that match a pattern; a path that exists is not a pattern."""
    if not glob.has_magic(str(path)) or path.exists():
        return [path]
    matches = sorted(Path(name) for name in glob.glob(str(path)))
    # `runs/*` also matches folders of other things
    matches = [one for one in matches if not one.is_dir() or (one / "run.json").exists()] or matches
    if not matches:
        raise SynmtError("no file and no run folder matches the pattern", where=str(path))
    return matches


def short_names(names: Sequence[str]) -> list[str]:
    """Name each system by the last part of its path, or by the whole path if two last parts are the same."""
    whole = [printable(name) for name in names]
    short = [Path(name).name or Path(name).resolve().name for name in whole]
    return short if len(set(short)) == len(short) else whole
