"""Where does one system beat another? Scores by group as tables, JSON and a part of a web page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.analysis import html
from synmt.analysis.groups.buckets import by_length, count_units, paper_buckets, parse_buckets
from synmt.analysis.groups.labels import group_by_labels
from synmt.analysis.groups.plot import check_table_count, draw_groups
from synmt.analysis.groups.scores import (
    FEW_SENTENCES,
    Grouping,
    GroupRow,
    GroupTable,
    SentenceScores,
    collect,
    tabulate,
)
from synmt.analysis.groups.sentences import Sentences, check_options, read_sentences
from synmt.analysis.groups.trees import group_by_trees, parse_side
from synmt.analysis.inputs import save_plot, score_outputs, scoring_options
from synmt.analysis.report import AnalysisReport, TextTable
from synmt.errors import UsageError
from synmt.evaluation.bootstrap import SAMPLES, SEED
from synmt.evaluation.metrics import Metric, make_metric
from synmt.evaluation.outputs import Outputs

if TYPE_CHECKING:
    from synmt.analysis.options import GroupOptions
    from synmt.evaluation.significance import Comparison


def analyze_groups(options: GroupOptions) -> AnalysisReport:
    """Score every group of test sentences, by length, tree or label, and compare with a baseline."""
    check_options(options)
    sentences = read_sentences(options)
    outputs, baseline = sentences.outputs, sentences.baseline
    scoring = scoring_options(outputs, options.tokenize, options.lowercase)
    metric = make_metric(options.metric, scoring)
    groupings, trees = _make_groupings(options, sentences)

    def scores_of(outputs: Outputs) -> SentenceScores:
        score = score_outputs(metric, outputs)
        scores = collect(score, outputs.hypothesis, outputs.reference, lowercase=scoring.lowercase)
        return scores if sentences.chosen is None else scores.select(sentences.chosen)

    system = scores_of(outputs)
    other = scores_of(baseline) if baseline else None
    tables = [tabulate(grouping, system, other) for grouping in groupings]
    report = GroupReport(
        tables, outputs.system, baseline.system if baseline else None, outputs.test, tuple(options.where), trees
    )
    if options.plot:
        draw = partial(draw_groups, tables, system=report.system, baseline=report.baseline, suffix=report.conditions)
        save_plot(options.plot, draw)
    runs = tuple(run.folder for run in (sentences.run, sentences.baseline_run) if run)
    return AnalysisReport(report.system, report.to_json, report.to_text, report.to_html, runs)


def _make_groupings(options: GroupOptions, sentences: Sentences) -> tuple[list[Grouping], str]:
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
    lengths = count_units(sentences.select(sentences.lines(side)), options.unit, vocabulary)  # (N,)
    edges = parse_buckets(options.buckets) if options.buckets else None
    return by_length(lengths, side=side, unit=options.unit, edges=edges)


def _group_by_trees(options: GroupOptions, sentences: Sentences) -> tuple[list[Grouping], str]:
    side = options.side or "source"
    lines = sentences.lines(side)
    if options.parses:
        from synmt.syntax.conllu import read_parses

        parses, trees = sentences.select(list(read_parses(options.parses, lines))), options.parses.name
    else:
        parses, trees = parse_side(options, sentences.run, sentences.select(lines), side=side)
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


@dataclass(frozen=True, eq=False)
class GroupReport:
    """The tables of an analysis.

    baseline: name of the system to compare with, if any.
    test: name of the test set; empty for files.
    where: the conditions that all sentences meet.
    trees: description of the trees; empty if none were needed.
    """

    tables: list[GroupTable]
    system: str
    baseline: str | None
    test: str
    where: tuple[str, ...]
    trees: str

    @property
    def metric(self) -> Metric:
        """The metric of all tables."""
        return self.tables[0].metric

    @property
    def conditions(self) -> str:
        """The conditions as the end of a title; empty if there are none."""
        return f", where {' and '.join(self.where)}" if self.where else ""

    @property
    def heading(self) -> str:
        """Title of all tables: systems, test set, conditions."""
        against = f" against {self.baseline}" if self.baseline else ""
        test = f", test set {self.test}" if self.test else ""
        return f"{self.system}{against}{test}{self.conditions}"

    @property
    def signature(self) -> str:
        """The metric with its sacreBLEU signature."""
        return f"{self.metric.title}|{self.metric.signature}"

    def to_json(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        return {
            "system": self.system,
            "baseline": self.baseline,
            "test": self.test or None,
            "where": list(self.where),
            "metric": self.metric.title,
            "higher_is_better": self.metric.higher_is_better,
            "signature": self.metric.signature,
            "trees": self.trees or None,
            "tables": [table.to_json() for table in self.tables],
        }

    def to_text(self) -> Iterator[str | TextTable]:
        """Yield the heading, the tables and the legend."""
        yield self.heading
        for table in self.tables:
            yield ""
            yield self._text_table(table)
        yield f"\n{self.signature}"
        yield from dict.fromkeys(line for table in self.tables for line in self._legend(table))

    def to_html(self) -> list[html.Section]:
        """Make a section of each table, with its figure."""
        return [self._section(table) for table in self.tables]

    def _text_table(self, table: GroupTable) -> TextTable:
        grouping = table.grouping
        name = f"{grouping.by} ({grouping.unit})" if grouping.unit else grouping.by
        columns = [name, "sentences", "share", f"share of {grouping.counted}", self.metric.title]
        columns += ["baseline", "difference", "95 % interval", "p"] if self.baseline else []
        if grouping.exact:
            columns += ["exact match", "baseline", "difference"] if self.baseline else ["exact match"]
        return TextTable(columns, [self._cells(row, exact=grouping.exact) for row in (*table.rows, table.total)])

    def _cells(self, row: GroupRow, *, exact: bool) -> list[str]:
        results = [row.system, row.baseline, row.difference][: 3 if self.baseline else 1]
        signs = ["", "", "+"]
        cells = [row.group + " *" * row.few, f"{row.count:,}", f"{row.share:.1%}", f"{row.text_share:.1%}"]
        cells += [f"{one.score:{sign}.2f}" if one else "-" for one, sign in zip(results, signs, strict=False)]
        cells += _interval_cells(row.comparison) if self.baseline else []
        if exact:
            cells += [f"{one.accuracy:{sign}.1%}" if one else "-" for one, sign in zip(results, signs, strict=False)]
        return cells

    def _legend(self, table: GroupTable) -> Iterator[str]:
        """Explain the columns that the table has."""
        if not self.metric.higher_is_better:
            yield f"{self.metric.title}: lower is better"
        yield f"share: share of the sentences; share of {table.grouping.counted}: share of their text"
        if table.grouping.about:
            yield table.grouping.about
            yield f"trees: {self.trees}"
        if self.baseline:
            yield (
                f"difference to {self.baseline}; interval and two-sided p: paired bootstrap within the group "
                f"(Koehn, 2004), {SAMPLES:,} resamples, seed {SEED}"
            )
            yield "p: not corrected for the number of groups; of 20 equal groups, about one has p < 0.05 by chance"
        if any(row.few for row in (*table.rows, table.total)):
            yield f"*: fewer than {FEW_SENTENCES} sentences" + ", too few for an interval" * (self.baseline is not None)

    def _section(self, table: GroupTable) -> html.Section:
        title = f"{self.metric.title} by {table.grouping.by}"
        above = f"{self.metric.title} of {self.system}"
        if self.baseline:
            above += f" minus that of {self.baseline}, with 95 % intervals"
        caption = f"{above}; below, each group's share and number of sentences."
        text = self._text_table(table)
        body = (
            html.paragraph(f"{self.heading}.")
            + html.table(text.columns, text.rows, caption=title)
            + html.figure(lambda: draw_groups([table], system=self.system, baseline=self.baseline), caption=caption)
        )
        return html.Section(
            title, body + "".join(html.paragraph(x, faint=True) for x in (*self._legend(table), self.signature))
        )


def _interval_cells(comparison: Comparison | None) -> list[str]:
    if comparison is None:
        return ["-", "-"]
    return [f"{comparison.low:+.2f} to {comparison.high:+.2f}", f"{comparison.p_value:.3f}"]
