"""Tables of strings for other programs: TSV for spreadsheets and scripts, LaTeX and Markdown for papers and pages."""

from __future__ import annotations

import re
from collections.abc import Sequence

Cells = Sequence[str]

_LATEX = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{"<": "$<$", ">": "$>$", "≤": r"$\leq$", "≥": r"$\geq$", "±": r"$\pm$", "Δ": r"$\Delta$", "→": r"$\rightarrow$"},
    **{"–": "--", "|": r"\textbar{}"},
}
_LATEX_SIGN = re.compile("|".join(map(re.escape, _LATEX)))
_NUMBER = re.compile(r"(?<![\w.])-(?=\d)")
_QUANTITY = re.compile(r"[-+−<>≤≥*$(\[]*\d|[-–]$")
"""The begin of a cell with a number, or a cell that says there is none."""
_NUMBER_SIGNS = r"([-+−]?\d{1,3}(?:(?:,\d{3})+|\d*)(?:\.\d+)?)(?: ?%)?"
_PLAIN = re.compile(_NUMBER_SIGNS)
_NUMERIC = {
    _PLAIN: ("",),
    re.compile(rf"\[?{_NUMBER_SIGNS}(?: to |, |–){_NUMBER_SIGNS}\]?"): (", low", ", high"),
    re.compile(rf"{_NUMBER_SIGNS}(?: \({_NUMBER_SIGNS} to {_NUMBER_SIGNS}\))?"): ("", ", low", ", high"),
}
"""What all cells of a column of numbers are like, and what is added to its name for each number in a cell."""
_LONG, _WIDE = 50, "5cm"
"""From how many characters on a column of text is broken into lines in LaTeX, and how wide it is then."""
_MARKDOWN_SIGN = re.compile(r"([\\`*_\[\]<>|~])")


def table_as(kind: str, columns: Cells, rows: Sequence[Cells], *, shared: int = 0) -> str:
    """Write a table as `tsv`, `latex` (with booktabs) or `markdown`; columns of numbers are right-aligned.

    shared: the number of first columns whose cells several rows may share. TSV repeats these cells, so that a program
    can read each row alone.
    """
    make = {"tsv": _tsv, "latex": _latex, "markdown": _markdown}[kind]
    return make(columns, rows, shared)


def number_columns(rows: Sequence[Cells], count: int) -> list[bool]:
    """Tell which of `count` columns have numbers: in half of the cells that are not empty; the first names the rows."""
    cells = [[cell for row in rows if (cell := row[place])] for place in range(count)]
    return [bool(place) and 2 * sum(map(_is_quantity, some)) >= len(some) for place, some in enumerate(cells)]


def _is_quantity(cell: str) -> bool:
    return _QUANTITY.match(cell) is not None


def without_repeats(rows: Sequence[Cells], shared: int) -> list[list[str]]:
    """Empty the first cells of each row where all of them repeat the row above."""
    shown, before = [], []
    for row in rows:
        first = list(row[:shared])
        shown.append([*([""] * shared if first == before else first), *row[shared:]])
        before = first
    return shown


def _tsv(columns: Cells, rows: Sequence[Cells], shared: int) -> str:
    """Write numbers as programs read them; an interval is two columns."""
    first, *others = zip(columns, *rows, strict=True)
    written = [first, *(column for name, *cells in others for column in _plain_columns(name, cells))]
    return "".join("\t".join(" ".join(cell.split()) for cell in row) + "\n" for row in zip(*written, strict=True))


def _plain_columns(name: str, cells: Cells) -> list[Cells]:
    """Write a column of numbers without separators of thousands and signs of percent, each number of a cell apart."""
    filled = [cell for cell in cells if cell.strip("-–")]
    percent = {cell.endswith("%") for cell in filled}
    for form, ends in _NUMERIC.items():
        if len(percent) == 1 and all(map(form.fullmatch, filled)):
            unit = " (%)" * percent.pop()
            parts = [_numbers(form, cell) or [""] * len(ends) for cell in cells]
            return [[name + end + unit, *column] for end, column in zip(ends, zip(*parts, strict=True), strict=True)]
    # a number may stand next to words, such as `not reached`
    return [[name, *(cell if cell.endswith("%") else "".join(_numbers(_PLAIN, cell)) or cell for cell in cells)]]


def _numbers(form: re.Pattern[str], cell: str) -> list[str]:
    """Read the numbers of a cell as programs do; none if it is like no number."""
    found = form.fullmatch(cell)
    return [(number or "").replace(",", "").replace("−", "-") for number in found.groups()] if found else []


def _latex(columns: Cells, rows: Sequence[Cells], shared: int) -> str:
    head, *body = map(_latex_row, (columns, *without_repeats(rows, shared)))
    numbers = number_columns(rows, len(columns))
    longest = [max((len(row[place]) for row in rows), default=0) for place in range(len(columns))]
    kinds = "".join(map(_latex_column, numbers, longest))
    lines = [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", head, r"\midrule"]
    for number, (line, row) in enumerate(zip(body, rows, strict=True)):
        # a little space where the shared cells change
        if shared and number and row[:shared] != rows[number - 1][:shared]:
            lines.append(r"\addlinespace")
        lines.append(line)
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_column(numbers: bool, longest: int) -> str:
    """Choose the kind of a column; a sentence has to be broken into lines."""
    return f"p{{{_WIDE}}}" if longest > _LONG else "r" if numbers else "l"


def _latex_row(row: Cells) -> str:
    line = " & ".join(map(_latex_cell, row)) + r" \\"
    # the end of the line before would read these signs as its own arguments
    return f"{{{line[0]}}}{line[1:]}" if line[0] in "[*" else line


def _latex_cell(cell: str) -> str:
    escaped = _LATEX_SIGN.sub(lambda found: _LATEX[found[0]], cell)
    return _NUMBER.sub("$-$", " ".join(escaped.split()))


def _markdown(columns: Cells, rows: Sequence[Cells], shared: int) -> str:
    ruler = ["---:" if numbers else "---" for numbers in number_columns(rows, len(columns))]
    cells = [map(_markdown_cell, columns), ruler, *(map(_markdown_cell, row) for row in without_repeats(rows, shared))]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def _markdown_cell(cell: str) -> str:
    return _MARKDOWN_SIGN.sub(r"\\\1", " ".join(cell.split()))
