"""A section of a web page for each table of group scores, with its figure."""

from __future__ import annotations

from collections.abc import Sequence

from synmt.analysis.groups.plot import draw_groups
from synmt.analysis.groups.scores import GroupTable
from synmt.analysis.report import TextTable
from synmt.reporting import page as html


def table_section(
    table: GroupTable, names: Sequence[str], text: TextTable, heading: str, notes: Sequence[str]
) -> html.Section:
    """Write a table and its figure.

    names: of the systems, the baseline first if there are several.
    text: the table for a terminal.
    notes: what comes below the figure.
    """
    title = f"{table.metric.title} by {table.grouping.by}"
    parts = [
        html.paragraph(heading),
        html.table(text.columns, text.shown(), caption=title),
        html.figure(lambda: draw_groups([table], names), caption=_caption(table, names)),
        *(html.paragraph(note, faint=True) for note in notes),
    ]
    return html.Section(title, "".join(parts))


def _caption(table: GroupTable, names: Sequence[str]) -> str:
    title, base = table.metric.title, names[0]
    if table.several:
        above = f"{title} of each system"
        above += ", with one standard deviation over its seeds" * table.seeded
        above += f"; in the middle, differences from {base} with 95 % intervals" * table.compared
    elif table.compared:
        above = f"{title} of {names[1]} minus that of {base}, with 95 % intervals"
    else:
        above = f"{title} of {base}"
    return f"{above}; below, each group's share and number of sentences."
