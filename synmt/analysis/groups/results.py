"""Results of systems on groups of sentences or words: the records, their correction, and the table
that shows them.

    score(group) = aggregate( Σ statistics[n] for n in group )

The score of a system with several seeds is their mean. A difference is tested on resamples of the
group's sentences and of the seeds of both systems.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from synmt.analysis.groups.grouping import Grouping
from synmt.arrays import BoolArray
from synmt.errors import counted
from synmt.evaluation.bootstrap import SAMPLES, SEED
from synmt.evaluation.metrics import Score, score_counted
from synmt.evaluation.significance import FEW_SEEDS, Comparison, compare_on_resamples, holm, spread
from synmt.reporting.progress import progress
from synmt.reporting.values import (
    Column,
    Interval,
    Marked,
    Table,
    Value,
    count_column,
    share_column,
    text_column,
)

FEW_SENTENCES = 10
"""A smaller group gets no interval: its resamples are too similar to show any uncertainty."""

NAMED_GROUPS = 8
"""How many groups a message or a legend names."""

LOWER = "lower is better"
"""What is said about a measure of errors."""


@dataclass(frozen=True)
class GroupResult:
    """The result of one system on one group, by one measure.

    value: mean over the seeds; None if there is nothing to divide by.
    seeds: the value of each seed.
    low, high: 95 % interval of the value; None if there is none.
    difference: from the baseline's value; None for the baseline itself.
    comparison: the difference with its interval; None for the baseline, and for a group in few
        sentences.
    holm_p: p-value of the comparison, corrected for all comparisons of the table by this measure.
    """

    value: float | None
    seeds: Sequence[float | None] = ()
    low: float | None = None
    high: float | None = None
    difference: float | None = None
    comparison: Comparison | None = None
    holm_p: float | None = None

    @property
    def deviation(self) -> float:
        """The standard deviation of the seeds' values; 0 for one seed."""
        known = [one for one in self.seeds if one is not None]
        return spread(known or [0.0]).deviation

    @property
    def interval(self) -> Interval | None:
        """The interval of the value."""
        return None if self.low is None or self.high is None else Interval(self.low, self.high)

    @property
    def spread(self) -> Interval | None:
        """One standard deviation of the seeds around the value; None for one seed."""
        if self.value is None or len(self.seeds) < 2:
            return None
        return Interval(self.value - self.deviation, self.value + self.deviation)

    @property
    def difference_interval(self) -> Interval | None:
        """The interval of the difference."""
        return self.comparison and self.comparison.interval

    def above(self, base: GroupResult, comparison: Comparison | None) -> GroupResult:
        """Compare this result with that of the baseline."""
        difference = None if self.value is None or base.value is None else self.value - base.value
        return replace(self, difference=difference, comparison=comparison)


_NONE = GroupResult(None)


@dataclass(frozen=True)
class GroupRow:
    """One group.

    sentences: how many are in the group, or have words of the group.
    share: their share of all sentences, 0 to 1.
    text, text_share: number of words of the group, or of another unit of text, and their share of
    all.
    systems: results by system, the baseline first, and by measure; none for an empty group.
    """

    group: str
    sentences: int
    share: float
    text: int
    text_share: float
    systems: Mapping[str, Mapping[str, GroupResult]]

    @property
    def few(self) -> bool:
        """Tell whether the group has sentences, but too few for an interval."""
        return 0 < self.sentences < FEW_SENTENCES


