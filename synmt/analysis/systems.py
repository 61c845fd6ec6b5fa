"""The systems of an analysis: their translations of one test set, a list for each seed, and the
baseline first."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.analysis.inputs import as_paths, log_other_tests
from synmt.errors import UsageError
from synmt.evaluation.metrics import printable
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.systems import System, check_existence, group_paths, read_groups
from synmt.run_folder import find_run

if TYPE_CHECKING:
    from synmt.analysis.options import GroupOptions, WordOptions

_logger = logging.getLogger(__name__)

_Group = tuple[str, list[Path]]
"""The name and the paths of a system."""


@dataclass(frozen=True, eq=False)
class Translations:
    """A test set translated by one system or several; the baseline is the first of several."""

    systems: Sequence[System]

    @property
    def names(self) -> list[str]:
        """The names of the systems."""
        return [system.name for system in self.systems]

    @property
    def title(self) -> str:
        """The names of the systems that are compared with the baseline."""
        return ", ".join(self.names[1:] or self.names)

    @property
    def main(self) -> Outputs:
        """The translations that name text, labels and parser: a run's if there is one, and the
        baseline's last."""
        seeds = self._seeds()
        return next((seed for seed in seeds if seed.run), seeds[0])

    @property
    def runs(self) -> list[Path]:
        """The run folders of all systems, those of the baseline last."""
        return list(dict.fromkeys(seed.run for seed in self._seeds() if seed.run))

    def _seeds(self) -> list[Outputs]:
        return [seed for system in (*self.systems[1:], self.systems[0]) for seed in system.seeds]


def read_systems(options: GroupOptions | WordOptions) -> list[System]:
    """Read the translations of the runs or files that options name, by default of the newest
    run."""
    files, runs = as_paths(options.hypotheses), as_paths(options.run)
    if files and (runs or options.test):
        raise UsageError(
            "`--hypotheses` cannot be combined with a run or its test set",
            do="Give only one of them",
        )
    if files and options.references is None:
        raise UsageError("translations need their references", do="Give them as `--references`")
    if not files and (options.references or options.source):
        raise UsageError(
            "references and source belong to translations", do="Give them as `--hypotheses`"
        )
    return read_translations(
        files or runs or [find_run(None).folder],
        baseline=options.baseline,
        test=options.test,
        references=options.references,
        source=options.source,
        group_seeds=options.group_seeds,
    )


def read_translations(
    paths: Sequence[Path],
    *,
    baseline: Path | None = None,
    test: str | None = None,
    references: Path | None = None,
    source: Path | None = None,
    group_seeds: bool = False,
    apart: bool = False,
) -> list[System]:
    """Read the translations of one test set by several systems; the baseline, if it is given,
    becomes the first.

    paths: run folders, files of translations, and patterns of these, whose matches are seeds of one
        system.
    baseline: another path or pattern, or the name of one of the systems, such as `plain` for
        runs/plain-seed1; a seed of a system stands for the system.
    test: the test set of the runs; None for `test`, else the first run's first by name.
    references, source: of files, if no path is a run.
    group_seeds, apart: which paths are one system, see `group_paths`.

    Raises SynmtError if the systems did not translate the same sentences.
    """
    check_existence(paths)
    groups = _each_once(group_paths(paths, group_seeds=group_seeds, apart=apart))
    first = None if baseline is None else _find_baseline(groups, baseline, group_seeds=group_seeds)
    if first is not None and first not in groups:
        groups.append(first)
    members = [path for _, seeds in groups for path in seeds]
    folders = [path for path in members if path.is_dir()]
    if references is None and not folders:
        # raises the error for a file in the place of a run
        find_run(members[0])
    if references is not None and folders:
        raise UsageError(
            "translations in a file cannot be compared with a run",
            where=str(folders[0]),
            do="Give the file of its translations, tests/NAME/hypothesis.txt in its folder",
        )
    systems = read_groups(groups, test=test, references=references, source=source)
    log_other_tests(systems[0].seeds[0], test)
    if first is not None:
        systems.insert(0, systems.pop(groups.index(first)))
    return systems


def _each_once(groups: Sequence[_Group]) -> list[_Group]:
    """Leave out a system that is there already: it would count as one more comparison."""
    found = []
    for name, members in groups:
        if any(_same_runs(members, other) for _, other in found):
            _logger.warning("%s is given twice, and counts once", printable(name))
        else:
            found.append((name, members))
    return found


def _same_runs(some: Sequence[Path], others: Sequence[Path]) -> bool:
    return [path.resolve() for path in some] == [path.resolve() for path in others]


def _find_baseline(groups: Sequence[_Group], baseline: Path, *, group_seeds: bool) -> _Group:
    """Find the baseline among the systems by its name or a seed, or as one more system."""
    # a run may have the name of its system, `plain` next to `plain-seed2`
    wanted = str(baseline)
    found = [
        one
        for one in groups
        if wanted == one[0] or (wanted == Path(one[0]).name and not baseline.exists())
    ]
    found = found or [
        one for one in groups if baseline.resolve() in (path.resolve() for path in one[1])
    ]
    if not found:
        check_existence([baseline])
        found = group_paths([baseline], group_seeds=group_seeds)
    if len(found) > 1:
        names = ", ".join(printable(name) for name, _ in found)
        raise UsageError(
            f"the baseline is one system, not {len(found)} ({names})", where="--baseline"
        )
    [first] = [one for one in groups if _same_runs(one[1], found[0][1])] or found
    if list(groups) == [first]:
        _logger.warning("%s is its own baseline, so nothing is compared", printable(first[0]))
    return first
