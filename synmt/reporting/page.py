"""A web page of reports: one file without scripts or external resources.

Its parts share a style for light and dark screens, narrow screens and paper. All text is escaped
here.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from pathlib import Path

from synmt import __version__
from synmt.errors import UsageError
from synmt.files.writing import write_output
from synmt.reporting.cells import is_text, shown_rows
from synmt.reporting.values import Figure, Part, Picture, Report, Shown, Table, TextBlock

_MINIMUM_WIDTH = 0.6
"""The share of its width that a shrinking chart keeps, so that its text of 9 points stays
legible."""


@dataclass(frozen=True)
class _Section:
    """A section of the page: its heading as plain text, its HTML, and the CSS that only its parts
    need."""

    title: str
    body: str
    styles: Sequence[str]


def check_page(path: Path) -> None:
    """Raise UsageError for a file name that browsers would not open as a web page."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError("not an HTML file name", where=str(path), allowed="Endings: .html, .htm")


def page_of(reports: Sequence[Report], *, about: Table | None = None, command: str = "") -> str:
    """Write reports one below the other, after a table of contents if they have several sections.

    about: a table below the title.
    command: the command line that made them.
    """
    title = ", ".join(dict.fromkeys(report.system or report.title for report in reports))
    sections = [section for report in reports for section in _sections(report)]
    contents, bodies = "", list[str]()
    for number, one in enumerate(sections, 1):
        heading = escape(one.title)
        contents += f'<li><a href="#part-{number}">{heading}</a></li>'
        bodies.append(f'<section id="part-{number}">\n<h2>{heading}</h2>\n{one.body}\n</section>')
    made_by = f"Made by synmt {__version__} on {date.today().isoformat()}:"
    footer = f"{paragraph(made_by, faint=True)}<pre><code>{escape(command)}</code></pre>\n"
    return _PAGE.format(
        title=escape(title),
        about=_element(about) if about else "",
        made_by=f"<footer>\n{footer}</footer>\n" if command else "",
        style=_STYLE + "".join(dict.fromkeys(style for one in sections for style in one.styles)),
        contents=f"<nav><ol>{contents}</ol></nav>\n" if len(sections) > 1 else "",
        sections="\n".join(bodies),
    )


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
        return "".join(f"<h3>{escape(one.title)}</h3>\n{one.body}" for one in _sections(part))
    return _element(part)  # type: ignore[arg-type]


def _sections(report: Report) -> list[_Section]:
    """Begin a section with each part that has a title; what comes before has the title of the
    report."""
    groups: list[tuple[str, list[Part]]] = [(report.title, [])]
    for part in report.parts:
        if part.title:
            groups.append((part.title, []))
        groups[-1][1].append(part)
    if report.parts and not groups[0][1]:
        del groups[0]
    notes = "".join(paragraph(note, faint=True) for note in report.notes)
    groups[-1][1].append(TextBlock(html=notes))
    sections, explained = list[_Section](), set[str]()
    for title, parts in groups:
        shown = [one.on_page() if isinstance(one, Table) and one.on_page else one for one in parts]
        body = "".join(_element(one, explained, report.title) for one in shown)
        styles = [one.style for one in shown if isinstance(one, TextBlock)]
        sections.append(_Section(title, body, styles))
    return sections


def _element(part: Part, explained: set[str] | None = None, caption: str = "") -> str:
    """Write one part.

    explained: explanations that are left out; the others join them.
    caption: of a table whose title is the heading above it.
    """
    if isinstance(part, Figure):
        return _figure(part)
    if isinstance(part, Picture):
        return picture(part.svg, caption=part.caption)
    if isinstance(part, TextBlock):
        lines = "".join(paragraph(line) for line in part.lines)
        return lines if part.html is None else part.html
    explained = set() if explained is None else explained
    notes = [note for note in part.explanations() if note not in explained]
    explained.update(notes)
    drawn = _table(part, escape(caption if part.title and caption else part.title))
    return drawn + "".join(paragraph(note, faint=True) for note in notes)


def paragraph(text: str, *, faint: bool = False) -> str:
    """Write a paragraph of plain text; explanations are faint."""
    kind = ' class="faint"' if faint else ""
    return f"<p{kind}>{escape(text)}</p>\n"


def _table(table: Table, caption: str) -> str:
    """Write a table whose first column names the rows; words may wrap, numbers do not."""
    head = "".join(f'<th scope="col">{escape(column.title)}</th>' for column in table.columns)
    rows = list[str]()
    for cells in shown_rows(table):
        name, *others = map(escape, cells)
        values = "".join(f"<td>{cell}</td>" for cell in others)
        rows.append(f'<tr><th scope="row">{name}</th>{values}</tr>')
    body = "\n".join(rows)
    kind = ' class="facts"' if all(is_text(table.columns)[1:]) else ""
    return (
        f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0">\n'
        f"<table{kind}><caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table>\n</div>\n"
    )


def _figure(figure: Figure) -> str:
    """Draw a figure into the page; it keeps its light background on dark screens.

    Without matplotlib, the page has only the caption.
    """
    from synmt.reporting.figures import has_matplotlib, svg_of

    if not has_matplotlib():
        why = "no figure: matplotlib is not installed"
        return paragraph(f"{figure.caption} ({why})", faint=True)
    return picture(svg_of(figure.draw), caption=figure.caption, shrinks=figure.shrinks)


def picture(svg: str, *, caption: str, shrinks: bool = False) -> str:
    """Put an SVG document into the page, above its caption.

    shrinks: whether it shrinks on narrow screens, as long as its text is legible, before it
        scrolls.
    """
    # as an image, its styles and ids do not mix with those of the page
    data, about = b64encode(svg.encode("utf-8")).decode("ascii"), escape(caption)
    width = re.search(r'<svg[^>]* width="([\d.]+)pt"', svg) if shrinks else None
    kind = ""
    if width:
        least = _MINIMUM_WIDTH * float(width[1])
        kind = f' class="chart" style="min-width: {least:.0f}pt"'
    return (
        f'<figure><div class="scroll" tabindex="0"><img{kind} alt="{about}" '
        f'src="data:image/svg+xml;base64,{data}"></div><figcaption>{about}</figcaption></figure>\n'
    )


_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --faint: #595959; --paper: #ffffff;
  --rule: #d4d4d4;
  --link: #0465af; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --faint: #a8a8a8; --paper: #14171a; --rule: #3a3f45; --link: #8fc6ff; }
}
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 56rem; margin: 0 auto; padding: 1.25rem 1rem 3rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
a { color: var(--link); }
nav ol { padding-left: 1.4rem; margin: .5rem 0; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
.faint { color: var(--faint); font-size: .875rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9375rem;
  margin: .5rem 0; }
caption { text-align: left; color: var(--faint); font-size: .875rem; padding-bottom: .3rem;
  white-space: normal;
  position: sticky; left: 0; max-width: min(calc(100vw - 2rem), 54rem); overflow-wrap: anywhere; }
th, td { text-align: right; padding: .25rem .7rem; border-bottom: 1px solid var(--rule);
  white-space: nowrap; }
th:first-child { text-align: left; padding-left: 0; position: sticky; left: 0;
  background: var(--paper); }
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
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
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
