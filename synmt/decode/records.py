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
      pieces, word_scores  if requested: [piece, log-probability] of each piece and of the end, and
                           the sum of each word, as separated in alignments
      source_tokens, translation_tokens
                           the words, with a space between two, if the run tokenizes text;
                           alignments and word_scores refer to them
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
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, count, tee
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, TypeVar

from pydantic import AliasChoices, BaseModel, Field, ValidationError

from synmt.arrays import SIDES, Pair, Values, json_text
from synmt.decode.inputs import Request, zip_windows
from synmt.decode.translation import Candidate, Translation
from synmt.errors import SynmtError, plain_message
from synmt.files.reading import read_lines
from synmt.syntax.conllu import parse_in, read_parses
from synmt.tokenization.word_tokenizer import Tokenizers

_DIGITS = 6

_logger = logging.getLogger(__name__)
# numbers of Python have other digits and limits
_decoder = json.JSONDecoder(parse_int=float)
# the name of a field, and what is before and after it
_name = re.compile(r'[\s{,]*("(?:[^"\\]|\\.)*")\s*:\s*')

Windows = Iterator[list[Request]]


def texts_of(window: Iterable[Request]) -> list[str]:
    """List the lines of a window."""
    return [request.text for request in window]


def read_text(
    windows: Iterable[list[str]], prefixes: Path | None, tokenizers: Tokenizers
) -> Windows:
    """Read windows of plain lines and tokenize them; `prefixes` has a prefix for each line."""
    source, target = (tokenizers[side] for side in SIDES)
    numbers, others = count(1), prefixes and read_lines(prefixes)
    for window, prefixes_of_window in zip_windows(windows, others, f"prefixes in {prefixes}"):
        rows = zip(source.tokenize_lines(window), numbers, prefixes_of_window, strict=False)
        yield [
            Request(line, number, target.tokenize(prefix) if prefix else "")
            for line, number, prefix in rows
        ]


def read_json(
    windows: Iterable[list[str]], tokenizers: Tokenizers, *, where: str, trees: bool
) -> Windows:
    """Parse windows of JSON lines.

    trees: whether `parse` is read; otherwise it may be anything.
    """
    numbers = count(1)
    for lines in windows:
        rows = zip(lines, numbers, strict=False)
        yield [
            _request(line, number, tokenizers, where=f"{where}: line {number}", trees=trees)
            for line, number in rows
        ]


def add_trees(requests: Windows, path: Path, field: Literal["tree", "other_tree"]) -> Windows:
    """Add the trees of a CoNLL-U file to the requests, one for each."""
    requests, again = tee(requests)
    trees = read_parses(path, chain.from_iterable(map(texts_of, again)), brackets=True)
    for window, trees_of_window in zip_windows(requests, trees, f"trees in {path}"):
        yield [
            replace(request, **{field: tree})
            for request, tree in zip(window, trees_of_window, strict=True)
        ]


def format_text(translation: Translation, *, n_best: bool, scores: bool) -> str:
    """Format a translation as a line, or with `n_best` as a list in the format of Moses, a line
    each.

    scores: add the score after a tab.
    """
    best = translation.best
    columns = [best.text]
    if translation.other is not None:
        columns += [translation.other.text, format_number(translation.difference)]
    elif n_best:
        rows = (
            (candidate.text, format_number(candidate.score))
            for candidate in translation.candidates or (best,)
        )
        number = translation.line - 1
        return "".join(f"{number} ||| {text} ||| {score}\n" for text, score in rows)
    elif scores:
        columns.append(format_number(best.score))
    else:
        return f"{best.text}\n"
    # byte pieces can spell a tab, which must not start another column
    return "\t".join(column.replace("\t", " ") for column in columns) + "\n"


def format_number(value: float) -> str:
    """Format a number with four decimals."""
    # avoid -0.0000
    return f"{round(value, 4) + 0.0:.4f}"


