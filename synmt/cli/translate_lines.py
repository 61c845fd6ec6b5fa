"""What comes in to `synmt translate`, window by window, and the lines that go out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import tee
from pathlib import Path
from typing import IO, TYPE_CHECKING

from synmt.decode.alignment import pharaoh
from synmt.decode.inputs import Request, zip_windows
from synmt.decode.jsonl import Record, read_records, write_compared, write_record
from synmt.decode.override import Compared, compare_windows
from synmt.decode.translation import NO_TRANSLATION, Translation
from synmt.errors import UsageError
from synmt.files import open_binary, read_available_lines, read_lines
from synmt.syntax.conllu import read_parses

if TYPE_CHECKING:
    from synmt.cli.translate_asked import Asked
    from synmt.decode.translator import Translator

Result = Translation | Compared
Windows = Iterator[list[Record]]


def translated(translator: Translator, asked: Asked) -> Iterator[list[tuple[Record, Result]]]:
    """Translate what comes in, as it comes in."""
    where = "standard input" if asked.source == "-" else asked.source
    with open_binary(asked.source) as stream:
        lines = read_available_lines(stream, translator.window, where=where)
        records, again = tee(_prepared(lines, asked, where, reads_trees=translator.reads_trees))
        requests = ([record.request for record in window] for window in again)
        results: Iterator[Sequence[Result]]
        if asked.parse_override is not None:
            results = compare_windows(translator, requests)
        else:
            results = translator.translate_all(requests)
        for window, found in zip(records, results, strict=True):
            yield list(zip(window, found, strict=True))


def line_of(record: Record, result: Result, asked: Asked) -> str:
    """Write what comes out for one line that went in."""
    several = asked.n_best > 1
    if isinstance(result, Compared):
        if asked.jsonl:
            return write_compared(record.fields, result, several=several)
        columns = (_column(result.own.text), _column(result.other.text), number(result.difference))
        return "\t".join(columns) + "\n"
    if asked.jsonl:
        return write_record(record.fields, result, several=several)
    candidates = result.candidates or (NO_TRANSLATION,)
    if several:
        return "".join(f"{result.line - 1} ||| {one.text} ||| {number(one.score)}\n" for one in candidates)
    best = candidates[0]
    return f"{_column(best.text)}\t{number(best.score)}\n" if asked.scores else f"{best.text}\n"


def number(value: float, sign: str = "") -> str:
    """Write a number with four places; `sign` is `+` where one above 0 has one too."""
    # -0.00001 would be written as -0.0000
    return f"{round(value, 4) + 0.0:{sign}.4f}"


def alignment_of(translation: Translation) -> str:
    """Write the alignment of one line; empty where it has no text."""
    return f"{pharaoh(translation.aligned.pairs) if translation.aligned else ''}\n"


def own(result: Result) -> Translation:
    """Give the translation under the line's own tree."""
    return result.own if isinstance(result, Compared) else result


def write(window: list[tuple[Record, Result]], asked: Asked, out: IO[str], alignments: IO[str] | None) -> None:
    """Write a window, so that whoever reads it need not wait for the next one."""
    for record, result in window:
        out.write(line_of(record, result, asked))
        if alignments is not None:
            alignments.write(alignment_of(own(result)))
    out.flush()


def _column(text: str) -> str:
    """Keep a tab, which bytes can spell, from making a column."""
    return text.replace("\t", " ")


def _records(lines: Iterator[list[str]], asked: Asked, where: str, *, reads_trees: bool) -> Windows:
    if asked.jsonl:
        yield from read_records(lines, where=where, trees=reads_trees)
    elif asked.prefixes is None:
        for window in lines:
            yield [Record({}, Request(line)) for line in window]
    else:
        for window, prefixes in zip_windows(lines, read_lines(asked.prefixes), f"prefixes in {asked.prefixes}"):
            yield [Record({}, Request(*pair)) for pair in zip(window, prefixes, strict=True)]


def _prepared(lines: Iterator[list[str]], asked: Asked, where: str, *, reads_trees: bool) -> Windows:
    records = _records(lines, asked, where, reads_trees=reads_trees)
    if asked.parses is not None and reads_trees:
        records = _with_trees(records, asked.parses, "tree")
    if asked.parse_override is not None:
        records = _with_trees(records, asked.parse_override, "other_tree")
    return records


def _with_trees(records: Windows, path: Path, name: str) -> Windows:
    records, again = tee(records)
    trees = read_parses(path, (record.request.text for window in again for record in window))
    for window, some in zip_windows(records, trees, f"trees in {path}"):
        if name == "tree" and any(record.request.tree is not None for record in window):
            raise UsageError("an object has a `parse` already", where="--parses", do="Leave out one of the two")
        yield [
            replace(record, request=replace(record.request, **{name: tree}))
            for record, tree in zip(window, some, strict=True)
        ]