@dataclass(frozen=True, eq=False)
class ResultTable:
    """A row for each group, and a total.

    by: what the groups are made from, such as `source length`.
    unit: of the values in the names of the groups, which are then in order; empty for labels and
        relations.
    measures: columns whose keys are those of the results; the last one is compared with the
        baseline.
    sizes: columns whose keys are fields of rows.
    samples: number of resamples of the intervals.
    about, notes: lines for the legend, before and after those of the columns.
    """

    by: str
    unit: str
    measures: Sequence[Column]
    sizes: Sequence[Column]
    rows: Sequence[GroupRow]
    total: GroupRow
    samples: int
    about: str = ""
    notes: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """The names of the systems, the baseline first."""
        return list(self.total.systems)

    @property
    def compared(self) -> bool:
        """Tell whether there is a baseline."""
        return len(self.names) > 1

    @property
    def seeded(self) -> bool:
        """Tell whether some system has several seeds."""
        return any(
            len(one.seeds) > 1 for system in self.total.systems.values() for one in system.values()
        )

    @property
    def has_intervals(self) -> bool:
        """Tell whether results have intervals of their own, besides those of differences."""
        return any(one.interval for name in self.names for _, _, one in self.results(name))

    @property
    def several(self) -> bool:
        """Tell whether there are more than two systems, or several seeds of one."""
        return len(self.names) > 2 or self.seeded

    @property
    def key(self) -> str:
        """The key of the measure that is compared."""
        return self.measures[-1].key

    def results(self, system: str) -> list[tuple[int, GroupRow, GroupResult]]:
        """List the place, the row and the result of each group that has some, by the measure that
        is compared."""
        rows = enumerate(self.rows)
        return [(place, row, row.systems[system][self.key]) for place, row in rows if row.systems]

    def comparisons(self, key: str) -> int:
        """Count the comparisons by a measure, for which p-values are corrected."""
        return len(_compared([*self.rows, self.total], key))

    def as_json(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        *rows, total = (asdict(row) for row in (*self.rows, self.total))
        return {
            "by": self.by,
            "unit": self.unit,
            "about": self.about,
            "resamples": self.samples,
            "comparisons": {one.key: self.comparisons(one.key) for one in self.measures},
            "rows": rows,
            "all": total,
        }


def _compared(rows: Iterable[GroupRow], key: str) -> list[float]:
    """List the p-values of all comparisons by a measure."""
    results = (system[key] for row in rows for system in row.systems.values())
    return [one.comparison.p_value for one in results if one.comparison]


def correct(rows: Sequence[GroupRow], key: str) -> list[GroupRow]:
    """Correct the p-values by a measure for all comparisons of the rows (Holm, 1979)."""
    adjusted = iter(holm(_compared(rows, key)))
    corrected = []
    for row in rows:
        systems = dict[str, dict[str, GroupResult]]()
        for name, system in row.systems.items():
            found = system[key]
            if found.comparison:
                found = replace(found, holm_p=next(adjusted))
            systems[name] = {**system, key: found}
        corrected.append(replace(row, systems=systems))
    return corrected


def results_table(table: ResultTable, title: str) -> Table:
    """Show a table: a row for each group, or for each group and system where a row would be too
    long."""
    by = text_column(f"{table.by} ({table.unit})" if table.unit else table.by, name="group")
    *_, last = table.measures
    if table.compared and len(table.measures) == 1 and not table.several:
        columns = [replace(last, title=name, name=name, about="") for name in table.names]
        rows, shared = _pair_rows(table), 0
        notes = [f"{last.title}: {last.about}"] if last.about else []
    else:
        about = "standard deviation over the seeds of a system; its values are means over them"
        columns = [text_column("system")]
        for one in table.measures:
            columns += [one, _interval_column(table, one, f"{one.key}_interval")]
        columns.append(Column(title="±", digits=last.digits, name="deviation", about=about))
        rows, shared, notes = _system_rows(table), 1 + len(table.sizes), []
    notes += table.notes
    if table.seeded:
        notes.append(FEW_SEEDS)
    if any(row.few for row in (*table.rows, table.total)):
        notes.append(f"*: fewer than {FEW_SENTENCES} sentences, too few for an interval")
    return Table(
        columns=[by, *table.sizes, *columns, *_comparison_columns(table)],
        rows=list(rows),
        title=title,
        shared=shared,
        notes=notes,
    ).without_empty_columns()


def _interval_column(table: ResultTable, measure: Column, name: str) -> Column:
    units = "sentences and of the seeds" if table.seeded else "sentences"
    about = f"bootstrap of the {units} (Koehn, 2004), {table.samples:,} resamples, seed {SEED}"
    return replace(measure, title="95 % interval", about=about, name=name)


def _comparison_columns(table: ResultTable) -> list[Column]:
    last = replace(table.measures[-1], signed=True)
    comparisons = counted(table.comparisons(table.key), "comparison")
    holm = (
        f"two-sided, of the same resamples, corrected for the {comparisons} of the table (Holm, "
        "1979); intervals are not corrected"
    )
    return [
        replace(last, title="difference", name="difference", about=f"from {table.names[0]}"),
        _interval_column(table, last, "interval"),
        Column(title="p (Holm)", kind="p", name="holm_p", about=holm),
    ]


def _system_rows(table: ResultTable) -> Iterator[list[Value]]:
    """Yield the cells of each group and system; one system alone has intervals of its values
    instead of its name."""
    for row in (*table.rows, table.total):
        for name, system in (row.systems or {None: {}}).items():
            values, result = list[Value](), _NONE
            for measure in table.measures:
                result = system.get(measure.key, _NONE)
                values += [result.value, None if table.compared else result.interval]
            values.append(result.deviation if len(result.seeds) > 1 else None)
            named = name if table.compared or table.seeded else None
            yield [*_sizes(table, row), named, *values, *_comparison(result)]


def _pair_rows(table: ResultTable) -> Iterator[list[Value]]:
    """Yield the cells of each group, with a column for each of two systems."""
    for row in (*table.rows, table.total):
        base, other = [one[table.key] for one in row.systems.values()] or (_NONE, _NONE)
        yield [*_sizes(table, row), base.value, other.value, *_comparison(other)]


def _sizes(table: ResultTable, row: GroupRow) -> list[Value]:
    label = Marked(row.group, "*") if row.few else row.group
    return [label, *(getattr(row, column.key) for column in table.sizes)]


def _comparison(one: GroupResult) -> list[Value]:
    return [one.difference, one.difference_interval, one.holm_p]


SAMPLES_EACH = 40
"""Resamples for each of m comparisons: a corrected p-value is at least m / resamples."""


@dataclass(frozen=True)
class SentenceScores:
    """The statistics of each sentence for one system, and (N,) whether its translation equals the
    reference."""

    score: Score
    exact: BoolArray

    def select(self, members: BoolArray) -> SentenceScores:
        """Keep some of the sentences: (N,)."""
        return SentenceScores(
            score_counted(self.score.metric, self.score.statistics[members]), self.exact[members]
        )


Scores = Mapping[str, Sequence[SentenceScores]]
"""For each system the scores of its seeds, all for the same sentences; the first system is the
baseline."""


def collect(
    score: Score, hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool = False
) -> SentenceScores:
    """Find the exact matches among translations that have been scored; differences in spacing do
    not count."""

    def words(line: str) -> list[str]:
        return (line.lower() if lowercase else line).split()

    exact = [words(one) == words(other) for one, other in zip(hypotheses, references, strict=True)]
    return SentenceScores(score, np.array(exact, dtype=np.bool_))


def tabulate(grouping: Grouping, systems: Scores) -> ResultTable:
    """Score every group for each system, and compare each system with the first."""
    every = np.ones(len(grouping.sizes), dtype=np.bool_)
    groups = [*zip(grouping.names, grouping.members, strict=True), ("all", every)]
    tested = sum(int(members.sum()) >= FEW_SENTENCES for _, members in groups) * (len(systems) - 1)
    samples = max(SAMPLES, SAMPLES_EACH * tested)
    rows = []
    # a single system is scored in a moment
    shown = progress("comparing", len(groups), "groups") if tested else nullcontext(lambda _: None)
    with shown as advance:
        for name, members in groups:
            rows.append(_score_group(name, members, grouping, systems, samples))
            advance(1)
    *rows, total = correct(rows, "score")
    [first, *_], *_ = systems.values()
    metric = first.score.metric
    # exact matches come before scores
    measures = [share_column("exact match", name="accuracy")] * grouping.exact
    about = "" if metric.higher_is_better else LOWER
    measures.append(Column(title=metric.title, name="score", about=about))
    text = f"share of {grouping.counted}"
    sizes = [
        count_column("sentences"),
        share_column("share", about="share of the sentences"),
        share_column(text, name="text_share", about="share of their text"),
    ]
    return ResultTable(
        grouping.by, grouping.unit, measures, sizes, rows, total, samples, grouping.about
    )


def _score_group(
    name: str, members: BoolArray, grouping: Grouping, systems: Scores, samples: int
) -> GroupRow:
    count, sizes = int(members.sum()), grouping.sizes
    text, everything = int(sizes[members].sum()), max(int(sizes.sum()), 1)
    results, statistics = dict[str, dict[str, GroupResult]](), []
    for system, seeds in systems.items():
        if count:
            chosen = [seed.select(members) for seed in seeds]
            statistics.append([seed.score.statistics for seed in chosen])
            results[system] = {
                "accuracy": _mean([float(seed.exact.mean()) for seed in chosen]),
                "score": _mean([seed.score.value for seed in chosen]),
            }
    comparisons: Sequence[Comparison | None] = [None] * (len(results) - 1)
    if comparisons and count >= FEW_SENTENCES:
        [first, *_], *_ = systems.values()
        aggregate = first.score.metric.aggregate
        comparisons = compare_on_resamples(statistics, aggregate, samples=samples)
    base, *others = results.values() or [{}]
    for one, comparison in zip(others, comparisons, strict=True):
        one["accuracy"] = one["accuracy"].above(base["accuracy"], None)
        one["score"] = one["score"].above(base["score"], comparison)
    return GroupRow(name, count, count / len(sizes), text, text / everything, results)


def _mean(seeds: Sequence[float]) -> GroupResult:
    return GroupResult(float(np.mean(seeds)), seeds)
