"""How `synmt analyze` shows scores by group: for people, as JSON, or as parts of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from synmt.cli import console

if TYPE_CHECKING:
    from synmt.analysis.groups.scores import Row, Table
    from synmt.analysis.html import Section
    from synmt.evaluation.metrics import Metric
    from synmt.evaluation.significance import Comparison


@dataclass(frozen=True, eq=False)
class Shown:
    """All that is shown.

    system, baseline: their names; without a baseline there are no differences.
    test: the test set's name; empty for files.
    where: the conditions that the sentences meet.
    trees: whose they are; empty where none were needed.
    """

    tables: list[Table]
    metric: Metric
    system: str
    baseline: str | None
    test: str
    where: tuple[str, ...]
    trees: str

    @property
    def heading(self) -> str:
        """Whose the tables are, and which sentences they are about."""
        against = f" against {self.baseline}" if self.baseline else ""
        test = f", test set {self.test}" if self.test else ""
        return f"{self.system}{against}{test}{restriction(self.where)}"


def restriction(where: Sequence[str]) -> str:
    """Say which sentences a title is about; nothing where it is about all of them."""
    return f", where {' and '.join(where)}" if where else ""


def print_tables(shown: Shown) -> None:
    """Print tables for people, under a line that says whose they are, with what they mean below."""
    print(shown.heading)
    for table in shown.tables:
        print()
        console.table("", _columns(table, shown), _rows(table, shown), to_stdout=True)
    print(f"\n{shown.metric.title}|{shown.metric.signature}")
    for line in dict.fromkeys(line for table in shown.tables for line in _legend(table, shown)):
        print(line)


def as_values(shown: Shown) -> dict[str, Any]:
    """Write tables as plain values."""
    from synmt.analysis.groups.scores import as_json

    return {
        "system": shown.system,
        "baseline": shown.baseline,
        "test": shown.test or None,
        "where": list(shown.where),
        "metric": shown.metric.title,
        "higher_is_better": shown.metric.higher_is_better,
        "signature": shown.metric.signature,
        "trees": shown.trees or None,
        "tables": [as_json(table) for table in shown.tables],
    }


def as_sections(shown: Shown) -> list[Section]:
    """Write each table, with its figure, as a part of a page."""
    return [_section(table, shown) for table in shown.tables]


def _section(table: Table, shown: Shown) -> Section:
    from synmt.analysis.groups.plot import draw_groups
    from synmt.analysis.html import Section, figure, paragraph
    from synmt.analysis.html import table as html_table

    title = f"{shown.metric.title} by {table.grouping.by}"
    above = (
        f"The {shown.metric.title} of {shown.system} minus that of {shown.baseline}, with 95 % intervals"
        if shown.baseline
        else f"The {shown.metric.title} of {shown.system}"
    )
    explained = [*_legend(table, shown), f"{shown.metric.title}|{shown.metric.signature}"]
    return Section(
        title,
        paragraph(f"{shown.heading}.")
        + html_table(_columns(table, shown), _rows(table, shown), caption=title)
        + figure(
            lambda: draw_groups([table], system=shown.system, baseline=shown.baseline),
            caption=f"{above}; below, the share of the sentences, and how many they are.",
        )
        + "".join(paragraph(line, faint=True) for line in explained),
    )


def _columns(table: Table, shown: Shown) -> list[str]:
    grouping = table.grouping
    name = f"{grouping.by} ({grouping.unit})" if grouping.unit else grouping.by
    columns = [name, "sentences", "share", f"share of {grouping.counted}", shown.metric.title]
    columns += ["baseline", "difference", "95 % interval", "p"] if shown.baseline else []
    if grouping.exact:
        columns += ["exact match", "baseline", "difference"] if shown.baseline else ["exact match"]
    return columns


def _rows(table: Table, shown: Shown) -> list[list[str]]:
    exact, compared = table.grouping.exact, shown.baseline is not None
    return [_cells(row, exact=exact, compared=compared) for row in (*table.rows, table.total)]


def _cells(row: Row, *, exact: bool, compared: bool) -> list[str]:
    results = [row.system, row.baseline, row.difference][: 3 if compared else 1]
    cells = [row.group + " *" * row.few, f"{row.count:,}", f"{row.share:.1%}", f"{row.text_share:.1%}"]
    for position, result in enumerate(results):
        cells.append(format(result.score, ("+" if position == 2 else "") + ".2f") if result else "-")
    cells += _compared(row.comparison) if compared else []
    for position, result in enumerate(results if exact else []):
        cells.append(format(result.accuracy, ("+" if position == 2 else "") + ".1%") if result else "-")
    return cells


def _compared(comparison: Comparison | None) -> list[str]:
    if comparison is None:
        return ["-", "-"]
    return [f"{comparison.low:+.2f} to {comparison.high:+.2f}", f"{comparison.p_value:.3f}"]


def _legend(table: Table, shown: Shown) -> Iterator[str]:
    """Say what the columns mean, as far as they are there."""
    from synmt.analysis.groups.scores import FEW
    from synmt.evaluation.bootstrap import SAMPLES, SEED

    if not shown.metric.higher_is_better:
        yield f"{shown.metric.title}: lower is better"
    yield f"share: of the sentences; share of {table.grouping.counted}: of their text"
    if table.grouping.about:
        yield table.grouping.about
        yield f"trees: {shown.trees}"
    if shown.baseline:
        yield (
            f"difference to {shown.baseline}; interval and two-sided p: paired bootstrap within the group "
            f"(Koehn, 2004), {SAMPLES:,} resamples, seed {SEED}"
        )
        yield "p is of each group alone: of 20 groups without a difference, about one has p < 0.05 by chance"
    if any(row.few for row in (*table.rows, table.total)):
        yield f"*: fewer than {FEW} sentences" + ", too few for an interval" * (shown.baseline is not None)
