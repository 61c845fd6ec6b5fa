"""The result of an analysis: as JSON, as text for a terminal, as sections of a web page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.evaluation.table_formats import without_repeats

if TYPE_CHECKING:
    from synmt.reporting.page import Section


@dataclass(frozen=True)
class TextTable:
    """A table of strings for a terminal; columns after the first are right-aligned.

    shared: the number of first columns whose cells several rows may share; then only the first row shows them.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]] = field(default_factory=list)
    shared: int = 0

    def shown(self) -> list[list[str]]:
        """Return the rows as they are shown, without shared cells below the first row."""
        return without_repeats(self.rows, self.shared)


@dataclass(frozen=True)
class AnalysisReport:
    """The result of one analysis; each form is made only when it is needed.

    system: name of the run or file that was analysed.
    to_json: all numbers, as plain values.
    to_text: lines and tables for a terminal, in order.
    to_html: sections of a web page.
    runs: folders of the runs that were read.
    to_tables: tables with their explanations, for formats other than text; by default those of the text.
    """

    system: str
    to_json: Callable[[], dict[str, Any]]
    to_text: Callable[[], Iterable[str | TextTable]]
    to_html: Callable[[], Sequence[Section]]
    runs: tuple[Path, ...] = ()
    to_tables: Callable[[], Iterable[str | TextTable]] | None = None
