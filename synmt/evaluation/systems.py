"""Systems: the translations of one test set by each of them, a list for each seed.

Which paths are one system: patterns and seeds, and the names that systems have in tables.
"""

from __future__ import annotations

import glob
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.data.inputs import describe_input, differences, recorded_inputs
from synmt.errors import SynmtError, UsageError, all_in_one, counted, did_you_mean, listed
from synmt.evaluation.metrics import Lines, printable, read_aligned
from synmt.evaluation.outputs import Outputs, check_same_test, from_run, scored_on
from synmt.evaluation.spaces import warn_of_unspaced
from synmt.recipe.load import recipe_differences

if TYPE_CHECKING:
    from synmt.run_folder import Run

_logger = logging.getLogger(__name__)

_FEW = 30
"""With fewer sentences than this, a bootstrap interval is far too narrow."""

_SEED_IN_NAME = re.compile(r"[-._]seed[-_]?\d+", re.IGNORECASE)

_MAY_DIFFER = {
    "name",
    "evaluation",
    "decoding.batch_size",
    *(f"training.{key}" for key in ("seed", "device", "compile", "log_every", "keep")),
    *(f"parser.{key}" for key in ("seed", "workers", "device")),
    *(f"target_parser.{key}" for key in ("seed", "workers", "device")),
}
"""Recipe keys in which seeds of one system may differ."""


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
    `read_systems`; all runs use the test set of the first one, and its text or its tokens."""
    members = [path for _, seeds in groups for path in seeds]
    runs = dict[Path, Outputs]()
    for path in filter(Path.is_dir, members):
        runs[path] = from_run(path, test, on=on)
        test, on = runs[path].test, "tokens" if runs[path].scoring.on_tokens else "text"
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
    shared = Outputs("", "", list(source or ()), list(references), [])
    names = [f"system {number}" for number in range(1, len(systems) + 1)]
    return [
        System(name, [replace(shared, system=name, hypothesis=list(lines), path=name)])
        for name, lines in zip(names, systems, strict=True)
    ]


def _read_texts(
    paths: Sequence[Path],
    runs: dict[Path, Outputs],
    references: Path | None,
    source: Path | None,
    on: str | None,
) -> dict[Path, Outputs]:
    """Read the translations of each path, with the references and sources that all share."""
    first = next(iter(runs.values()), Outputs("", "", [], [], [], scoring=scored_on(on)))
    files = [path for path in paths if path not in runs]
    if first.scoring.on_tokens and (files or references):
        _logger.info("scores are on tokens, so files must have words with a space between two")
    if references is None and not runs:
        raise UsageError("the reference is missing", do="Give it with `-r FILE`")
    if references is None:
        for run in runs.values():
            check_same_test(first, run)
    elif references in files:
        _logger.warning(f"{printable(references)} is the reference itself")
    # the files of runs, whose words have as many lines, show which text has another number of lines
    folders = {path: run.folder or path for path, run in runs.items()}
    own = next(iter(folders.values()), Path())
    hypotheses = [folders[path] / "hypothesis.txt" if path in runs else path for path in paths]
    sources = [source] if source else []
    reference, *texts = read_aligned([references or own / "reference.txt", *hypotheses, *sources])
    if references is None:
        reference = first.reference
    source_lines = texts.pop() if source else None
    found = {}
    for path, lines in zip(paths, texts, strict=True):
        name = printable(path)
        file = replace(first, system=Path(name).name, hypothesis=lines, tokens=None, run=None)
        outputs = replace(runs.get(path, file), path=name, reference=reference)
        if source_lines is not None:
            outputs = replace(outputs, source=source_lines, raw_source=None)
        found[path] = outputs
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
    bleu = tokenize != "none" and any(name.startswith("bleu") for name in metrics)
    for name, lines in [("the reference", references), *texts]:
        # a tenth of the lines of a tokenized text end in a full stop after a space, at least
        stops = sum(line.rstrip().endswith(" .") for line in lines)
        if bleu and stops * 10 > len(lines):
            _logger.warning(
                f"{name} looks tokenized; BLEU expects plain text, or `--tokenize none`"
            )
    for name, lines in texts:
        if empty := sum(not line.strip() for line in lines):
            _logger.warning(f"{name}: {empty:,} of {len(lines):,} translations are empty")


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
        SynmtError(
            "no such file or run folder",
            where=printable(path),
            do=printable(did_you_mean(path.name, sorted(path.parent.glob("*")))),
        )
        for path in paths
        if not (str(path) == "-" or glob.has_magic(str(path)) or path.exists())
    ]
    if missing:
        raise all_in_one(missing)


def matching(path: Path) -> list[Path]:
    """List the paths that match a pattern; a path that exists is not a pattern."""
    if not glob.has_magic(str(path)) or path.exists():
        return [path]
    matches = sorted(map(Path, glob.glob(str(path))))
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


def group_by_seed(paths: Sequence[Path]) -> list[tuple[str, list[Path]]]:
    """Group paths that differ only in their seeds, in the order of each group's first path: (name,
    paths) of each.

    One path of a group may have no seed in its name, such as `pascal` next to `pascal-seed2`.
    """
    groups = dict[str, list[Path]]()
    without = {path: _SEED_IN_NAME.sub("", str(path)) for path in paths}
    systems = {name for path, name in without.items() if name != str(path)}
    for path, name in without.items():
        # what follows the dot of `ignore0.3` is not a seed if `ignore0.3-seed2` exists
        if name not in systems:
            name = os.path.splitext(name.removesuffix(".gz"))[0]
        groups.setdefault(name, []).append(path)
    if len(without) < len(paths):
        again = next(path for place, path in enumerate(paths) if path in paths[:place])
        raise UsageError(
            "the same seed of a system is given twice", where=str(again), do="Leave one out"
        )
    return [
        (name if len(members) > 1 else str(members[0]), members) for name, members in groups.items()
    ]


def name_with_seed(name: str, seed: int) -> str:
    """Name the run with another seed of the same system, so that `group_by_seed` finds both."""
    return f"{_SEED_IN_NAME.sub('', name)}-seed{seed}"


def check_one_system(runs: Sequence[Path]) -> None:
    """Raise UsageError if run folders differ in more than the seed: in recipes, what they learned
    from, or tests."""
    from synmt.run_folder import find_run

    if len(runs) < 2:
        return
    first, *others = map(find_run, runs)
    for other in others:
        if difference := next(_differences(first, other), None):
            raise UsageError(
                f"not a seed of the same system as {first.folder}: {difference}",
                where=str(other.folder),
                do="Name runs whose recipes differ in `name` and `training.seed` only, and which "
                "were trained and tested on the same data. To score other translations as seeds, "
                "give them as files, such as 'runs/*/tests/test/hypothesis.txt'",
            )


def _differences(first: Run, other: Run) -> Iterator[str]:
    """Describe the differences of two runs that seeds of one system do not have."""
    from synmt.recipe.load import recipe_values

    values, others = (recipe_values(run.recipe()) for run in (first, other))
    for key, before, after in recipe_differences(values, others, _MAY_DIFFER):
        yield f"{key} is {after} here, {before} there"
    info, other_info = first.info(), other.info()
    inputs, other_inputs = recorded_inputs(info), recorded_inputs(other_info)
    learned = [describe_input(key, file) for key, file in differences(inputs, other_inputs)]
    # where no texts are recorded, as in earlier versions, the names of the data that were made from
    # them are
    if not (_has_texts(inputs) and _has_texts(other_inputs)):
        for key, name in (("prepared", "prepared text"), ("trees", "trees")):
            if key in info and key in other_info and info[key] != other_info[key]:
                learned.append(name)
    if learned:
        yield f"the two were not trained with the same {listed(dict.fromkeys(learned))}"
    for side in ("source", "reference"):
        for text in first.folder.glob(f"tests/*/{side}.txt"):
            name = text.relative_to(first.folder)
            same = other.folder / name
            if same.is_file() and text.read_bytes() != same.read_bytes():
                yield f"the two were not tested on the same sentences ({name})"


def _has_texts(inputs: Iterable[str]) -> bool:
    return {"train", "valid"} <= {key.partition(".")[0] for key in inputs}
