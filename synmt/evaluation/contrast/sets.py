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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synmt.errors import SynmtError, UsageError
from synmt.evaluation.metrics import read_aligned, read_table
from synmt.files.reading import open_binary
from synmt.syntax.parse import Parse, without_whitespace

CONTROLLED = "controlled"

_LONGEST = 15
"""Distances above this are one group, as in LingEval97."""
_FARTHEST = 3
"""Larger distances of the antecedent, in sentences, are one group, as in ContraPro's evaluation."""
_MOST_DIGITS = 18
"""Longer digit strings are labels, not numbers."""
_REQUIRED = ("source", "correct", "incorrect")


@dataclass(frozen=True)
class Contrast:
    """A right translation and wrong ones of the same source.

    source: its index in the sources of the set.
    groups: the group of the contrast in each grouping, such as {"phenomenon": "agreement"}.
    where: file and line, or entry.
    """

    source: int
    correct: str
    incorrect: tuple[str, ...]
    groups: Mapping[str, str]
    where: str


@dataclass(frozen=True)
class ContrastSet:
    """Contrasts, and the sources that they share.

    trees: gold trees of the sources, if the set has them.
    languages: (source, target), if the names of the files have them.
    identical: places of contrasts that are left out, as their right and wrong translation are the
        same.
    """

    sources: list[str]
    contrasts: list[Contrast]
    trees: list[Parse] | None = None
    languages: tuple[str, ...] | None = None
    identical: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Entry:
    """A source, its right translation, and its contrasts: the wrong translations, and the value of
    each grouping."""

    source: str
    correct: str
    contrasts: Sequence[tuple[tuple[str, ...], Mapping[str, Any]]]
    where: str
    tree: Parse | None = None
    languages: tuple[str, ...] | None = None


def read_contrasts(names: Sequence[str]) -> ContrastSet:
    """Read sets and join them; if there are several, contrasts are also grouped by set.

    Contrasts whose translations differ in white space only are left out.
    """
    entries, contrasts, identical = [], [], []
    for name in names:
        before, same = len(contrasts), len(identical)
        of_set = {"set": name} if len(names) > 1 else {}
        for entry in _read(name):
            if entry.contrasts and not without_whitespace(entry.source):
                raise SynmtError("the source has no text", where=entry.where)
            for incorrect, groups in entry.contrasts:
                if any(entry.correct.split() == wrong.split() for wrong in incorrect):
                    identical.append(entry.where)
                    continue
                known = {by: value for by, value in groups.items() if value not in (None, "")}
                labels = of_set | {by: _label(by, value) for by, value in known.items()}
                contrasts.append(
                    Contrast(len(entries), entry.correct, incorrect, labels, entry.where)
                )
            entries.append(entry)
        if len(contrasts) == before:
            what = "the right and the wrong translation are the same in every pair"
            raise SynmtError(
                what if len(identical) > same else "the contrastive set is empty", where=name
            )
    trees = [entry.tree for entry in entries if entry.tree]
    languages = {entry.languages for entry in entries if entry.languages}
    return ContrastSet(
        [entry.source for entry in entries],
        contrasts,
        trees if len(trees) == len(entries) else None,
        languages.pop() if len(languages) == 1 else None,
        identical,
    )


def _label(by: str, value: object) -> str:
    """Name the group of a value: long distances are one group, frequencies are grouped by their
    number of digits."""
    # JSON can contain half of a surrogate pair, which cannot be printed
    text = str(value).encode(errors="replace").decode()
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        return text
    if by.endswith("distance") and int(text) > _LONGEST:
        return f">{_LONGEST}"
    if by == "frequency" and int(text) > 9:
        lowest = 10 ** (len(str(int(text))) - 1)
        return f"{lowest:,} to {10 * lowest - 1:,}"
    return "1 to 9" if by == "frequency" and int(text) else text


def _read(name: str) -> Iterator[_Entry]:
    path = Path(name)
    if name == CONTROLLED:
        return _controlled()
    if path.is_dir():
        return _read_folders(path)
    if not path.exists():
        raise UsageError(
            "no such contrastive set",
            where=name,
            allowed="A folder with src.en, correct.de and incorrect.de, or with such folders; a "
            ".tsv or .json file; "
            f"or the word {CONTROLLED}",
        )
    return _read_json(path) if ".json" in path.suffixes else _read_table(path)


def _controlled() -> Iterator[_Entry]:
    from synmt.controlled.contrast import contrastive_pairs
    from synmt.controlled.corpus import generate

    for number, example in enumerate(generate(train=0, valid=0)["test"], start=1):
        of_sentence = {"split": example.split, "phenomenon of the sentence": example.phenomenon}
        contrasts = []
        for pair in contrastive_pairs([example]):
            of_pair = {by: _controlled_label(by, value) for by, value in pair.groups.items()}
            contrasts.append(
                ((pair.incorrect,), {"phenomenon": pair.phenomenon, **of_pair, **of_sentence})
            )
        where = f"{CONTROLLED}: sentence {number}"
        yield _Entry(example.source, example.target, contrasts, where, example.parse, ("en", "de"))


