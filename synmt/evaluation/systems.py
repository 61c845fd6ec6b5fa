"""Systems to score: files, run folders, patterns that stand for several seeds, and what they are scored against."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.evaluation.metrics import MetricOptions, read_aligned
from synmt.evaluation.outputs import Outputs, from_run
from synmt.evaluation.same_system import check_one_system

_SEED = re.compile(r"[-._]seed[-_]?\d+", re.IGNORECASE)


@dataclass(frozen=True)
class Text:
    """Translations of the test set, line by line.

    name: what a person calls it: the run's or the file's.
    kept: where its statistics are kept; None for a file.
    """

    name: str
    lines: list[str]
    kept: Path | None = None


@dataclass(frozen=True)
class System:
    """What is compared: one text, or one for each seed that the system was trained from."""

    name: str
    seeds: list[Text]


@dataclass(frozen=True)
class Contest:
    """Systems with the reference that all of them are scored against.

    source: None where none was given and no run has it.
    scoring: as the recipe of the first run says.
    """

    systems: list[System]
    reference: Text
    source: list[str] | None = None
    scoring: MetricOptions = field(default_factory=MetricOptions)


@dataclass(frozen=True)
class _Place:
    """Where a text lies; of a run also what is known of the test set."""

    given: Path
    hypotheses: Path
    run: Outputs | None = None

    def beside(self, name: str) -> Path:
        """Name another file, or folder, of the run's test set."""
        return self.hypotheses.with_name(name)


def read_systems(
    given: Sequence[Path],
    *,
    reference: Path | None = None,
    source: Path | None = None,
    test: str | None = None,
    group_seeds: bool = False,
    remark: Callable[[str], None] = lambda text: None,
) -> Contest:
    """Read what was given: `-`, files, run folders, and patterns of them, each pattern one system.

    reference, source: files; else those of the first run.
    test: the runs' test set; else `test`, or the first run's first by name.
    group_seeds: whether paths that differ only in a seed, or behind their last dot, are one system.
    remark: told what a pattern, or the name of several seeds, stands for.
    """
    _check_there(given)
    groups = [(str(path), _matching(path)) for path in given]
    if group_seeds:
        groups = _by_seed([path for _, paths in groups for path in paths])
    for name, paths in groups:
        if [name] != [str(path) for path in paths]:
            remark(f"{_spoken(name)}: {_counted(paths)}")
        check_one_system([path for path in paths if path.is_dir()])
    places = _find([path for _, paths in groups for path in paths], test)
    runs = [place for place in places if place.run]
    if test and not runs:
        raise UsageError("no run was given that could have a test set", where="--test", do="Leave it out")
    if reference is None:
        reference = _reference_of(runs)
    if source is None and runs:
        source = runs[0].beside("source.txt")
    paths = [reference, *(place.hypotheses for place in places)]
    first, *texts = read_aligned([*paths, *([source] if source else [])])
    # the source, where there is one, stands last
    lines = iter(list(zip(places, texts, strict=False)))
    systems = _name_systems([(name, [next(lines) for _ in members]) for name, members in groups])
    scoring = runs[0].run.scoring if runs and runs[0].run else MetricOptions()
    return Contest(systems, Text(_spoken(reference), first), texts[-1] if source else None, scoring)


def _matching(path: Path) -> list[Path]:
    """Find what a pattern stands for; whatever exists under its own name is no pattern."""
    if not glob.has_magic(str(path)) or path.exists():
        return [path]
    found = sorted(Path(name) for name in glob.glob(str(path)))
    if not found:
        raise SynmtError("no file and no run folder fits the pattern", where=str(path))
    return found


def _check_there(given: Sequence[Path]) -> None:
    """Refuse what does not exist, before anything is said of references."""
    missing = [
        SynmtError(
            "there is no such file or run folder",
            where=_spoken(path),
            do=did_you_mean(_spoken(path.name), map(_spoken, sorted(path.parent.glob("*")))),
        )
        for path in given
        if str(path) != "-" and not glob.has_magic(str(path)) and not path.exists()
    ]
    if missing:
        raise all_in_one(missing)


def _counted(paths: Sequence[Path]) -> str:
    names = ", ".join(_spoken(path.name) for path in paths)
    return f"{len(paths)} seeds: {names}" if len(paths) > 1 else f"1 seed: {names}"


def _by_seed(paths: Sequence[Path]) -> list[tuple[str, list[Path]]]:
    """Group the seeds of each system, in the order of their first."""
    groups: dict[str, list[Path]] = {}
    for path in paths:
        members = groups.setdefault(_without_seed(path), [])
        if path in members:
            raise UsageError("is given twice as a seed of one system", where=str(path), do="Leave one out")
        members.append(path)
    return [(name if len(found) > 1 else str(found[0]), found) for name, found in groups.items()]


def _without_seed(path: Path) -> str:
    """Take out the part that names the seed; else what is behind the last dot, that of `.gz` aside."""
    name, found = _SEED.subn("", str(path))
    return name if found else os.path.splitext(str(path).removesuffix(".gz"))[0]


def _find(paths: Sequence[Path], test: str | None) -> list[_Place]:
    """Find where the text of each path lies; all runs have the test set of the first."""
    places = []
    for path in paths:
        if path.is_dir():
            outputs = from_run(path, test)
            test = outputs.test
            places.append(_Place(path, path / "tests" / test / "hypothesis.txt", outputs))
        else:
            places.append(_Place(path, path))
    return places


def _reference_of(runs: Sequence[_Place]) -> Path:
    """Find the reference that all runs share."""
    if not runs:
        raise UsageError("there is nothing to score against", do="Give the references: `-r FILE`")
    first = runs[0]
    wrong = [
        SynmtError(
            f"the references of its test set are not those of {first.given}",
            where=str(place.given),
            do="Score runs that were tested on the same sentences, or give the references: `-r FILE`",
        )
        for place in runs
        if place.run and first.run and place.run.reference != first.run.reference
    ]
    if wrong:
        raise all_in_one(wrong)
    return first.beside("reference.txt")


def _name_systems(groups: Sequence[tuple[str, list[tuple[_Place, list[str]]]]]) -> list[System]:
    """Name each system by its last part, or by all of what was given where two would be named alike."""
    short = [_spoken(Path(name).name) for name, _ in groups]
    alike = len(set(short)) < len(short)
    return [
        System(
            _spoken(name) if alike else brief,
            [
                Text(_spoken(place.given), text, place.beside("segments") if place.run else None)
                for place, text in texts
            ],
        )
        for brief, (name, texts) in zip(short, groups, strict=True)
    ]


def _spoken(path: Path | str) -> str:
    # a file may have a name that is not UTF-8; output is
    return "standard input" if str(path) == "-" else os.fsencode(path).decode(errors="backslashreplace")
