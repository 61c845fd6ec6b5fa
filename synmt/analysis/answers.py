"""The sentence on top of a report, which answers its question."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from synmt.reporting.text import shown
from synmt.reporting.values import Table, TextBlock

_LEVEL = 0.05
"""A difference with a smaller corrected p-value is called significant."""

_Row = Sequence[Any]


def differences_in_words(tables: Sequence[Table], base: str, value: str = "value") -> TextBlock:
    """Say how many differences from the base are significant, and which is the largest of these, or
    of all if none is.

    tables: if they have no column `difference`, followed by its interval, with a column `holm_p`,
        the answer is the range of the values in the first table.
    value: the name of the column of values.
    """
    first = tables[0]
    measure, found = first.columns[first.places[value]].title, list[tuple[bool, float, str]]()
    for table in tables:
        rows: Sequence[_Row] = table.rows if "holm_p" in table.places else ()
        for row in rows:
            place, p_value = table.places["difference"], row[table.places["holm_p"]]
            if p_value is not None:
                size, ends = _said(table, row, place), _said(table, row, place + 1)
                said = f"{size} {measure} ({_where(table, row)}; 95 % interval {ends})"
                found.append((p_value < _LEVEL, abs(row[place]), said))
    if not found:
        return range_in_words(first, value, measure)
    _, _, largest = max(found)
    significant = sum(is_significant for is_significant, *_ in found)
    verdict = (
        f"{significant or 'None'} of {len(found)} differences from {base} "
        f"{'are' if significant > 1 else 'is'} significant; the largest is"
    )
    if len(found) == 1:
        verdict = f"The difference from {base} is {'' if significant else 'not '}significant:"
    return TextBlock(lines=[f"{verdict} {largest}."])


def range_in_words(table: Table, name: str, measure: str) -> TextBlock:
    """Say between which values a column is, and in which rows; nothing if it has none.

    measure: what the values are, as the subject of a sentence.
    """
    place = table.places.get(name, -1)
    known: list[_Row] = [row for row in table.rows if row[place] is not None]
    if not known or place < 0:
        return TextBlock()
    rows = sorted(known, key=itemgetter(place))
    low, high = (
        f"{_said(table, row, place)} ({_where(table, row)})" for row in (rows[0], rows[-1])
    )
    return TextBlock(lines=[f"{measure} is between {low} and {high}."])


def _said(table: Table, row: _Row, place: int) -> str:
    return shown(row[place], table.columns[place])


def _where(table: Table, row: _Row) -> str:
    """Name a row by its words, each after the title of its column."""
    cells = zip(table.columns, row, strict=True)
    words = [(column.title + " ", value) for column, value in cells if column.kind == "text"]
    return ", ".join(title + value.removeprefix(title) for title, value in words)
