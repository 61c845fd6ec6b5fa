"""Which test sentences belong to which group: groups by a number, such as the length, in buckets,
and by labels: a tab-separated file with a column for each label and a row for each sentence.

    bucket(v) = number of buckets whose last value is below v

A bucket contains its last value: 20 belongs to `11-20`. All groups are scored in the same way,
whether they are made from lengths, trees or labels; they may overlap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synmt.arrays import BoolArray, DoubleArray, IntArray, Side, Texts, int_array
from synmt.errors import SynmtError, UsageError, unknown_name
from synmt.evaluation.metrics import read_table

if TYPE_CHECKING:
    from synmt.data.vocabulary import Vocabulary

Values = IntArray | DoubleArray

Labels = dict[str, list[str]]
"""The values of all sentences for each label, by its name."""

Edges = tuple[float, ...]
"""The last value of each bucket except the last, which is open; no edges make one bucket."""

TENS: Edges = (10, 20, 30, 40, 50)


@dataclass(frozen=True)
class Buckets:
    """Buckets of numbers; those of a paper are of lengths in words, on one side."""

    edges: Edges
    side: Side = "source"
    of_paper: bool = False


PAPERS = {
    # figure 2 of Bugliarello & Okazaki (2020): 1-10, 11-20, … >50
    "pascal": Buckets(TENS, of_paper=True),
    # Peng et al. (2022) write 0-10, 10-20, … >80: 80 is not in >80, so each bucket contains its
    # last length
    "deps-san": Buckets((10, 20, 30, 40, 50, 60, 70, 80), of_paper=True),
    # Liu & Sima'an (2022): (0, 10], (10, 20], … and sentences whose target length "exceeds 50"
    "ldd": Buckets(TENS, "target", of_paper=True),
}
"""Length buckets by the names that recipes have."""

ONE_BUCKET = "any"
"""The name of a bucket that contains everything."""

_QUARTERS = (0.25, 0.5, 0.75)


TOO_MANY_VALUES = 50
"""A label with more values names sentences rather than groups; it is left out unless the user
chooses it."""

_EMPTY = "(empty)"


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of sentences or of words.

    by: what they are made from, such as `source length`.
    unit: unit of the values in the names, which are then in order; empty for labels and relations.
    names: of the G groups, in display order.
    """

    by: str
    unit: str
    names: list[str]

    @property
    def title(self) -> str:
        """What the groups are made from, with the unit."""
        return f"{self.by} ({self.unit})" if self.unit else self.by


@dataclass(frozen=True, eq=False)
class Grouping(Groups):
    """Groups of sentences.

    members: (G, N) which sentences belong to each group; a sentence may be in several groups, or in
        none.
    sizes: (N,) the amount of text in each sentence, in units of `counted`.
    about: explanation of the groups for the legend; empty if the names explain themselves.
    """

    members: BoolArray
    sizes: IntArray
    counted: str = "words"
    about: str = ""


def count_units(lines: Texts, unit: str, vocabulary: Vocabulary | None = None) -> IntArray:
    """Measure lines in words between spaces, in characters, or in pieces of a vocabulary: N lines
    -> (N,)."""
    if unit == "pieces":
        assert vocabulary is not None
        counts = [len(ids) for ids in vocabulary.encode_batch(lines)]
    else:
        counts = [len(line.split()) if unit == "words" else len(line.strip()) for line in lines]
    return int_array(counts)


def by_length(
    lengths: IntArray, *, side: Side = "source", unit: str = "words", edges: Edges | None = None
) -> Grouping:
    """Group sentences by their length, (N,) in `unit`.

    edges: by default those of PASCAL's figure 2, without buckets above the longest sentence.
    """
    by = f"{side} length"
    grouping = replace(by_value(by, unit, lengths, edges or TENS, sizes=lengths), counted=unit)
    if edges:
        return grouping
    groups = 1 + int(bucket_numbers(lengths, TENS).max(initial=0))
    return replace(grouping, names=grouping.names[:groups], members=grouping.members[:groups])


def by_value(
    by: str, unit: str, values: Values, edges: Edges, *, sizes: IntArray, about: str = ""
) -> Grouping:
    """Group sentences by a value of each, (N,), in buckets."""
    members = np.arange(len(edges) + 1)[:, None] == bucket_numbers(values, edges)  # (G, N)
    return Grouping(by, unit, bucket_names(values, edges), members, sizes, about=about)


def bucket_numbers(values: Values, edges: Edges) -> IntArray:
    """Find the bucket of each value, counted from 0: (N,) -> (N,)."""
    return np.searchsorted(np.array(edges), values, side="left").astype(np.int64)


