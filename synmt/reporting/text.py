"""Reports as aligned text, as wide as the terminal or as needed, and the text of single cells."""

from __future__ import annotations

import io
from collections.abc import Sequence

from synmt.errors import visible
from synmt.reporting.progress import duration
from synmt.reporting.values import (
    Column,
    Interval,
    Report,
    Shown,
    Table,
    TextBlock,
    Value,
    Written,
)

_LEAST = 0.0005
"""A smaller p-value is shown as less than 0.001."""

_LONGEST = 12
"""Longer words are broken, too, if the terminal is narrow."""

_WIDEST = 100_000
"""The width of a file or a pipe, in characters."""


def as_text(parts: Sequence[Shown], *, width: int | None = None, bold: bool = False) -> str:
    """Write reports, tables and texts one below the other; pictures are left out.

    An explanation is written where it is needed first, and control characters are made visible.

    width: of the terminal, in columns; None for as wide as necessary.
    bold: whether the heads of tables are bold, by control sequences of a terminal.
    """
    blocks, explained = list[str](), set[str]()
    for part in parts:
        if isinstance(part, Report):
            title, notes = TextBlock(lines=[part.title]), TextBlock(lines=part.notes)
            blocks.append(as_text([title, *part.parts, notes], width=width, bold=bold))
        elif isinstance(part, Table):
            notes = [note for note in part.explanations() if note not in explained]
            explained.update(notes)
            title = [part.title] if part.title else []
            lines = [*map(visible, title), _drawn(part, width, bold), *map(visible, notes)]
            blocks.append("\n".join(lines))
        elif isinstance(part, TextBlock):
            blocks.append("\n".join(map(visible, part.lines)))
    return "\n\n".join(filter(None, blocks))


def _drawn(table: Table, width: int | None, bold: bool) -> str:
    """Draw a table; in a narrow terminal, cells are broken into lines between words."""
    from rich.console import Console
    from rich.table import Table as Drawn

    drawn = Drawn(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold" if bold else ""
    )
    # rich would drop some control characters
    rows = [list(map(visible, row)) for row in shown_rows(table)]
    for place, column in enumerate(table.columns):
        longest = max((len(word) for row in rows for word in row[place].split()), default=0)
        drawn.add_column(
            visible(column.title),
            min_width=min(longest, _LONGEST),
            overflow="fold",
            justify="left" if column.kind == "text" else "right",
        )
    for row in rows:
        drawn.add_row(*row)
    out = io.StringIO()
    console = Console(
        file=out,
        width=width or _WIDEST,
        force_terminal=bold,
        markup=False,
        emoji=False,
        highlight=False,
    )
    console.print(drawn, crop=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def shown(value: Value, column: Column) -> str:
    """Write a value for people: with separators of thousands, units and signs; None is empty."""
    if isinstance(value, Written):
        return value.text
    if isinstance(value, Interval):
        return f"{shown(value.low, column)} to {shown(value.high, column)}"
    if value is None or isinstance(value, str):
        return value or ""
    if column.kind == "seconds":
        return duration(value)
    if column.kind == "bytes":
        return f"{value / 1e6:,.0f} MB"
    if column.kind == "p":
        return "<0.001" if value < _LEAST else f"{value:.3f}"
    digits = 0 if isinstance(value, int) and column.kind == "number" else column.digits
    form = f"{'+' if column.signed else ''},.{digits}{'%' if column.kind == 'share' else 'f'}"
    return format(value, form)


def display_width(text: str) -> int:
    """Count the terminal columns of a text."""
    from rich.cells import cell_len

    return cell_len(text)


def shown_rows(table: Table) -> list[list[str]]:
    """Write all cells for people; values that rows share are shown in the first of them."""
    rows, before = list[list[str]](), list[str]()
    for row in table.rows:
        cells = [shown(value, column) for value, column in zip(row, table.columns, strict=True)]
        first = cells[: table.shared]
        if first == before:
            cells[: table.shared] = [""] * table.shared
        rows.append(cells)
        before = first
    return rows
