"""Contrastive sets: sources with a right translation and wrong ones, in folders, tables, JSON, or
generated.

FOLDER/src.en, correct.de, incorrect.de    line by line, .gz too; or a folder of such folders, one
                                           for each phenomenon
FILE.tsv                                   with a header: source, correct, incorrect, and any
                                           columns to group by
FILE.json                                  LingEval97 (Sennrich, 2017) or ContraPro (Müller et al.,
                                           2018)
controlled                                 agreement, case and particles in the controlled corpus's
                                           test set

LingEval97 is a list of

    {"source": …, "reference": …, "errors": [{"type": …, "contrastive": …, "distance": …,
        "frequency": …}, …]}

where each error is a contrast. ContraPro is a list of

    {"src segment": …, "ref segment": …, "src pronoun": …, "ref pronoun": …, "ante distance": …,
        "intrasegmental": …,
     "errors": [{"contrastive": …}, …]}

where all errors are one contrast: the reference must be more probable than all of them. Keys other
than texts and errors are optional, and unknown keys are ignored.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synmt.arrays import Strings, Texts, Values
from synmt.errors import SynmtError, UsageError
from synmt.evaluation.metrics import read_aligned, read_table
from synmt.files.reading import open_binary
from synmt.syntax.parse import Parse

_logger = logging.getLogger(__name__)

CONTROLLED = "controlled"

_LONGEST = 15
"""Distances above this are one group, as in LingEval97."""
_FARTHEST = 3
"""Larger distances of the antecedent, in sentences, are one group, as in ContraPro's evaluation."""
_FILES = ["src", "correct", "incorrect"]
_REQUIRED = ("source", "correct", "incorrect")
_ALLOWED = (
    "A folder with src.en, correct.de and incorrect.de, or with such folders; a .tsv file with "
    "columns source, correct, incorrect, and others to group by; a .json file of LingEval97 "
    f"(source, reference, errors) or ContraPro (src segment, …); or the word {CONTROLLED}"
)


@dataclass(frozen=True)
class Contrast:
    """A right translation and wrong ones of the same source.

    source: its index in the sources of the set.
    groups: the group of the contrast in each grouping, such as {"phenomenon": "agreement"}.
    where: file and line, or entry.
    """

    source: int
    correct: str
    incorrect: Strings
    groups: Mapping[str, str]
    where: str


@dataclass(frozen=True)
class ContrastSet:
    """Contrasts, and the sources that they share.

    trees: gold trees of the sources, if the set has them.
    """

    sources: list[str]
    contrasts: list[Contrast]
    trees: list[Parse] | None = None


@dataclass(frozen=True)
class _Entry:
    """A source, its right translation, and its contrasts: the wrong translations, and the value of
    each grouping."""

    source: str
    correct: str
    contrasts: Sequence[tuple[Strings, Mapping[str, Any]]]
    where: str
    tree: Parse | None = None


def read_contrasts(names: Texts) -> ContrastSet:
    """Read sets and join them; if there are several, contrasts are also grouped by set.

    Contrasts whose translations differ in white space only are left out, with a warning.
    """
    entries, contrasts, identical = [], [], []
    for name in names:
        for entry in _read(name):
            for incorrect, groups in entry.contrasts:
                if any(entry.correct.split() == wrong.split() for wrong in incorrect):
                    identical.append(entry.where)
                    continue
                labels = {"set": name} if len(names) > 1 else {}
                labels |= {
                    by: _label(by, str(value))
                    for by, value in groups.items()
                    if value not in (None, "")
                }
                contrasts.append(
                    Contrast(len(entries), entry.correct, incorrect, labels, entry.where)
                )
            entries.append(entry)
    if not contrasts:
        raise SynmtError("there are no contrasts of different translations", where=", ".join(names))
    if identical:
        what = "left out, since both translations are the same"
        _logger.warning(f"{what}: {', '.join(identical)}")
    trees = [entry.tree for entry in entries if entry.tree]
    return ContrastSet(
        [entry.source for entry in entries],
        contrasts,
        trees if len(trees) == len(entries) else None,
    )


def _label(by: str, text: str) -> str:
    """Name the group of a value: long distances are one group, frequencies are grouped by their
    number of digits."""
    if not re.fullmatch("[0-9]{1,18}", text):
        return text
    number = int(text)
    if by.endswith("distance") and number > _LONGEST:
        return f">{_LONGEST}"
    if by == "frequency" and number > 0:
        lowest = 10 ** (len(str(number)) - 1)
        return f"{lowest:,} to {10 * lowest - 1:,}"
    return text


def _read(name: str) -> Iterator[_Entry]:
    path = Path(name)
    if name == CONTROLLED:
        return _controlled()
    if path.is_dir():
        return _read_folders(path)
    if not path.exists():
        raise UsageError("no such contrastive set", where=name, allowed=_ALLOWED)
    return _read_json(path) if ".json" in path.suffixes else _read_table(path)