def bucket_names(values: Values, edges: Edges) -> list[str]:
    """Name the buckets: `1-10` and `>50` for whole numbers, otherwise `≤2.5`, `>2.5 to 3` and
    `>3`."""
    if not edges:
        return [ONE_BUCKET]
    ends = [f"{edge:g}" for edge in edges]
    if all(edge == int(edge) for edge in edges) and (values == np.round(values)).all():
        # a value of 0, such as the length of an empty line, is in the first bucket, and its name
        # shows that
        lowest = min(1, *values.astype(np.int64).tolist(), int(edges[0]))
        starts = [lowest, *(int(edge) + 1 for edge in edges)]
        names = [
            end if str(start) == end else f"{start}-{end}"
            for start, end in zip(starts, ends, strict=False)
        ]
    else:
        names = [f"≤{ends[0]}", *(f">{low} to {high}" for low, high in pairwise(ends))]
    return [*names, f">{ends[-1]}"]


def quarters(values: Values, *, decimals: int = 0) -> Edges:
    """Find edges that put about a quarter of the sentences into each bucket; ties can make fewer
    than four buckets."""
    scale = 10**decimals
    ends = np.quantile(values, _QUARTERS, method="inverted_cdf") * scale
    # rounded up, an edge stays in its own bucket, so that no bucket is empty; the inner rounding
    # removes float noise
    edges = np.unique(np.ceil(np.round(ends, 6))) / scale
    return tuple(edge for edge in edges.tolist() if edge < values.max())


def parse_buckets(text: str) -> Buckets:
    """Read the last value of each bucket, `10,20,30`, or the name of a paper in PAPERS."""
    name = text.strip().lower()
    if name in PAPERS:
        return PAPERS[name]
    try:
        edges = [float(part) for part in text.split(",")]
    except ValueError:
        edges = []
    if not edges or not np.isfinite(edges).all() or edges[0] < 0 or edges != sorted(set(edges)):
        raise UsageError(
            f"'{text}' does not name or list buckets",
            where="--buckets",
            allowed=f"Buckets: {', '.join(PAPERS)}, or the last value of each bucket, increasing, "
            "with commas",
            do="Write for example `--buckets 10,20,30`",
        )
    return Buckets(tuple(edges))


def read_labels(path: str | Path, sentences: int) -> Labels:
    """Read tab-separated labels: a row of column names, then a row for each test sentence."""
    names, rows = read_table(path)
    if len(rows) != sentences:
        raise SynmtError(
            f"{len(rows):,} rows of labels below the header, but there are {sentences:,} "
            "test sentences",
            where=path,
            do="Give one row for each sentence, in the same order",
        )
    return {name: [row[column] for row in rows] for column, name in enumerate(names)}


def group_by_labels(labels: Labels, chosen: Texts, sizes: IntArray) -> list[Grouping]:
    """Group sentences by each of the chosen labels, or by all that have few enough values; sizes:
    (N,)."""
    few = [name for name, values in labels.items() if len(set(values)) <= TOO_MANY_VALUES]
    return [by_label(name, _values_of(labels, name), sizes) for name in chosen or few]


def by_label(name: str, values: Texts, sizes: IntArray) -> Grouping:
    """Group sentences by the value of a label; numbers are sorted as numbers."""
    names, positions = number_values(values)
    return Grouping(name, "", names, np.arange(len(names))[:, None] == positions, sizes)


def _values_of(labels: Labels, name: str) -> list[str]:
    if name not in labels:
        raise unknown_name("label", name, labels)
    return labels[name]


def choose_sentences(labels: Labels, conditions: Texts) -> BoolArray:
    """Find the sentences that meet all conditions, `COLUMN=VALUE` or `COLUMN!=VALUE`: (N,)."""
    chosen = np.logical_and.reduce([_meets(labels, condition) for condition in conditions])
    if not chosen.any():
        raise UsageError(f"no test sentence has {' and '.join(conditions)}")
    return chosen


def _meets(labels: Labels, condition: str) -> BoolArray:
    left, equals, value = condition.partition("=")
    if not equals:
        raise UsageError(
            f"'{condition}' is not a condition", allowed="Conditions: COLUMN=VALUE, COLUMN!=VALUE"
        )
    name, value = left.removesuffix("!"), value or _EMPTY
    names, members = number_values(_values_of(labels, name))
    if value not in names:
        raise unknown_name("value", value, names, where=f"label '{name}'")
    return (members == names.index(value)) != left.endswith("!")


def number_values(values: Texts) -> tuple[list[str], IntArray]:
    """Sort the values of a label, as numbers if all are numbers, and find the position of each
    sentence's: (N,)."""
    try:
        ordered = sorted(set(values), key=lambda value: (float(value), value))
    except ValueError:
        ordered = sorted(set(values))
    index = {value: position for position, value in enumerate(ordered)}
    return [value or _EMPTY for value in ordered], int_array(index[value] for value in values)
