"""Where one system beats another: a score for every group of test sentences.

    score(group) = aggregate( Σ statistics[n] for n in group )

A `Grouping` puts each sentence into a group, by its length or by a label; everything else is the same for
all groupings, so that a new one is one function that returns a `Grouping`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.files import read_lines
from synmt.metrics import Metric, Score, score
from synmt.syntax.parse import IntArray
from synmt.syntax.trees import BoolArray

TENS = (10, 20, 30, 40, 50)
"""Last length of each bucket but the open one (Bugliarello & Okazaki, 2020, figure 2)."""

UNITS = ("words", "characters")
"""What a length counts: what spaces separate, or characters, for languages written without spaces."""

_EMPTY = "(empty)"
_SHOWN = 20


@dataclass(frozen=True)
class Grouping:
    """A group for every sentence.

    by: what the groups are made by, such as `source length`.
    unit: the unit of the groups' names; empty for labels.
    names: the groups, in the order to show.
    members: (N,) the index of each sentence's group.
    """

    by: str
    unit: str
    names: list[str]
    members: IntArray


@dataclass(frozen=True)
class Evidence:
    """What a system earned sentence by sentence: statistics, and (N,) whether it equals the reference."""

    score: Score
    exact: BoolArray


@dataclass(frozen=True)
class Result:
    """What one system reaches on one group.

    score: by the metric of the table.
    accuracy: share of sentences that equal their reference, 0 to 1.
    """

    score: float
    accuracy: float


@dataclass(frozen=True)
class Row:
    """One group; the results are None where nothing belongs to it, or without a baseline.

    count: sentences in the group.
    share: of all sentences, 0 to 1.
    """

    group: str
    count: int
    share: float
    system: Result | None
    baseline: Result | None = None

    @property
    def difference(self) -> Result | None:
        """The system's result minus the baseline's."""
        if self.system is None or self.baseline is None:
            return None
        return Result(
            self.system.score - self.baseline.score,
            self.system.accuracy - self.baseline.accuracy,
        )


@dataclass(frozen=True)
class Table:
    """A row for each group, and one for all sentences together."""

    by: str
    unit: str
    metric: Metric
    rows: list[Row]
    total: Row


def collect(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool = False
) -> Evidence:
    """Score translations once, keeping what any grouping needs; exact ignores differences in spacing."""

    def words(line: str) -> list[str]:
        return (line.lower() if lowercase else line).split()

    exact = [words(one) == words(other) for one, other in zip(hypotheses, references, strict=True)]
    return Evidence(score(metric, hypotheses, references), np.array(exact, dtype=np.bool_))


def tabulate(grouping: Grouping, system: Evidence, baseline: Evidence | None = None) -> Table:
    """Score every group of sentences for one system, or for two."""

    def row(name: str, chosen: BoolArray) -> Row:
        count = int(chosen.sum())
        results = (_result(evidence, chosen) if evidence and count else None for evidence in (system, baseline))
        return Row(name, count, count / len(chosen), *results)

    rows = [row(name, grouping.members == index) for index, name in enumerate(grouping.names)]
    everything = np.ones(len(grouping.members), dtype=np.bool_)
    return Table(grouping.by, grouping.unit, system.score.metric, rows, row("all", everything))


def _result(evidence: Evidence, chosen: BoolArray) -> Result:
    totals = evidence.score.statistics[chosen].sum(0)
    return Result(evidence.score.metric.aggregate(totals), float(evidence.exact[chosen].mean()))


def by_length(lines: Sequence[str], *, edges: Sequence[int] = TENS, unit: str = "words") -> Grouping:
    """Group sentences by their length; `edges` are the last lengths of all buckets but the open one."""
    lengths = np.array([len(line.split()) if unit == "words" else len(line.strip()) for line in lines])
    # an empty line has length 0 and stands with the shortest
    lowest = [min(1, int(lengths.min())), *(edge + 1 for edge in edges)]
    names = [str(low) if low == high else f"{low}-{high}" for low, high in zip(lowest, edges, strict=False)]
    members = np.searchsorted(np.array(edges), lengths, side="left")
    return Grouping("source length", unit, [*names, f">{edges[-1]}"], members)


def parse_edges(text: str) -> list[int]:
    """Read the last lengths of the buckets, `10,20,30`."""
    try:
        edges = [int(part) for part in text.split(",")]
    except ValueError:
        edges = []
    if not edges or edges[0] < 1 or edges != sorted(set(edges)):
        raise UsageError(
            f"'{text}' are no buckets",
            allowed="Buckets are growing whole numbers from 1 on, with commas",
            do="Write for example `--buckets 10,20,30`",
        )
    return edges


def by_label(name: str, values: Sequence[str]) -> Grouping:
    """Group sentences by the value of a label; numbers are ordered as numbers."""
    try:
        names = sorted(set(values), key=lambda value: (float(value), value))
    except ValueError:
        names = sorted(set(values))
    index = {value: position for position, value in enumerate(names)}
    members = np.array([index[value] for value in values], dtype=np.int64)
    return Grouping(name, "", [value or _EMPTY for value in names], members)


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
    grouping = by_label(name, choose_labels(labels, [name])[name])
    if (value or _EMPTY) not in grouping.names:
        some = grouping.names[:_SHOWN] + ["…"] * (len(grouping.names) > _SHOWN)
        raise UsageError(
            f"no label '{name}' is '{value}'",
            allowed=f"Its values: {', '.join(some)}",
            do=did_you_mean(value, grouping.names),
        )
    return (grouping.members == grouping.names.index(value or _EMPTY)) != left.endswith("!")


def as_json(table: Table) -> dict[str, Any]:
    """Write a table as plain values; what is missing is None."""
    return {
        "by": table.by,
        "unit": table.unit,
        "rows": [_row_as_json(row) for row in table.rows],
        "all": _row_as_json(table.total),
    }


def _row_as_json(row: Row) -> dict[str, Any]:
    values: dict[str, Any] = {"group": row.group, "sentences": row.count, "share": row.share}
    for name in ("system", "baseline", "difference"):
        result: Result | None = getattr(row, name)
        values[name] = result and {"score": result.score, "accuracy": result.accuracy}
    return values
