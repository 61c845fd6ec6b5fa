"""The systems of an analysis: their translations of one test set, a list for each seed, and the
baseline first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from synmt.analysis.inputs import as_paths
from synmt.analysis.options import GroupOptions, WordOptions
from synmt.errors import UsageError
from synmt.evaluation.metrics import printable
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.systems import System, check_existence, group_paths, read_groups
from synmt.run_folder import find_run

_Group = tuple[str, list[Path]]
"""The name and the paths of a system."""

_Members = tuple[Path, ...]
"""The resolved paths of a system."""


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
        return next((seed for seed in self._seeds if seed.run), self._seeds[0])

    @property
    def runs(self) -> list[Path]:
        """The run folders of all systems, those of the baseline last."""
        return list(dict.fromkeys(seed.run for seed in self._seeds if seed.run))

    @property
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
    # one that is given twice would count as one more comparison
    groups = dict[_Members, _Group]()
    for name, members in group_paths(paths, group_seeds=group_seeds, apart=apart):
        groups.setdefault(_resolved(members), (name, members))
    first = None
    if baseline is not None:
        name, members = _find_baseline(list(groups.values()), baseline, group_seeds=group_seeds)
        first = _resolved(members)
        groups.setdefault(first, (name, members))
    if references is None and not any(path.is_dir() for members in groups for path in members):
        raise UsageError("translations need their references", do="Add `--references FILE`")
    systems = read_groups(list(groups.values()), test=test, references=references, source=source)
    if first is not None:
        systems.insert(0, systems.pop(list(groups).index(first)))
    return systems


def _resolved(members: Sequence[Path]) -> _Members:
    return tuple(path.resolve() for path in members)


def _find_baseline(groups: Sequence[_Group], baseline: Path, *, group_seeds: bool) -> _Group:
    """Find the baseline among the systems by its name or a seed, or as one more system."""
    wanted, is_there = str(baseline), baseline.exists()
    found = [
        # a run may have the name of its system, `plain` next to `plain-seed2`
        one
        for one in groups
        if wanted == one[0] or (wanted == Path(one[0]).name and not is_there)
    ]
    found = found or [one for one in groups if baseline.resolve() in _resolved(one[1])]
    if not found:
        check_existence([baseline])
        found = group_paths([baseline], group_seeds=group_seeds)
    if len(found) > 1:
        listed = ", ".join(printable(name) for name, _ in found)
        raise UsageError(f"the baseline must be one system, not {listed}", where="--baseline")
    return found[0]
