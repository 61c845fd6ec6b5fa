"""Reads pairs of lines from the formats of public corpora.

txt: a sentence a line. tags: IWSLT's training text, where lines that begin with `<` are not text;
titles: the same with the titles and descriptions of the talks. tsv: columns with tabs between them.
sgm, xml: `<seg>`, as in the test sets of WMT and IWSLT. tmx: translation memories. csvwithheader,
xlsx, wmt21xml: mtdata's names.
"""

from __future__ import annotations

import csv
import io
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from importlib import import_module
from itertools import zip_longest
from typing import Any, BinaryIO, TypeVar
from xml.etree.ElementTree import iterparse

from synmt.arrays import Pair
from synmt.corpora.archives import Packed
from synmt.corpora.mtdata_index import Columns, same_language
from synmt.errors import SynmtError
from synmt.files.reading import LONGEST, raw_lines, too_long
from synmt.reporting.progress import progress

_Item = TypeVar("_Item")
_Pairs = Iterator[Pair]

_STEP = 20_000
"""Pairs after which progress is reported."""


def read_pairs(
    texts: tuple[Packed, ...],
    form: str,
    *,
    languages: Pair = ("", ""),
    columns: Columns = (0, 1),
) -> _Pairs:
    """Yield the pairs of a corpus, in the order of its languages; raises SynmtError if the sides
    differ in length.

    texts: one for each side, or any number with both.
    form: one of those above, or what mtdata calls it (`tsv.gz`).
    languages: codes, for translation memories.
    columns: of the languages in a table, counted from 0.
    """
    form = form.split(".")[0]
    if len(texts) == 2 and form in _SIDES:
        yield from zipped(texts, [read_side(text, form) for text in texts])
        return
    for text in texts:
        if form == "tsv":
            yield from read_fields(text, columns, separator="\t")
        else:
            yield from _read_both(text, form, languages, columns)


def with_progress(pairs: Iterable[_Item], what: str) -> Iterator[_Item]:
    """Yield pairs, and report how far that is."""
    number = 0
    with progress(what, None, "lines") as advance:
        for number, pair in enumerate(pairs, start=1):
            yield pair
            if number % _STEP == 0:
                advance(_STEP)
        advance(number % _STEP)


def read_side(text: Packed, form: str) -> Iterator[str]:
    """Yield the lines of one side of a corpus: txt, tags, titles, sgm or xml."""
    with text.open() as stream:
        yield from map(one_line, _SIDES[form](_lines(stream, text)))


def read_fields(text: Packed, columns: Columns, *, separator: str = " ||| ") -> _Pairs:
    """Yield two columns of a table without a header; they count from 0."""
    with text.open() as stream:
        for number, line in enumerate(_lines(stream, text), start=1):
            cells = line.split(separator)
            if max(columns) >= len(cells):
                raise SynmtError(
                    f"line {number} has no column {max(columns) + 1}",
                    where=text.label,
                    do=f"If the file is not the right one, remove {text.files[0]}",
                )
            yield one_line(cells[columns[0]]), one_line(cells[columns[1]])


def one_line(text: str) -> str:
    """Replace line ends inside a sentence by spaces, and remove whitespace at both ends."""
    if "\r" in text or "\n" in text:
        text = re.sub(r"\s*[\r\n]+\s*", " ", text)
    return text.strip()


# a text for each side


def _tags(lines: Iterable[str]) -> Iterator[str]:
    """Leave out the lines of tags; a line that begins with `<` and is text is not in these
    corpora."""
    return (line for line in lines if not line.lstrip().startswith("<"))


_TITLE = re.compile(r"</?(?:title|description)>")


def _titles(lines: Iterable[str]) -> Iterator[str]:
    """Leave out the lines of other tags than titles and descriptions, which are sentences too."""
    return _tags(_TITLE.sub("", line) for line in lines)


_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)


def _segments(lines: Iterable[str]) -> Iterator[str]:
    """Yield what is between `<seg>` and `</seg>`, which may be on different lines; entities become
    characters.

    These files look like XML, but many contain a bare `&`.
    """
    for match in _SEGMENT.finditer("\n".join(lines)):
        yield unescape(match[1])


