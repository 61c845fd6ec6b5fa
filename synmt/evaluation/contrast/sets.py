"""Contrastive sets: sources with a right translation and wrong ones, from folders, tables, JSON, or made here.

FOLDER/src.en, correct.de, incorrect.de    line by line, .gz too; or a folder of such folders, named by phenomenon
FILE.tsv                                   a row of names first: source, correct, incorrect, and any others to group by
FILE.json                                  LingEval97 (Sennrich, 2017) or ContraPro (Müller et al., 2018)
controlled                                 agreement, case and particles in the controlled corpus's test set

In ContraPro a reference has several wrong translations, and has to beat all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from synmt.errors import SynmtError, UsageError
from synmt.evaluation.contrast.json_sets import Entry, read_entries
from synmt.files import read_lines
from synmt.syntax.parse import Parse
from synmt.syntax.whitespace import without_whitespace

CONTROLLED = "controlled"

_LONGEST = 15
"""Longer distances are one group, as in LingEval97."""
_MOST_DIGITS = 18
"""Whoever writes a longer number does not count with it."""
_NEEDED = ("source", "correct", "incorrect")


@dataclass(frozen=True)
class Contrast:
    """A right translation and wrong ones of the same source.

    source: its place among the sources of the set.
    groups: what it is counted under, by the name of each grouping.
    where: file and line, or entry.
    """

    source: int
    correct: str
    incorrect: tuple[str, ...]
    groups: Mapping[str, str]
    where: str


@dataclass(frozen=True)
class ContrastSet:
    """Contrasts to judge a model by.

    sources: each is parsed and read once.
    trees: of the sources, where the set brings gold ones.
    languages: (source, target), where the files' names say so.
    identical: where right and wrong translation are the same; these are left out.
    """

    sources: list[str]
    contrasts: list[Contrast]
    trees: list[Parse] | None = None
    languages: tuple[str, str] | None = None
    identical: list[str] = field(default_factory=list)


def read_contrasts(names: Sequence[str]) -> ContrastSet:
    """Read one set or several as one; where there are several, the set is a grouping of its own."""
    sets = [_usable(_read(name), name) for name in names]
    if len(sets) == 1:
        return sets[0]
    joined = ContrastSet([], [], [] if all(one.trees is not None for one in sets) else None)
    for name, one in zip(names, sets, strict=True):
        first = len(joined.sources)
        joined.sources.extend(one.sources)
        joined.contrasts.extend(
            replace(each, source=first + each.source, groups={"set": name, **each.groups}) for each in one.contrasts
        )
        joined.identical.extend(one.identical)
        if joined.trees is not None:
            joined.trees.extend(one.trees or [])
    languages = {one.languages for one in sets if one.languages}
    return replace(joined, languages=languages.pop() if len(languages) == 1 else None)


def _usable(read: ContrastSet, name: str) -> ContrastSet:
    """Leave out what nobody can tell apart; blanks do not count."""
    for contrast in read.contrasts:
        if not without_whitespace(read.sources[contrast.source]):
            raise SynmtError("the source has no text", where=contrast.where)
    same = [one for one in read.contrasts if any(one.correct.split() == wrong.split() for wrong in one.incorrect)]
    left = {id(one) for one in same}
    kept = [one for one in read.contrasts if id(one) not in left]
    if not read.contrasts:
        raise SynmtError("the contrastive set is empty", where=name)
    if not kept:
        raise SynmtError("there is no pair whose right and wrong translation differ", where=name)
    return replace(read, contrasts=kept, identical=[one.where for one in same])


def _read(name: str) -> ContrastSet:
    path = Path(name)
    if name == CONTROLLED:
        return _controlled()
    if path.is_dir():
        return _read_folders(path)
    if not path.exists():
        raise UsageError(
            "there is no such contrastive set",
            where=name,
            allowed=f"A folder with src.en, correct.de and incorrect.de, or of such folders; a .tsv or .json file; "
            f"or the word {CONTROLLED}",
        )
    if ".json" in path.suffixes:
        return _of_entries(read_entries(path))
    return _read_table(path)


def _controlled() -> ContrastSet:
    from synmt.data.controlled.contrast import contrastive_pairs
    from synmt.data.controlled.corpus import generate

    examples = generate(train=0, valid=0)["test"]
    contrasts = []
    for index, example in enumerate(examples):
        of_sentence = {"split": example.split, "phenomenon of the sentence": example.phenomenon}
        for pair in contrastive_pairs([example]):
            own = {name: _of_pair(name, value) for name, value in pair.groups.items()}
            groups = {"phenomenon": pair.phenomenon, **own, **of_sentence}
            where = f"{CONTROLLED}: sentence {index + 1}, {pair.phenomenon}"
            contrasts.append(Contrast(index, example.target, (pair.incorrect,), groups, where))
    return ContrastSet([one.source for one in examples], contrasts, [one.parse for one in examples], ("en", "de"))


def _of_pair(name: str, value: str | int) -> str:
    """Name the group of a value; the long distances of the controlled corpus are rare, and share groups."""
    if isinstance(value, str) or not name.endswith("distance") or value < 3:
        return str(value)
    return ">10" if value > 10 else "6 to 10" if value > 5 else "3 to 5"


def _read_folders(path: Path) -> ContrastSet:
    folders = [path] if _texts(path, "src") else sorted(one for one in path.iterdir() if one.is_dir())
    folders = [one for one in folders if _texts(one, "src")]
    if not folders:
        raise SynmtError(
            "has no contrastive set: neither src.en, correct.de and incorrect.de, nor folders with these",
            where=str(path),
        )
    sources: list[str] = []
    contrasts: list[Contrast] = []
    languages: set[tuple[str, str]] = set()
    for folder in folders:
        files = [_text(folder, kind) for kind in ("src", "correct", "incorrect")]
        texts = [list(read_lines(file)) for file in files]
        for file, text in zip(files[1:], texts[1:], strict=True):
            if len(text) != len(texts[0]):
                raise SynmtError(f"{len(text):,} lines, but {files[0]} has {len(texts[0]):,}", where=str(file))
        languages.add((files[0].name.split(".")[1], files[1].name.split(".")[1]))
        for number, (source, correct, incorrect) in enumerate(zip(*texts, strict=True), start=1):
            where = f"{files[2]}: line {number}"
            contrasts.append(
                Contrast(len(sources), correct, (incorrect,), {"phenomenon": folder.resolve().name}, where)
            )
            sources.append(source)
    return ContrastSet(sources, contrasts, languages=languages.pop() if len(languages) == 1 else None)


def _texts(folder: Path, kind: str) -> list[Path]:
    return sorted(path for path in folder.glob(f"{kind}.*") if len(path.name.removesuffix(".gz").split(".")) == 2)


def _text(folder: Path, kind: str) -> Path:
    found = _texts(folder, kind)
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise SynmtError(
            f"there must be one text {kind}.LANGUAGE here, and there is {names}",
            where=str(folder),
            allowed="LANGUAGE is a suffix without a dot, such as en; .gz may follow",
        )
    return found[0]


def _read_table(path: Path) -> ContrastSet:
    lines = read_lines(path)
    names = next(lines, "").rstrip("\r").split("\t")
    missing = [name for name in _NEEDED if name not in names]
    if missing or len(set(names)) < len(names):
        raise SynmtError(
            f"its first line names no column {missing[0]}" if missing else "two of its columns have the same name",
            where=str(path),
            allowed="Columns, with tabs between: source, correct, incorrect, and others to group by, each name once",
        )
    return _of_entries(_rows(path, names, lines))


def _rows(path: Path, names: list[str], lines: Iterator[str]) -> Iterator[Entry]:
    for number, line in enumerate(lines, start=2):
        cells = line.rstrip("\r").split("\t")
        if len(cells) != len(names):
            raise SynmtError(f"{len(cells)} cells, but {len(names)} columns", where=f"{path}: line {number}")
        row = dict(zip(names, cells, strict=True))
        source, correct, incorrect = (row.pop(name) for name in _NEEDED)
        groups = {"phenomenon": row.pop("phenomenon"), **row} if "phenomenon" in row else row
        yield Entry(source, correct, [((incorrect,), groups)], f"{path}: line {number}")


def _of_entries(entries: Iterator[Entry]) -> ContrastSet:
    sources: list[str] = []
    contrasts: list[Contrast] = []
    for entry in entries:
        for incorrect, groups in entry.errors:
            labels = {name: _label(name, value) for name, value in groups.items() if value not in (None, "")}
            contrasts.append(Contrast(len(sources), entry.correct, incorrect, labels, entry.where))
        sources.append(entry.source)
    return ContrastSet(sources, contrasts)


def _label(name: str, value: object) -> str:
    """Name the group of a value: long distances are one, frequencies are told apart by their number of digits."""
    # half a character, which JSON can spell, cannot be printed
    text = str(value).encode(errors="replace").decode()
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        return text
    if name.endswith("distance") and int(text) > _LONGEST:
        return f">{_LONGEST}"
    if name == "frequency" and int(text) > 9:
        lowest = 10 ** (len(str(int(text))) - 1)
        return f"{lowest:,} to {10 * lowest - 1:,}"
    return "1 to 9" if name == "frequency" and int(text) else text
