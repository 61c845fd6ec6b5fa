"""Where known corpora come from: texts in public archives, sacreBLEU's test sets, folders of owners."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from synmt.corpora.archives import Packed
from synmt.corpora.cleaning import Pair
from synmt.corpora.download import RemoteFile, local_path
from synmt.corpora.formats import read_fields, read_pairs
from synmt.corpora.sacrebleu_sets import files_of_test_set, test_sets
from synmt.corpora.sums import remote_file
from synmt.files.reading import cache_folder


class ParallelText(Protocol):
    """Parallel text of two or more languages."""

    def files(self, languages: Pair) -> list[RemoteFile]:
        """List the files to download."""
        ...

    def pairs(self, languages: Pair) -> Iterator[Pair]:
        """Read the sentences of two languages from the downloaded files."""
        ...


@dataclass(frozen=True)
class PackedText:
    """A text inside a downloaded file.

    archive: the address of the file, or of the parts of a file that was split.
    names: the name inside the archive; before it the name of the archive inside the archive, if there are two.
    """

    archive: tuple[str, ...]
    names: tuple[str, ...] = ()

    def files(self) -> list[RemoteFile]:
        """List the files to download."""
        return list(map(remote_file, self.archive))

    def packed(self) -> Packed:
        """Name the place of the text on this disk."""
        return Packed(tuple(map(local_path, self.files())), self.names)


@dataclass(frozen=True)
class Texts:
    """A text per language.

    form: `txt` for a sentence a line, `sgm` for what stands between `<seg>` and `</seg>`.
    """

    texts: Mapping[str, PackedText]
    form: str = "txt"

    def files(self, languages: Pair) -> list[RemoteFile]:
        """List the files to download."""
        return [file for language in languages for file in self.texts[language].files()]

    def pairs(self, languages: Pair) -> Iterator[Pair]:
        """Read both texts side by side."""
        first, second = (self.texts[language].packed() for language in languages)
        return read_pairs((first, second), self.form)


@dataclass(frozen=True)
class Columns:
    """A table with a column per language, counted from 0, and tabs between them."""

    table: PackedText
    columns: Mapping[str, int]

    def files(self, languages: Pair) -> list[RemoteFile]:
        """List the files to download."""
        return self.table.files()

    def pairs(self, languages: Pair) -> Iterator[Pair]:
        """Read two columns."""
        return read_fields(self.table.packed(), _pick(self.columns, languages), separator="\t")


@dataclass(frozen=True)
class FromSacrebleu:
    """A test set of sacreBLEU by its name, in one direction, such as `en-de`: the sentences serve both directions."""

    name: str
    direction: str

    def files(self, languages: Pair) -> list[RemoteFile]:
        """List the files to download."""
        return files_of_test_set(self.name, *self.direction.split("-"))

    def pairs(self, languages: Pair) -> Iterator[Pair]:
        """Read source and reference; other than in sacreBLEU, entities such as `&amp;` become characters."""
        archive = tuple(file.address for file in self.files(languages))
        sides = zip(self.direction.split("-"), test_sets()[self.name].langpairs[self.direction], strict=True)
        return Texts({language: PackedText(archive, (name,)) for language, name in sides}, "sgm").pairs(languages)


@dataclass(frozen=True)
class FromOwners:
    """A table that owners give to those who accept a licence; ` ||| ` separates its columns.

    folder: the folder of the corpus; the environment variable `SYNMT_<FOLDER>` can name it.
    path: the file in that folder, as the owners' archive unpacks it.
    """

    folder: str
    path: str
    columns: Mapping[str, int]

    def files(self, languages: Pair) -> list[RemoteFile]:
        """List the files to download: there are none."""
        return []

    def pairs(self, languages: Pair) -> Iterator[Pair]:
        """Read two columns."""
        found = self.found()
        assert found is not None, self.path
        return read_fields(Packed((found,)), _pick(self.columns, languages))

    def found(self) -> Path | None:
        """Find the file on this disk; the upper folders of its path may be missing or be in another folder."""
        inner = Path(self.path)
        below = [Path(*inner.parts[depth:]) for depth in range(len(inner.parts))]
        places = [base / path for base in self.places() for path in (self.folder.upper() / inner, *below)]
        return next((place for place in places if place.is_file()), None)

    def places(self) -> list[Path]:
        """List the folders where the corpus is looked for, in order."""
        given = [os.environ.get(name) for name in (f"SYNMT_{self.folder.upper()}", "SYNMT_DATA")]
        own, data = (Path(value).expanduser() if value else None for value in given)
        places = [own, data and data / self.folder, cache_folder() / "corpora" / self.folder]
        return [place for place in places if place is not None]


def _pick(columns: Mapping[str, int], languages: Pair) -> tuple[int, int]:
    first, second = languages
    return columns[first], columns[second]
