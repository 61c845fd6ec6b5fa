"""What `synmt analyze --by-…` reads: one or two systems' translations, labels, lengths, trees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from synmt.analysis.inputs import as_read, file_language, find_parser, name_parser, parse_lines, read_test
from synmt.analysis.scoring import scored
from synmt.cli import console
from synmt.errors import SynmtError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synmt.analysis.groups.scores import Evidence
    from synmt.arrays import BoolArray, IntArray, Side
    from synmt.evaluation.metrics import Metric
    from synmt.evaluation.outputs import Outputs
    from synmt.parsing.parser import StanzaParser
    from synmt.run import Run
    from synmt.syntax.parse import Parse

_T = TypeVar("_T")


@dataclass(frozen=True)
class System:
    """One system's translations, and the run that they are of; None for files, whose source may be one."""

    outputs: Outputs
    run: Run | None
    source: Path | None = None

    def lines(self, side: Side) -> list[str]:
        """Give the test set on one side; the target is the reference."""
        if side == "target":
            return self.outputs.reference
        if not self.outputs.source:
            raise UsageError(
                "lengths and trees are those of the source, which was not given",
                do="Give it as `--source`, or take `--side target`",
            )
        return self.outputs.source


@dataclass(frozen=True, eq=False)
class Sentences:
    """The test sentences that the tables are about.

    system, baseline: those that translated all of the test set.
    where: the conditions that the sentences meet.
    chosen: (N,) which of the test set they are; None for all.
    labels: all columns by their names, a value for each chosen sentence; empty where none are needed.
    """

    system: System
    baseline: System | None
    where: tuple[str, ...]
    chosen: BoolArray | None
    labels: dict[str, list[str]]

    def only(self, values: Sequence[_T]) -> list[_T]:
        """Leave out what belongs to other sentences."""
        return list(values if self.chosen is None else compress(values, self.chosen))


def read_system(
    run: Path | None, test: str | None, hypotheses: Path | None, references: Path | None, source: Path | None
) -> System:
    """Read the translations of a run, or of files."""
    from synmt.evaluation.outputs import from_files
    from synmt.run import find_run

    if hypotheses is None:
        if references or source:
            raise UsageError("references and source belong to translations", do="Give them as `--hypotheses`")
        opened = find_run(run)
        return System(read_test(opened.folder, test), opened)
    if run or test:
        raise UsageError("a run and `--hypotheses` exclude each other", do="Give one of them")
    if references is None:
        raise UsageError("translations need their references", do="Give them as `--references`")
    return System(from_files(hypotheses, references, source), None, source)


def read_baseline(system: System, baseline: Path | None) -> System | None:
    """Read what another run or a file of translations has for the same sentences."""
    from synmt.evaluation.outputs import baseline_of
    from synmt.run import Run

    if baseline is None:
        return None
    other = baseline_of(system.outputs, baseline)
    return System(other, Run(baseline) if baseline.is_dir() else None)


def choose(
    system: System, baseline: System | None, labels: Path | None, where: Sequence[str], *, by_label: bool
) -> Sentences:
    """Read the labels where they are needed, and leave out the sentences that do not meet the conditions."""
    from synmt.analysis.groups.labels import choose_sentences, read_labels

    if not by_label and not where:
        return Sentences(system, baseline, (), None, {})
    path = labels or system.outputs.labels
    if path is None:
        raise UsageError(
            f"there are no labels with {system.outputs.test or system.outputs.system}",
            do="Give a file: `synmt analyze LABELS.tsv …`",
        )
    columns = read_labels(path, len(system.outputs.reference))
    about = Sentences(system, baseline, tuple(where), choose_sentences(columns, where) if where else None, columns)
    return replace(about, labels={name: about.only(values) for name, values in columns.items()})


def evidence(about: Sentences, metric: Metric, *, lowercase: bool) -> tuple[Evidence, Evidence | None]:
    """Score both systems on the whole test set, so that what is known of it serves again, and take the sentences."""
    from synmt.analysis.groups.scores import collect

    def of(system: System) -> Evidence:
        outputs = system.outputs
        score = scored(metric, outputs, system.run.folder if system.run else None)
        found = collect(score, outputs.hypothesis, outputs.reference, lowercase=lowercase)
        return found if about.chosen is None else found.only(about.chosen)

    return of(about.system), of(about.baseline) if about.baseline else None


def lengths(about: Sentences, side: Side, unit: str) -> IntArray:
    """Measure the sentences of one side: (N,)."""
    from synmt.analysis.groups.groupings import count_units
    from synmt.data.vocabulary import Vocabulary

    vocabulary = None
    if unit == "pieces":
        if about.system.run is None:
            raise UsageError(
                "pieces are those of a run's vocabulary, and these are files",
                where="--unit",
                do="Count words or characters, or give a run",
            )
        vocabulary = Vocabulary.load(about.system.run.folder, side)
    return count_units(about.only(about.system.lines(side)), unit, vocabulary)


def trees(about: Sentences, side: Side, parser: str | None, parses: Path | None) -> tuple[list[Parse], str]:
    """Read the trees of one side, or parse it, and say whose they are."""
    from synmt.syntax.conllu import read_parses

    lines = about.system.lines(side)
    if parses:
        return about.only(list(read_parses(parses, lines))), parses.name
    found = (
        _run_parser(about.system.run, side, parser)
        if about.system.run
        else _file_parser(side, about.system.source, parser)
    )
    whose = name_parser(found)
    if about.system.run and side == "source":
        whose += _read(about.system.run, named=parser is not None)
    console.remark(f"trees of the {side}: {whose}")
    return parse_lines(found, about.only(lines)), whose


def _read(run: Run, *, named: bool) -> str:
    """Say where the model reads other trees of the source than the parser's; those that were given are not at hand."""
    from synmt.data.batch import reading_of
    from synmt.training.tree_requirements import tree_requirements

    recipe = run.recipe()
    if not tree_requirements(recipe)["source"].to_run:
        return ""
    if run.info().get("parser") is None:
        what = "gold trees" if recipe.parser.control == "gold" else "trees that were given with its text"
        console.remark(f"the model has learnt to read {what}, not these; give those by `--parses FILE.conllu`")
        return ""
    control = reading_of((), recipe.parser).control
    return "" if named or control.idle else as_read(control)


def _run_parser(run: Run, side: Side, model: str | None) -> StanzaParser:
    """Find the parser that was named, else the run's own where it records one for the side, else its recipe's."""
    from synmt.decode.tree_provider import recorded_parser

    identity = run.info().get("parser")
    if model is None and side == "source" and identity is not None:
        return recorded_parser(identity, "auto", arcs=False)
    try:
        return find_parser(run.recipe(), side, model, to="parse")
    except SynmtError as error:
        do = f"{error.do}, or give trees by `--parses FILE.conllu`"
        raise type(error)(error.what, allowed=error.allowed, do=do) from None


def _file_parser(side: Side, source: Path | None, model: str | None) -> StanzaParser:
    from synmt.parsing.parser import StanzaParser

    do = "Parse it with `synmt parse --lang … --model …`, and give the trees by `--parses FILE.conllu`"
    if side == "target":
        raise UsageError(
            "files do not say in which language their target is",
            allowed="Without trees, only the source is parsed",
            do=do,
        )
    try:
        return StanzaParser(file_language(source), model=model or "compact")
    except SynmtError as error:
        raise type(error)(error.what, where=error.where, allowed=error.allowed, do=do) from None
