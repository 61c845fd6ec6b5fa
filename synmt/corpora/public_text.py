"""The text of a public corpus by its id: a data set of mtdata's index, or a test set of
sacreBLEU."""

from __future__ import annotations

import copy
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synmt.arrays import Pair, Values
from synmt.corpora.archives import Packed
from synmt.corpora.corpus import side_names
from synmt.corpora.download import RemoteFile, local_path
from synmt.corpora.formats import read_pairs, with_progress, zipped
from synmt.corpora.mtdata_index import IndexEntry, find_entry, looks_like_id, same_language
from synmt.errors import SynmtError, UsageError, did_you_mean
from synmt.files.reading import cache_folder, read_lines
from synmt.files.writing import alone, write_folder_atomically, write_json
from synmt.recipe.corpus import SplitFiles

FACTS = "corpus.json"
"""The file in the folder of a built text that says what it is made from."""


@dataclass(frozen=True)
class PublicText:
    """A data set of mtdata, or a test set of sacreBLEU, as one text of the cache.

    sides: the codes of source and target in that data set.
    entry: None for a test set of sacreBLEU.
    """

    name: str
    sides: Pair
    entry: IndexEntry | None = None

    @property
    def folder(self) -> Path:
        """The folder of the text; one of mtdata serves both directions."""
        direction = "" if self.entry else f".{'-'.join(self.sides)}"
        return cache_folder() / "corpora" / f"{self.name.replace('/', '_')}{direction}"

    def is_done(self) -> bool:
        """Check whether the text has been built."""
        return self.folder.is_dir()

    def downloads(self) -> list[RemoteFile]:
        """List what the text is built from."""
        return list(self.entry.files) if self.entry else files_of_test_set(self.name, *self.sides)

    def run(self) -> None:
        """Build the text from its downloaded files."""
        with alone(self.folder):
            if not self.is_done():
                self._build()

    def files(self, split: str) -> SplitFiles:
        """Name the two sides."""
        first, second = side_names(test_name(self.name), *self.sides)
        return SplitFiles(source=self.folder / first, target=self.folder / second)

    def _build(self) -> None:
        files = self.downloads()
        with (
            tempfile.TemporaryDirectory() as work,
            write_folder_atomically(self.folder) as unfinished,
        ):
            if self.entry:
                languages = self.entry.languages
                pairs = read_pairs(
                    self.entry.texts(list(map(local_path, files))),
                    self.entry.form,
                    languages=languages,
                    columns=self.entry.columns,
                )
            else:
                languages = self.sides
                pairs = pairs_of_test_set(self.name, *languages, Path(work, "sacrebleu"))
            paths = [unfinished / file for file in side_names(test_name(self.name), *languages)]
            lines = write_pairs(pairs, paths, f"build {self.name}")
            facts = {"id": self.name, "lines": lines, "files": [file.address for file in files]}
            write_json(unfinished / FACTS, facts, indent=1)


def public_text(name: str, source: str, target: str) -> PublicText:
    """Describe a public corpus by its id; raises UsageError if there is none, or none with these
    languages."""
    if name in test_sets():
        files_of_test_set(name, source, target)
        return PublicText(name, (source, target))
    if not looks_like_id(name):
        raise UsageError(
            f"there is no corpus '{name}'",
            allowed="There are known corpora such as nc11, test sets of sacreBLEU such as wmt17, "
            "ids of mtdata such as Statmt-news_commentary-16-deu-eng, and files as "
            "`{source: a.en, target: a.de}`",
            do=did_you_mean(name, test_sets()),
        )
    entry = find_entry(name)
    first, second = entry.languages
    for sides in ((first, second), (second, first)):
        if same_language(source, sides[0]) and same_language(target, sides[1]):
            return PublicText(name, sides, entry)
    raise UsageError(
        f"the corpus {name} has no language pair {source}-{target}",
        allowed=f"It has {first}-{second}",
    )


