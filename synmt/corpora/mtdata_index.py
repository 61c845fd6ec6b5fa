"""mtdata's index as the address book of public corpora: from an id to addresses, formats and
columns.

mtdata writes its index of 291,471 data sets, a line of JSON for each, when its module of the same
name is imported, which takes half a minute. That is done once for each version of mtdata, by a
process of its own in an empty folder: mtdata also runs files named `mtdata*.py` of the working
directory.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from synmt.arrays import Pair, Strings, Values
from synmt.corpora.archives import Packed
from synmt.corpora.download import RemoteFile
from synmt.errors import SynmtError, UsageError, did_you_mean
from synmt.files.reading import cache_folder
from synmt.files.writing import alone, copy_file

_logger = logging.getLogger(__name__)

Columns = tuple[int, int]
"""The columns of two languages in a table, counted from 0."""
_UNREADABLE = ("hfds", "opus_xces")
"""Formats that synmt does not read: data sets of Hugging Face's library, and the alignments of OPUS
in XML."""


@dataclass(frozen=True)
class IndexEntry:
    """A data set of mtdata's index.

    languages: mtdata's codes, such as `deu` and `eng`, in the order of the pairs.
    files: what must be downloaded.
    names: the names inside the archive; empty if the files are no archives.
    form: the format of the text.
    columns: those of the languages in a table, counted from 0.
    """

    languages: Pair
    files: tuple[RemoteFile, ...]
    names: Strings
    form: str
    columns: Columns

    def texts(self, paths: list[Path]) -> tuple[Packed, ...]:
        """Return the texts inside the downloaded files."""
        if self.names:
            return tuple(Packed((paths[0],), (name,)) for name in self.names)
        return tuple(Packed((path,)) for path in paths)


def looks_like_id(name: str) -> bool:
    """Check whether a name has the form of an mtdata id: group-name-version-language-language."""
    return len(name.split("-")) == 5


def find_entry(name: str) -> IndexEntry:
    """Find a data set by its id, such as `Statmt-news_commentary-16-deu-eng`; the languages may be
    in either order."""
    dataset_id = load_mtdata("mtdata.entry").DatasetId
    try:
        did = dataset_id.parse(name)
    except Exception as error:
        raise UsageError(
            f"'{name}' is not an id of mtdata",
            allowed="Ids look like Statmt-news_commentary-16-deu-eng: group, name, version and two "
            "languages",
        ) from error
    one, other = map(str, did.langs)
    endings = [f"-{one}-{other}", f"-{other}-{one}"]
    start = f"{did.group}-{did.name}-{did.version}"
    entries = {entry["did"]: entry for entry in _entries(start + ending for ending in endings)}
    if not entries:
        raise UsageError(
            f"mtdata's index has no corpus '{name}'",
            do=did_you_mean(name, (entry["did"] for entry in _entries(endings)))
            or f"`mtdata list -l {one}-{other}` lists all",
        )
    return _record(entries.get(start + endings[0]) or entries[start + endings[1]])


@cache
def same_language(one: str, other: str) -> bool:
    """Check whether two codes mean one language: `pt` and `por_BR` do, `zho` and `zho_Hant` do
    not."""
    try:
        return load_mtdata("mtdata.iso.bcp47").BCP47Tag.are_compatible(one, other)
    except (ValueError, AssertionError):
        # a code that is in no standard
        return False


def load_mtdata(module: str) -> Any:
    """Import a module of mtdata, which configures the root logger unless that has a handler.

    Raises SynmtError if it is not installed.
    """
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SynmtError(
            "ids such as Statmt-news_commentary-16-deu-eng need mtdata, which cannot be imported "
            f"({error})",
            do="Install it with `pip install 'synmt[mtdata]'`",
        ) from None
    finally:
        root.removeHandler(handler)


def _record(entry: Values) -> IndexEntry:
    form, url = entry.get("in_ext") or entry["ext"], entry["url"]
    if form in _UNREADABLE:
        raise SynmtError(
            f"the corpus {entry['did']} is in a format that synmt does not read ({form})",
            do=f"Get it with `mtdata get`, and give its files as source and target; it is at {url}",
        )
    addresses = [url] if isinstance(url, str) else url
    first, second = entry["did"].split("-")[3:]
    first_column, second_column, *_ = entry.get("cols") or (0, 1)
    files = tuple(RemoteFile(address, name=entry.get("filename", "")) for address in addresses)
    names = tuple(entry["in_paths"]) if entry.get("is_archive") else ()
    return IndexEntry((first, second), files, names, form, (first_column, second_column))


def _entries(ends: Iterable[str]) -> Iterator[Values]:
    """Yield the entries whose id ends with one of some texts."""
    texts = [f'{end}", "url"'.encode() for end in ends]
    with open(_index(), "rb") as lines:
        for line in lines:
            if any(text in line for text in texts):
                yield json.loads(line)


def _index() -> Path:
    """Name the index in the cache; mtdata makes it if it is missing."""
    release = version("mtdata")
    path = cache_folder() / "mtdata" / f"index-{release}.jsonl"
    if not path.is_file():
        with alone(path):
            if not path.is_file():
                _make_index(path, release)
    return path


def _make_index(path: Path, release: str) -> None:
    _logger.info("mtdata makes its index of public corpora, once: this takes half a minute")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", "import mtdata.index"],
            cwd=folder,
            env=os.environ | {"MTDATA": folder},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SynmtError(
                "mtdata cannot make its index", where=done.stderr.strip().rpartition("\n")[2]
            )
        copy_file(Path(folder, f"mtdata.index.{release}.jsonl"), path)
