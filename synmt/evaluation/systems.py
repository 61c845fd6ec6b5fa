"""Systems: the translations of one test set by each of them, a list for each seed.

Which paths are one system: patterns and seeds, and the names that systems have in tables.
"""

from __future__ import annotations

import glob
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from synmt.errors import SynmtError, UsageError, all_in_one, counted, did_you_mean
from synmt.evaluation.metrics import Lines, printable, read_aligned
from synmt.evaluation.outputs import Outputs, check_same_test, from_run, scored_on
from synmt.evaluation.seeds import check_one_system, group_by_seed
from synmt.evaluation.spaces import warn_of_unspaced

_logger = logging.getLogger(__name__)

_FEW = 30
"""With fewer sentences than this, a bootstrap interval is far too narrow."""


@dataclass(frozen=True)
class System:
    """A system: its translations, for each training seed."""

    name: str
    seeds: Sequence[Outputs]


def read_systems(
    paths: Sequence[Path],
    *,
    references: Path | None = None,
    source: Path | None = None,
    test: str | None = None,
    group_seeds: bool = False,
    on: str | None = None,
) -> list[System]:
    """Read systems from `-`, files, run folders, and patterns of these, whose matches are seeds of
    one system.

    references, source: files; by default those of the first run.
    test: the test set of the runs; by default `test`, else the first run's first by name.
    group_seeds: whether paths that differ only in a seed, or after their last dot, are one system.
    on: `text` or `tokens` of runs; by default as the first run's recipe says.
    """
    # missing systems are reported before a missing reference
    check_existence(paths)
    groups = group_paths(paths, group_seeds=group_seeds)
    return read_groups(groups, references=references, source=source, test=test, on=on)


def read_groups(
    groups: Sequence[tuple[str, Sequence[Path]]],
    *,
    references: Path | None = None,
    source: Path | None = None,
    test: str | None = None,
    on: str | None = None,
) -> list[System]:
    """Read systems from the names and paths that `group_paths` finds, with the options of
    `read_systems`."""
    members = [path for _, seeds in groups for path in seeds]
    runs = _read_runs(members, test, on)
    if test and not runs:
        raise UsageError(
            "none of the systems is a run, so none has test sets", where="--test", do="Leave it out"
        )
    found = _read_texts(members, runs, references, source, on)
    names = short_names([name for name, _ in groups])
    return [
        System(name, [found[path] for path in seeds])
        for name, (_, seeds) in zip(names, groups, strict=True)
    ]


def systems_from_lines(
    systems: Sequence[Lines], references: Lines, source: Lines | None = None
) -> list[System]:
    """Take systems that are in memory, one seed of each; they are named `system 1`, `system 2`,
    …"""
    found = []
    for number, lines in enumerate(systems, start=1):
        name = f"system {number}"
        outputs = Outputs(name, "", list(source or ()), list(references), list(lines), path=name)
        found.append(System(name, [outputs]))
    return found


def _read_runs(paths: Sequence[Path], test: str | None, on: str | None) -> dict[Path, Outputs]:
    """Read the runs among some paths; all use the test set of the first run, and its text or its
    tokens."""
    runs = {}
    for path in filter(Path.is_dir, paths):
        runs[path] = outputs = from_run(path, test, on=on)
        test, on = outputs.test, "tokens" if outputs.scoring.on_tokens else "text"
    return runs


def _read_texts(
    paths: Sequence[Path],
    runs: dict[Path, Outputs],
    references: Path | None,
    source: Path | None,
    on: str | None,
) -> dict[Path, Outputs]:
    """Read the translations of each path, with the references and sources that all share."""
    first = next(iter(runs.values()), Outputs("", "", [], [], [], scoring=scored_on(on)))
    folders = {path: path / "tests" / run.test for path, run in runs.items()}
    files = [path for path in paths if path not in runs]
    if first.scoring.on_tokens and (files or references):
        _logger.info("scores are on tokens, so files must have words with a space between two")
    if references is None and not runs:
        raise UsageError("the reference is missing", do="Give it with `-r FILE`")
    if references is None:
        for run in runs.values():
            check_same_test(first, run)
    elif str(references) in map(str, files):
        _logger.warning(f"{printable(references)} is the reference itself")
    # the files of runs, whose words have as many lines, show which text has another number of lines
    own = next(iter(folders.values()), Path())
    hypotheses = [folders[path] / "hypothesis.txt" if path in runs else path for path in paths]
    reference, *texts = read_aligned(
        [references or own / "reference.txt", *hypotheses, *([source] if source else [])]
    )
    if references is None:
        reference = first.reference
    source_lines = texts.pop() if source else None
    found = {}
    for path, lines in zip(paths, texts, strict=True):
        name = printable(path)
        file = replace(first, system=Path(name).name, hypothesis=lines, tokens=None, run=None)
        outputs = runs.get(path, file)
        if source_lines is not None:
            outputs = replace(outputs, source=source_lines, raw_source=None)
        found[path] = replace(outputs, reference=reference, path=name)
    return found


def warn_about_texts(systems: Sequence[System], metrics: Lines, tokenize: str) -> None:
    """Warn of texts that the metrics cannot score well: few, empty or tokenized lines, words
    without spaces.

    metrics: names in `metrics.METRICS`.
    tokenize: the tokenization of BLEU.
    """
    references = systems[0].seeds[0].reference
    if len(references) < _FEW:
        _logger.warning(f"with fewer than {_FEW} sentences, intervals and p-values are unreliable")
    warn_of_unspaced("the reference", references, metrics, tokenize)
    texts = [(seed.path, seed.hypothesis) for system in systems for seed in system.seeds]
    bleu = any(name.startswith("bleu") for name in metrics)
    for name, lines in [("the reference", references), *texts]:
        # a tenth of the lines of a tokenized text end in a full stop after a space, at least
        stops = sum(line.rstrip().endswith(" .") for line in lines)
        if bleu and tokenize != "none" and stops * 10 > len(lines):
            _logger.warning(
                f"{name} looks tokenized; BLEU expects plain text, or `--tokenize none`"
            )
    for name, lines in texts:
        if empty := sum(not line.strip() for line in lines):
            _logger.warning(f"{name}: {empty:,} of {len(lines):,} translations are empty")


_logger = logging.getLogger(__name__)


def group_paths(
    paths: Sequence[Path], *, group_seeds: bool = False, apart: bool = False
) -> list[tuple[str, list[Path]]]:
    """Group files and run folders as seeds of systems: name and paths of each system.

    paths: `-`, files, run folders, and patterns of these; the matches of a pattern are seeds of one
        system.
    group_seeds: whether paths that differ only in a seed, or after their last dot, are one system.
    apart: whether each match of a pattern is a system instead.

    The log names the paths that a pattern matches, or that were grouped by their seeds. Raises
    SynmtError for a pattern that matches nothing, UsageError for runs that are not seeds of one
    system.
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
    missing = [
        path
        for path in paths
        if not (str(path) == "-" or glob.has_magic(str(path)) or path.exists())
    ]
    if missing:
        what = "no such file or run folder"
        raise all_in_one(
            [
                SynmtError(
                    what,
                    where=printable(path),
                    do=printable(did_you_mean(path.name, sorted(path.parent.glob("*")))),
                )
                for path in missing
            ]
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
    """Name each system by the last part of its path, or by the whole path if two last parts are the
    same."""
    whole = [printable(name) for name in names]
    short = [Path(name).name or Path(name).resolve().name for name in whole]
    return short if len(set(short)) == len(short) else whole
