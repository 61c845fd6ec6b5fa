"""Contrastive sets in JSON: LingEval97, a list of

    {"source": …, "reference": …, "errors": [{"type": …, "contrastive": …, "distance": …, "frequency": …}, …]}

where each error is a contrast, and ContraPro, a list of

    {"src segment": …, "ref segment": …, "src pronoun": …, "ref pronoun": …, "ante distance": …, "intrasegmental": …,
     "errors": [{"contrastive": …}, …]}

where all errors are one contrast. What is no text or error is optional, and other keys are not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synmt.errors import SynmtError
from synmt.files import open_binary

_FARTHEST = 3
"""ContraPro's evaluation counts antecedents that are farther away, in sentences, as one group."""

Errors = list[tuple[tuple[str, ...], dict[str, Any]]]


@dataclass(frozen=True)
class Entry:
    """A source with its right translation.

    errors: the wrong translations of each contrast, and what it is counted under.
    """

    source: str
    correct: str
    errors: Errors
    where: str


def read_entries(path: Path) -> Iterator[Entry]:
    """Read a set in either form."""
    with open_binary(path) as stream:
        try:
            entries = json.load(stream)
        except RecursionError:
            raise SynmtError(
                "is no JSON of a contrastive set: its lists stand in lists too deep", where=str(path)
            ) from None
        except ValueError as error:
            raise SynmtError(f"is no JSON ({error})", where=str(path)) from None
    if not isinstance(entries, list):
        raise _wrong("is no list of entries", str(path))
    for number, entry in enumerate(entries, start=1):
        yield _entry(entry, f"{path}: entry {number}")


def _entry(entry: Any, where: str) -> Entry:
    errors = entry.get("errors") if isinstance(entry, dict) else None
    if not isinstance(errors, list) or not all(isinstance(error, dict) for error in errors):
        raise _wrong("has no list 'errors'", where)
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
        raise _wrong(f"has no text '{name}'", where)
    if not _is_unicode(text):
        raise _wrong(f"the text '{name}' has half a character, such as \\ud83d without its other half", where)
    # a line end would be one more sentence for a parser
    return " ".join(text.splitlines())


def _is_unicode(text: str) -> bool:
    """Tell whether a text can be written; escapes of JSON may spell half of a pair of surrogates."""
    return not any("\ud800" <= one <= "\udfff" for one in text)


def _wrong(what: str, where: str) -> SynmtError:
    return SynmtError(
        what, where=where, allowed="JSON as of LingEval97 (source, reference, errors) or ContraPro (src segment, …)"
    )
