"""Reads pairs of lines from the formats of public corpora; mtdata's parsers read those that it knows."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from html import unescape
from itertools import zip_longest
from typing import Any
from xml.etree.ElementTree import iterparse

from synmt.corpora.archives import Packed, reporting_damage
from synmt.corpora.index import load_mtdata
from synmt.errors import SynmtError, counted
from synmt.files.reading import LONGEST, too_long

FORMATS = ("txt", "tags", "titles", "tsv", "sgm", "xml", "tmx", "csvwithheader", "xlsx", "wmt21xml")
"""txt: a sentence a line. tags: IWSLT's training text, where lines that begin with `<` are not text; titles: the same
with the titles and descriptions of the talks. tsv: columns with tabs between them. sgm, xml: `<seg>`, as in the test
sets of WMT and IWSLT. tmx: translation memories. The others are mtdata's names."""


def read_pairs(texts: tuple[Packed, ...], form: str, *, entry: Any = None) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a corpus, in the order of its languages; raises SynmtError if the sides differ in length.

    texts: one for each side, or one with both.
    form: one of FORMATS, or what mtdata calls it (`tsv.gz`).
    entry: mtdata's, which knows columns and languages.
    """
    if len(texts) == 2 and form.split(".")[0] in _OWN:
        yield from _zipped(texts, [read_side(text, form) for text in texts])
        return
    for text in [texts] if len(texts) == 2 else [(text,) for text in texts]:
        yield from _reporting(text, form, _wmt21(text[0]) if form == "wmt21xml" else _by_mtdata(text, form, entry))


def read_side(text: Packed, form: str) -> Iterator[str]:
    """Yield the lines of one side of a corpus: txt, tags, titles, sgm or xml."""
    own = _OWN.get(form.split(".")[0])
    assert own is not None, form
    with text.open() as stream:
        yield from map(one_line, own(_decoded(stream, text)))


def read_fields(text: Packed, columns: tuple[int, int], *, separator: str = " ||| ") -> Iterator[tuple[str, str]]:
    """Yield two columns of a table without a header; they count from 0."""
    with text.open() as stream:
        for number, line in enumerate(_decoded(stream, text), start=1):
            cells = line.split(separator)
            if max(columns) >= len(cells):
                raise SynmtError(
                    f"line {number} has {len(cells)} columns, and column {max(columns) + 1} is needed", where=text.label
                )
            yield one_line(cells[columns[0]]), one_line(cells[columns[1]])


def one_line(text: str) -> str:
    """Replace line ends inside a sentence by spaces, and remove whitespace at both ends."""
    if "\r" in text or "\n" in text:
        text = re.sub(r"\s*[\r\n]+\s*", " ", text)
    return text.strip()


def _plain(lines: Iterable[str]) -> Iterator[str]:
    return iter(lines)


def _tags(lines: Iterable[str]) -> Iterator[str]:
    """Leave out the lines of tags; a line that begins with `<` and is text is not in these corpora."""
    return (line for line in lines if not line.lstrip().startswith("<"))


_TITLE = re.compile(r"</?(?:title|description)>")


def _titles(lines: Iterable[str]) -> Iterator[str]:
    """Leave out the lines of other tags than titles and descriptions, which are sentences too."""
    return _tags(_TITLE.sub("", line) for line in lines)


_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)


def _segments(lines: Iterable[str]) -> Iterator[str]:
    """Yield what is between `<seg>` and `</seg>`, which may be on different lines; entities become characters.

    These files look like XML, but many contain a bare `&`.
    """
    waiting = ""
    for line in lines:
        waiting = f"{waiting}\n{line}" if waiting else line
        end = 0
        for match in _SEGMENT.finditer(waiting):
            yield unescape(match[1])
            end = match.end()
        waiting = waiting[end:]
        begin = waiting.lower().find("<seg")
        waiting = waiting[begin:] if begin >= 0 else ""


_OWN: dict[str, Callable[[Iterable[str]], Iterator[str]]] = {
    "txt": _plain,
    "raw": _plain,
    "tags": _tags,
    "titles": _titles,
    "sgm": _segments,
    "xml": _segments,
}


def _zipped(texts: tuple[Packed, ...], sides: list[Iterator[str]]) -> Iterator[tuple[str, str]]:
    for number, (first, second) in enumerate(zip_longest(*sides)):
        if first is None or second is None:
            short = texts[0] if first is None else texts[1]
            raise SynmtError(
                f"the sides differ in length: this one ends after {counted(number, 'sentence')}",
                where=short.label,
                do=f"If the file is not the right one, remove {short.files[0]}",
            )
        yield first, second


def _by_mtdata(texts: tuple[Packed, ...], form: str, entry: Any) -> Iterator[tuple[str, str]]:
    """Yield pairs as mtdata's parser reads them.

    It gets open streams: its own way to open files unpacks archives to disk, cuts lines at a carriage return, and does
    not notice that a compressed file is cut off.
    """
    parser = load_mtdata("mtdata.parser").Parser([_Text(text) for text in texts], ext=form, ent=entry or _Unnamed())
    for record in parser.read_segs(show_pbar=False):
        yield one_line(record[0]), one_line(record[1])


def _wmt21(text: Packed) -> Iterator[tuple[str, str]]:
    """Yield the source and the first reference of each document of a test set of WMT since 2021."""
    with text.open() as stream:
        for _, document in iterparse(stream):
            if document.tag != "doc":
                continue
            source, reference = (
                [one_line("".join(segment.itertext())) for side in sides[:1] for segment in side.iter("seg")]
                for sides in (document.findall("src"), document.findall("ref"))
            )
            if len(source) != len(reference):
                counts = f"{counted(len(source), 'segment')}, its reference {len(reference)}"
                raise ValueError(f"document {document.get('id')}: the source has {counts}")
            yield from zip(source, reference, strict=True)
            document.clear()


def _reporting(texts: tuple[Packed, ...], form: str, pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield pairs; turn anything that is raised where they are read into a SynmtError."""
    number = 0
    try:
        with reporting_damage(texts[0]):
            for pair in pairs:
                yield pair
                number += 1
    except (SynmtError, OSError, MemoryError):
        raise
    # mtdata raises AssertionError, csv.Error, plain Exception and others
    except Exception as error:
        raise SynmtError(
            f"{form} cannot be read after {counted(number, 'sentence')} ({error or type(error).__name__})",
            where=", ".join(text.label for text in texts),
            do=f"If the file is not the right one, remove {texts[0].files[0]}; otherwise, write its sentences into two "
            "files, and give them as source and target",
        ) from error


