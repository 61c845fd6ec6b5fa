"""Systems: the translations of one test set by each of them, a list for each seed.

Which paths are one system: patterns and seeds, and the names that systems have in tables.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from synmt.arrays import Texts
from synmt.data.inputs import differences, recorded_inputs
from synmt.errors import SynmtError, UsageError
from synmt.evaluation.metrics import printable
from synmt.evaluation.outputs import Outputs, from_run, scored_on
from synmt.files.reading import read_lines
from synmt.recipe.load import recipe_differences

_SEED_IN_NAME = re.compile(r"[-._]seed[-_]?\d+", re.IGNORECASE)

_MAY_DIFFER = {
    "name",
    "evaluation",
    "decoding.batch_size",
    "training.seed",
    "training.device",
    "training.compile",
    "training.log_every",
    "training.keep",
    "parser.seed",
    "parser.workers",
    "parser.device",
    "target_parser.seed",
    "target_parser.workers",
    "target_parser.device",
}
"""Recipe keys in which seeds of one system may differ."""


Group = tuple[str, list[Path]]
"""The name of a system, and its paths."""


@dataclass(frozen=True)
class System:
    """A system: its translations, for each training seed."""

    name: str
    seeds: Sequence[Outputs]


def read_groups(
    groups: Sequence[Group],
    *,
    references: Path | None = None,
    source: Path | None = None,
    test: str | None = None,
    on: str | None = None,
) -> list[System]:
    """Read systems from the names and paths that `group_paths` finds.

    references, source: files; by default those of the first run.
    test: the test set of the runs; by default `test`, else the first run's first by name.
    on: `text` or `tokens` of runs; by default as the first run's recipe says.
    """
    runs = dict[Path, Outputs]()
    for path in [path for _, seeds in groups for path in seeds if path.is_dir()]:
        runs[path] = from_run(path, test, on=on)
        # all runs have the test set of the first one, and its text or its tokens
        test, on = runs[path].test, "tokens" if runs[path].scoring.on_tokens else "text"
    first = next(iter(runs.values()), Outputs("", "", [], [], [], scoring=scored_on(on)))
    if references is not None:
        first = replace(first, reference=list(read_lines(references)))
    elif not runs:
        raise UsageError(
            "the reference is missing",
            do="Give it: `--reference FILE` in `synmt score`, `--references FILE` in `synmt "
            "analyze`",
        )
    if source is not None:
        first = replace(first, source=list(read_lines(source)), raw_source=None)
        _check_length(source, first.source, first)
    systems = []
    names = short_names([name for name, _ in groups])
    for name, (_, seeds) in zip(names, groups, strict=True):
        outputs_by_seed = []
        for path in seeds:
            shown = printable(path)
            outputs = runs.get(path)
            if outputs is None:
                lines, system = list(read_lines(path)), Path(shown).name
                outputs = replace(first, system=system, hypothesis=lines, tokens=None, run=None)
            if references is None and outputs.reference != first.reference:
                raise SynmtError(
                    f"its test set '{outputs.test}' is not that of {first.system}",
                    where=outputs.system,
                    do="Compare runs that were tested on the same sentences, or use `--reference`",
                )
            _check_length(path, outputs.hypothesis, first)
            outputs_by_seed.append(
                replace(
                    outputs,
                    path=shown,
                    reference=first.reference,
                    source=first.source,
                    raw_source=first.raw_source,
                )
            )
        systems.append(System(name, outputs_by_seed))
    return systems


def _check_length(path: Path, lines: Texts, outputs: Outputs) -> None:
    if len(lines) != len(outputs.reference):
        raise SynmtError(
            f"{len(lines):,} lines, but the reference has {len(outputs.reference):,}",
            where=printable(path),
            do="Line n of both must belong together",
        )


def renamed(systems: Sequence[System], names: Texts) -> list[System]:
    """Give systems other names, in their order; without names they keep theirs.

    Raises UsageError unless each has a name of its own.
    """
    if not names:
        return list(systems)
    if not len(set(names)) == len(names) == len(systems):
        own = ", ".join(system.name for system in systems)
        raise UsageError(
            f"each system needs a name of its own: there are {own}, and the names "
            f"{', '.join(names)}",
            where="--names",
            do="Name the systems in the order of the table, the baseline first",
        )
    return [System(name, system.seeds) for name, system in zip(names, systems, strict=True)]


def group_paths(
    paths: Sequence[Path], *, group_seeds: bool = False, apart: bool = False
) -> list[Group]:
    """Group files and run folders as seeds of systems: name and paths of each system.

    paths: `-`, files, run folders, and patterns of these; the matches of a pattern are seeds of one
        system.
    group_seeds: whether paths that differ only in a seed, or after their last dot, are one system.
    apart: whether each match of a pattern is a system instead.

    Raises SynmtError for a pattern that matches nothing, UsageError for runs that are not seeds of
    one system.
    """
    groups = [(str(path), matching(path)) for path in paths]
    if group_seeds:
        groups = group_by_seed([path for _, members in groups for path in members])
    if apart:
        return [(str(path), [path]) for _, members in groups for path in members]
    for _, members in groups:
        check_one_system([path for path in members if path.is_dir()])
    return [(name if len(members) > 1 else str(members[0]), members) for name, members in groups]


def matching(path: Path) -> list[Path]:
    """List the paths that match a pattern; a path that exists is not a pattern."""
    if str(path) == "-" or path.exists():
        return [path]
    matches = sorted(map(Path, glob.glob(str(path))))
    # `runs/*` also matches folders of other things
    matches = [
        matched for matched in matches if not matched.is_dir() or (matched / "run.json").exists()
    ] or matches
    if not matches:
        raise SynmtError("no such file or run folder", where=printable(path))
    return matches


def short_names(names: Texts) -> list[str]:
    """Name each system by the last part of its path, or by the whole path if two last parts are the
    same."""
    whole = [printable(name) for name in names]
    short = [Path(name).name or Path(name).resolve().name for name in whole]
    return short if len(set(short)) == len(short) else whole


def group_by_seed(paths: Sequence[Path]) -> list[Group]:
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
    return list(groups.items())


def name_with_seed(name: str, seed: int) -> str:
    """Name the run with another seed of the same system, so that `group_by_seed` finds both."""
    return f"{_SEED_IN_NAME.sub('', name)}-seed{seed}"


def check_one_system(runs: Sequence[Path]) -> None:
    """Raise UsageError if run folders differ in more than the seed: in recipes, or in what they
    learned from."""
    from synmt.recipe.load import recipe_values
    from synmt.run_folder import find_run

    members = [find_run(folder) for folder in runs]
    for other in members[1:]:
        before, after = (recipe_values(run.recipe()) for run in (members[0], other))
        changed = [key for key, *_ in recipe_differences(before, after, _MAY_DIFFER)]
        before, after = (recorded_inputs(run.info()) for run in (members[0], other))
        changed += [f"{key} ({file})" for key, file in differences(before, after)]
        if changed:
            raise UsageError(
                f"not a seed of the same system as {members[0].folder}: another {changed[0]}",
                where=other.folder,
                do="To score the translations of different systems as seeds, give the files, such "
                "as 'runs/*/tests/test/hypothesis.txt'",
            )
