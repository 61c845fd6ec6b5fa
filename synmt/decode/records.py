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
                           target_words, the
                           characters [start, end) of each word
      source_tokens, translation_tokens
                           the words, with a space between two, if the run tokenizes text;
                           alignments refer to them
      override             with another tree: translation, score, log_probability, and
                           own_log_probability, that of the
                           translation above

Fields of the input are copied as they are written, in their order, before those of the output. One
with the name of an output field is kept as `input_NAME`: `input_score`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import tee
from pathlib import Path
from typing import Any, Literal

from synmt.arrays import SIDES, Side, json_text
from synmt.decode.inputs import Request, zip_windows
from synmt.decode.override import CounterfactualTranslation
from synmt.decode.translation import Candidate, Translation, joined
from synmt.errors import SynmtError, UsageError, listed
from synmt.files.language import watched
from synmt.files.reading import read_lines
from synmt.syntax.conllu import parse_in, read_parses
from synmt.tokenization.word_tokenizer import RAW, WordTokenizer

_DIGITS = 6

_logger = logging.getLogger(__name__)
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


def own_translation(result: Result) -> Translation:
    """Return the translation under the line's own tree."""
    return result if isinstance(result, Translation) else result.own


def joined_result(result: Result, tokenizer: WordTokenizer) -> Result:
    """Join the words of a result into text."""
    if isinstance(result, Translation):
        return joined(result, tokenizer)
    return replace(result, own=joined(result.own, tokenizer), other=joined(result.other, tokenizer))


Windows = Iterator[list[Record]]


def checked_language(windows: Windows, language: str, *, where: str) -> Windows:
    """Pass windows on; warn if the first lines are in another language than the model reads."""
    return watched(
        windows, lambda window: [record.request.text for record in window], language, where=where
    )


def read_text(
    windows: Iterable[list[str]], prefixes: Path | None = None, *, tokenizers: Tokenizers = _RAW
) -> Windows:
    """Read windows of plain lines and tokenize them; `prefixes` has a prefix for each line."""
    tokenize, tokenize_prefixes = (tokenizers[side].tokenize_lines for side in SIDES)
    if prefixes is None:
        yield from ([Record((), Request(line)) for line in tokenize(window)] for window in windows)
        return
    for window, some in zip_windows(windows, read_lines(prefixes), f"prefixes in {prefixes}"):
        yield [
            Record((), Request(*pair))
            for pair in zip(tokenize(window), tokenize_prefixes(some), strict=True)
        ]


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
        columns = (
            _column(result.own.text),
            _column(result.other.text),
            format_number(result.difference),
        )
        return "\t".join(columns) + "\n"
    best = result.best
    if n_best:
        candidates = result.candidates or (best,)
        return "".join(
            f"{result.line - 1} ||| {one.text} ||| {format_number(one.score)}\n"
            for one in candidates
        )
    return f"{_column(best.text)}\t{format_number(best.score)}\n" if scores else f"{best.text}\n"


def format_number(value: float, sign: str = "") -> str:
    """Format a number with four decimals; with the sign `+`, positive numbers have one too."""
    # avoid -0.0000
    return f"{round(value, 4) + 0.0:{sign}.4f}"


def format_json(record: Record, result: Result, *, n_best: bool = False) -> str:
    """Format an input object with its translation as a line; `n_best` lists all candidates."""
    own = own_translation(result)
    fields = _translation_fields(own, n_best)
    if own.alignment and own.best.tokens:
        fields |= {"source_tokens": record.request.text, "translation_tokens": own.best.tokens}
    if isinstance(result, CounterfactualTranslation):
        other = _candidate_fields(result.other.best)
        fields["override"] = other | {"own_log_probability": round(result.own_rescored, _DIGITS)}
    return f"{{{', '.join([*_copied(record, fields), json_text(fields, ensure_ascii=False)[1:-1]])}}}\n"


def _column(text: str) -> str:
    # byte pieces can spell a tab, which must not start another column
    return text.replace("\t", " ")


def _translation_fields(translation: Translation, n_best: bool) -> dict[str, Any]:
    fields: dict[str, Any] = _candidate_fields(translation.best)
    fields |= {"dropped": translation.dropped, "degenerate": translation.degenerate}
    if n_best:
        fields["translations"] = [
            _candidate_fields(one) for one in translation.candidates or (translation.best,)
        ]
    if alignment := translation.alignment:
        fields["alignment"] = [list(pair) for pair in alignment.pairs]
        fields |= {
            "source_words": alignment.source_words.tolist(),
            "target_words": alignment.target_words.tolist(),
        }
    return fields


def _candidate_fields(candidate: Candidate) -> dict[str, Any]:
    return {
        "translation": candidate.text,
        "score": round(candidate.score, _DIGITS),
        "log_probability": round(candidate.log_probability, _DIGITS),
    }


def _copied(record: Record, output: Mapping[str, Any]) -> list[str]:
    """Write the fields of an input object; one with the name of an output field gets a name that is
    free."""
    taken = {*output, *(name for name, _, _ in record.fields)}
    renamed = {
        name: _free(f"input_{name}", taken) for name, _, _ in record.fields if name in output
    }
    if renamed:
        _warn_renamed(*renamed.items())
    return [
        f'"{renamed[name]}": {value}' if name in renamed else f"{written}: {value}"
        for name, written, value in record.fields
    ]


def _free(name: str, taken: set[str]) -> str:
    return _free(f"input_{name}", taken) if name in taken else name


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
        why = (
            f"{error.msg}, at character {error.pos + 1}"
            if isinstance(error, json.JSONDecodeError)
            else error
        )
        raise SynmtError(f"not JSON ({why})", where=where, do="Write one object per line") from None
    if not isinstance(fields, dict):
        raise SynmtError(
            "not a JSON object", where=where, do="Write one object with the field `source` per line"
        )
    name = next((name for name in ("source", "text") if name in fields), None)
    if name is None:
        raise SynmtError(
            "the field `source` is missing", where=where, allowed="`text` is read in its place"
        )
    text, prefix = _text(fields, name, where), _optional_text(fields, "prefix", where)
    words = tokenizers["source"].tokenize(text)
    tree = _optional_text(fields, "parse", where) if trees else None
    parse = None if tree is None else parse_in(tree, words, where=f"{where}, `parse`")
    return Record(
        tuple(_fields(line)), Request(words, tokenizers["target"].tokenize(prefix or ""), parse)
    )


def _optional_text(fields: dict[str, Any], name: str, where: str) -> str | None:
    return (
        None if fields.get(name) is None else _text(fields, name, where, allowed="a string or null")
    )


def _text(fields: dict[str, Any], name: str, where: str, *, allowed: str = "a string") -> str:
    value = fields[name]
    if not isinstance(value, str):
        raise SynmtError(f"`{name}` is not a string", where=where, allowed=f"Allowed: {allowed}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SynmtError(
            f"`{name}` has a lone surrogate, which is not a character", where=where
        ) from None
    return value
