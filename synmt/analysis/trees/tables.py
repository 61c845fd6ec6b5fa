"""How `synmt analyze --trees` shows its results: on a terminal, or on a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from synmt.cli import console

if TYPE_CHECKING:
    from synmt.analysis.trees.attachment import Attachment
    from synmt.analysis.trees.report import TreeReport, TreeRow

_COLUMNS = ["trees", "DA", "", "UA", "", "top choice"]
_RELATIONS = 12
"""So many relations, the most frequent ones, stand in the table for people."""


def print_tables(report: TreeReport) -> None:
    """Print how well each tree agrees with gold, and the best one of the model by relation."""
    print(f"{report.system}: trees of the {report.side}; {report.gold}")
    print(f"{_counted(report)}; in percent, [95 %]\n")
    console.table("", _COLUMNS, _rows(report), to_stdout=True)
    print("", *_legend(report), "", sep="\n")
    columns, relations = _by_relation(report)
    console.table("", columns, relations[:_RELATIONS], to_stdout=True)
    if len(relations) > _RELATIONS:
        print(f"\nthe {_RELATIONS} most frequent of {len(relations)} relations; all with --json")


def tables_as_html(report: TreeReport) -> str:
    """Write the same for a page, with every relation."""
    from synmt.analysis.html import paragraph, table

    columns, relations = _by_relation(report)
    return (
        paragraph(f"{report.system}; compared with {report.gold}.")
        + table(_COLUMNS, _rows(report), caption=f"{_counted(report)}; in percent, with 95 % intervals")
        + "".join(paragraph(line, faint=True) for line in _legend(report))
        + table(columns, relations, caption="Words with the right parent, by relation, in percent")
    )


def _counted(report: TreeReport) -> str:
    return f"{report.words:,} words without punctuation in {report.sentences:,} sentences"


def _several(report: TreeReport) -> bool:
    return sum(row.source is not None for row in report.rows) > 1


def _rows(report: TreeReport) -> list[list[str]]:
    several = _several(report)
    return [_cells(row, best=several and number == report.best) for number, row in enumerate(report.rows)]


def _by_relation(report: TreeReport) -> tuple[list[str], list[list[str]]]:
    best, chains = report.rows[report.best], [row for row in report.rows if row.source is None]
    shown = [best, *chains]
    columns = ["DA by relation", "words", *(row.name for row in shown)]
    return columns, _relations([row.attachment for row in shown])


def _legend(report: TreeReport) -> Iterator[str]:
    yield "DA, UA: words whose parent is right, with and without direction"
    yield "top choice: words that give most weight to their parent"
    yield "left, right branching: every word hangs on the next one, on the previous one"
    yield "words are surface tokens: a multi-word token counts once"
    if report.gold.parser:
        yield f"right is what a parser says, and parsers err: {report.gold.parser}"
    if _several(report):
        yield "best: chosen on these very sentences, so expect less on others"


def _cells(row: TreeRow, *, best: bool) -> list[str]:
    cells = [row.name + ", best" * best]
    for share in (row.attachment.da, row.attachment.ua):
        cells += [f"{100 * share.value:.1f}", f"[{100 * share.low:.1f}, {100 * share.high:.1f}]"]
    return [*cells, f"{100 * row.choices.da.value:.1f}" if row.choices else "-"]


def _relations(shown: list[Attachment]) -> list[list[str]]:
    tables = [attachment.by_relation() for attachment in shown]
    return [
        [name, f"{words:,}", *(f"{100 * table[name][1]:.1f}" for table in tables)]
        for name, (words, *_) in tables[0].items()
    ]