class _Unnamed:
    """What mtdata's parser asks an entry for."""

    meta, cols, did = None, None, ""


class _Text:
    """A text that mtdata's parser can open like a path; its `suffix` says that it is not compressed."""

    suffix = ""

    def __init__(self, text: Packed) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text.label

    def open(self, mode: str = "r", **_: Any) -> Any:
        stack = ExitStack()
        stream = stack.enter_context(self._text.open())
        opened = io.BytesIO(stream.read()) if "b" in mode else _Lines(stream, self._text)
        stack.callback(opened.close)
        # mtdata calls `close`, and knows nothing of the archive around the text
        opened.close = stack.close
        return opened


class _Lines(io.TextIOWrapper):
    """The lines of a text, which end at `\\n` only; bytes that are not UTF-8 become �, as in all tools for corpora."""

    def __init__(self, stream: Any, text: Packed) -> None:
        super().__init__(stream, encoding="utf-8-sig", errors="replace", newline="\n")
        self._label, self._number = text.label, 0

    def __next__(self) -> str:
        self._number += 1
        line = self.readline(LONGEST + 1)
        if len(line) > LONGEST:
            raise too_long(self._number, self._label)
        if not line:
            raise StopIteration
        return line


def _decoded(stream: Any, text: Packed) -> Iterator[str]:
    """Decode lines, without their ends."""
    reader = _Lines(stream, text)
    try:
        for line in reader:
            yield line.rstrip("\r\n")
    finally:
        # the caller opened the stream and closes it
        reader.detach()
