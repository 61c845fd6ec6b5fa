"""Where does one system beat another? Groups of test sentences, and the report of their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import TypeVar

import numpy as np

from synmt.analysis.answers import differences_in_words
from synmt.analysis.groups.grouping import (
    Buckets,
    Grouping,
    Labels,
    by_length,
    choose_sentences,
    count_units,
    group_by_labels,
    parse_buckets,
    read_labels,
)
from synmt.analysis.groups.results import (
    SentenceScores,
    collect,
    draw_results,
    tabulate,
    with_figures,
)
from synmt.analysis.groups.trees import asks_for_trees, group_by_trees, parse_side
from synmt.analysis.inputs import Translations, read_systems
from synmt.analysis.options import GroupOptions
from synmt.arrays import BoolArray, Side
from synmt.errors import UsageError
from synmt.evaluation.comparison import score_outputs
from synmt.evaluation.metrics import make_metric
from synmt.evaluation.outputs import Outputs, the_test_set
from synmt.reporting.figures import check_plot, save_figure
from synmt.reporting.values import Report
from synmt.run_folder import Run
from synmt.syntax.parse import without_whitespace

_T = TypeVar("_T")


def analyze_groups(options: GroupOptions) -> Report:
    """Score every group of test sentences, by length, tree or label, and compare systems with a
    baseline."""
    check_plot(options.plot)
    buckets = parse_buckets(options.buckets) if options.buckets else None
    translations = Translations(read_systems(options))
    main = translations.main
    labels = _read_labels(options, main) if options.by_label or options.where else {}
    chosen = np.ones(len(main.reference), dtype=bool)
    if options.where:
        chosen = choose_sentences(labels, options.where)
    sentences = _Sentences(main, chosen)
    scoring = main.scoring.updated(options)
    metric = make_metric(options.metric, scoring)
    # slow parsing comes after everything that may fail
    labelled = _by_labels(options, sentences, labels) if options.by_label else []
    lengths = [_by_length(options, sentences, buckets)] if options.by_length else []
    asked = asks_for_trees(options)
    of_trees, trees = _by_trees(options, sentences, buckets) if asked else ([], "")

    def scores_of(outputs: Outputs) -> SentenceScores:
        return collect(
            score_outputs(metric, outputs),
            outputs.hypothesis,
            outputs.reference,
            lowercase=scoring.lowercase,
        ).select(chosen)

    systems = {system.name: list(map(scores_of, system.seeds)) for system in translations.systems}
    tables = [
        tabulate(
            grouping,
            systems,
            notes=[grouping.about, f"trees: {trees}"] if grouping.about else [],
        )
        for grouping in [*lengths, *of_trees, *labelled]
    ]
    save_figure(partial(draw_results, tables), options.plot)
    names = ", ".join(f"{name} (seeds: {len(seeds)})" for name, seeds in systems.items())
    test = f" on {the_test_set(main.test)}" if main.test else ""
    where = f", where {' and '.join(options.where)}" if options.where else ""
    return Report(
        title=names + test + where,
        parts=[
            differences_in_words(tables, next(iter(systems))),
            *with_figures([[table] for table in tables]),
        ],
        notes=[metric.label],
        runs=translations.runs,
    )


@dataclass(frozen=True, eq=False)
class _Sentences:
    """The sentences of a test set to group, and (N,) which of them are chosen."""

    outputs: Outputs
    chosen: BoolArray

    def select(self, values: Sequence[_T]) -> list[_T]:
        """Keep the values of the chosen sentences."""
        return list(compress(values, self.chosen))

    def lines(self, side: Side, *, raw: bool = False) -> list[str]:
        """Return the words, or the raw text, of one side of the whole test set; the target is the
        reference."""
        outputs = self.outputs if raw else self.outputs.as_read()
        if side == "source" and not outputs.source:
            raise UsageError(
                "lengths and trees of the source need the source text",
                do="Give it as `--source`, or use `--side target`",
            )
        return outputs.source if side == "source" else outputs.reference


def _read_labels(options: GroupOptions, main: Outputs) -> Labels:
    """Read the labels of a file, else of the test set of a run."""
    path = options.labels or (main.folder and main.folder / "labels.tsv")
    if path is None:
        raise UsageError(
            "there are no labels of the test set",
            where=main.system,
            do="Add a file of labels to the command, such as `labels.tsv`",
        )
    return read_labels(path, len(main.reference))


def _by_labels(options: GroupOptions, sentences: _Sentences, labels: Labels) -> list[Grouping]:
    main = sentences.outputs
    text = main.reference if options.side == "target" else main.source or main.reference
    sizes = count_units(sentences.select(text), "words")  # (N,)
    chosen = {name: sentences.select(values) for name, values in labels.items()}
    return group_by_labels(chosen, options.label, sizes)


def _by_length(options: GroupOptions, sentences: _Sentences, buckets: Buckets | None) -> Grouping:
    main = sentences.outputs
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
    return by_length(
        count_units(sentences.select(lines), options.unit, vocabulary),
        side=side,
        unit=options.unit,
        edges=buckets and buckets.edges,
    )


def _by_trees(
    options: GroupOptions, sentences: _Sentences, buckets: Buckets | None
) -> tuple[list[Grouping], str]:
    """Group sentences by the trees of a file or of a parser; returns where they come from, too."""
    side = options.side or "source"
    lines = sentences.lines(side)
    run = Run(sentences.outputs.run) if sentences.outputs.run else None
    [parses], trees = parse_side(options, run, [lines], side=side, arcs=options.by_entropy)
    # the buckets of a paper are for lengths
    edges = buckets.edges if buckets and not buckets.of_paper else None
    return group_by_trees(options, sentences.select(parses), side=side, edges=edges), trees
