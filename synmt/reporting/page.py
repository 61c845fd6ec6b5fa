"""A web page of reports: one file without scripts or external resources.

Its parts share a style for light and dark screens, narrow screens and paper. All text is escaped
here.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from synmt import __version__
from synmt.errors import UsageError
from synmt.files.writing import write_output
from synmt.reporting.cells import is_text, shown_rows
from synmt.reporting.values import Figure, Part, Picture, Report, Shown, Table, TextBlock

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


_MINIMUM_WIDTH = 0.6
"""The share of its width that a shrinking chart keeps, so that its text of 9 points stays
legible."""


@dataclass(frozen=True)
class Section:
    """A part of the page.

    title: its heading, plain text.
    body: HTML.
    style: CSS that only this part needs.
    """

    title: str
    body: str
    style: str = ""


def check_page(path: Path) -> None:
    """Raise UsageError for a file name that browsers would not open as a web page."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError("not an HTML file name", where=str(path), allowed="Endings: .html, .htm")


def make_page(
    title: str, sections: Sequence[Section], *, about: str = "", made_by: str = ""
) -> str:
    """Write sections one below the other, after a table of contents if there are several.

    about, made_by: HTML below the title, and at the end of the page.
    """
    contents = "".join(
        f'<li><a href="#part-{number}">{escape(one.title)}</a></li>'
        for number, one in enumerate(sections, 1)
    )
    return _PAGE.format(
        title=escape(title),
        about=about,
        made_by=f"<footer>\n{made_by}</footer>\n" if made_by else "",
        style=_STYLE + "".join(dict.fromkeys(one.style for one in sections)),
        contents=f"<nav><ol>{contents}</ol></nav>\n" if len(sections) > 1 else "",
        sections="\n".join(_section(number, one) for number, one in enumerate(sections, 1)),
    )


def page_of(reports: Sequence[Report], *, about: Table | None = None, command: str = "") -> str:
    """Write reports one below the other.

    about: a table below the title.
    command: the command line that made them.
    """
    title = ", ".join(dict.fromkeys(report.system or report.title for report in reports))
    made_by = ""
    if command:
        made_by = paragraph(
            f"Made by synmt {__version__} on {date.today().isoformat()}:", faint=True
        ) + code(command)
    sections = [section for report in reports for section in sections_of(report)]
    return make_page(title, sections, about=_element(about) if about else "", made_by=made_by)


def save_page(reports: Sequence[Report], path: Path) -> None:
    """Write the page of reports into a file; raises UsageError unless its name is that of a web
    page."""
    check_page(path)
    with write_output(path) as out:
        out.write(page_of(reports))


def fragment(parts: Sequence[Shown]) -> str:
    """Write parts as they stand in a page, for a notebook."""
    return "".join(map(_fragment, parts))


def _fragment(part: Shown) -> str:
    if isinstance(part, Report):
        return "".join(f"<h3>{escape(one.title)}</h3>\n{one.body}" for one in sections_of(part))
    return _element(part)  # type: ignore[arg-type]


def sections_of(report: Report) -> list[Section]:
    """Begin a section with each part that has a title; what comes before has the title of the
    report."""
    sections, said = [Section(report.title, "")], set[str]()
    for part in report.parts:
        if part.title and (sections[-1].body or sections[-1].title != report.title):
            sections.append(Section(part.title, ""))
        elif part.title:
            sections[-1] = Section(part.title, "")
        if isinstance(part, Table) and part.on_page:
            part = part.on_page()
        elif isinstance(part, Table) and part.title and report.title:
            # its own title is the heading above it
            part = replace(part, title=report.title)
        style = part.style if isinstance(part, TextBlock) else ""
        before = sections[-1]
        sections[-1] = Section(
            before.title, before.body + _element(part, said), before.style + style
        )
    notes = "".join(paragraph(note, faint=True) for note in report.notes)
    sections[-1] = Section(sections[-1].title, sections[-1].body + notes, sections[-1].style)
    return sections


def _element(part: Part, said: set[str] | None = None) -> str:
    """Write one part; explanations that are in `said` are left out, and the others join it."""
    if isinstance(part, Figure):
        return figure(part.draw, caption=part.caption, shrinks=part.shrinks)
    if isinstance(part, Picture):
        return picture(part.svg, caption=part.caption)
    if isinstance(part, TextBlock):
        lines = "".join(paragraph(line) for line in part.lines)
        return lines if part.html is None else part.html
    said = set() if said is None else said
    notes = [note for note in part.explanations() if note not in said]
    said.update(notes)
    titles = [column.title for column in part.columns]
    # the first column names the rows
    words = all(is_text(part.columns)[1:])
    drawn = table(titles, shown_rows(part), caption=part.title, words=words)
    return drawn + "".join(paragraph(note, faint=True) for note in notes)


