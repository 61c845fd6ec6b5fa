"""Contrastive sets in JSON: LingEval97, a list of

    {"source": …, "reference": …, "errors": [{"type": …, "contrastive": …, "distance": …, "frequency": …}, …]}

where each error is a contrast, and ContraPro, a list of

    {"src segment": …, "ref segment": …, "src pronoun": …, "ref pronoun": …, "ante distance": …, "intrasegmental": …,
     "errors": [{"contrastive": …}, …]}

where all errors are one contrast. Keys other than texts and errors are optional, and unknown keys are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synmt.errors import SynmtError
from synmt.files.reading import open_binary

_FARTHEST = 3
"""Larger distances of the antecedent, in sentences, are one group, as in ContraPro's evaluation."""

Errors = list[tuple[tuple[str, ...], dict[str, Any]]]


@dataclass(frozen=True)
class Entry:
    """A source, its right translation, and its contrasts.

    errors: of each contrast the wrong translations, and the value of each grouping.
    """

    source: str
    correct: str
    errors: Errors
    where: str


def read_entries(path: Path) -> Iterator[Entry]:
    """Read a set in either format."""
    with open_binary(path, allowed=["JSON"]) as stream:
        try:
            entries = json.load(stream)
        except RecursionError:
            raise _wrong("not a contrastive set: the JSON is nested too deeply", str(path)) from None
        except ValueError as error:
            raise SynmtError(f"not JSON ({error})", where=str(path)) from None
    if not isinstance(entries, list):
        raise _wrong("not a list of entries", str(path))
    for number, entry in enumerate(entries, start=1):
        yield _entry(entry, f"{path}: entry {number}")


def _entry(entry: Any, where: str) -> Entry:
    errors = entry.get("errors") if isinstance(entry, dict) else None
    if not isinstance(errors, list) or not all(isinstance(error, dict) for error in errors):
        raise _wrong("the list 'errors' is missing", where)
    if "ref segment" in entry:
        wrong = tuple(_text(error, "contrastive", where) for error in errors)
        contrasts = [(wrong, _pronoun_groups(entry))] if wrong else []
        return Entry(_text(entry, "src segment", where), _text(entry, "ref segment", where), contrasts, where)
    contrasts = [((_text(error, "contrastive", where),), _error_groups(error)) for error in errors]
    return Entry(_text(entry, "source", where), _text(entry, "reference", where), contrasts, where)


def _error_groups(error: dict[str, Any]) -> dict[str, Any]:
    return {"phenomenon": error.get("type"), "distance": error.get("distance"), "frequency": error.get("frequency")}


def _pronoun_groups(entry: dict[str, Any]) -> dict[str, Any]:
    pronouns = (str(entry.get(name) or "").lower() for name in ("src pronoun", "ref pronoun"))
    distance, inside = entry.get("ante distance"), entry.get("intrasegmental")
    far = isinstance(distance, int) and distance > _FARTHEST
    return {
        "phenomenon": entry.get("type") or ":".join(pronouns).strip(":"),
        "antecedent distance": f">{_FARTHEST}" if far else distance,
        "antecedent in the sentence": None if inside is None else "yes" if inside else "no",
    }


def _text(values: dict[str, Any], name: str, where: str) -> str:
    text = values.get(name)
    if not isinstance(text, str):
        raise _wrong(f"the text '{name}' is missing", where)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise _wrong(f"the text '{name}' has half of a surrogate pair, such as \\ud83d alone", where)
    # a parser would take a line end for the end of a sentence
    return " ".join(text.splitlines())


def _wrong(what: str, where: str) -> SynmtError:
    return SynmtError(
        what, where=where, allowed="The JSON of LingEval97 (source, reference, errors) or ContraPro (src segment, …)"
    )
