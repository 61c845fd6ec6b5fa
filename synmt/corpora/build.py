"""Builds text in the cache: public corpora by id, and training texts that are put together from several."""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

from typing_extensions import TypedDict

from synmt.corpora.corpus import side_names
from synmt.corpora.download import RemoteFile, alone, local_path
from synmt.corpora.draw import drawn
from synmt.corpora.formats import read_pairs
from synmt.corpora.index import find_entry, looks_like_id, same_language
from synmt.corpora.parts import CorpusPart
from synmt.corpora.progress import Progress
from synmt.corpora.sacrebleu_sets import files_of_test_set, pairs_of_test_set, test_sets
from synmt.errors import SynmtError, UsageError, counted, did_you_mean
from synmt.files.json_files import Count, read_cached_json, read_json
from synmt.files.reading import cache_folder, count_lines, fingerprint, read_lines, stored_sha256
from synmt.files.writing import write_folder_atomically, write_json
from synmt.recipe.corpus import CorpusItem, SplitFiles

_logger = logging.getLogger(__name__)
_PAIRS_PER_STEP = 20_000
_FACTS = "corpus.json"


class NotBuilt(Exception):
    """A text has to be built first, and the caller asked for texts that are there."""


# public corpora by id


def files_of_id(name: str, source: str, target: str) -> list[RemoteFile]:
    """List what must be downloaded for a corpus that is not in the cache; raises UsageError for an unknown id."""
    if name in test_sets():
        files = files_of_test_set(name, source, target)
        return [] if _folder(name, f"{source}-{target}").is_dir() else files
    if not looks_like_id(name):
        raise _unknown(name, source, target)
    _sides(name, source, target)
    return [] if _folder(name).is_dir() else list(find_entry(name).files)


def building_id(name: str, source: str, target: str, *, build: bool = True) -> Generator[Progress, None, SplitFiles]:
    """Build the text of a corpus from its downloaded files, unless the cache has it; returns its two sides.

    build: False raises NotBuilt in place of building.
    """
    if name in test_sets():
        folder, sides = _folder(name, f"{source}-{target}"), (source, target)
    else:
        folder, sides = _folder(name), _sides(name, source, target)
    stem = test_name(name)
    if not folder.is_dir():
        if not build:
            raise NotBuilt
        with alone(folder, f"builds the corpus {name}"):
            if not folder.is_dir():
                yield from _build(name, folder, stem, sides)
    first, second = side_names(stem, *sides)
    return SplitFiles(source=folder / first, target=folder / second)


def test_name(name: str) -> str:
    """Name a public test set as tables do: `newstest2016` for Statmt-newstest_ende-2016-eng-deu."""
    if name in test_sets() or not looks_like_id(name):
        return name.replace("/", "_")
    _, title, version, *_ = name.split("-")
    title = re.sub(r"_[a-z]{4}$", "", title) if re.match(r"news(test|dev)", title) else title
    return f"{title}{version}" if re.fullmatch(r"\d{4}", version) else title


def _folder(name: str, pair: str = "") -> Path:
    return cache_folder() / "corpora" / (name.replace("/", "_") + (f".{pair}" if pair else ""))


def _sides(name: str, source: str, target: str) -> tuple[str, str]:
    """Return mtdata's codes of source and target in a data set; raises UsageError if it has another pair."""
    first, second = find_entry(name).languages
    if same_language(source, first) and same_language(target, second):
        return first, second
    if same_language(source, second) and same_language(target, first):
        return second, first
    raise UsageError(f"the corpus {name} has no language pair {source}-{target}", allowed=f"It has {first}-{second}")


def _unknown(name: str, source: str, target: str) -> UsageError:
    own = f"For files of your own, write `{{source: {name}.{source}, target: {name}.{target}}}`"
    return UsageError(
        f"there is no corpus '{name}'",
        allowed="There are known corpora such as nc11, test sets of sacreBLEU such as wmt17, and ids of mtdata such as "
        "Statmt-news_commentary-16-deu-eng",
        do=own if "/" in name else did_you_mean(name, test_sets()),
    )


def _build(name: str, folder: Path, stem: str, sides: tuple[str, str]) -> Generator[Progress, None, None]:
    with tempfile.TemporaryDirectory() as work, write_folder_atomically(folder) as unfinished:
        if name in test_sets():
            names, files = sides, files_of_test_set(name, *sides)
            pairs = pairs_of_test_set(name, *sides, Path(work, "sacrebleu"))
        else:
            entry = find_entry(name)
            names, files = entry.languages, list(entry.files)
            pairs = read_pairs(entry.texts([local_path(file) for file in files]), entry.form, entry=entry.entry)
        paths = [unfinished / file for file in side_names(stem, *names)]
        lines = yield from _write(pairs, paths, f"build {name}")
        facts = {"id": name, "lines": lines, "files": [file.address for file in files]}
        write_json(unfinished / _FACTS, facts, indent=1)
    _logger.info("built %s: %s sentence pairs, in %s", name, f"{lines:,}", folder)