def _section(number: int, one: Section) -> str:
    return f'<section id="part-{number}">\n<h2>{escape(one.title)}</h2>\n{one.body}\n</section>'


def paragraph(text: str, *, faint: bool = False) -> str:
    """Write a paragraph of plain text; explanations are faint."""
    kind = ' class="faint"' if faint else ""
    return f"<p{kind}>{escape(text)}</p>\n"


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str, words: bool = False
) -> str:
    """Write a table of plain text, whose first column names the rows.

    caption: content of the table, also for screen readers.
    words: whether the cells contain words, which may wrap, instead of numbers.
    """
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "\n".join(_row(row) for row in rows)
    kind = ' class="facts"' if words else ""
    return (
        f'<div class="scroll" role="region" aria-label="{escape(caption)}" tabindex="0">\n'
        f"<table{kind}><caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table>\n</div>\n"
    )


def _row(row: Sequence[str]) -> str:
    name, *cells = map(escape, row)
    return (
        f'<tr><th scope="row">{name}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    )


def code(text: str) -> str:
    """Write a command line."""
    return f"<pre><code>{escape(text)}</code></pre>\n"


def figure(draw: Callable[[], Drawing], *, caption: str, shrinks: bool = True) -> str:
    """Draw a matplotlib figure into the page; it keeps its light background on dark screens.

    Without matplotlib, the page has only the caption.
    shrinks: whether it shrinks on narrow screens, as long as its text is legible, before it
        scrolls.
    """
    from synmt.reporting.figures import has_matplotlib, svg_of

    if not has_matplotlib():
        return paragraph(f"{caption} (no figure: matplotlib is not installed)", faint=True)
    return picture(svg_of(draw), caption=caption, shrinks=shrinks)


def picture(svg: str, *, caption: str, shrinks: bool = False) -> str:
    """Put an SVG document into the page, above its caption."""
    # as an image, its styles and ids do not mix with those of the page
    data = b64encode(svg.encode("utf-8")).decode("ascii")
    width = re.search(r'<svg[^>]* width="([\d.]+)pt"', svg) if shrinks else None
    kind = (
        f' class="chart" style="min-width: {_MINIMUM_WIDTH * float(width[1]):.0f}pt"'
        if width
        else ""
    )
    return (
        f'<figure><div class="scroll" tabindex="0"><img{kind} alt="{escape(caption)}" '
        f'src="data:image/svg+xml;base64,{data}"></div><figcaption>{escape(caption)}</figcaption></figure>\n'
    )


_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --faint: #595959; --paper: #ffffff; --rule: #d4d4d4;
  --link: #0465af; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --faint: #a8a8a8; --paper: #14171a; --rule: #3a3f45; --link: #8fc6ff; }
}
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 56rem; margin: 0 auto; padding: 1.25rem 1rem 3rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
a { color: var(--link); }
nav ol { padding-left: 1.4rem; margin: .5rem 0; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
.faint { color: var(--faint); font-size: .875rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9375rem; margin: .5rem 0; }
caption { text-align: left; color: var(--faint); font-size: .875rem; padding-bottom: .3rem; white-space: normal;
  position: sticky; left: 0; max-width: min(calc(100vw - 2rem), 54rem); overflow-wrap: anywhere; }
th, td { text-align: right; padding: .25rem .7rem; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child { text-align: left; padding-left: 0; position: sticky; left: 0; background: var(--paper); }
thead th { color: var(--faint); font-weight: 600; white-space: normal; vertical-align: bottom; }
.facts th, .facts td { text-align: left; white-space: normal; vertical-align: top; }
/* narrower columns would break words after each letter: the table scrolls instead */
.facts th, .facts td { min-width: 7.5rem; overflow-wrap: break-word; }
abbr { text-decoration: none; }
figure { margin: .8rem 0; }
figure img { display: block; background: #ffffff; }
.chart { max-width: 100%; height: auto; }
figcaption { color: var(--faint); font-size: .875rem; margin-top: .3rem; }
pre { font-size: .8125rem; white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; }
footer { border-top: 1px solid var(--rule); margin-top: 3rem; padding-top: .6rem; }
@media print { .scroll { overflow: visible; } section { break-inside: auto; } }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{about}{contents}{sections}
{made_by}</main>
</body>
</html>
"""
