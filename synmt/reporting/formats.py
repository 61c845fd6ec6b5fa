"""One renderer for each format: `render(reports, "latex")`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from synmt.arrays import json_text
from synmt.reporting.cells import is_text, plain_columns, shown_rows
from synmt.reporting.values import Report, Table, TextBlock

Format = Literal["text", "json", "tsv", "latex", "markdown", "html"]

_LATEX = {
    **{
        "≤": r"$\leq$",
        "≥": r"$\geq$",
        "±": r"$\pm$",
        "Δ": r"$\Delta$",
        "→": r"$\rightarrow$",
        "–": "--",
    },
    **{"−": "$-$", "|": r"\textbar{}"},
}
"""What tabulate does not translate."""
_LATEX_SIGN = re.compile("|".join(map(re.escape, _LATEX)))
_MINUS = re.compile(r"(?<=[\s&{])-(?=\d)")
_MARKDOWN_SIGN = re.compile(r"([\\`*_\[\]<>|~])")
_LONG = 50
"""From how many characters on a column of text is broken into lines in LaTeX."""


def render(
    reports: Mapping[str, Report], kind: Format, *, width: int | None = None, bold: bool = False
) -> str:
    """Write reports in a format; the text ends in a newline.

    reports: by name; JSON of several has an object with these names, JSON of one is that report.
    width, bold: for `text`, as in `as_text`.
    """
    each = list(reports.values())
    if kind == "json":
        values = {name: report.as_json() for name, report in reports.items()}
        whole = values if len(values) > 1 else next(iter(values.values()))
        return json_text(whole, ensure_ascii=False, indent=2) + "\n"
    if kind == "html":
        from synmt.reporting.page import page_of

        return page_of(each)
    if kind == "text":
        from synmt.reporting.text import as_text

        return as_text(each, width=width, bold=bold) + "\n"
    return "\n".join(_for_papers(report, kind) for report in each)


def remarks(reports: Mapping[str, Report]) -> list[str]:
    """List all that TSV has no place for: headings, explanations and texts."""
    parts = (part for report in reports.values() for part in _parts(report))
    return [line for above, _, below in parts for line in (*above, *below)]


def _parts(report: Report) -> Iterator[tuple[list[str], Table | None, list[str]]]:
    """Yield each table, or None for a text, with the lines above it and those below it."""
    yield [], None, report.title.splitlines()
    for part in report.parts:
        above = [part.title] if part.title else []
        if isinstance(part, Table):
            yield above, part, part.explanations()
        elif isinstance(part, TextBlock) and part.lines:
            yield above, None, [line for text in part.lines for line in text.splitlines()]
    yield [], None, [line for text in report.notes for line in text.splitlines()]


def _for_papers(report: Report, kind: Format) -> str:
    """Write tables, with all other lines as comments of LaTeX, as paragraphs of Markdown, and
    nowhere in TSV."""
    blocks = list[str]()
    for above, table, below in _parts(report):
        blocks += _comments(above, kind)
        blocks += [_table(table, kind)] if table else []
        blocks += _comments(below, kind)
    return "\n".join(blocks)


def _comments(lines: Sequence[str], kind: Format) -> list[str]:
    if kind == "markdown":
        return [f"{line}\n" for line in lines]
    return ["".join(f"% {line}\n" for line in lines)] if kind == "latex" and lines else []


def _table(table: Table, kind: Format) -> str:
    import tabulate

    if kind == "tsv":
        titles, rows = plain_columns(table)
        return "".join("\t".join(row) + "\n" for row in [titles, *rows])
    titles, rows = [column.title for column in table.columns], shown_rows(table)
    cells = [[" ".join(cell.split()) for cell in row] for row in [titles, *rows]]
    words = is_text(table.columns)
    if kind == "markdown":
        cells = [[_MARKDOWN_SIGN.sub(r"\\\1", cell) for cell in row] for row in cells]
    align = ["left" if one else "right" for one in words] if rows else None
    form = {"latex": "latex_booktabs", "markdown": "pipe"}[kind]
    # cells are text, and stay as they are
    made = tabulate.tabulate(
        cells[1:], cells[0], tablefmt=form, colalign=align, disable_numparse=True
    )
    return (_for_latex(made, words, cells[1:]) if kind == "latex" else made) + "\n"


def _for_latex(made: str, words: Sequence[bool], rows: Sequence[Sequence[str]]) -> str:
    """Write minus signs as such, signs that LaTeX lacks in its mathematics, and columns of
    sentences in lines."""
    text = _MINUS.sub("$-$", _LATEX_SIGN.sub(lambda found: _LATEX[found[0]], made))
    # the end of the line before would read these signs as its own arguments
    text = re.sub(r"^ ([\[*])", r" {\1}", text, flags=re.MULTILINE)
    kinds = ["l" if one else "r" for one in words]
    for place in range(len(kinds)):
        if any(len(row[place]) > _LONG for row in rows):
            kinds[place] = "p{5cm}"
    return re.sub(r"(?<=begin\{tabular\}\{)\w+", lambda _: "".join(kinds), text, count=1)
