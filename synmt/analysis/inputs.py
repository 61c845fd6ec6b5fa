"""Steps that several analyses share: read a test set and its translations by systems, parse its
lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.analysis.options import Paths, SystemOptions
from synmt.arrays import Texts
from synmt.errors import UsageError, adding_advice
from synmt.evaluation.metrics import printable
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.systems import Group, System, group_paths, read_groups, renamed
from synmt.reporting.progress import progress
from synmt.run_folder import Run, find_run

if TYPE_CHECKING:
    from synmt.analysis.forward_passes import ParsedText
    from synmt.arrays import Side
    from synmt.decode.translator import Translator
    from synmt.parsing.parser import StanzaParser
    from synmt.recipe.schema import Recipe
    from synmt.syntax.parse import Parse

_LINES_AT_ONCE = 256
"""How many lines are parsed between two updates of the progress."""


def as_paths(paths: Paths) -> list[Path]:
    """List the paths of an option that takes one or several."""
    return [] if paths is None else [paths] if isinstance(paths, Path) else list(paths)


def find_parser(recipe: Recipe, side: Side, model: str | None) -> StanzaParser:
    """Find the parser or tagger of one side: the model that the user named, else the recipe's or
    Stanza's default."""
    from synmt.training.tree_sources import make_parser, parser_section

    do = f"Name a model with `--parser FOLDER`, or in the recipe, as `{parser_section(side)}.model`"
    with adding_advice(do):
        return make_parser(recipe, side, model)


def file_language(path: Path | None, side: Side) -> str:
    """Read the language of a file from its name, `test.de` or `test.de.gz`; a source without one is
    English."""
    ending = Path(str(path).removesuffix(".gz")).suffix.removeprefix(".")
    if len(ending) == 2 and ending.isalpha() and ending.islower():
        return ending
    if side == "target":
        do = "End the name of the references in it, such as `test.de`"
        raise UsageError("the language of the target is unknown", do=do)
    return "en"


def parse_text(
    translator: Translator,
    run: Run,
    side: Side,
    source: Texts,
    target: Texts | None,
    named: str | None,
) -> ParsedText:
    """Parse one side with the parser that the user named, else the one that the run records for the
    side, else the recipe's.

    A model that reads trees of the recorded parser reads these trees.
    """
    from synmt.analysis.forward_passes import ParsedText

    recorded = named is None and side == "source" and translator.parser_identity is not None
    parser = translator.parser if recorded else find_parser(run.recipe(), side, named)
    parses = parse_lines(parser, source if target is None else target)
    read = parses if recorded and translator.reads_trees else None
    return ParsedText(side, source, target, parses, read, name_parser(parser))


def check_recorded(translator: Translator, run: Path, option: str = "") -> None:
    """Raise UsageError for a model that reads trees if its run does not record their parser.

    option: takes a file of trees instead.
    """
    if translator.reads_trees and translator.parser_identity is None:
        from synmt.decode.tree_provider import unknown_parser

        give = f", or give the trees of the text with `{option} FILE.conllu`" if option else ""
        raise unknown_parser(where=str(run), do=f"Use a run that records its parser{give}")


def parse_lines(parser: StanzaParser, lines: Texts) -> list[Parse]:
    """Parse lines, with progress, and warn of each line that could not be parsed into one tree;
    trees are cached between runs."""
    from synmt.parsing.cache import CachedParser
    from synmt.parsing.lines import warn_of_failure

    cached, parses = CachedParser(parser), []

    def warn(index: int, reason: str) -> None:
        warn_of_failure(len(parses) + index + 1, reason)

    with progress("parsing", len(lines), "lines") as advance:
        for first in range(0, len(lines), _LINES_AT_ONCE):
            window = lines[first : first + _LINES_AT_ONCE]
            parses += cached.parse(window, on_failure=warn)
            advance(len(window))
    return parses


def name_parser(parser: StanzaParser) -> str:
    """Name a parser for users; a model in a folder has the name of the folder."""
    named = parser.model in ("compact", "official")
    model = parser.model if named else parser.folder.resolve().name
    return f"Stanza ({model}, {parser.language})"


def describe_trees(translator: Translator, text: ParsedText) -> str:
    """Describe where the trees of a text come from, and how a model that reads them changes
    them."""
    if text.model_trees is None or not translator.reads_trees:
        return text.made_by
    control = translator.reading.control
    changed = f"; the model reads {control.name} trees instead"
    return text.made_by + (", as the model reads it" if control.idle else changed)


_Members = tuple[Path, ...]
"""The resolved paths of a system."""


@dataclass(frozen=True, eq=False)
class Translations:
    """A test set translated by one system or several; the baseline is the first of several."""

    systems: Sequence[System]

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


def read_systems(options: SystemOptions) -> list[System]:
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
        names=options.names,
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
    names: Texts = (),
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
    names: of the systems in tables, the baseline first.

    Raises SynmtError if the systems did not translate the same sentences.
    """
    # one that is given twice would count as one more comparison
    groups = dict[_Members, Group]()
    for name, members in group_paths(paths, group_seeds=group_seeds, apart=apart):
        groups.setdefault(_resolved(members), (name, members))
    first = None
    if baseline is not None:
        name, members = _find_baseline(list(groups.values()), baseline, group_seeds=group_seeds)
        first = _resolved(members)
        groups.setdefault(first, (name, members))
    systems = read_groups(list(groups.values()), test=test, references=references, source=source)
    if first is not None:
        systems.insert(0, systems.pop(list(groups).index(first)))
    return renamed(systems, names)


def _resolved(members: Sequence[Path]) -> _Members:
    return tuple(path.resolve() for path in members)


def _find_baseline(groups: Sequence[Group], baseline: Path, *, group_seeds: bool) -> Group:
    """Find the baseline among the systems by its name or a seed, or as one more system."""
    wanted, is_there = str(baseline), baseline.exists()
    matches = [
        # a run may have the name of its system, `plain` next to `plain-seed2`
        group
        for group in groups
        if wanted == group[0] or (wanted == Path(group[0]).name and not is_there)
    ]
    matches = (
        matches
        or [group for group in groups if baseline.resolve() in _resolved(group[1])]
        or group_paths([baseline], group_seeds=group_seeds)
    )
    if len(matches) > 1:
        listed = ", ".join(printable(name) for name, _ in matches)
        raise UsageError(f"the baseline must be one system, not {listed}", where="--baseline")
    return matches[0]
