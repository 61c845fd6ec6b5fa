"""Contrastive sets: sources with a right translation and wrong ones, in folders, tables, JSON, or generated.

FOLDER/src.en, correct.de, incorrect.de    line by line, .gz too; or a folder of such folders, one for each phenomenon
FILE.tsv                                   with a header: source, correct, incorrect, and any columns to group by
FILE.json                                  LingEval97 (Sennrich, 2017) or ContraPro (Müller et al., 2018)
controlled                                 agreement, case and particles in the controlled corpus's test set

In ContraPro a reference has several wrong translations, and must be more probable than all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from synmt.errors import SynmtError, UsageError, counted
from synmt.evaluation.contrast.json_sets import Entry, read_entries
from synmt.files.reading import read_lines
from synmt.syntax.parse import Parse, without_whitespace

CONTROLLED = "controlled"

_LONGEST = 15
"""Distances above this are one group, as in LingEval97."""
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
    identical: places of contrasts that are left out, as their right and wrong translation are the same.
    """

    sources: list[str]
    contrasts: list[Contrast]
    trees: list[Parse] | None = None
    languages: tuple[str, str] | None = None
    identical: list[str] = field(default_factory=list)


def read_contrasts(names: Sequence[str]) -> ContrastSet:
    """Read sets and join them; if there are several, contrasts are also grouped by set."""
    sets = [_without_identical(_read(name), name) for name in names]
    if len(sets) == 1:
        return sets[0]
    for name, one in zip(names, sets, strict=True):
        one.contrasts[:] = [replace(each, groups={"set": name, **each.groups}) for each in one.contrasts]
    return _join(sets)


def _join(sets: Sequence[ContrastSet]) -> ContrastSet:
    trees, languages = [one.trees for one in sets], {one.languages for one in sets if one.languages}
    joined = ContrastSet([], [], None if None in trees else [tree for one in trees for tree in one or ()])
    for one in sets:
        first = len(joined.sources)
        joined.contrasts.extend(replace(each, source=first + each.source) for each in one.contrasts)
        joined.sources.extend(one.sources)
        joined.identical.extend(one.identical)
    return replace(joined, languages=languages.pop() if len(languages) == 1 else None)


def _without_identical(contrast_set: ContrastSet, name: str) -> ContrastSet:
    """Leave out contrasts whose translations differ in white space only; raise an error if none is left."""
    if not contrast_set.contrasts:
        raise SynmtError("the contrastive set is empty", where=name)
    different, identical = [], []
    for contrast in contrast_set.contrasts:
        if not without_whitespace(contrast_set.sources[contrast.source]):
            raise SynmtError("the source has no text", where=contrast.where)
        if any(contrast.correct.split() == wrong.split() for wrong in contrast.incorrect):
            identical.append(contrast.where)
        else:
            different.append(contrast)
    if not different:
        raise SynmtError("the right and the wrong translation are the same in every pair", where=name)
    return replace(contrast_set, contrasts=different, identical=identical)


def _read(name: str) -> ContrastSet:
    path = Path(name)
    if name == CONTROLLED:
        return _controlled()
    if path.is_dir():
        return _read_folders(path)
    if not path.exists():
        raise UsageError(
            "no such contrastive set",
            where=name,
            allowed="A folder with src.en, correct.de and incorrect.de, or with such folders; a .tsv or .json file; "
            f"or the word {CONTROLLED}",
        )
    if ".json" in path.suffixes:
        return _from_entries(read_entries(path))
    return _read_table(path)


def _controlled() -> ContrastSet:
    from synmt.controlled.contrast import contrastive_pairs
    from synmt.controlled.corpus import generate

    examples = generate(train=0, valid=0)["test"]
    contrasts = []
    for index, example in enumerate(examples):
        sentence_groups = {"split": example.split, "phenomenon of the sentence": example.phenomenon}
        for pair in contrastive_pairs([example]):
            pair_groups = {name: _controlled_label(name, value) for name, value in pair.groups.items()}
            groups = {"phenomenon": pair.phenomenon, **pair_groups, **sentence_groups}
            where = f"{CONTROLLED}: sentence {index + 1}, {pair.phenomenon}"
            contrasts.append(Contrast(index, example.target, (pair.incorrect,), groups, where))
    return ContrastSet([one.source for one in examples], contrasts, [one.parse for one in examples], ("en", "de"))