def _controlled_label(by: str, value: str | int) -> str:
    """Name the group of a value; long distances are rare in the controlled corpus, and share
    groups."""
    if isinstance(value, str) or not by.endswith("distance") or value < 3:
        return str(value)
    return ">10" if value > 10 else "6 to 10" if value > 5 else "3 to 5"


def _read_folders(path: Path) -> Iterator[_Entry]:
    folders = [path] if _find_texts(path, "src") else sorted(path.iterdir())
    folders = [one for one in folders if _find_texts(one, "src")]
    if not folders:
        raise SynmtError(
            "the folder has no contrastive set: neither src.en, correct.de and incorrect.de, nor "
            "folders with these",
            where=str(path),
        )
    for folder in folders:
        files = [_find_text(folder, kind) for kind in ("src", "correct", "incorrect")]
        groups = {"phenomenon": folder.resolve().name}
        languages = tuple(file.name.split(".")[1] for file in files[:2])
        lines = zip(*read_aligned(files), strict=True)
        for number, (source, correct, incorrect) in enumerate(lines, start=1):
            contrasts, where = [((incorrect,), groups)], f"{files[2]}: line {number}"
            yield _Entry(source, correct, contrasts, where, languages=languages)


def _find_texts(folder: Path, kind: str) -> list[Path]:
    return sorted(
        path
        for path in folder.glob(f"{kind}.*")
        if len(path.name.removesuffix(".gz").split(".")) == 2
    )


def _find_text(folder: Path, kind: str) -> Path:
    paths = _find_texts(folder, kind)
    if len(paths) != 1:
        names = ", ".join(path.name for path in paths) or "none"
        raise SynmtError(
            f"the folder must have one text {kind}.LANGUAGE, and has {names}",
            where=str(folder),
            allowed="LANGUAGE is a suffix without a dot, such as en; .gz may follow",
        )
    return paths[0]


def _read_table(path: Path) -> Iterator[_Entry]:
    names, rows = read_table(path)
    if missing := [name for name in _REQUIRED if name not in names]:
        raise SynmtError(
            f"the header has no column {missing[0]}",
            where=str(path),
            allowed="Columns, separated by tabs: source, correct, incorrect, others to group by",
        )
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
        if not isinstance(entries, list):
            raise SynmtError("not a list of entries")
        for number, entry in enumerate(entries, start=1):
            where = f"{path}: entry {number}"
            yield _json_entry(entry, where)
    except (SynmtError, ValueError, RecursionError) as error:
        problem = error if isinstance(error, SynmtError) else SynmtError(f"not JSON ({error})")
        allowed = "The JSON of LingEval97 (source, reference, errors) or ContraPro (src segment, …)"
        raise problem.with_(
            where=problem.where or where, allowed=problem.allowed or allowed
        ) from None


def _json_entry(entry: Any, where: str) -> _Entry:
    errors = entry.get("errors") if isinstance(entry, dict) else None
    if not isinstance(errors, list) or not all(isinstance(error, dict) for error in errors):
        raise SynmtError("the list 'errors' is missing")
    wrong = [_text(error, "contrastive") for error in errors]
    if "ref segment" in entry:
        contrasts = [(tuple(wrong), _pronoun_groups(entry))] if wrong else []
        return _Entry(_text(entry, "src segment"), _text(entry, "ref segment"), contrasts, where)
    contrasts = [
        (
            (text,),
            {
                "phenomenon": error.get("type"),
                "distance": error.get("distance"),
                "frequency": error.get("frequency"),
            },
        )
        for text, error in zip(wrong, errors, strict=True)
    ]
    return _Entry(_text(entry, "source"), _text(entry, "reference"), contrasts, where)


def _pronoun_groups(entry: dict[str, Any]) -> dict[str, Any]:
    pronouns = (str(entry.get(name) or "").lower() for name in ("src pronoun", "ref pronoun"))
    distance, inside = entry.get("ante distance"), entry.get("intrasegmental")
    far = isinstance(distance, int) and distance > _FARTHEST
    return {
        "phenomenon": entry.get("type") or ":".join(pronouns).strip(":"),
        "antecedent distance": f">{_FARTHEST}" if far else distance,
        "antecedent in the sentence": None if inside is None else "yes" if inside else "no",
    }


def _text(values: dict[str, Any], name: str) -> str:
    text = values.get(name)
    if not isinstance(text, str):
        raise SynmtError(f"the text '{name}' is missing")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise SynmtError(f"the text '{name}' has half of a surrogate pair, such as \\ud83d alone")
    # a parser would take a line end for the end of a sentence
    return " ".join(text.splitlines())
