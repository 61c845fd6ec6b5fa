"""The sentences to group, and their groups: checks the options, and reads texts, labels and trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from synmt.analysis.groups.buckets import PAPERS, UNITS, by_length, count_units, paper_buckets, parse_buckets
from synmt.analysis.groups.grouping import Grouping
from synmt.analysis.groups.labels import choose_sentences, group_by_labels, read_labels
from synmt.analysis.groups.plot import check_table_count
from synmt.analysis.groups.trees import group_by_trees, parse_side
from synmt.analysis.inputs import as_paths, check_name, read_test
from synmt.analysis.systems import SystemOutputs, read_translations
from synmt.arrays import SIDES, BoolArray, Side
from synmt.errors import UsageError
from synmt.evaluation.outputs import Outputs
from synmt.run import Run, find_run
from synmt.syntax.parse import without_whitespace

if TYPE_CHECKING:
    from synmt.analysis.options import GroupOptions, WordOptions

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Sentences:
    """A test set translated by one system or several, and which of its sentences to group.

    systems: the baseline is the first of several.
    labels: all label columns by name, with a value for each sentence of the test set; empty if no option needs them.
    chosen: (N,) which sentences meet the conditions of `--where`; None for all.
    """

    systems: list[SystemOutputs]
    labels: dict[str, list[str]] = field(default_factory=dict)
    chosen: BoolArray | None = None

    @property
    def outputs(self) -> Outputs:
        """The translations that name text, labels and parser: a run's if there is one, and the baseline's last."""
        seeds = [seed for system in (*self.systems[1:], self.systems[0]) for seed in system.seeds]
        return next((seed for seed in seeds if seed.run), seeds[0])

    @property
    def runs(self) -> tuple[Path, ...]:
        """The run folders of all systems, those of the baseline last."""
        seeds = [seed.run for system in (*self.systems[1:], self.systems[0]) for seed in system.seeds]
        return tuple(dict.fromkeys(run for run in seeds if run))

    @property
    def run(self) -> Run | None:
        """The run that made these translations; None for files."""
        return Run(self.outputs.run) if self.outputs.run else None

    def select(self, values: Sequence[_T]) -> list[_T]:
        """Keep the values of the chosen sentences."""
        return list(values if self.chosen is None else compress(values, self.chosen))

    def lines(self, side: Side, *, raw: bool = False) -> list[str]:
        """Return the words, or the raw text, of one side of the whole test set; the target is the reference."""
        outputs = self.outputs if raw else self.outputs.as_read()
        if side == "target":
            return outputs.reference
        if not outputs.source:
            raise UsageError(
                "lengths and trees of the source need the source text",
                do="Give it as `--source`, or use `--side target`",
            )
        return outputs.source


def read_sentences(options: GroupOptions) -> Sentences:
    """Read the translations of runs or of files, those of the baseline, and the labels."""
    sentences = Sentences(read_systems(options))
    labels = _read_labels(options, sentences.outputs) if options.by_label or options.where else {}
    chosen = choose_sentences(labels, options.where) if options.where else None
    return replace(sentences, labels=labels, chosen=chosen)


def read_systems(options: GroupOptions | WordOptions) -> list[SystemOutputs]:
    """Read the translations of the runs or files that options name, by default of the newest run."""
    paths = _find_paths(options)
    if len(paths) == 1 and paths[0].is_dir() and options.baseline is None:
        outputs = read_test(paths[0], options.test)
        return [SystemOutputs(outputs.system, [outputs])]
    return read_translations(
        paths,
        baseline=options.baseline,
        test=options.test,
        references=options.references,
        source=options.source,
        group_seeds=options.group_seeds,
    )


def _find_paths(options: GroupOptions | WordOptions) -> list[Path]:
    """List the runs or files of the options, by default the newest run."""
    files, runs = as_paths(options.hypotheses), as_paths(options.run)
    if not files:
        if options.references or options.source:
            raise UsageError("references and source belong to translations", do="Give them as `--hypotheses`")
        return runs or [find_run(None).folder]
    if runs or options.test:
        raise UsageError("`--hypotheses` cannot be combined with a run or its test set", do="Give only one of them")
    if options.references is None:
        raise UsageError("translations need their references", do="Give them as `--references`")
    return files


def _read_labels(options: GroupOptions, outputs: Outputs) -> dict[str, list[str]]:
    path = options.labels or outputs.labels
    if path is None:
        of = f"the test set {outputs.test}" if outputs.test else outputs.system
        raise UsageError(f"there are no labels of {of}", do="Add a file of labels to the command, such as `labels.tsv`")
    return read_labels(path, len(outputs.reference))


def make_groupings(options: GroupOptions, sentences: Sentences) -> tuple[list[Grouping], str]:
    """Make all groupings, and describe the trees, if any; slow parsing comes after everything that may fail."""
    labelled = _group_by_labels(options, sentences) if options.by_label else []
    if options.plot:
        _check_table_count(options, labelled, options.plot)
    groupings, trees = [], ""
    if options.by_length:
        groupings.append(_group_by_length(options, sentences))
    if options.by_depth or options.by_distance or options.by_relation:
        by_trees, trees = _group_by_trees(options, sentences)
        groupings += by_trees
    return groupings + labelled, trees


def _group_by_length(options: GroupOptions, sentences: Sentences) -> Grouping:
    paper = paper_buckets(options.buckets)
    side = options.side or (paper.side if paper else "source")
    vocabulary = None
    if options.unit == "pieces":
        from synmt.data.vocabulary import Vocabulary

        if sentences.run is None:
            raise UsageError(
                "counting pieces needs the vocabulary of a run",
                where="--unit",
                do="Count words or characters, or give a run",
            )
        vocabulary = Vocabulary.load(sentences.run.folder, side)
    lines = sentences.lines(side, raw=options.unit == "characters")
    if options.unit == "characters" and sentences.outputs.scoring.on_tokens:
        # there is no raw text, and the spaces between words are no characters
        lines = list(map(without_whitespace, lines))
    lengths = count_units(sentences.select(lines), options.unit, vocabulary)  # (N,)
    edges = parse_buckets(options.buckets) if options.buckets else None
    return by_length(lengths, side=side, unit=options.unit, edges=edges)


def _group_by_trees(options: GroupOptions, sentences: Sentences) -> tuple[list[Grouping], str]:
    side = options.side or "source"
    lines = sentences.lines(side)
    if options.parses:
        from synmt.syntax.conllu import read_parses

        parses, trees = sentences.select(list(read_parses(options.parses, lines))), options.parses.name
    else:
        numbers = sentences.select(range(1, len(lines) + 1))
        parses, trees = parse_side(options, sentences.run, sentences.select(lines), side=side, numbers=numbers)
    return group_by_trees(options, parses, side=side), trees


def _group_by_labels(options: GroupOptions, sentences: Sentences) -> list[Grouping]:
    outputs = sentences.outputs
    text = outputs.reference if options.side == "target" else outputs.source or outputs.reference
    sizes = count_units(sentences.select(text), "words")  # (N,)
    labels = {name: sentences.select(values) for name, values in sentences.labels.items()}
    return group_by_labels(labels, options.label, sizes)


def _check_table_count(options: GroupOptions, labelled: Sequence[Grouping], plot: Path) -> None:
    tables = [("length", options.by_length), ("depth", options.by_depth), ("relation", options.by_relation)]
    tables += [("mean distance", options.by_distance), ("longest distance", options.by_distance)]
    check_table_count([*(name for name, chosen in tables if chosen), *(one.by for one in labelled)], plot)


def check_options(options: GroupOptions) -> None:
    """Raise UsageError for options that do not fit together, before anything is read."""
    if not any((options.by_length, options.by_depth, options.by_distance, options.by_relation, options.by_label)):
        raise UsageError("no groups are chosen", do="Choose at least one, such as `--by-length`")
    if options.labels is not None and options.labels.is_dir():
        do = "Give all systems to `--run`; `--baseline` takes one"
        raise UsageError("a folder is no file of labels", where=str(options.labels), do=do)
    if not options.by_label and (options.label or (options.labels and not options.where)):
        raise UsageError("no chosen analysis uses the labels", do="Add `--by-label`")
    check_name(options.unit, UNITS, "unit")
    check_name(options.side or "source", SIDES, "side")
    if options.buckets is not None:
        _check_buckets(options, options.buckets)
    if options.plot:
        from synmt.reporting.figures import check_plot

        check_plot(options.plot)


def _check_buckets(options: GroupOptions, buckets: str) -> None:
    edges, of_paper = parse_buckets(buckets), paper_buckets(buckets) is not None
    measures = [f"--by-{name}" for name in ("length", "depth", "distance") if getattr(options, f"by_{name}")]
    if of_paper and not options.by_length:
        raise UsageError(f"{', '.join(PAPERS)} are buckets of lengths", where="--buckets", do="Add `--by-length`")
    if not measures:
        do = "Add `--by-length`, `--by-depth` or `--by-distance`"
        raise UsageError("no analysis uses buckets", where="--buckets", do=do)
    if len(measures) > 1 and not of_paper:
        what = f"the same numbers cannot be buckets of {' and '.join(measures)}"
        raise UsageError(what, where="--buckets", do="Choose one of them")
    if options.by_length and (edges[0] < 1 or any(edge != int(edge) for edge in edges)):
        raise UsageError("lengths are whole numbers from 1 on", where="--buckets", do="Write for example `10,20,30`")
