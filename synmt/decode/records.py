"""Input and output lines of `synmt translate`: plain text, or one JSON object per line.

JSON fields
in    source (or text)     the line
      prefix               how the translation has to begin
      parse                its tree, as CoNLL-U text; without it, or with null, the line is parsed
out   translation, score, log_probability
      dropped              pieces at the end of the source beyond the model's maximum
      degenerate           empty, loop, limit or copy (see synmt/decode/translation.py), or null
      translations         for an n-best list: translation, score and log_probability of each, best
                           first
      alignment            if requested: pairs [source word, target word], with source_words and
                           target_words, the characters [start, end) of each word
      source_tokens, translation_tokens
                           the words, with a space between two, if the run tokenizes text;
                           alignments refer to them
      override             with another tree: translation, score, log_probability, and
                           own_log_probability, that of the translation above

Fields of the input are copied as they are written, in their order, before those of the output. One
with the name of an output field is kept as `input_NAME`: `input_score`.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import tee
from pathlib import Path
from typing import Any, Literal

from synmt.arrays import SIDES, Side, json_text
from synmt.decode.inputs import Request, zip_windows
from synmt.decode.override import CounterfactualTranslation
from synmt.decode.translation import REASONS, Candidate, Reason, Translation, joined
from synmt.errors import SynmtError, UsageError, counted, listed
from synmt.files.reading import read_lines
from synmt.syntax.conllu import parse_in, read_parses
from synmt.tokenization.word_tokenizer import RAW, WordTokenizer

_DIGITS = 6

_logger = logging.getLogger(__name__)
_EXAMPLES = 5
_decoder = json.JSONDecoder(parse_int=float)
# between two names or values of an object
_between = re.compile(r"[ \t\r,:]*")

Result = Translation | CounterfactualTranslation
Tokenizers = Mapping[Side, WordTokenizer]
_RAW: Tokenizers = {"source": RAW, "target": RAW}


@dataclass(frozen=True)
class Record:
    """An input line.

    fields: of its JSON object: their names, and name and value as they are written; empty for plain
        text.
    request: with the words of the line, if the run tokenizes text.
    """

    fields: Sequence[tuple[str, str, str]]
    request: Request


def joined_result(result: Result, tokenizer: WordTokenizer) -> Result:
    """Join the words of a result into text."""
    if isinstance(result, Translation):
        return joined(result, tokenizer)
    return replace(result, own=joined(result.own, tokenizer), other=joined(result.other, tokenizer))


Windows = Iterator[list[Record]]


def read_text(
    windows: Iterable[list[str]], prefixes: Path | None = None, *, tokenizers: Tokenizers = _RAW
) -> Windows:
    """Read windows of plain lines and tokenize them; `prefixes` has a prefix for each line."""
    tokenize, tokenize_prefixes = (tokenizers[side].tokenize_lines for side in SIDES)
    if prefixes is None:
        yield from ([Record((), Request(line)) for line in tokenize(window)] for window in windows)
        return
    for window, some in zip_windows(windows, read_lines(prefixes), f"prefixes in {prefixes}"):
        requests = map(Request, tokenize(window), tokenize_prefixes(some))
        yield [Record((), request) for request in requests]


def read_json(
    windows: Iterable[list[str]], *, where: str, trees: bool = False, tokenizers: Tokenizers = _RAW
) -> Windows:
    """Parse windows of JSON lines; everything before an invalid line is yielded before SynmtError
    is raised.

    trees: whether `parse` is read; otherwise it may be anything.
    """
    number = 1
    for lines in windows:
        records: list[Record] = []
        try:
            for line in lines:
                records.append(_record(line, f"{where}: line {number}", tokenizers, trees=trees))
                number += 1
        except SynmtError:
            if records:
                yield records
            raise
        yield records


def add_trees(records: Windows, path: Path, field: Literal["tree", "other_tree"]) -> Windows:
    """Add the trees of a CoNLL-U file to the requests, one for each; raises UsageError if a request
    has one already."""
    records, again = tee(records)
    trees = read_parses(
        path, (record.request.text for window in again for record in window), brackets=True
    )
    for window, some in zip_windows(records, trees, f"trees in {path}"):
        if any(getattr(record.request, field) is not None for record in window):
            raise UsageError(
                "an object has a `parse` already", where="--parses", do="Leave out one of the two"
            )
        yield [
            replace(record, request=replace(record.request, **{field: tree}))
            for record, tree in zip(window, some, strict=True)
        ]


def format_text(result: Result, *, n_best: bool = False, scores: bool = False) -> str:
    """Format a translation as a line, or with `n_best` as a list in the format of Moses, a line
    each.

    scores: add the score after a tab.
    """
    if isinstance(result, CounterfactualTranslation):
        difference = format_number(result.difference)
        return f"{_column(result.own.text)}\t{_column(result.other.text)}\t{difference}\n"
    best = result.best
    if n_best:
        rows = ((one.text, format_number(one.score)) for one in result.candidates or (best,))
        return "".join(f"{result.line - 1} ||| {text} ||| {score}\n" for text, score in rows)
    return f"{_column(best.text)}\t{format_number(best.score)}\n" if scores else f"{best.text}\n"


def format_number(value: float, sign: str = "") -> str:
    """Format a number with four decimals; with the sign `+`, positive numbers have one too."""
    # avoid -0.0000
    return f"{round(value, 4) + 0.0:{sign}.4f}"


def format_json(record: Record, result: Result, *, n_best: bool = False) -> str:
    """Format an input object with its translation as a line; `n_best` lists all candidates."""
    own = result.own
    fields = _candidate_fields(own.best)
    fields |= {"dropped": own.dropped, "degenerate": own.degenerate}
    if n_best:
        fields["translations"] = list(map(_candidate_fields, own.candidates or (own.best,)))
    if alignment := own.alignment:
        fields["alignment"] = [list(pair) for pair in alignment.pairs]
        fields["source_words"] = alignment.source_words.tolist()
        fields["target_words"] = alignment.target_words.tolist()
        if own.best.tokens:
            fields["source_tokens"] = record.request.text
            fields["translation_tokens"] = own.best.tokens
    if isinstance(result, CounterfactualTranslation):
        other = {"own_log_probability": round(result.own_rescored, _DIGITS)}
        fields["override"] = _candidate_fields(result.other.best) | other
    written = json_text(fields, ensure_ascii=False)[1:-1]
    return f"{{{', '.join([*_copied(record, fields), written])}}}\n"


def _column(text: str) -> str:
    # byte pieces can spell a tab, which must not start another column
    return text.replace("\t", " ")


def _candidate_fields(candidate: Candidate) -> dict[str, Any]:
    return {
        "translation": candidate.text,
        "score": round(candidate.score, _DIGITS),
        "log_probability": round(candidate.log_probability, _DIGITS),
    }


def _copied(record: Record, output: Mapping[str, Any]) -> list[str]:
    """Write the fields of an input object; one with the name of an output field gets a name that is
    free."""
    names = {*output, *(name for name, _, _ in record.fields)}
    renamed, copied = {}, []
    for name, written, value in record.fields:
        if name in output:
            free = f"input_{name}"
            while free in names:
                free = f"input_{free}"
            renamed[name], written = free, f'"{free}"'
        copied.append(f"{written}: {value}")
    if renamed:
        _warn_renamed(*renamed.items())
    return copied


@cache
def _warn_renamed(*names: tuple[str, str]) -> None:
    """Warn about fields with new names; the cache lets a stream of such objects cause one
    warning."""
    old, new = ([f"`{name}`" for name in some] for some in zip(*names, strict=True))
    _logger.warning("the input already has %s: copied as %s", listed(old), listed(new))


def _fields(line: str) -> Iterator[tuple[str, str, str]]:
    """Yield the names of an object's fields, and name and value as they are written.

    Numbers of Python have other digits and limits, and its dictionaries lose a name that is
    repeated.
    """
    at = _after(line, line.index("{") + 1)
    while line[at] != "}":
        name, end = _decoder.raw_decode(line, at)
        start = _after(line, end)
        _, stop = _decoder.raw_decode(line, start)
        yield name, line[at:end], line[start:stop]
        at = _after(line, stop)


def _after(line: str, start: int) -> int:
    found = _between.match(line, start)
    assert found is not None
    return found.end()


def _record(line: str, where: str, tokenizers: Tokenizers, *, trees: bool) -> Record:
    try:
        fields = _decoder.decode(line)
    except (ValueError, RecursionError) as error:
        # the message of a JSONDecodeError counts lines too, and this is always line 1
        at = isinstance(error, json.JSONDecodeError)
        why = f"{error.msg}, at character {error.pos + 1}" if at else error
        raise SynmtError(f"not JSON ({why})", where=where, do="Write one object per line") from None
    if not isinstance(fields, dict):
        raise SynmtError(
            "not a JSON object", where=where, do="Write one object with the field `source` per line"
        )
    name = "source" if "source" in fields else "text"
    if name not in fields:
        raise SynmtError(
            "the field `source` is missing", where=where, allowed="`text` is read in its place"
        )
    words = tokenizers["source"].tokenize(_text(fields, name, where) or "")
    prefix = tokenizers["target"].tokenize(_text(fields, "prefix", where) or "")
    tree = _text(fields, "parse", where) if trees else None
    parse = None if tree is None else parse_in(tree, words, where=f"{where}, `parse`")
    return Record(tuple(_fields(line)), Request(words, prefix, parse))


def _text(fields: dict[str, Any], name: str, where: str) -> str | None:
    """Read a field; only the source may not be missing or null."""
    value, optional = fields.get(name), name in ("prefix", "parse")
    if value is None and optional:
        return None
    if not isinstance(value, str):
        allowed = f"Allowed: a string{' or null' * optional}"
        raise SynmtError(f"`{name}` is not a string", where=where, allowed=allowed)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SynmtError(
            f"`{name}` has a lone surrogate, which is not a character", where=where
        ) from None
    return value


class TranslationSummary:
    """Counts what is unusual in translations.

    max_pieces: of a source.
    """

    def __init__(self, max_pieces: int) -> None:
        self._max_pieces, self._lines = max_pieces, 0
        self._degenerate: dict[int, Reason] = {}
        self._unknown = Counter[str]()
        self._differences: list[float] = []
        self._changed = 0

    def add(self, result: Result) -> None:
        """Add a line, and log a warning if it was truncated."""
        translation = result.own
        self._lines += 1
        self._unknown.update(translation.unknown)
        if translation.degenerate:
            self._degenerate[translation.line] = translation.degenerate
        if isinstance(result, CounterfactualTranslation) and translation.candidates:
            self._changed += result.changed
            self._differences.append(result.difference)
        if translation.dropped:
            what = f"line {translation.line}"
            _logger.warning(too_long(what, self._max_pieces, translation.dropped, "not translated"))

    def log(self) -> None:
        """Log the counts; nothing if nothing is unusual."""
        if self._unknown:
            examples = _examples([f"'{text}'" for text, _ in self._unknown.most_common()])
            pieces = counted(sum(self._unknown.values()), "piece is", "pieces are")
            _logger.warning(
                f"{pieces} not in the source vocabulary: {examples}; the model reads <unk>"
            )
        if self._degenerate:
            counts = Counter(self._degenerate.values())
            kinds = ", ".join(
                f"{counts[reason]:,} {what}" for reason, what in REASONS.items() if counts[reason]
            )
            examples = _examples([str(line) for line in self._degenerate])
            where = f"line{'s' * (len(self._degenerate) > 1)} {examples}"
            _logger.info(
                f"degenerate translations: {kinds}, of {counted(self._lines, 'line')} ({where})"
            )
        if self._differences:
            mean = sum(self._differences) / len(self._differences)
            _logger.info(
                f"with the other trees, {self._changed:,} of {len(self._differences):,} "
                "translations change; the "
                f"log-probability of the original ones changes by {format_number(mean, '+')} nats "
                "per line on average"
            )


def too_long(what: str, longest: int, dropped: int, how: str) -> str:
    """Describe a text that is too long for the model.

    longest: pieces that the model takes.
    dropped: pieces at the end beyond them.
    how: what happens to these, such as `not translated`.
    """
    rest = "last one is" if dropped == 1 else f"last {dropped} are"
    pieces = longest + dropped
    return (
        f"{what} has {pieces} pieces; the model takes {longest} (filters.max_pieces), so the "
        f"{rest} {how}"
    )


def _examples(values: Sequence[str]) -> str:
    return ", ".join(values[:_EXAMPLES]) + " …" * (len(values) > _EXAMPLES)
