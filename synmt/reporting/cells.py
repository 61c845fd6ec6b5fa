"""From values to the text of cells, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence

from synmt.reporting.progress import duration
from synmt.reporting.values import Column, Interval, Marked, Quantity, Table, Value, Written

_LEAST = 0.0005
"""A smaller p-value is shown as less than 0.001."""


def shown(value: Value, column: Column | Quantity) -> str:
    """Write a value for people: with separators of thousands, units and signs; None is empty."""
    if isinstance(value, Marked):
        return f"{shown(value.value, column)} {value.mark}"
    if isinstance(value, Written):
        return value.text
    if isinstance(value, Quantity):
        return shown(value.value, value)
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


def shown_rows(table: Table) -> list[list[str]]:
    """Write all cells for people; values that rows share are shown in the first of them."""
    rows, before = list[list[str]](), list[str]()
    for row in table.rows:
        cells = [shown(value, column) for value, column in zip(row, table.columns, strict=True)]
        first = cells[: table.shared]
        repeated = [""] * table.shared if first == before else first
        rows.append([*repeated, *cells[table.shared :]])
        before = first
    return rows


def plain_columns(table: Table) -> tuple[list[str], list[list[str]]]:
    """Write titles and rows for programs: plain numbers, an interval in two columns."""
    titles, columns = list[str](), list[list[str]]()
    for place, column in enumerate(table.columns):
        values = [row[place] for row in table.rows]
        unit = {"seconds": " (s)", "bytes": " (bytes)"}.get(column.kind, "")
        if any(isinstance(value, Interval) for value in values):
            titles += [f"{column.title}, low{unit}", f"{column.title}, high{unit}"]
            for end in ("low", "high"):
                columns.append([_plain(getattr(value, end, None)) for value in values])
        else:
            titles.append(column.title + unit)
            columns.append([_plain(value) for value in values])
    return titles, [list(row) for row in zip(*columns, strict=True)]


def _plain(value: Value) -> str:
    if isinstance(value, Marked | Written | Quantity):
        return _plain(value.value)
    if isinstance(value, float):
        return f"{value:.8g}"
    return "" if value is None else " ".join(str(value).split())


def is_text(columns: Sequence[Column]) -> list[bool]:
    """Return which columns have words, which are left-aligned."""
    return [column.kind == "text" for column in columns]
