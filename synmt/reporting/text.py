"""Reports as aligned text, as wide as the terminal or as needed."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

from synmt.errors import visible
from synmt.reporting.cells import is_text, shown_rows
from synmt.reporting.values import Report, Table, TextBlock

_NARROWEST = 20
"""The first column is made narrower than this only if nothing else fits."""


def as_text(parts: Sequence[Any], *, width: int | None = None, bold: bool = False) -> str:
    """Write reports, tables and texts one below the other; pictures are left out.

    width: of the terminal, in columns; None for as wide as necessary.
    bold: whether the heads of tables are bold, by control sequences of a terminal.
    """
    return "\n".join(_blocks(parts, width, bold))


def _blocks(parts: Sequence[Any], width: int | None, bold: bool) -> Iterator[str]:
    """Yield headings, tables and notes; an explanation is written where it is needed first."""
    explained = set[str]()
    # control characters of a text must not reach a terminal
    safe = str if width is None else visible
    for number, part in enumerate(parts):
        gap = "\n" if number else ""
        if isinstance(part, Report):
            about = "\n".join(part.notes)
            yield gap + as_text(
                [*_heading(part.title), *part.parts, *_heading(about)], width=width, bold=bold
            )
        elif isinstance(part, Table):
            title = f"{safe(part.title)}\n" if part.title else ""
            yield gap + title + _drawn(part, width, bold)
            new = [note for note in part.explanations() if note not in explained]
            explained.update(new)
            yield from map(safe, new)
        elif isinstance(part, TextBlock) and part.lines:
            yield gap + "\n".join(map(safe, part.lines))


def _heading(text: str) -> list[TextBlock]:
    return [TextBlock(lines=[text])] if text else []


def _drawn(table: Table, width: int | None, bold: bool) -> str:
    from rich.console import Console
    from rich.table import Table as Drawn

    # rich would drop some control characters
    titles = [visible(column.title) for column in table.columns]
    rows = [list(map(visible, row)) for row in shown_rows(table)]
    widths, gap = fit(titles, rows, width)
    drawn = Drawn(
        box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold" if bold else ""
    )
    for title, wide, words in zip(titles, widths, is_text(table.columns), strict=True):
        drawn.add_column(title, width=wide, overflow="fold", justify="left" if words else "right")
    for row in rows:
        drawn.add_row(*row)
    out = io.StringIO()
    whole = sum(widths) + gap * len(widths)
    Console(
        file=out, width=whole, force_terminal=bold, markup=False, emoji=False, highlight=False
    ).print(drawn)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def fit(
    columns: Sequence[str], rows: Sequence[Sequence[str]], room: int | None
) -> tuple[list[int], int]:
    """Find the width of each column of a table, and the gap between columns, so that it fits into a
    terminal.

    Columns after the first become narrower first, but not narrower than their longest word; then
    the first column does. If that is not enough, the table is too wide. A Chinese character is as
    wide as two letters.

    room: the width of the terminal; None for as wide as necessary.
    """
    from rich.cells import cell_len

    cells = [[column, *(row[place] for row in rows)] for place, column in enumerate(columns)]
    whole = [
        max(cell_len(line) for cell in column for line in cell.splitlines() or [""])
        for column in cells
    ]
    if room is None or sum(whole) + 2 * (len(whole) - 1) <= room:
        return whole, 2
    words = [
        max(
            (cell_len(word) for cell in column for word in cell.replace(" %", "_%").split()),
            default=1,
        )
        for column in cells
    ]
    names, others = whole[0], words[1:]
    for gap in (2, 1):
        left_for_names = room - sum(others) - gap * len(others)
        if names <= left_for_names:
            return [names, *others], gap
    narrowest = min(names, _NARROWEST)
    return [max(left_for_names, narrowest), *others], 1
