"""Where does one system beat another? Groups of test sentences, and the report of their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, TypeVar

from synmt.analysis.groups.figure import draw_results, figure_caption
from synmt.analysis.groups.grouping import (
    PAPERS,
    UNITS,
    Grouping,
    by_length,
    count_units,
    paper_buckets,
    parse_buckets,
)
from synmt.analysis.groups.labels import choose_sentences, group_by_labels, read_labels
from synmt.analysis.groups.results import SentenceScores, collect, results_table, tabulate
from synmt.analysis.groups.trees import group_by_trees, parse_side
from synmt.analysis.inputs import check_name, save_plot, scoring_options
from synmt.analysis.systems import Translations, read_systems
from synmt.arrays import SIDES, BoolArray, Side
from synmt.errors import UsageError
from synmt.evaluation.comparison import score_outputs
from synmt.evaluation.metrics import make_metric
from synmt.evaluation.outputs import Outputs, the_test_set
from synmt.reporting.values import Figure, Report
from synmt.run_folder import Run
from synmt.syntax.parse import without_whitespace

if TYPE_CHECKING:
    from synmt.analysis.options import GroupOptions

MOST_TABLES = 8
"""The highest number of tables in one figure, one below the other."""

_T = TypeVar("_T")


def analyze_groups(options: GroupOptions) -> Report:
    """Score every group of test sentences, by length, tree or label, and compare systems with a
    baseline."""
    _check_options(options)
    sentences = _read_sentences(options)
    scoring = scoring_options(sentences.main, options.tokenize, options.lowercase, options.metric)
    metric = make_metric(options.metric, scoring)
    groupings, trees = _make_groupings(options, sentences)

    def scores_of(outputs: Outputs) -> SentenceScores:
        score = score_outputs(metric, outputs)
        scores = collect(score, outputs.hypothesis, outputs.reference, lowercase=scoring.lowercase)
        return scores if sentences.chosen is None else scores.select(sentences.chosen)

    systems = {
        system.name: [scores_of(seed) for seed in system.seeds] for system in sentences.systems
    }
    tables = [tabulate(grouping, systems) for grouping in groupings]
    heading = _heading(options, sentences)
    if options.plot:
        save_plot(options.plot, partial(draw_results, tables, suffix=_conditions(options)))
    parts = []
    for grouping, table in zip(groupings, tables, strict=True):
        remarks = [grouping.about, f"trees: {trees}"] if grouping.about else []
        shown = results_table(replace(table, notes=remarks), f"{metric.title} by {table.by}")
        caption = f"{heading}. {figure_caption(table)}"
        parts += [shown, Figure(draw=partial(draw_results, [table]), caption=caption)]
    facts = {
        "system": sentences.title,
        "baseline": sentences.names[0] if len(systems) > 1 else None,
        "systems": [{"system": name, "seeds": len(seeds)} for name, seeds in systems.items()],
        "test": sentences.main.test or None,
        "where": list(options.where),
        "metric": metric.title,
        "higher_is_better": metric.higher_is_better,
        "signature": metric.signature,
        "trees": trees or None,
        "groups": [
            {
                **table.as_json(),
                "text_in": grouping.counted,
                "overlapping": bool((grouping.members.sum(0) > 1).any()),
            }
            for grouping, table in zip(groupings, tables, strict=True)
        ],
    }
    signature = f"{metric.title}|{metric.signature}"
    return Report(
        title=heading,
        parts=parts,
        notes=[signature],
        facts=facts,
        system=sentences.title,
        runs=sentences.runs,
    )


def _conditions(options: GroupOptions) -> str:
    """Return the conditions as the end of a title; empty if there are none."""
    return f", where {' and '.join(options.where)}" if options.where else ""


def _heading(options: GroupOptions, sentences: Sentences) -> str:
    """Name systems with their numbers of seeds, test set and conditions."""
    counts = [(one.name, len(one.seeds)) for one in sentences.systems]
    base, *others = (f"{name} ({seeds} seeds)" if seeds > 1 else name for name, seeds in counts)
    named = f"{', '.join(others)} against {base}" if others else base
    test = sentences.main.test
    return f"{named}{f' on {the_test_set(test)}' if test else ''}{_conditions(options)}"


@dataclass(frozen=True, eq=False)
class Sentences(Translations):
    """A translated test set, and which of its sentences to group.

    labels: all label columns by name, with a value for each sentence of the test set; empty if no
        option needs them.
    chosen: (N,) which sentences meet the conditions of `--where`; None for all.
    """

    labels: dict[str, list[str]] = field(default_factory=dict)
    chosen: BoolArray | None = None

    def select(self, values: Sequence[_T]) -> list[_T]:
        """Keep the values of the chosen sentences."""
        return list(values if self.chosen is None else compress(values, self.chosen))

    def lines(self, side: Side, *, raw: bool = False) -> list[str]:
        """Return the words, or the raw text, of one side of the whole test set; the target is the
        reference."""
        outputs = self.main if raw else self.main.as_read()
        if side == "target":
            return outputs.reference
        if not outputs.source:
            raise UsageError(
                "lengths and trees of the source need the source text",
                do="Give it as `--source`, or use `--side target`",
            )
        return outputs.source


def _read_sentences(options: GroupOptions) -> Sentences:
    """Read the translations of runs or of files, those of the baseline, and the labels."""
    sentences = Sentences(read_systems(options))
    if not options.by_label and not options.where:
        return sentences
    main = sentences.main
    path = options.labels or main.labels
    if path is None:
        of = f"the test set {main.test}" if main.test else main.system
        raise UsageError(
            f"there are no labels of {of}",
            do="Add a file of labels to the command, such as `labels.tsv`",
        )
    labels = read_labels(path, len(main.reference))
    return replace(
        sentences,
        labels=labels,
        chosen=choose_sentences(labels, options.where) if options.where else None,
    )


def _make_groupings(options: GroupOptions, sentences: Sentences) -> tuple[list[Grouping], str]:
    """Make all groupings, and describe the trees, if any; slow parsing comes after everything that
    may fail."""
    labelled = _group_by_labels(options, sentences) if options.by_label else []
    if options.plot:
        _check_table_count(options, [one.by for one in labelled])
    groupings, trees = [], ""
    if options.by_length:
        groupings.append(_group_by_length(options, sentences))
    if options.by_depth or options.by_distance or options.by_relation:
        by_trees, trees = _group_by_trees(options, sentences)
        groupings += by_trees
    return groupings + labelled, trees


def _group_by_length(options: GroupOptions, sentences: Sentences) -> Grouping:
    paper, run = paper_buckets(options.buckets), sentences.main.run
    side = options.side or (paper.side if paper else "source")
    vocabulary = None
    if options.unit == "pieces":
        from synmt.data.vocabulary import Vocabulary

        if run is None:
            raise UsageError(
                "counting pieces needs the vocabulary of a run",
                where="--unit",
                do="Count words or characters, or give a run",
            )
        vocabulary = Vocabulary.load(run, side)
    lines = sentences.lines(side, raw=options.unit == "characters")
    if options.unit == "characters" and sentences.main.scoring.on_tokens:
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

        parses, trees = (
            sentences.select(list(read_parses(options.parses, lines))),
            options.parses.name,
        )
    else:
        numbers, run = sentences.select(range(1, len(lines) + 1)), sentences.main.run
        chosen = sentences.select(lines)
        parses, trees = parse_side(
            options, Run(run) if run else None, chosen, side=side, numbers=numbers
        )
    return group_by_trees(options, parses, side=side), trees


def _group_by_labels(options: GroupOptions, sentences: Sentences) -> list[Grouping]:
    main = sentences.main
    text = main.reference if options.side == "target" else main.source or main.reference
    sizes = count_units(sentences.select(text), "words")  # (N,)
    labels = {name: sentences.select(values) for name, values in sentences.labels.items()}
    return group_by_labels(labels, options.label, sizes)


def _check_table_count(options: GroupOptions, labels: Sequence[str]) -> None:
    """Raise UsageError for more tables than a figure has room for."""
    tables = [
        ("length", options.by_length),
        ("depth", options.by_depth),
        ("relation", options.by_relation),
    ]
    tables += [("mean distance", options.by_distance), ("longest distance", options.by_distance)]
    names = [*(name for name, chosen in tables if chosen), *labels]
    if len(names) > MOST_TABLES:
        raise UsageError(
            f"a plot shows at most {MOST_TABLES} tables, not {len(names)} ({', '.join(names)})",
            where=str(options.plot),
            do="Choose fewer, for example with `--by-label --label NAME`",
        )


def _check_options(options: GroupOptions) -> None:
    """Raise UsageError for options that do not fit together, before anything is read."""
    if not any(
        (
            options.by_length,
            options.by_depth,
            options.by_distance,
            options.by_relation,
            options.by_label,
        )
    ):
        raise UsageError("no groups are chosen", do="Choose at least one, such as `--by-length`")
    if options.labels is not None and options.labels.is_dir():
        do = "Give all systems to `--run`; `--baseline` takes one"
        raise UsageError("labels must be a file, not a folder", where=str(options.labels), do=do)
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
    measures = [
        f"--by-{name}" for name in ("length", "depth", "distance") if getattr(options, f"by_{name}")
    ]
    if of_paper and not options.by_length:
        raise UsageError(
            f"{', '.join(PAPERS)} are buckets of lengths", where="--buckets", do="Add `--by-length`"
        )
    if not measures:
        do = "Add `--by-length`, `--by-depth` or `--by-distance`"
        raise UsageError("no analysis uses buckets", where="--buckets", do=do)
    if len(measures) > 1 and not of_paper:
        what = f"the same numbers cannot be buckets of {' and '.join(measures)}"
        raise UsageError(what, where="--buckets", do="Choose one of them")
    if options.by_length and (edges[0] < 1 or any(edge != int(edge) for edge in edges)):
        raise UsageError(
            "lengths are whole numbers from 1 on",
            where="--buckets",
            do="Write for example `10,20,30`",
        )