def format_json(request: Request, translation: Translation, *, n_best: bool) -> str:
    """Format an input object with its translation as a line; `n_best` lists all candidates."""
    best = translation.best
    fields = _candidate_fields(best)
    fields |= {"dropped": translation.dropped, "degenerate": translation.degenerate}
    if n_best:
        fields["translations"] = list(map(_candidate_fields, translation.candidates or (best,)))
    if parts := translation.parts:
        fields |= {
            "pieces": [[piece, round(value, _DIGITS)] for piece, value in parts.pieces],
            "word_scores": [round(value, _DIGITS) for value in parts.words],
        }
    if alignment := translation.alignment:
        fields |= {"alignment": alignment.pairs, "source_words": alignment.source_words}
        fields["target_words"] = alignment.target_words
    if best.tokens and (parts or alignment):
        fields |= {"source_tokens": request.text, "translation_tokens": best.tokens}
    if translation.other is not None:
        rescored = round(translation.rescored, _DIGITS)
        other = _candidate_fields(translation.other.best)
        fields["override"] = {**other, "own_log_probability": rescored}
    if renamed := [name for name, _ in request.fields if name in fields]:
        _warn_renamed(*renamed)
    names_in_use = {*fields, *(name for name, _ in request.fields)}
    copied = list[str]()
    for name, value in request.fields:
        copied.append(
            f"{json.dumps(_free(name, names_in_use) if name in fields else name)}: {value}, "
        )
    return f"{{{''.join(copied)}{json_text(fields, ensure_ascii=False)[1:]}\n"


def _free(name: str, names_in_use: Container[str]) -> str:
    while name in names_in_use:
        name = f"input_{name}"
    return name


@cache
def _warn_renamed(*names: str) -> None:
    """Warn of fields with new names; the cache lets a stream of such objects cause one warning."""
    new = ", ".join(f"`input_{name}`" for name in names)
    _logger.warning("fields of the input that the output has too are copied as %s", new)


def _candidate_fields(candidate: Candidate) -> Values:
    return {
        "translation": candidate.text,
        "score": round(candidate.score, _DIGITS),
        "log_probability": round(candidate.log_probability, _DIGITS),
    }


class _Fields(BaseModel):
    """What is read of an object."""

    source: str = Field(validation_alias=AliasChoices("source", "text"))
    prefix: str | None = None
    parse: str | None = None


def _request(line: str, number: int, tokenizers: Tokenizers, *, where: str, trees: bool) -> Request:
    try:
        values = {**_decoder.decode(line)}
        # a model without trees does not look at them
        fields = _Fields.model_validate(values if trees else {**values, "parse": None})
        for text in (fields.source, fields.prefix, fields.parse):
            # a lone surrogate is not a character
            (text or "").encode()
    except ValidationError as error:
        problem = error.errors()[0]
        what = f"`{problem['loc'][0]}` {plain_message(problem)}"
        raise SynmtError(what, where=where) from None
    except (ValueError, TypeError, RecursionError) as error:
        do = "Write one object with the field `source` per line"
        raise SynmtError(f"not a JSON object of text ({error})", where=where, do=do) from None
    words = tokenizers["source"].tokenize(fields.source)
    prefix = tokenizers["target"].tokenize(fields.prefix or "")
    tree = fields.parse
    parse = None if tree is None else parse_in(tree, words, where=f"{where}, `parse`")
    return Request(words, number, prefix, parse, fields=tuple(_written(line)))


def _written(line: str) -> Iterator[Pair]:
    """Yield the names of an object's fields, and the values as they are written.

    Python's dictionaries lose a name that is repeated, and its numbers their digits.
    """
    end = 0
    while name := _name.match(line, end):
        _, end = _decoder.raw_decode(line, name.end())
        yield json.loads(name[1]), line[name.end() : end]


_Window = TypeVar("_Window", bound=tuple[Any, Sequence[Translation]])


def summarized(windows: Iterable[_Window]) -> Iterator[_Window]:
    """Pass windows and their translations on; log at the end what is unusual in them."""
    degenerate, differences = Counter[str](), list[float]()
    lines = dropped = unknown = changed = 0
    for window in windows:
        for translation in window[1]:
            lines += 1
            dropped += translation.dropped > 0
            unknown += translation.unknown
            degenerate.update(filter(None, [translation.degenerate]))
            if translation.other is not None and translation.candidates:
                changed += translation.text != translation.other.text
                differences.append(translation.difference)
        yield window
    if dropped:
        what = "pieces than the model takes (filters.max_pieces); the rest is not translated"
        _logger.warning(f"{dropped:,} line(s) have more {what}")
    if unknown:
        _logger.warning(f"{unknown:,} piece(s) are not in the vocabulary: the model reads <unk>")
    if degenerate:
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in degenerate.items())
        _logger.info(f"degenerate translations: {kinds}, of {lines:,} line(s)")
    if differences:
        mean = f"mean change of the log-probability: {fmean(differences):+.4f}"
        _logger.info(
            f"with the other trees, {changed:,} of {len(differences):,} translations change; {mean}"
        )