def test_name(name: str) -> str:
    """Name a public test set as tables do: `newstest2016` for Statmt-newstest_ende-2016-eng-deu."""
    if name in test_sets() or not looks_like_id(name):
        return name.replace("/", "_")
    _, title, version, *_ = name.split("-")
    title = re.sub(r"_[a-z]{4}$", "", title) if re.match(r"news(test|dev)", title) else title
    return f"{title}{version}" if re.fullmatch(r"\d{4}", version) else title


def write_pairs(pairs: Iterable[Pair], paths: list[Path], what: str) -> int:
    """Write both sides of a text, and report the progress; returns the number of pairs."""
    number = 0
    with (
        open(paths[0], "w", encoding="utf-8", newline="\n") as first,
        open(paths[1], "w", encoding="utf-8", newline="\n") as second,
    ):
        for source, target in with_progress(pairs, what):
            number += 1
            first.write(f"{source}\n")
            second.write(f"{target}\n")
    if not number:
        raise SynmtError("the corpus has no sentences", where=what.removeprefix("build "))
    return number


# test sets of sacreBLEU, read by its own code from archives that synmt downloads and opens


def test_sets() -> Values:
    """Return sacreBLEU's test sets by name, such as `wmt17` and `wmt17/improved`."""
    from sacrebleu.dataset import DATASETS

    return DATASETS


def files_of_test_set(name: str, source: str, target: str) -> list[RemoteFile]:
    """List what a test set is made from; raises UsageError if it does not have this direction."""
    test_set, pair = test_sets()[name], f"{source}-{target}"
    if pair not in test_set.langpairs:
        raise UsageError(
            f"the test set {name} has no language pair {pair}",
            allowed=f"sacreBLEU has it for {', '.join(sorted(test_set.langpairs))}",
        )
    sums = test_set.md5 or [""] * len(test_set.data)
    return [RemoteFile(address, md5=md5) for address, md5 in zip(test_set.data, sums, strict=True)]


def pairs_of_test_set(name: str, source: str, target: str, folder: Path) -> Iterator[Pair]:
    """Yield source and first reference of a test set whose archives have been downloaded.

    folder: an empty one, for the files on the way.
    """
    pair = f"{source}-{target}"
    # a copy: sacreBLEU's own works in the home folder, and unpacks archives under the names inside
    test_set = copy.copy(test_sets()[name])
    test_set._outdir, test_set._rawdir = str(folder), str(folder / "raw")
    _provide(test_set, pair, files_of_test_set(name, source, target), folder / "raw")
    test_set.process_to_text(pair)
    texts = [Path(test_set.get_source_file(pair)), Path(test_set.get_reference_files(pair)[0])]
    yield from zipped([Packed((text,)) for text in texts], map(read_lines, texts))


def _provide(test_set: Any, pair: str, files: list[RemoteFile], raw: Path) -> None:
    """Put the files that sacreBLEU reads where it would have put them itself."""
    raw.mkdir(parents=True)
    for file in files:
        # what exists there is neither downloaded nor unpacked by sacreBLEU
        shutil.copyfile(local_path(file), raw / test_set._get_tarball_filename(file.address))
    entries = test_set.langpairs[pair]
    for entry in [entries["path"]] if isinstance(entries, dict) else entries:
        # tables have the number of a column before the name
        name = entry.rpartition(":")[2]
        if not (raw / name).exists():
            _copy_member(name, list(map(local_path, files)), raw / name)


def _copy_member(name: str, archives: list[Path], target: Path) -> None:
    """Copy a file from the first archive that has it; raises SynmtError if none does."""
    target.parent.mkdir(parents=True, exist_ok=True)
    *others, last = archives
    for archive in others:
        with suppress(SynmtError):
            return _unpack(archive, name, target)
    return _unpack(last, name, target)


def _unpack(archive: Path, name: str, target: Path) -> None:
    with Packed((archive,), (name,)).open() as stream, open(target, "wb") as out:
        shutil.copyfileobj(stream, out)
