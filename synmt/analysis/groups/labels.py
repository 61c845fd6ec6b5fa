"""Group sentences by labels: a tab-separated file with a column for each label and a row for each
sentence."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from synmt.analysis.groups.grouping import Grouping
from synmt.arrays import BoolArray, IntArray
from synmt.errors import SynmtError, UsageError, all_in_one, counted, did_you_mean, unknown_name
from synmt.files.reading import read_lines

_logger = logging.getLogger(__name__)

TOO_MANY_VALUES = 50
"""A label with more values names sentences rather than groups; it is left out unless the user
chooses it."""

_EMPTY = "(empty)"
_LISTED_VALUES = 20
"""How many values of a label an error lists."""


def read_labels(path: str | Path, sentences: int) -> dict[str, list[str]]:
    """Read tab-separated labels: a row of column names, then a row for each test sentence."""
    rows = [line.split("\t") for line in read_lines(path)]
    if not rows or rows == [[""]]:
        raise SynmtError(
            "no labels in the file", where=str(path), allowed="The first row names the columns"
        )
    header = rows.pop(0)
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise SynmtError(
            f"two columns are named '{twice[0]}'", where=f"{path}, line 1", do="Rename one"
        )
    uneven = [
        SynmtError(
            f"{len(row)} columns, but the first row names {len(header)}",
            where=f"{path}, line {number}",
        )
        for number, row in enumerate(rows, start=2)
        if len(row) != len(header)
    ]
    if uneven:
        raise all_in_one(uneven[:3])
    if len(rows) != sentences:
        raise SynmtError(
            f"{counted(len(rows), 'row')} of labels below the header, but there are {sentences:,} "
            "test sentences",
            where=str(path),
            do="Give one row for each sentence, in the same order",
        )
    return {name: [row[column] for row in rows] for column, name in enumerate(header)}


def group_by_labels(
    labels: dict[str, list[str]], chosen: Sequence[str], sizes: IntArray
) -> list[Grouping]:
    """Group sentences by each of the chosen labels, or by all that have few enough values; sizes:
    (N,)."""
    groupings = []
    for name, values in (choose_labels(labels, chosen) if chosen else labels).items():
        grouping = by_label(name, values, sizes)
        count = len(grouping.names)
        if chosen or count <= TOO_MANY_VALUES:
            groupings.append(grouping)
        else:
            _logger.info(
                "label '%s' has %s values and is left out; choose it with --label %s",
                name,
                count,
                name,
            )
    if not groupings:
        raise UsageError(
            f"every label has more than {TOO_MANY_VALUES} values", do="Choose one with `--label`"
        )
    return groupings


def by_label(name: str, values: Sequence[str], sizes: IntArray) -> Grouping:
    """Group sentences by the value of a label; numbers are sorted as numbers."""
    names, positions = number_values(values)
    return Grouping(name, "", names, np.arange(len(names))[:, None] == positions, sizes, exact=True)


def choose_labels(labels: dict[str, list[str]], names: Sequence[str]) -> dict[str, list[str]]:
    """Choose columns by name; raises UsageError for an unknown one."""
    for name in names:
        if name not in labels:
            raise unknown_name("label", name, labels)
    return {name: labels[name] for name in names}


def choose_sentences(labels: dict[str, list[str]], conditions: Sequence[str]) -> BoolArray:
    """Find the sentences that meet all conditions, `COLUMN=VALUE` or `COLUMN!=VALUE`: (N,)."""
    chosen = np.logical_and.reduce([_meets(labels, condition) for condition in conditions])
    if not chosen.any():
        raise UsageError(f"no test sentence has {' and '.join(conditions)}")
    return chosen


def _meets(labels: dict[str, list[str]], condition: str) -> BoolArray:
    left, equals, value = condition.partition("=")
    if not equals:
        raise UsageError(
            f"'{condition}' is not a condition", allowed="Conditions: COLUMN=VALUE, COLUMN!=VALUE"
        )
    name = left.removesuffix("!")
    names, members = number_values(choose_labels(labels, [name])[name])
    if (value or _EMPTY) not in names:
        some = names[:_LISTED_VALUES] + ["…"] * (len(names) > _LISTED_VALUES)
        raise UsageError(
            f"label '{name}' has no value '{value}'",
            allowed=f"Its values: {', '.join(some)}",
            do=did_you_mean(value, names),
        )
    return (members == names.index(value or _EMPTY)) != left.endswith("!")


def number_values(values: Sequence[str]) -> tuple[list[str], IntArray]:
    """Sort the values of a label, as numbers if all are numbers, and find the position of each
    sentence's: (N,)."""
    try:
        ordered = sorted(set(values), key=lambda value: (float(value), value))
    except ValueError:
        ordered = sorted(set(values))
    index = {value: position for position, value in enumerate(ordered)}
    return [value or _EMPTY for value in ordered], np.array(
        [index[value] for value in values], dtype=np.int64
    )