_SIDES = {
    "txt": iter,
    "raw": iter,
    "tags": _tags,
    "titles": _titles,
    "sgm": _segments,
    "xml": _segments,
}


def zipped(texts: Sequence[Packed], sides: Iterable[Iterator[str]]) -> _Pairs:
    """Yield the pairs of two texts; raises SynmtError if one is longer."""
    for number, (first, second) in enumerate(zip_longest(*sides)):
        if first is None or second is None:
            short = texts[0] if first is None else texts[1]
            raise SynmtError(
                f"the sides differ in length: this one has {number} sentences",
                where=short.label,
                do=f"If the file is not the right one, remove {short.files[0]}",
            )
        yield first, second


# both sides in one text


def _read_both(text: Packed, form: str, languages: Pair, columns: Columns) -> _Pairs:
    try:
        with text.open() as stream:
            if form == "wmt21xml":
                pairs = _test_set(stream)
            elif form == "tmx":
                pairs = _memory(stream, languages)
            elif form == "csvwithheader":
                pairs = _rows(csv.reader(f"{line}\n" for line in _lines(stream, text)), columns)
            elif form == "xlsx":
                load = import_module("openpyxl").load_workbook
                sheet = load(io.BytesIO(stream.read()), read_only=True, data_only=True).active
                pairs = filter(any, _rows(sheet.iter_rows(values_only=True), columns))
            else:
                raise ValueError(f"synmt cannot read {form}")
            for first, second in pairs:
                yield one_line(first), one_line(second)
    except (SynmtError, OSError, MemoryError):
        raise
    # ParseError, csv.Error, ImportError and what openpyxl raises
    except Exception as error:
        raise SynmtError(
            f"the file cannot be read as {form} ({error or type(error).__name__})",
            where=text.label,
            do=f"Remove {text.files[0]} if it is not the right file, or write its sentences into "
            "two files, and give them as source and target",
        ) from error


def _test_set(stream: BinaryIO) -> _Pairs:
    """Yield the source and the first reference of each document of a test set of WMT since 2021."""
    for _, document in iterparse(stream):
        if document.tag != "doc":
            continue
        source, reference = (
            ["".join(segment.itertext()) for segment in document.iterfind(f"{side}[1]//seg")]
            for side in ("src", "ref")
        )
        yield from zip(source, reference, strict=True)
        document.clear()


def _memory(stream: BinaryIO, languages: Pair) -> _Pairs:
    """Yield the units of a translation memory that have both languages."""
    lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="\n")
    for _, unit in iterparse(lines):
        if unit.tag != "tu":
            continue
        texts: dict[str, str] = {}
        for variant in unit.findall("tuv"):
            codes = [value for key, value in variant.attrib.items() if key.endswith("lang")]
            text = variant.findtext("seg")
            for language in languages:
                if text and codes and same_language(language, codes[0]):
                    texts[language] = re.sub(r"[\n\t]", " ", unescape(text.strip()))
        first, second = map(texts.get, languages)
        if first and second:
            yield first, second
        unit.clear()
    # whoever opened the stream closes it
    lines.detach()


def _rows(rows: Iterator[Any], columns: Columns) -> _Pairs:
    """Yield two columns of a table with a header; rows without both are left out."""
    next(rows, None)
    for row in rows:
        if len(row) > max(columns):
            first, second = ("" if row[column] is None else str(row[column]) for column in columns)
            yield first, second


def _lines(stream: BinaryIO, text: Packed) -> Iterator[str]:
    """Yield the lines of a text, which end at `\\n` only, without their ends; bytes that are not
    UTF-8 become �, as in all tools for corpora."""
    for number, line in enumerate(raw_lines(stream), start=1):
        if len(line) > LONGEST:
            raise too_long(number, text.label)
        if number == 1:
            line = line.removeprefix(BOM_UTF8)
        yield line.decode(errors="replace").rstrip("\r\n")