def _controlled_label(name: str, value: str | int) -> str:
    """Name the group of a value; long distances are rare in the controlled corpus, and share groups."""
    if isinstance(value, str) or not name.endswith("distance") or value < 3:
        return str(value)
    return ">10" if value > 10 else "6 to 10" if value > 5 else "3 to 5"


def _read_folders(path: Path) -> ContrastSet:
    folders = [path] if _find_texts(path, "src") else sorted(one for one in path.iterdir() if one.is_dir())
    folders = [one for one in folders if _find_texts(one, "src")]
    if not folders:
        raise SynmtError(
            "the folder has no contrastive set: neither src.en, correct.de and incorrect.de, nor folders with these",
            where=str(path),
        )
    return _join([_read_folder(folder) for folder in folders])


def _read_folder(folder: Path) -> ContrastSet:
    files = [_find_text(folder, kind) for kind in ("src", "correct", "incorrect")]
    texts = [list(read_lines(file)) for file in files]
    for file, text in zip(files[1:], texts[1:], strict=True):
        if len(text) != len(texts[0]):
            raise SynmtError(f"{counted(len(text), 'line')}, but {files[0]} has {len(texts[0]):,}", where=str(file))
    groups = {"phenomenon": folder.resolve().name}
    contrasts = [
        Contrast(index, correct, (incorrect,), groups, f"{files[2]}: line {index + 1}")
        for index, (correct, incorrect) in enumerate(zip(*texts[1:], strict=True))
    ]
    languages = files[0].name.split(".")[1], files[1].name.split(".")[1]
    return ContrastSet(texts[0], contrasts, languages=languages)


def _find_texts(folder: Path, kind: str) -> list[Path]:
    return sorted(path for path in folder.glob(f"{kind}.*") if len(path.name.removesuffix(".gz").split(".")) == 2)


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


def _read_table(path: Path) -> ContrastSet:
    lines = read_lines(path)
    names = next(lines, "").split("\t")
    missing = [name for name in _REQUIRED if name not in names]
    if missing or len(set(names)) < len(names):
        raise SynmtError(
            f"the header has no column {missing[0]}" if missing else "two columns have the same name",
            where=str(path),
            allowed="Columns, separated by tabs: source, correct, incorrect, and others to group by, each name once",
        )
    return _from_entries(_read_rows(path, names, lines))


def _read_rows(path: Path, names: list[str], lines: Iterator[str]) -> Iterator[Entry]:
    for number, line in enumerate(lines, start=2):
        cells = line.split("\t")
        if len(cells) != len(names):
            raise SynmtError(f"{counted(len(cells), 'cell')}, but {len(names)} columns", where=f"{path}: line {number}")
        row = dict(zip(names, cells, strict=True))
        source, correct, incorrect = (row.pop(name) for name in _REQUIRED)
        groups = {"phenomenon": row.pop("phenomenon"), **row} if "phenomenon" in row else row
        yield Entry(source, correct, [((incorrect,), groups)], f"{path}: line {number}")


def _from_entries(entries: Iterator[Entry]) -> ContrastSet:
    sources: list[str] = []
    contrasts: list[Contrast] = []
    for entry in entries:
        for incorrect, groups in entry.errors:
            labels = {name: _label(name, value) for name, value in groups.items() if value not in (None, "")}
            contrasts.append(Contrast(len(sources), entry.correct, incorrect, labels, entry.where))
        sources.append(entry.source)
    return ContrastSet(sources, contrasts)


def _label(name: str, value: object) -> str:
    """Name the group of a value: long distances are one group, frequencies are grouped by their number of digits."""
    # JSON can contain half of a surrogate pair, which cannot be printed
    text = str(value).encode(errors="replace").decode()
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        return text
    if name.endswith("distance") and int(text) > _LONGEST:
        return f">{_LONGEST}"
    if name == "frequency" and int(text) > 9:
        lowest = 10 ** (len(str(int(text))) - 1)
        return f"{lowest:,} to {10 * lowest - 1:,}"
    return "1 to 9" if name == "frequency" and int(text) else text
