"""Where does one system beat another? Groups of test sentences, and the report of their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from typing import TypeVar

from synmt.analysis.groups.figure import draw_results, figure_caption
from synmt.analysis.groups.grouping import (
    PAPERS,
    UNITS,
    Buckets,
    Grouping,
    by_length,
    choose_sentences,
    count_units,
    group_by_labels,
    parse_buckets,
    read_labels,
)
from synmt.analysis.groups.results import SentenceScores, collect, results_table, tabulate
from synmt.analysis.groups.trees import group_by_trees, parse_side
from synmt.analysis.inputs import check_name, save_plot, scoring_options
from synmt.analysis.options import GroupOptions
from synmt.analysis.systems import Translations, read_systems
from synmt.arrays import SIDES, BoolArray, Side
from synmt.errors import UsageError
from synmt.evaluation.comparison import score_outputs
from synmt.evaluation.metrics import make_metric
from synmt.evaluation.outputs import Outputs, the_test_set
from synmt.reporting.figures import check_plot
from synmt.reporting.values import Figure, Report
from synmt.run_folder import Run
from synmt.syntax.parse import without_whitespace

MOST_TABLES = 8
"""The highest number of tables in one figure, one below the other."""

_T = TypeVar("_T")


def analyze_groups(options: GroupOptions) -> Report:
    """Score every group of test sentences, by length, tree or label, and compare systems with a
    baseline."""
    buckets = _check_options(options)
    sentences = _read_sentences(options)
    main = sentences.main
    scoring = scoring_options(main, options.tokenize, options.lowercase, options.metric)
    metric = make_metric(options.metric, scoring)
    groupings, trees = _make_groupings(options, sentences, buckets)

    def scores_of(outputs: Outputs) -> SentenceScores:
        score = score_outputs(metric, outputs)
        scores = collect(score, outputs.hypothesis, outputs.reference, lowercase=scoring.lowercase)
        return scores if sentences.chosen is None else scores.select(sentences.chosen)

    systems = {one.name: list(map(scores_of, one.seeds)) for one in sentences.systems}
    tables = [tabulate(grouping, systems) for grouping in groupings]
    conditions = f", where {' and '.join(options.where)}" if options.where else ""
    base, *others = (
        f"{name} ({len(seeds)} seeds)" if len(seeds) > 1 else name
        for name, seeds in systems.items()
    )
    heading = f"{', '.join(others)} against {base}" if others else base
    heading += (f" on {the_test_set(main.test)}" if main.test else "") + conditions
    if options.plot:
        save_plot(options.plot, partial(draw_results, tables, suffix=conditions))
    parts, groups = [], []
    for grouping, table in zip(groupings, tables, strict=True):
        remarks = [grouping.about, f"trees: {trees}"] if grouping.about else []
        shown = results_table(replace(table, notes=remarks), f"{metric.title} by {table.by}")
        caption = f"{heading}. {figure_caption(table)}"
        parts += [shown, Figure(draw=partial(draw_results, [table]), caption=caption)]
        overlapping = bool((grouping.members.sum(0) > 1).any())
        groups.append(table.as_json() | {"text_in": grouping.counted, "overlapping": overlapping})
    facts = {
        "system": sentences.title,
        "baseline": sentences.names[0] if len(systems) > 1 else None,
        "systems": [{"system": name, "seeds": len(seeds)} for name, seeds in systems.items()],
        "test": main.test or None,
        "where": list(options.where),
        "metric": metric.title,
        "higher_is_better": metric.higher_is_better,
        "signature": metric.signature,
        "trees": trees or None,
        "groups": groups,
    }
    return Report(
        title=heading,
        parts=parts,
        notes=[f"{metric.title}|{metric.signature}"],
        facts=facts,
        system=sentences.title,
        runs=sentences.runs,
    )


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
    path = options.labels or (main.folder and main.folder / "labels.tsv")
    if path is None or not (options.labels or path.exists()):
        of = f"the test set {main.test}" if main.test else main.system
        raise UsageError(
            f"there are no labels of {of}",
            do="Add a file of labels to the command, such as `labels.tsv`",
        )
    labels = read_labels(path, len(main.reference))
    chosen = choose_sentences(labels, options.where) if options.where else None
    return replace(sentences, labels=labels, chosen=chosen)


def _make_groupings(
    options: GroupOptions, sentences: Sentences, buckets: Buckets | None
) -> tuple[list[Grouping], str]:
    """Make all groupings, and describe the trees, if any; slow parsing comes after everything that
    may fail."""
    main, labelled = sentences.main, []
    if options.by_label:
        text = main.reference if options.side == "target" else main.source or main.reference
        sizes = count_units(sentences.select(text), "words")  # (N,)
        labels = {name: sentences.select(values) for name, values in sentences.labels.items()}
        labelled = group_by_labels(labels, options.label, sizes)
    if options.plot:
        _check_table_count(options, [one.by for one in labelled])
    groupings, trees = [], ""
    if options.by_length:
        groupings.append(_group_by_length(options, sentences, buckets))
    if options.by_depth or options.by_distance or options.by_relation:
        side = options.side or "source"
        lines = sentences.lines(side)
        if options.parses:
            from synmt.syntax.conllu import read_parses

            parses = sentences.select(list(read_parses(options.parses, lines)))
            trees = options.parses.name
        else:
            numbers, run = sentences.select(range(1, len(lines) + 1)), main.run and Run(main.run)
            chosen = sentences.select(lines)
            parses, trees = parse_side(options, run, chosen, side=side, numbers=numbers)
        # the buckets of a paper are for lengths
        edges = buckets.edges if buckets and not buckets.of_paper else None
        groupings += group_by_trees(options, parses, side=side, edges=edges)
    return groupings + labelled, trees


def _group_by_length(
    options: GroupOptions, sentences: Sentences, buckets: Buckets | None
) -> Grouping:
    main = sentences.main
    side, vocabulary = options.side or (buckets.side if buckets else "source"), None
    if options.unit == "pieces":
        from synmt.data.vocabulary import Vocabulary

        if main.run is None:
            raise UsageError(
                "counting pieces needs the vocabulary of a run",
                where="--unit",
                do="Count words or characters, or give a run",
            )
        vocabulary = Vocabulary.load(main.run, side)
    lines = sentences.lines(side, raw=options.unit == "characters")
    if options.unit == "characters" and main.scoring.on_tokens:
        # there is no raw text, and the spaces between words are no characters
        lines = list(map(without_whitespace, lines))
    lengths = count_units(sentences.select(lines), options.unit, vocabulary)  # (N,)
    return by_length(lengths, side=side, unit=options.unit, edges=buckets and buckets.edges)


def _check_table_count(options: GroupOptions, labels: Sequence[str]) -> None:
    """Raise UsageError for more tables than a figure has room for."""
    tables = {
        "length": options.by_length,
        "depth": options.by_depth,
        "relation": options.by_relation,
        "mean distance": options.by_distance,
        "longest distance": options.by_distance,
    }
    names = [*(name for name, chosen in tables.items() if chosen), *labels]
    if len(names) > MOST_TABLES:
        raise UsageError(
            f"a plot shows at most {MOST_TABLES} tables, not {len(names)} ({', '.join(names)})",
            where=str(options.plot),
            do="Choose fewer, for example with `--by-label --label NAME`",
        )


def _check_options(options: GroupOptions) -> Buckets | None:
    """Raise UsageError for options that do not fit together, before anything is read; returns the
    buckets."""
    measures = [
        f"--by-{name}" for name in ("length", "depth", "distance") if getattr(options, f"by_{name}")
    ]
    if not (measures or options.by_relation or options.by_label):
        raise UsageError("no groups are chosen", do="Choose at least one, such as `--by-length`")
    if options.labels is not None and options.labels.is_dir():
        do = "Give all systems to `--run`; `--baseline` takes one"
        raise UsageError("labels must be a file, not a folder", where=str(options.labels), do=do)
    if not options.by_label and (options.label or (options.labels and not options.where)):
        raise UsageError("no chosen analysis uses the labels", do="Add `--by-label`")
    check_name(options.unit, UNITS, "unit")
    check_name(options.side or "source", SIDES, "side")
    if options.plot:
        check_plot(options.plot)
    if options.buckets is None:
        return None
    buckets = parse_buckets(options.buckets)
    if buckets.of_paper and not options.by_length:
        raise UsageError(
            f"{', '.join(PAPERS)} are buckets of lengths", where="--buckets", do="Add `--by-length`"
        )
    if not measures:
        do = "Add `--by-length`, `--by-depth` or `--by-distance`"
        raise UsageError("no analysis uses buckets", where="--buckets", do=do)
    if len(measures) > 1 and not buckets.of_paper:
        what = f"the same numbers cannot be buckets of {' and '.join(measures)}"
        raise UsageError(what, where="--buckets", do="Choose one of them")
    edges = buckets.edges
    if options.by_length and (edges[0] < 1 or any(edge != int(edge) for edge in edges)):
        what = "lengths are whole numbers from 1 on"
        raise UsageError(what, where="--buckets", do="Write for example `10,20,30`")
    return buckets
