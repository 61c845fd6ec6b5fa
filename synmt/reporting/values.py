"""Tables and reports as values; no cell is text before a renderer writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from itertools import compress
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from synmt.arrays import Texts, Values

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


Kind = Literal["text", "number", "share", "seconds", "bytes", "p"]


class Interval(NamedTuple):
    """An interval of numbers, such as a confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Written:
    """A value that people see written in another way than the column's, such as a sentence with
    brackets; programs get the value."""

    value: str | float
    text: str


Value = str | float | Interval | Written | None
"""A cell. None is an empty one; a number that is no quantity, such as a step, is an int."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    kind: what its values are. A share is between 0 and 1 and shown in percent; `p` is a p-value.
        The cells of any kind may be text, such as `not reached`.
    digits: decimals of numbers and of percent.
    signed: whether positive numbers have a plus sign.
    about: its explanation, below the table.
    name: its key in JSON; by default the title.
    """

    title: str
    _: KW_ONLY
    kind: Kind = "number"
    digits: int = 2
    signed: bool = False
    about: str = ""
    name: str = ""


text_column = partial(Column, kind="text")
"""A column of words."""
count_column = partial(Column, digits=0)
"""A column of whole numbers, or of means of such."""
share_column = partial(Column, kind="share", digits=1)
"""A column of shares, shown in percent."""


class Shown:
    """Something that notebooks show as HTML and `print` as aligned text."""

    # by name, since renderers import this file

    def __str__(self) -> str:
        return resolve_name("synmt.reporting.text:as_text")([self])

    def _repr_html_(self) -> str:
        return resolve_name("synmt.reporting.page:fragment")(self)


@dataclass(frozen=True, kw_only=True)
class Table(Shown):
    """Rows of values.

    title: the heading above it, or its caption.
    shared: the number of first columns whose values several rows may share; people see them only
        once.
    notes: sentences below it, after the explanations of its columns.
    on_page: makes what a page shows in place of the table.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    title: str = ""
    shared: int = 0
    notes: Texts = ()
    on_page: Callable[[], TextBlock] | None = None

    @property
    def places(self) -> dict[str, int]:
        """The number of each column, by its key in JSON."""
        return {column.name or column.title: place for place, column in enumerate(self.columns)}

    def without_empty_columns(self) -> Table:
        """Leave out columns without any value."""
        filled = [
            any(value is not None for value in values) for values in zip(*self.rows, strict=True)
        ]
        columns = list(compress(self.columns, filled))
        rows = [list(compress(row, filled)) for row in self.rows]
        return replace(self, columns=columns, rows=rows, shared=sum(filled[: self.shared]))

    def explanations(self) -> list[str]:
        """List what stands below it."""
        about = [f"{column.title}: {column.about}" for column in self.columns if column.about]
        return [*dict.fromkeys(about), *self.notes]

    def as_json(self) -> Values:
        """Return plain values: one object for each row."""
        return {
            "title": self.title,
            "rows": [dict(zip(self.places, map(plain, row), strict=True)) for row in self.rows],
            "notes": self.explanations(),
        }


def plain(value: Value) -> Any:
    """Return a value as JSON has it: an interval is a list of two numbers."""
    if isinstance(value, Interval):
        return list(value)
    return value.value if isinstance(value, Written) else value


@dataclass(frozen=True, kw_only=True)
class Figure(Shown):
    """A figure that matplotlib draws when it is needed; formats without pictures leave it out."""

    draw: Callable[[], Drawing]
    caption: str
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class TextBlock(Shown):
    """Lines of text.

    html: the same for a page, with what only a page can show; None for paragraphs of the lines.
    style: CSS that only this part needs.
    """

    lines: Texts = ()
    html: str | None = None
    style: str = ""
    title: str = ""


Part = Table | Figure | TextBlock


@dataclass(frozen=True, kw_only=True)
class Report(Shown):
    """The result of an analysis or a command.

    title: its heading.
    parts: what it shows, in order; a part with a title begins a section of a page.
    notes: sentences at its end.
    facts: further values for JSON, beside the tables.
    late_facts: makes more of them, which take long.
    runs: folders of the runs that were read.
    """

    title: str
    parts: Sequence[Part]
    notes: Texts = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    late_facts: Callable[[], Mapping[str, Any]] = dict
    runs: Sequence[Path] = ()

    @property
    def tables(self) -> list[Table]:
        """Its tables, in order."""
        return [part for part in self.parts if isinstance(part, Table)]

    def as_json(self) -> Values:
        """Return plain values: the facts, then the tables."""
        return {
            "title": self.title,
            **self.facts,
            **self.late_facts(),
            "tables": [table.as_json() for table in self.tables],
            "notes": list(self.notes),
        }

    def save(self, path: str | Path) -> None:
        """Write the report as a web page; raises UsageError unless the name ends in .html or
        .htm."""
        resolve_name("synmt.reporting.page:save_page")([self], Path(path))
