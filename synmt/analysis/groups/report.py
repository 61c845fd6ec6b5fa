"""Where does one system beat another? Scores by group as tables, JSON and a part of a web page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from synmt.analysis.groups.page import table_section
from synmt.analysis.groups.plot import draw_groups
from synmt.analysis.groups.scores import FEW_SENTENCES, GroupRow, GroupTable, SentenceScores, collect, tabulate
from synmt.analysis.groups.sentences import check_options, make_groupings, read_sentences
from synmt.analysis.groups.systems_table import comparison_legend, gain_cells, seeds_legend, systems_table
from synmt.analysis.inputs import save_plot, score_outputs, scoring_options
from synmt.analysis.report import AnalysisReport, TextTable
from synmt.evaluation.metrics import Metric, make_metric
from synmt.evaluation.outputs import Outputs, the_test_set

if TYPE_CHECKING:
    from synmt.analysis.options import GroupOptions
    from synmt.reporting import page as html


def analyze_groups(options: GroupOptions) -> AnalysisReport:
    """Score every group of test sentences, by length, tree or label, and compare systems with a baseline."""
    check_options(options)
    sentences = read_sentences(options)
    scoring = scoring_options(sentences.outputs, options.tokenize, options.lowercase, options.metric)
    metric = make_metric(options.metric, scoring)
    groupings, trees = make_groupings(options, sentences)

    def scores_of(outputs: Outputs) -> SentenceScores:
        score = score_outputs(metric, outputs)
        scores = collect(score, outputs.hypothesis, outputs.reference, lowercase=scoring.lowercase)
        return scores if sentences.chosen is None else scores.select(sentences.chosen)

    systems = [[scores_of(seed) for seed in system.seeds] for system in sentences.systems]
    tables = [tabulate(grouping, systems) for grouping in groupings]
    named = [(system.name, len(system.seeds)) for system in sentences.systems]
    report = GroupReport(tables, named, sentences.outputs.test, tuple(options.where), trees)
    if options.plot:
        save_plot(options.plot, partial(draw_groups, tables, report.names, suffix=report.conditions))
    return AnalysisReport(report.title, report.to_json, report.to_text, report.to_html, sentences.runs)


@dataclass(frozen=True, eq=False)
class GroupReport:
    """The tables of an analysis.

    systems: their names and numbers of seeds; the first of several is the baseline.
    test: name of the test set; empty for files.
    where: the conditions that all sentences meet.
    trees: description of the trees; empty if none were needed.
    """

    tables: list[GroupTable]
    systems: list[tuple[str, int]]
    test: str
    where: tuple[str, ...]
    trees: str

    @property
    def names(self) -> list[str]:
        """The names of the systems."""
        return [name for name, _ in self.systems]

    @property
    def baseline(self) -> str | None:
        """The name of the system to compare with, if any."""
        return self.names[0] if len(self.systems) > 1 else None

    @property
    def metric(self) -> Metric:
        """The metric of all tables."""
        return self.tables[0].metric

    @property
    def conditions(self) -> str:
        """The conditions as the end of a title; empty if there are none."""
        return f", where {' and '.join(self.where)}" if self.where else ""

    @property
    def title(self) -> str:
        """The names of the systems that are compared with the baseline."""
        return ", ".join(self.names[1:] or self.names)

    @property
    def heading(self) -> str:
        """Title of all tables: systems with their numbers of seeds, test set, conditions."""
        counts = {seeds for _, seeds in self.systems}
        same = f", {max(counts)} seeds each" if self.baseline and len(counts) == 1 < max(counts) else ""
        named = [name if same or seeds == 1 else f"{name} ({seeds} seeds)" for name, seeds in self.systems]
        against = f" against {named[0]}" if self.baseline else ""
        test = f" on {the_test_set(self.test)}" if self.test else ""
        return f"{', '.join(named[1:] or named)}{against}{test}{same}{self.conditions}"

    @property
    def signature(self) -> str:
        """The metric with its sacreBLEU signature."""
        return f"{self.metric.title}|{self.metric.signature}"

    def to_json(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        return {
            "system": self.title,
            "baseline": self.baseline,
            "systems": [{"system": name, "seeds": seeds} for name, seeds in self.systems],
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
        legends = [list(legend(table, self.baseline, self.trees)) for table in self.tables]
        tables = (text_table(table, self.names) for table in self.tables)
        parts, shared = with_legends(zip(tables, legends, strict=True))
        for part in parts:
            yield from ("", *part)
        yield f"\n{self.signature}"
        yield from shared

    def to_html(self) -> list[html.Section]:
        """Make a section of each table, with its figure."""
        return [
            table_section(table, self.names, text_table(table, self.names), f"{self.heading}.", self._notes(table))
            for table in self.tables
        ]

    def _notes(self, table: GroupTable) -> list[str]:
        return [*legend(table, self.baseline, self.trees), self.signature]


def with_legends(tables: Iterable[tuple[TextTable, Sequence[str]]]) -> tuple[list[list[str | TextTable]], list[str]]:
    """Put below each table the lines of its legend that not all tables share; returns the shared lines, too."""
    tables = list(tables)
    shared = [line for line in (tables[0][1] if tables else ()) if all(line in lines for _, lines in tables)]
    return [[table, *(line for line in lines if line not in shared)] for table, lines in tables], shared


def text_table(table: GroupTable, names: Sequence[str]) -> TextTable:
    """Write a table, given the names of the systems, the baseline first if there are several."""
    if table.several:
        return systems_table(table, names)
    grouping, compared = table.grouping, table.compared
    columns = [table.title, "sentences", "share", f"share of {grouping.counted}", table.metric.title]
    columns += ["baseline", "difference", "95 % interval", "p (Holm)"] if compared else []
    if grouping.exact:
        columns += ["exact match", "baseline", "difference"] if compared else ["exact match"]
    return TextTable(columns, [_cells(row, table) for row in (*table.rows, table.total)])


def _cells(row: GroupRow, table: GroupTable) -> list[str]:
    results = [row.system, row.baseline, row.gain][: 3 if table.compared else 1]
    signs = ["", "", "+"]
    cells = [*row.cells, f"{row.text_share:.1%}"]
    cells += [f"{one.score:{sign}.2f}" if one else "-" for one, sign in zip(results, signs, strict=False)]
    if table.compared:
        cells += gain_cells(row.gain)[1:] if row.gain else ["-", "-"]
    if table.grouping.exact:
        cells += [f"{one.accuracy:{sign}.1%}" if one else "-" for one, sign in zip(results, signs, strict=False)]
    return cells


def legend(table: GroupTable, baseline: str | None, trees: str) -> Iterator[str]:
    """Explain the columns that a table has.

    baseline: the name of the system to compare with, if any.
    trees: what the trees are.
    """
    if not table.metric.higher_is_better:
        yield f"{table.metric.title}: lower is better"
    text = "" if table.several else f"; share of {table.grouping.counted}: share of their text"
    yield f"share: share of the sentences{text}"
    if table.grouping.about:
        yield table.grouping.about
        yield f"trees: {trees}"
    if table.seeded:
        yield seeds_legend()
    if baseline:
        yield from comparison_legend(table, baseline)
    if any(row.few for row in (*table.rows, table.total)):
        yield f"*: fewer than {FEW_SENTENCES} sentences" + ", too few for an interval" * (baseline is not None)
