"""One renderer for each format: `render(reports, "latex")`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from synmt.arrays import json_text
from synmt.reporting.page import page_of
from synmt.reporting.text import as_text, shown_rows
from synmt.reporting.values import Interval, Report, Table, TextBlock, Value, plain

Format = Literal["text", "json", "tsv", "latex", "markdown", "html"]

_LATEX = str.maketrans(
    {
        **{sign: rf"\{sign}" for sign in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\ensuremath{<}",
        ">": r"\ensuremath{>}",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
        "±": r"$\pm$",
        "Δ": r"$\Delta$",
        "→": r"$\rightarrow$",
        "–": "--",
        "−": "$-$",
        "|": r"\textbar{}",
        # at the beginning of a line, the end of the one before would read these as its arguments
        "[": "{[}",
        "*": "{*}",
    }
)
_MINUS = re.compile(r"(?<![^\s(])-(?=\d)")
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
    as_list = list(reports.values())
    if kind == "json":
        values = {name: report.as_json() for name, report in reports.items()}
        [*_, last] = values.values()
        return json_text(values if len(values) > 1 else last, ensure_ascii=False, indent=2) + "\n"
    if kind == "html":
        return page_of(as_list)
    if kind == "text":
        return as_text(as_list, width=width, bold=bold) + "\n"
    return "\n".join(_for_papers(report, kind) for report in as_list)


def remarks(reports: Mapping[str, Report]) -> list[str]:
    """List all that TSV has no place for: headings, explanations and texts."""
    return [
        part
        for report in reports.values()
        for part in _lines_and_tables(report)
        if isinstance(part, str)
    ]


def _lines_and_tables(report: Report) -> Iterator[str | Table]:
    """Yield each table, and the lines above and below it."""
    yield from report.title.splitlines()
    for part in report.parts:
        yield from part.title.splitlines()
        if isinstance(part, Table):
            yield part
            yield from part.explanations()
        elif isinstance(part, TextBlock):
            yield from "\n".join(part.lines).splitlines()
    yield from "\n".join(report.notes).splitlines()


def _for_papers(report: Report, kind: Format) -> str:
    """Write tables, with all other lines as comments of LaTeX, as paragraphs of Markdown, and
    nowhere in TSV."""
    write, line = {
        "tsv": (_tsv, ""),
        "latex": (_latex, "% {}\n"),
        "markdown": (_markdown, "{}\n\n"),
    }[kind]
    return "".join(
        write(part) + "\n" if isinstance(part, Table) else line.format(part)
        for part in _lines_and_tables(report)
    ).removesuffix("\n")


def _tsv(table: Table) -> str:
    """Write plain numbers; an interval is in two columns."""
    columns = list[list[str]]()
    for place, column in enumerate(table.columns):
        values = [row[place] for row in table.rows]
        title = column.title + {"seconds": " (s)", "bytes": " (bytes)"}.get(column.kind, "")
        if any(isinstance(value, Interval) for value in values):
            for end in ("low", "high"):
                ends = [getattr(value, end, None) for value in values]
                columns.append([f"{title}, {end}", *map(_plain_text, ends)])
        else:
            columns.append([title, *map(_plain_text, values)])
    return "".join("\t".join(row) + "\n" for row in zip(*columns, strict=True))


def _plain_text(value: Value) -> str:
    bare = plain(value)
    if isinstance(bare, float):
        return f"{bare:.8g}"
    return "" if bare is None else " ".join(str(bare).split())


def _cells(table: Table) -> list[list[str]]:
    """Write the titles and the rows, each cell in one line."""
    titles = [column.title for column in table.columns]
    return [[" ".join(cell.split()) for cell in row] for row in (titles, *shown_rows(table))]


def _markdown(table: Table) -> str:
    import tabulate

    titles, *rows = [[_MARKDOWN_SIGN.sub(r"\\\1", cell) for cell in row] for row in _cells(table)]
    align = ["left" if column.kind == "text" else "right" for column in table.columns]
    # cells are text, and stay as they are
    return (
        tabulate.tabulate(
            rows, titles, tablefmt="pipe", colalign=align if rows else None, disable_numparse=True
        )
        + "\n"
    )


def _latex(table: Table) -> str:
    """Write an environment of the package booktabs."""
    cells, kinds = _cells(table), ""
    for column, (_, *values) in zip(table.columns, zip(*cells, strict=True), strict=True):
        is_long = any(len(value) > _LONG for value in values)
        kinds += "p{5cm}" if is_long else "l" if column.kind == "text" else "r"
    titles, *rows = [" & ".join(map(_latex_cell, row)) + r" \\" for row in cells]
    lines = [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", titles, r"\midrule"]
    return "\n".join([*lines, *rows, r"\bottomrule", r"\end{tabular}", ""])


def _latex_cell(text: str) -> str:
    return _MINUS.sub("−", text).translate(_LATEX)