def _write(pairs: Iterable[tuple[str, str]], paths: list[Path], what: str) -> Generator[Progress, None, int]:
    """Write both sides; returns the number of pairs."""
    number = replaced = 0
    with (
        open(paths[0], "w", encoding="utf-8", newline="\n") as first,
        open(paths[1], "w", encoding="utf-8", newline="\n") as second,
    ):
        for number, (one, other) in enumerate(pairs, start=1):
            first.write(f"{one}\n")
            second.write(f"{other}\n")
            replaced += "\ufffd" in one or "\ufffd" in other
            if number % _PAIRS_PER_STEP == 0:
                yield Progress(what, number, None)
    if not number:
        raise SynmtError("the corpus has no sentences", where=what.removeprefix("build "))
    if replaced:
        affected = counted(replaced, "pair has", "pairs have")
        _logger.warning("%s: %s the character �, which stands for bytes that are not UTF-8", what, affected)
    return number


# texts that are put together


@dataclass(frozen=True)
class BuiltText:
    """A text, and its parts in order.

    name: for the names of what is made from it.
    """

    name: str
    files: SplitFiles
    parts: tuple[CorpusPart, ...] = ()


def building_mixture(
    items: Sequence[CorpusItem],
    texts: Sequence[SplitFiles],
    stem: str,
    languages: tuple[str, str],
    *,
    build: bool = True,
) -> Generator[Progress, None, BuiltText]:
    """Write parts of several texts one after the other, or find them in the cache.

    texts: the files of each item.
    stem: the name of the files before the language, such as `train`.
    build: False raises NotBuilt in place of writing.
    Raises UsageError if an item wants more pairs than its text has.
    """
    drawing = [
        (stored_sha256(text.source), stored_sha256(text.target), item.fraction, item.lines, item.seed)
        for item, text in zip(items, texts, strict=True)
    ]
    folder = cache_folder() / "corpora" / f"mix-{fingerprint(drawing, stem, languages)}"
    paths = [folder / file for file in side_names(stem, *languages)]
    if not _is_mixed(folder, items):
        if not build:
            raise NotBuilt
        with alone(folder, "puts this text together"):
            if not _is_mixed(folder, items):
                yield from _mix(items, texts, folder, [path.name for path in paths])
    counts = read_json(folder / _FACTS, _Facts)["parts"]
    return BuiltText(folder.name, SplitFiles(source=paths[0], target=paths[1]), parts_of(items, counts))


class _Facts(TypedDict):
    parts: list[Count]


def _is_mixed(folder: Path, items: Sequence[CorpusItem]) -> bool:
    """Tell whether a folder has the text of some items, and the number of lines of each."""
    facts = read_cached_json(folder / _FACTS, _Facts)
    return facts is not None and len(facts["parts"]) == len(items)


def parts_of(items: Sequence[CorpusItem], counts: Sequence[int]) -> tuple[CorpusPart, ...]:
    """Describe the parts of a text by their numbers of lines."""
    return tuple(
        CorpusPart(label(item), lines, item.weight, item.tag) for item, lines in zip(items, counts, strict=True)
    )


def label(item: CorpusItem) -> str:
    """Name an item for a message: its id, or its source file."""
    return item.id if item.id is not None else str(item.source)


def _mix(
    items: Sequence[CorpusItem], texts: Sequence[SplitFiles], folder: Path, names: list[str]
) -> Generator[Progress, None, None]:
    sizes = [_size(item, text) for item, text in zip(items, texts, strict=True)]
    wanted = [_wanted(item, size) for item, size in zip(items, sizes, strict=True)]
    with write_folder_atomically(folder) as unfinished:
        pairs = (
            pair
            for item, text, size, some in zip(items, texts, sizes, wanted, strict=True)
            for pair in compress(_pairs(text), drawn(size, some, item.seed))
        )
        yield from _write(pairs, [unfinished / name for name in names], "build the training text")
        facts = {"parts": wanted, "of": sizes, "names": list(map(label, items))}
        write_json(unfinished / _FACTS, facts, indent=1)


def _size(item: CorpusItem, text: SplitFiles) -> int:
    source, target = count_lines(text.source), count_lines(text.target)
    if source != target:
        raise SynmtError(
            f"{source:,} source lines and {target:,} target lines",
            where=label(item),
            allowed="Both files need the same number of lines: each line is the translation of the same line",
        )
    if not source:
        raise SynmtError("the text is empty", where=label(item))
    return source


def _wanted(item: CorpusItem, size: int) -> int:
    if item.lines > size:
        raise UsageError(f"`lines: {item.lines}` is more than the {size:,} pairs that it has", where=label(item))
    return item.lines or max(round(item.fraction * size), 1)


def _pairs(text: SplitFiles) -> Iterator[tuple[str, str]]:
    return zip(read_lines(text.source), read_lines(text.target), strict=True)
