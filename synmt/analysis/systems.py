"""The systems of an analysis: their translations of one test set, a list for each seed, and the baseline first."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.analysis.inputs import as_paths, read_test
from synmt.errors import UsageError
from synmt.evaluation.outputs import Outputs, baseline_of, from_files
from synmt.evaluation.system_paths import group_paths, printable
from synmt.run import find_run

if TYPE_CHECKING:
    from synmt.analysis.options import GroupOptions, WordOptions

_logger = logging.getLogger(__name__)

_Group = tuple[str, list[Path]]
"""The name and the paths of a system."""


@dataclass(frozen=True)
class SystemOutputs:
    """A system's translations of a test set.

    name: of the run or file; of several seeds, the pattern or the path without the seed.
    seeds: the translations of each seed, all of the same sentences.
    """

    name: str
    seeds: list[Outputs]


@dataclass(frozen=True, eq=False)
class Translations:
    """A test set translated by one system or several; the baseline is the first of several."""

    systems: list[SystemOutputs]

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
        """The translations that name text, labels and parser: a run's if there is one, and the baseline's last."""
        seeds = self._seeds()
        return next((seed for seed in seeds if seed.run), seeds[0])

    @property
    def runs(self) -> list[Path]:
        """The run folders of all systems, those of the baseline last."""
        return list(dict.fromkeys(seed.run for seed in self._seeds() if seed.run))

    def _seeds(self) -> list[Outputs]:
        return [seed for system in (*self.systems[1:], self.systems[0]) for seed in system.seeds]


def read_systems(options: GroupOptions | WordOptions) -> list[SystemOutputs]:
    """Read the translations of the runs or files that options name, by default of the newest run."""
    files, runs = as_paths(options.hypotheses), as_paths(options.run)
    if files and (runs or options.test):
        raise UsageError("`--hypotheses` cannot be combined with a run or its test set", do="Give only one of them")
    if files and options.references is None:
        raise UsageError("translations need their references", do="Give them as `--references`")
    if not files and (options.references or options.source):
        raise UsageError("references and source belong to translations", do="Give them as `--hypotheses`")
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
) -> list[SystemOutputs]:
    """Read the translations of one test set by several systems; the baseline, if it is given, becomes the first.

    paths: run folders, files of translations, and patterns of these, whose matches are seeds of one system.
    baseline: another path or pattern, or the name of one of the systems, such as `plain` for runs/plain-seed1; a seed
        of a system stands for the system.
    test: the test set of the runs; None for `test`, else the first run's first by name.
    references, source: of files, if no path is a run.
    group_seeds: whether paths that differ only in a seed, or after their last dot, are one system.

    Raises SynmtError if the systems did not translate the same sentences.
    """
    groups = _each_once(group_paths(paths, group_seeds=group_seeds))
    given = [path for _, members in groups for path in members]
    anchor = next((path for path in given if path.is_dir()), given[0])
    first = read_test(anchor, test) if references is None else from_files(anchor, references, source)
    if baseline is not None:
        groups = _put_first(groups, baseline, group_seeds=group_seeds)
    found = {anchor: first}
    for path in (path for _, members in groups for path in members):
        if path not in found:
            found[path] = baseline_of(first, path)
    return _name_systems(groups, found)


def _each_once(groups: Sequence[_Group]) -> list[_Group]:
    """Leave out a system that is there already: it would count as one more comparison."""
    found: list[_Group] = []
    for name, members in groups:
        if any(_same_runs(members, other) for _, other in found):
            _logger.warning("%s is given twice, and counts once", printable(name))
        else:
            found.append((name, members))
    return found


def _same_runs(some: Sequence[Path], others: Sequence[Path]) -> bool:
    return [path.resolve() for path in some] == [path.resolve() for path in others]


def _put_first(groups: Sequence[_Group], baseline: Path, *, group_seeds: bool) -> list[_Group]:
    """Put the baseline before the other systems, from which it is removed if it is one of them."""
    # a run may have the name of its system, `plain` next to `plain-seed2`
    wanted = str(baseline)
    named = [one for one in groups if wanted == one[0] or (wanted == Path(one[0]).name and not baseline.exists())]
    named = named or [one for one in groups if baseline.resolve() in (path.resolve() for path in one[1])]
    named = named or group_paths([baseline], group_seeds=group_seeds)
    if len(named) > 1:
        names = ", ".join(printable(name) for name, _ in named)
        raise UsageError(f"the baseline is one system, not {len(named)} ({names})", where="--baseline")
    others = [one for one in groups if not _same_runs(one[1], named[0][1])]
    if not others:
        _logger.warning("%s is its own baseline, so nothing is compared", printable(named[0][0]))
    return [*named, *others]


def _name_systems(groups: Sequence[_Group], found: Mapping[Path, Outputs]) -> list[SystemOutputs]:
    """Name each system by its run, its file or its pattern, or by the whole path if two names are the same."""
    names = [found[members[0]].system if len(members) == 1 else printable(Path(name).name) for name, members in groups]
    if len(set(names)) < len(names):
        names = [printable(name) for name, _ in groups]
    return [
        SystemOutputs(name, [found[path] for path in members]) for name, (_, members) in zip(names, groups, strict=True)
    ]
