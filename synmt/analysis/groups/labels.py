"""Labels of test sentences: a tab-separated file, a column for each label and a row for each sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from synmt.arrays import BoolArray, IntArray
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.files import read_lines

_EMPTY = "(empty)"
_SHOWN = 20


def read_labels(path: str | Path, sentences: int) -> dict[str, list[str]]:
    """Read tab-separated labels: a row of names, then a row for each test sentence."""
    rows = [line.rstrip("\r").split("\t") for line in read_lines(path)]
    if not rows or rows == [[""]]:
        raise SynmtError("no labels in the file", where=str(path), allowed="The first row names the columns")
    header = rows.pop(0)
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise SynmtError(f"two columns are named '{twice[0]}'", where=f"{path}, line 1", do="Rename one")
    uneven = [
        SynmtError(f"{len(row)} columns, but the first row names {len(header)}", where=f"{path}, line {number}")
        for number, row in enumerate(rows, start=2)
        if len(row) != len(header)
    ]
    if uneven:
        raise all_in_one(uneven[:3])
    if len(rows) != sentences:
        raise SynmtError(
            f"{len(rows):,} rows of labels below the header, but there are {sentences:,} test sentences",
            where=str(path),
            do="Give one row for each sentence, in their order",
        )
    return {name: [row[column] for row in rows] for column, name in enumerate(header)}


def choose_labels(labels: dict[str, list[str]], names: Sequence[str]) -> dict[str, list[str]]:
    """Keep the columns named."""
    for name in names:
        if name not in labels:
            raise UsageError(
                f"there is no label '{name}'",
                allowed=f"Labels: {', '.join(labels)}",
                do=did_you_mean(name, labels),
            )
    return {name: labels[name] for name in names}


def choose_sentences(labels: dict[str, list[str]], conditions: Sequence[str]) -> BoolArray:
    """Tell which sentences meet all of the conditions, `COLUMN=VALUE` or `COLUMN!=VALUE`: (N,)."""
    chosen = np.logical_and.reduce([_meets(labels, condition) for condition in conditions])
    if not chosen.any():
        raise UsageError(f"no test sentence has {' and '.join(conditions)}")
    return chosen


def _meets(labels: dict[str, list[str]], condition: str) -> BoolArray:
    left, equals, value = condition.partition("=")
    if not equals:
        raise UsageError(f"'{condition}' is no condition", allowed="Conditions: COLUMN=VALUE, COLUMN!=VALUE")
    name = left.removesuffix("!")
    names, members = number_values(choose_labels(labels, [name])[name])
    if (value or _EMPTY) not in names:
        some = names[:_SHOWN] + ["…"] * (len(names) > _SHOWN)
        raise UsageError(
            f"no label '{name}' is '{value}'",
            allowed=f"Its values: {', '.join(some)}",
            do=did_you_mean(value, names),
        )
    return (members == names.index(value or _EMPTY)) != left.endswith("!")


def number_values(values: Sequence[str]) -> tuple[list[str], IntArray]:
    """Name the values of a label in order, numbers as numbers, and say which one each sentence has: (N,)."""
    try:
        ordered = sorted(set(values), key=lambda value: (float(value), value))
    except ValueError:
        ordered = sorted(set(values))
    index = {value: position for position, value in enumerate(ordered)}
    return [value or _EMPTY for value in ordered], np.array([index[value] for value in values], dtype=np.int64)