def _controlled() -> Iterator[_Entry]:
    from synmt.controlled.contrast import contrastive_pairs
    from synmt.controlled.corpus import generate

    for number, example in enumerate(generate(train=0, valid=0)["test"], start=1):
        of_sentence = {"split": example.split, "phenomenon of the sentence": example.phenomenon}
        contrasts = []
        for pair in contrastive_pairs([example]):
            of_pair = {by: _controlled_label(by, value) for by, value in pair.groups.items()}
            groups = {"phenomenon": pair.phenomenon, **of_pair, **of_sentence}
            contrasts.append(((pair.incorrect,), groups))
        where = f"{CONTROLLED}: sentence {number}"
        yield _Entry(example.source, example.target, contrasts, where, example.parse)


def _controlled_label(by: str, value: str | int) -> str:
    """Name the group of a value; long distances are rare in the controlled corpus, and share
    groups."""
    if isinstance(value, str) or not by.endswith("distance") or value < 3:
        return str(value)
    return ">10" if value > 10 else "6 to 10" if value > 5 else "3 to 5"


def _read_folders(path: Path) -> Iterator[_Entry]:
    folders = [candidate for candidate in (path, *sorted(path.iterdir())) if _texts(candidate)]
    if not folders:
        raise SynmtError("the folder has no contrastive set", where=path, allowed=_ALLOWED)
    for folder in folders:
        files = _texts(folder)
        if [file.name.split(".")[0] for file in files] != _FILES:
            raise SynmtError(
                "the folder must have one text each of src, correct and incorrect",
                where=folder,
                allowed=_ALLOWED,
            )
        groups = {"phenomenon": folder.resolve().name}
        lines = zip(*read_aligned(files), strict=True)
        for number, (source, correct, incorrect) in enumerate(lines, start=1):
            where = f"{files[2]}: line {number}"
            yield _Entry(source, correct, [((incorrect,), groups)], where)


def _texts(folder: Path) -> list[Path]:
    """List the texts of a set; trees may stand beside them, such as src.en.conllu."""
    files = [file for name in _FILES for file in folder.glob(f"{name}.*")]
    return [file for file in files if file.name.removesuffix(".gz").count(".") == 1]


def _read_table(path: Path) -> Iterator[_Entry]:
    names, rows = read_table(path)
    if missing := [name for name in _REQUIRED if name not in names]:
        raise SynmtError(f"the header has no column {missing[0]}", where=path, allowed=_ALLOWED)
    for number, row in enumerate(rows, start=2):
        # the phenomenon is the first grouping
        groups = {"phenomenon": "", **dict(zip(names, row, strict=True))}
        source, correct, incorrect = (groups.pop(name) for name in _REQUIRED)
        yield _Entry(source, correct, [((incorrect,), groups)], f"{path}: line {number}")


def _read_json(path: Path) -> Iterator[_Entry]:
    """Read a set of LingEval97 or ContraPro."""
    where = str(path)
    try:
        with open_binary(path, allowed=["JSON"]) as stream:
            entries = json.load(stream)
        for number, entry in enumerate(entries, start=1):
            where = f"{path}: entry {number}"
            take = _pronoun_entry if "ref segment" in entry else _error_entry
            yield take(entry, where)
    # a missing key, a value of another type, or half of a surrogate pair
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise SynmtError(
            f"broken, or of another format ({error!r})", where=where, allowed=_ALLOWED
        ) from None


def _error_entry(entry: Values, where: str) -> _Entry:
    """Take the contrasts of LingEval97."""
    contrasts = []
    for error in entry["errors"]:
        groups = {"phenomenon": error.get("type")}
        groups |= {by: error.get(by) for by in ("distance", "frequency")}
        contrasts.append(((_text(error["contrastive"]),), groups))
    return _Entry(_text(entry["source"]), _text(entry["reference"]), contrasts, where)


def _pronoun_entry(entry: Values, where: str) -> _Entry:
    """Take the contrast of ContraPro."""
    pronouns = [str(entry.get(name) or "").lower() for name in ("src pronoun", "ref pronoun")]
    distance, inside = entry.get("ante distance"), entry.get("intrasegmental")
    far = isinstance(distance, int) and distance > _FARTHEST
    groups = {
        "phenomenon": ":".join(pronouns).strip(":"),
        "antecedent distance": f">{_FARTHEST}" if far else distance,
        "antecedent in the sentence": None if inside is None else "yes" if inside else "no",
    }
    wrong = tuple(_text(error["contrastive"]) for error in entry["errors"])
    contrasts = [(wrong, groups)] if wrong else []
    return _Entry(_text(entry["src segment"]), _text(entry["ref segment"]), contrasts, where)


def _text(text: str) -> str:
    """Check that a text can be written, and put it on one line, as a parser takes a line end for
    the end of a sentence."""
    text.encode()
    return " ".join(text.splitlines())
