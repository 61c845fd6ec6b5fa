"""JSON lines: an object for each line goes in, and comes out with its translation.

in    source (else text)   the line
      prefix               what the translation has to begin with
      parse                its tree, as a text in CoNLL-U; without one, or with null, the parser makes it
out   translation, score, log_probability
      dropped              pieces at the end of the source that were too many
      degenerate           empty, loop, limit or copy (see synmt/decode/degenerate.py), or null
      translations         with several: translation, score and log_probability of each, best first
      alignment            where asked for: pairs [source word, target word], with source_words and target_words, the
                           characters [start, end) of each word
      override             under another tree: translation, score, log_probability, and own_log_probability, that of the
                           translation above

All other fields come out as they went in, in their order; one with a name from the lower list is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from synmt.decode.inputs import Request
from synmt.decode.override import Compared
from synmt.decode.translation import NO_TRANSLATION, Candidate, Translation
from synmt.errors import SynmtError
from synmt.syntax.conllu import parse_in

_DIGITS = 6


@dataclass(frozen=True)
class Record:
    """One object.

    fields: as they came in.
    """

    fields: dict[str, Any]
    request: Request


def read_records(windows: Iterable[list[str]], *, where: str, trees: bool = False) -> Iterator[list[Record]]:
    """Read windows of lines; a line that is no such object is an error once what stands before it has been yielded.

    trees: whether anything reads the trees; without, nobody looks at the field.
    """
    number = 1
    for lines in windows:
        records: list[Record] = []
        try:
            for line in lines:
                records.append(_record(line, f"{where}: line {number}", trees=trees))
                number += 1
        except SynmtError:
            if records:
                yield records
            raise
        yield records


def write_record(fields: dict[str, Any], translation: Translation, *, several: bool = False) -> str:
    """Write what came in with its translation, as a line; `several` lists all candidates."""
    return _line(fields | _made(translation, several))


def write_compared(fields: dict[str, Any], compared: Compared, *, several: bool = False) -> str:
    """Write what came in with its translation and the one under the other tree, as a line."""
    other = _values(_best(compared.other)) | {"own_log_probability": round(compared.own_again, _DIGITS)}
    return _line(fields | _made(compared.own, several) | {"override": other})


def _made(translation: Translation, several: bool) -> dict[str, Any]:
    made: dict[str, Any] = _values(_best(translation))
    made |= {"dropped": translation.dropped, "degenerate": translation.degenerate}
    if several:
        made["translations"] = [_values(candidate) for candidate in translation.candidates or (NO_TRANSLATION,)]
    if translation.aligned is not None:
        aligned = translation.aligned
        made["alignment"] = [list(pair) for pair in aligned.pairs]
        made |= {"source_words": aligned.source_words.tolist(), "target_words": aligned.target_words.tolist()}
    return made


def _best(translation: Translation) -> Candidate:
    return translation.candidates[0] if translation.candidates else NO_TRANSLATION


def _values(candidate: Candidate) -> dict[str, Any]:
    return {
        "translation": candidate.text,
        "score": round(candidate.score, _DIGITS),
        "log_probability": round(candidate.log_probability, _DIGITS),
    }


def _line(fields: dict[str, Any]) -> str:
    text = json.dumps(fields, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # half a surrogate pair in a field that is none of ours has no UTF-8
        text = json.dumps(fields)
    return f"{text}\n"


def _record(line: str, where: str, *, trees: bool) -> Record:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SynmtError(f"is no JSON ({error})", where=where, do="Give an object on each line") from None
    if not isinstance(fields, dict):
        raise SynmtError("is no JSON object", where=where, do="Give an object with the field `source` on each line")
    name = next((name for name in ("source", "text") if name in fields), None)
    if name is None:
        raise SynmtError("has no field `source`", where=where, allowed="`text` is taken for it")
    text, prefix = _text(fields, name, where), _optional_text(fields, "prefix", where)
    tree = _optional_text(fields, "parse", where) if trees else None
    parse = None if tree is None else parse_in(tree, text, where=f"{where}, `parse`")
    return Record(fields, Request(text, prefix or "", parse))


def _optional_text(fields: dict[str, Any], name: str, where: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name, where, allowed="a string or null")


def _text(fields: dict[str, Any], name: str, where: str, *, allowed: str = "a string") -> str:
    value = fields[name]
    if not isinstance(value, str):
        raise SynmtError(f"`{name}` is no text", where=where, allowed=f"Allowed: {allowed}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SynmtError(f"`{name}` has half a surrogate pair, which is no character", where=where) from None
    return value
