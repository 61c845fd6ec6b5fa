"""The table of group scores of more systems than a run and its baseline, or of several seeds.

It has a line for each group and system, so that a table of eight systems is as wide as one of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from synmt.analysis.groups.group_score import Gain, GroupScore
from synmt.analysis.groups.scores import GroupTable
from synmt.analysis.report import TextTable
from synmt.errors import counted
from synmt.evaluation.bootstrap import SEED
from synmt.evaluation.seeds import FEW_SEEDS

_NONE = "-"
_SHARED_COLUMNS = 3
"""The first columns, which are about the group."""


def systems_table(table: GroupTable, names: Sequence[str]) -> TextTable:
    """Write a line for each group and system, given the names of the systems, the baseline first."""
    columns = [table.title, "sentences", "share", "system", table.metric.title]
    columns += ["±"] * table.seeded
    columns += ["difference", "95 % interval", "p (Holm)"] * (len(names) > 1)
    columns += ["exact match"] * table.grouping.exact
    rows = []
    for row in (*table.rows, table.total):
        shared = row.cells
        systems = [[name, *_system_cells(table, one)] for name, one in zip(names, row.results, strict=False)]
        rows += [[*shared, *cells] for cells in systems] or [shared + [_NONE] * (len(columns) - len(shared))]
    return TextTable(columns, rows, shared=_SHARED_COLUMNS)


def _system_cells(table: GroupTable, one: GroupScore) -> list[str]:
    cells = [f"{one.score:.2f}"]
    if table.seeded:
        cells.append(f"{one.deviation:.2f}" if len(one.seeds) > 1 else "")
    if table.compared:
        cells += gain_cells(one.gain) if one.gain else [""] * 3
    return cells + [f"{one.accuracy:.1%}"] * table.grouping.exact


def gain_cells(gain: Gain) -> list[str]:
    """Write a difference, its interval and its corrected p; a small group has only the first."""
    p_value = _NONE if gain.holm_p is None else f"{gain.holm_p:.3f}"
    return [f"{gain.score:+.2f}", gain.comparison.interval if gain.comparison else _NONE, p_value]


def seeds_legend() -> str:
    """Explain the scores of systems with several seeds."""
    return "scores: means over the seeds of a system; ±: their standard deviation"


def comparison_legend(table: GroupTable, baseline: str) -> Iterator[str]:
    """Explain the columns of the comparison with a baseline."""
    units = "the group's sentences and of seeds" if table.seeded else "the group's sentences"
    yield (
        f"difference from {baseline}; interval: bootstrap of {units} (Koehn, 2004), {table.resamples:,} resamples, "
        f"seed {SEED}"
    )
    if table.seeded:
        yield FEW_SEEDS
    if not table.comparisons:
        return
    comparisons = counted(table.comparisons, "comparison")
    yield (
        f"p: two-sided, of the same resamples, corrected for the {comparisons} of the table (Holm, 1979); intervals "
        "are not corrected"
    )
