"""Results of systems on groups of sentences or words, and the table and the figure of them.

    score(group) = aggregate( Σ statistics[n] for n in group )

The score of a system with several seeds is their mean. A difference is tested on resamples of the
group's sentences and of the seeds of both systems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from synmt.analysis.groups.grouping import Grouping, Groups
from synmt.arrays import BoolArray, Texts
from synmt.evaluation.bootstrap import SAMPLES, SEED
from synmt.evaluation.metrics import Score
from synmt.evaluation.significance import (
    FEW_SEEDS,
    Comparison,
    compare_on_resamples,
    holm,
    spread,
)
from synmt.reporting.figures import INK, new_figure, series_style
from synmt.reporting.progress import progress
from synmt.reporting.values import (
    Column,
    Figure,
    Interval,
    Part,
    Table,
    count_column,
    share_column,
    text_column,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing
    from matplotlib.figure import SubFigure

FEW_SENTENCES = 10
"""A smaller group gets no interval: its resamples are too similar to show any uncertainty."""

SAMPLES_EACH = 40
"""Resamples for each of m comparisons: a corrected p-value is at least m / resamples."""


@dataclass(frozen=True)
class Result:
    """The result of a system on a group.

    seeds: the value of each seed; NaN if there is nothing to divide by.
    interval: the 95 % interval of the value.
    comparison: with the first system; None for it, and for a group in few sentences.
    exact: the share of translations that equal their reference.
    """

    seeds: Sequence[float]
    interval: Interval | None = None
    comparison: Comparison | None = None
    exact: float | None = None

    @property
    def value(self) -> float:
        """The mean over the seeds."""
        return float(np.mean(self.seeds))


@dataclass(frozen=True)
class GroupResults:
    """The sizes of a group, as the columns of its table show them, and the result of each system,
    the baseline first."""

    name: str
    sizes: Sequence[float]
    results: Sequence[Result]


def results_table(
    grouping: Groups,
    sizes: Sequence[Column],
    measure: Column,
    systems: Texts,
    groups: Sequence[GroupResults],
    *,
    samples: int,
    notes: Texts,
) -> Table:
    """Make a row for each group and system, with the difference from the first system.

    grouping: what the groups are made from.
    sizes: the columns of the sizes of the groups.
    samples: the number of resamples.
    """
    tested = [
        result.comparison for group in groups for result in group.results if result.comparison
    ]
    corrected = iter(holm([comparison.p_value for comparison in tested]))
    rows = []
    for group in groups:
        base = group.results[0]
        for name, result in zip(systems, group.results, strict=True):
            row = [group.name, *group.sizes, name, result.exact, result.value, result.interval]
            row += [
                spread(result.seeds).deviation if len(result.seeds) > 1 else None,
                None if result is base else result.value - base.value,
                *(
                    [result.comparison.interval, next(corrected)]
                    if result.comparison
                    else [None] * 2
                ),
            ]
            rows.append([None if isinstance(cell, float) and isnan(cell) else cell for cell in row])
    resampled = (
        f"bootstrap of sentences and seeds (Koehn, 2004), {samples:,} resamples, seed {SEED}, for "
        f"groups in at least {FEW_SENTENCES} sentences"
    )
    corrected_for = (
        f"two-sided, of the same resamples, corrected for {len(tested)} comparisons in the table "
        "(Holm, 1979); intervals are not corrected"
    )
    name, digits = f"{measure.title}, 95 % interval", measure.digits
    columns = [
        text_column(grouping.title, name="group"),
        *sizes,
        text_column("system"),
        share_column("exact match"),
        replace(measure, name="value"),
        Column(name, digits=digits, about=resampled, name="value_interval"),
        Column("±", digits=digits, about=f"deviation of the seeds; {FEW_SEEDS}", name="deviation"),
        Column("difference", digits=digits, signed=True, about=f"from {systems[0]}"),
        Column("95 % interval", digits=digits, signed=True, about=resampled, name="interval"),
        Column("p (Holm)", kind="p", about=corrected_for, name="holm_p"),
    ]
    title, shared = f"{measure.title} by {grouping.by}", 1 + len(sizes)
    return Table(
        title=title, columns=columns, rows=rows, shared=shared, notes=notes
    ).without_empty_columns()


@dataclass(frozen=True)
class SentenceScores:
    """The statistics of each sentence for one system, and (N,) whether its translation equals the
    reference."""

    score: Score
    exact: BoolArray

    def select(self, members: BoolArray) -> SentenceScores:
        """Keep some of the sentences: (N,)."""
        return SentenceScores(
            Score(self.score.metric, self.score.statistics[members]), self.exact[members]
        )


Scores = Mapping[str, Sequence[SentenceScores]]
"""For each system the scores of its seeds, all for the same sentences; the first system is the
baseline."""


def collect(
    score: Score, hypotheses: Texts, references: Texts, *, lowercase: bool = False
) -> SentenceScores:
    """Find the exact matches among translations that have been scored; differences in spacing do
    not count."""

    def words(line: str) -> list[str]:
        return (line.lower() if lowercase else line).split()

    exact = [
        words(hypothesis) == words(reference)
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    return SentenceScores(score, np.array(exact, dtype=bool))


def tabulate(grouping: Grouping, systems: Scores, *, notes: Texts = ()) -> Table:
    """Score every group for each system, and compare each system with the first."""
    groups = [
        *zip(grouping.names, grouping.members, strict=True),
        ("all", np.ones(len(grouping.sizes), dtype=bool)),
    ]
    tested = sum(int(members.sum()) >= FEW_SENTENCES for _, members in groups) * (len(systems) - 1)
    samples = max(SAMPLES, SAMPLES_EACH * tested)
    text, rows = max(int(grouping.sizes.sum()), 1), []
    with progress("comparing", len(groups), "groups") as advance:
        for name, members in groups:
            count = int(members.sum())
            sizes = [count, count / len(members), int(grouping.sizes[members].sum()) / text]
            rows.append(GroupResults(name, sizes, _score_group(members, systems, samples)))
            advance(1)
    [first, *_], *_ = systems.values()
    metric = first.score.metric
    columns = [
        count_column("sentences"),
        share_column("share", name="share", about="share of the sentences"),
        share_column(f"share of {grouping.counted}", name="text_share"),
    ]
    return results_table(
        grouping,
        columns,
        Column(metric.title, about="" if metric.higher_is_better else "lower is better"),
        list(systems),
        rows,
        samples=samples,
        notes=notes,
    )


def _score_group(members: BoolArray, systems: Scores, samples: int) -> list[Result]:
    count = int(members.sum())
    if not count:
        return [Result([nan]) for _ in systems]
    chosen = [[seed.select(members) for seed in seeds] for seeds in systems.values()]
    comparisons: list[Comparison | None] = [None] * len(chosen)
    if count >= FEW_SENTENCES and len(chosen) > 1:
        comparisons[1:] = compare_on_resamples(
            [[seed.score.statistics for seed in seeds] for seeds in chosen],
            chosen[0][0].score.metric.aggregate,
            samples=samples,
        )
    return [
        Result(
            [seed.score.value for seed in seeds],
            comparison=comparison,
            exact=float(np.mean([seed.exact.mean() for seed in seeds])),
        )
        for seeds, comparison in zip(chosen, comparisons, strict=True)
    ]


Rows = Sequence[Mapping[str, Any]]
"""The rows of a table, as JSON has them."""

_CAPTION = "Results, differences from the first system with 95 % intervals, and shares of the data."
"""What the panels show."""

_BETWEEN = 0.1
"""Distance between the marks of two systems, where that between two groups is 1."""


def with_figures(tables: Sequence[Sequence[Table]]) -> list[Part]:
    """Put a figure of the first table below the tables of each grouping."""
    return [
        part
        for of_grouping in tables
        for part in (
            *of_grouping,
            Figure(draw=partial(draw_results, of_grouping[:1]), caption=_CAPTION),
        )
    ]


def draw_results(tables: Sequence[Table]) -> Drawing:
    """Draw the panels of each table of `results_table`, one table below the other.

    After figure 2 of Bugliarello & Okazaki (2020), which has differences and shares.
    """
    width = 4 + 0.4 * max(len(table.rows) for table in tables)
    figure = new_figure(min(width, 30), 6 * len(tables))
    parts = figure.subfigures(len(tables), 1, squeeze=False)
    for part, table in zip(parts[:, 0], tables, strict=True):
        _draw_table(part, table)
    return figure


def _draw_table(part: SubFigure, table: Table) -> None:
    group, _, share, *_ = table.columns
    rows = table.as_json()["rows"]
    names = list(dict.fromkeys(row["system"] for row in rows))
    # the last group is all of the data
    rows = rows[: -len(names)]
    panels = part.subplots(3 if len(names) > 1 else 2, 1, sharex=True)
    bars = panels[-1]
    for index, name in enumerate(names):
        style = series_style(index) | {"label": name}
        rows_of_system, offset = rows[index :: len(names)], index * _BETWEEN
        _draw_marks(panels[0], rows_of_system, "value", "value_interval", offset, style)
        if index:
            _draw_marks(panels[1], rows_of_system, "difference", "interval", offset, style)
    part.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left")
    panels[0].set_ylabel(table.columns[table.places["value"]].title)
    if len(names) > 1:
        panels[1].axhline(0, color=INK, linewidth=0.8)
        panels[1].set_ylabel("difference")
    groups = rows[:: len(names)]
    bars.bar(range(len(groups)), [100 * row[share.name] for row in groups], color="#8C8C8C")
    bars.set(ylabel=f"{share.title} (%)", xlabel=group.title)
    labels = [row["group"] for row in groups]
    bars.set_xticks(range(len(groups)), labels, rotation=30, ha="right")


def _draw_marks(
    axes: Axes, rows: Rows, value: str, interval: str, offset: float, style: Mapping[str, Any]
) -> None:
    """Draw values with their intervals, as far as there are any."""
    values = np.array([row.get(value) for row in rows], dtype=float)  # (G,)
    none = [np.nan, np.nan]
    ends = np.array([row.get(interval) or none for row in rows], dtype=float).reshape(-1, 2)
    # the interval of the resamples may not contain the value
    bars = np.clip([values - ends[:, 0], ends[:, 1] - values], 0, None)  # (2, G)
    axes.errorbar(np.arange(len(rows)) + offset, values, bars, capsize=2, **style)
