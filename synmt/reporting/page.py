"""A web page of reports: one file without scripts or external resources.

Its template, `page.html`, has the style for light and dark screens, narrow screens and paper.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt import __version__
from synmt.errors import UsageError
from synmt.files.writing import write_output
from synmt.reporting.text import shown_rows
from synmt.reporting.values import Figure, Part, Report, Table, TextBlock

if TYPE_CHECKING:
    from jinja2 import Template


_WIDTH = 9.3
"""Inches: the width of the page."""


@cache
def template(folder: Path = Path(__file__).parent, name: str = "page.html") -> Template:
    """Read a template of pages; what it shows is escaped, unless it is markup."""
    from jinja2 import Environment, FileSystemLoader

    return Environment(loader=FileSystemLoader(folder), autoescape=True).get_template(name)


def check_page(path: Path) -> None:
    """Raise UsageError for a file name that browsers would not open as a web page."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError("not an HTML file name", where=path, allowed="Endings: .html, .htm")


def page_of(
    reports: Sequence[Report], *, recipes: Mapping[str, str] | None = None, command: str = ""
) -> str:
    """Write reports one below the other, with a table of contents if there are several sections.

    recipes: texts to open below them, by the names of their runs.
    command: the command line that made them.
    """
    runs = dict.fromkeys(run.resolve().name for report in reports for run in report.runs)
    of_runs = f" of {', '.join(runs)}" if runs else ""
    return template().render(
        title=f"Analyses{of_runs}" if len(reports) > 1 else reports[0].title,
        recipes=recipes,
        each=[section for report in reports for section in _sections(report)],
        styles=dict.fromkeys(
            part.style for report in reports for part in report.parts if isinstance(part, TextBlock)
        ),
        command=command,
        made_by=f"Made by synmt {__version__} on {date.today().isoformat()}:",
    )


def save_page(reports: Sequence[Report], path: Path) -> None:
    """Write the page of reports into a file; raises UsageError unless its name is that of a web
    page."""
    check_page(path)
    with write_output(path) as out:
        out.write(page_of(reports))


def fragment(part: Any) -> str:
    """Write a report or a part as it stands in a page, for a notebook."""
    if isinstance(part, Report):
        return _macro("sections", _sections(part), 3)
    return _part(part)


def _sections(report: Report) -> list[tuple[str, list[str]]]:
    """Begin a section with each part that has a title; what comes before has the title of the
    report."""
    sections = [(report.title, list[str]())]
    for part in report.parts:
        if part.title:
            sections.append((part.title, list[str]()))
        shown = part.on_page() if isinstance(part, Table) and part.on_page else part
        sections[-1][1].append(_part(shown))
    sections[-1][1].extend(paragraph(note, faint=True) for note in report.notes)
    return sections if sections[0][1] else sections[1:] or sections


def _part(part: Part) -> str:
    if isinstance(part, Figure):
        return _figure(part)
    if isinstance(part, TextBlock):
        from markupsafe import Markup

        return Markup("".join(map(paragraph, part.lines)) if part.html is None else part.html)
    titles, rows = [column.title for column in part.columns], shown_rows(part)
    kinds = [column.kind for column in part.columns]
    # a tested difference, its interval and its p-value
    classes = [
        "decisive" if "p" in kinds and (column.signed or column.kind == "p") else column.kind
        for column in part.columns
    ]
    return _macro(
        "table",
        titles,
        rows,
        part.title,
        set(kinds) == {"text"},
        classes,
        part.explanations(),
    )


def _macro(name: str, *values: Any) -> str:
    """Write a part by the macro of the template."""
    return getattr(template().module, name)(*values)


def paragraph(text: str, *, faint: bool = False) -> str:
    """Write a paragraph of plain text; explanations are faint."""
    return _macro("paragraph", text, faint)


def _figure(figure: Figure) -> str:
    """Draw a figure into the page; without matplotlib, the page has only the caption."""
    from synmt.reporting.figures import has_matplotlib, rendered

    if not has_matplotlib():
        return paragraph(f"{figure.caption} (no figure: matplotlib is not installed)", faint=True)
    return picture(
        rendered(figure.draw, "svg", _WIDTH).decode("utf-8"), caption=figure.caption, chart=True
    )


def picture(svg: str, *, caption: str, chart: bool = False) -> str:
    """Put an SVG document into the page, above its caption; a chart shrinks on narrow screens."""
    # as an image, its styles and ids do not mix with those of the page
    return _macro("picture", b64encode(svg.encode("utf-8")).decode("ascii"), caption, chart)
