"""How `synmt analyze --trees` shows its results: for people, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from synmt.cli import console

if TYPE_CHECKING:
    from synmt.analysis.attachment import Attachment
    from synmt.analysis.tree_report import Gold, TreeReport, TreeRow

_RELATIONS = 12
"""So many relations, the most frequent ones, stand in the table for people."""


def print_tables(report: TreeReport) -> None:
    """Print how well each tree agrees with gold, and the best one of the model by relation."""
    print(f"{report.system}: trees of the {report.side}; {report.gold}")
    print(f"{report.words:,} words without punctuation in {report.sentences:,} sentences; in percent, [95 %]\n")
    several = sum(row.source is not None for row in report.rows) > 1
    rows = [_cells(row, best=several and number == report.best) for number, row in enumerate(report.rows)]
    console.table("", ["trees", "DA", "", "UA", "", "top choice"], rows, to_stdout=True)
    print("", *_legend(report.gold, several=several), "", sep="\n")
    best, chains = report.rows[report.best], [row for row in report.rows if row.source is None]
    shown = [best, *chains]
    columns = ["DA by relation", "words", *(row.name for row in shown)]
    relations = _relations([row.attachment for row in shown])
    console.table("", columns, relations[:_RELATIONS], to_stdout=True)
    if len(relations) > _RELATIONS:
        print(f"\nthe {_RELATIONS} most frequent of {len(relations)} relations; all with --json")


def _legend(gold: Gold, *, several: bool) -> Iterator[str]:
    yield "DA, UA: words whose parent is right, with and without direction"
    yield "top choice: words that give most weight to their parent"
    yield "left, right branching: every word hangs on the next one, on the previous one"
    yield "words are surface tokens: a multi-word token counts once"
    if gold.parser:
        yield f"right is what a parser says, and parsers err: {gold.parser}"
    if several:
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


def print_json(report: TreeReport) -> None:
    """Print all of it for machines."""
    from synmt.analysis.tree_report import as_json

    print(json.dumps(as_json(report), ensure_ascii=False, indent=2))
