"""mtdata's index as the address book of public corpora: from an id to addresses, formats and columns.

mtdata configures the root logger when it is imported, writes its index of 291,471 data sets into the home folder, which
takes half a minute, and runs files named `mtdata*.py` of the working directory. None of that happens here: its modules
are loaded one by one, only those that have the group of an id, and its messages go to a logger that shows nothing.
"""

from __future__ import annotations

import importlib
import logging
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, partial
from pathlib import Path
from typing import Any

from synmt.corpora.archives import Packed
from synmt.corpora.download import RemoteFile
from synmt.errors import SynmtError, UsageError, did_you_mean, listed

MODULES = {
    "OPUS": ("opus.opus_index", "opus.opus100"),
    "Flores": ("flores",),
    "Statmt": ("statmt",),
    "UN": ("unitednations",),
    "": (
        "statmt",
        "paracrawl",
        "tilde",
        "joshua_indian",
        "unitednations",
        "wikimatrix",
        "other",
        "neulab_tedtalks",
        "elrc_share",
        "ai4bharat",
        "eu",
        "linguatools",
        "anuvaad",
        "allenai_nllb",
        "leipzig",
        "huggingface",
    ),
}
"""The modules of mtdata's index by the group that they contain; those of all other groups are quick to load."""

_EMPTY_INDEX = b"\x80\x02cmtdata.index\nIndex\n)\x81."
"""A pickled `Index` without entries, which mtdata loads instead of making the index of all data sets."""

_UNREADABLE = ("hfds", "opus_xces")
"""Formats that synmt does not read: data sets of Hugging Face's library, and the alignments of OPUS in XML."""


@dataclass(frozen=True)
class IndexEntry:
    """A data set of mtdata's index.

    languages: mtdata's codes, such as `deu` and `eng`, in the order of the pairs.
    files: what must be downloaded.
    names: the names inside the archive; empty if the files are no archives.
    form: the format of the text.
    entry: mtdata's own record.
    """

    id: str
    languages: tuple[str, str]
    files: tuple[RemoteFile, ...]
    names: tuple[str, ...]
    form: str
    entry: Any

    def texts(self, paths: list[Path]) -> tuple[Packed, ...]:
        """Return the texts inside the downloaded files."""
        if self.names:
            return tuple(Packed((paths[0],), (name,)) for name in self.names)
        return tuple(Packed((path,)) for path in paths)


def find_entry(name: str) -> IndexEntry:
    """Find a data set by its id, such as `Statmt-news_commentary-16-deu-eng`; the languages may be in either order."""
    did = _parse(name)
    entries = _entries(_modules(did.group))
    turned = type(did)(did.group, did.name, did.version, did.langs[::-1])
    found = entries.get(did) or entries.get(turned)
    if found is None:
        raise _unknown(name, did, entries)
    return _record(found)


def looks_like_id(name: str) -> bool:
    """Tell whether a name has the form of an mtdata id: group-name-version-language-language."""
    return len(name.split("-")) == 5


def same_language(one: str, other: str) -> bool:
    """Tell whether two codes mean one language: `pt` and `por_BR` do, `zho` and `zho_Hant` do not."""
    try:
        return load_mtdata("mtdata.iso.bcp47").BCP47Tag.are_compatible(one, other)
    except (ValueError, AssertionError):
        # a code that is in no standard
        return False


def load_mtdata(module: str) -> Any:
    """Import a module of mtdata without its effects on logging, files and the screen.

    Raises SynmtError if it is not installed.
    """
    with _root_logger_kept():
        try:
            mtdata: Any = importlib.import_module("mtdata")
        except ImportError as error:
            raise SynmtError(
                f"ids such as Statmt-news_commentary-16-deu-eng need mtdata, which cannot be imported ({error})",
                do="Install it with `pip install 'synmt[mtdata]'`",
            ) from None
        # its modules take `log` and the place of the index from here
        mtdata.log = _silent_logger()
        if getattr(mtdata, "cached_index_file", None) is not None and not _index_is_loaded():
            _load_empty_index(mtdata)
        return importlib.import_module(module)


def _index_is_loaded() -> bool:
    return "mtdata.index" in sys.modules


def _load_empty_index(mtdata: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        own, mtdata.cached_index_file = mtdata.cached_index_file, Path(folder, "empty.pkl")
        mtdata.cached_index_file.write_bytes(_EMPTY_INDEX)
        importlib.import_module("mtdata.index")
        mtdata.cached_index_file = own


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _silent_logger() -> logging.Logger:
    logger = logging.getLogger("mtdata")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger


def _parse(name: str) -> Any:
    dataset_id = load_mtdata("mtdata.entry").DatasetId
    try:
        return dataset_id.parse(name)
    except Exception as error:
        raise UsageError(
            f"'{name}' is not an id of mtdata",
            allowed="Ids look like Statmt-news_commentary-16-deu-eng: group, name, version and two languages",
        ) from error


def _modules(group: str) -> tuple[str, ...]:
    return MODULES.get(group, MODULES[""])


@cache
def _entries(modules: tuple[str, ...]) -> dict[Any, Any]:
    """Load a part of the index."""
    index = load_mtdata("mtdata.index").Index()
    with warnings.catch_warnings():
        # some of these modules do not close their files
        warnings.simplefilter("ignore", ResourceWarning)
        for module in modules:
            load_mtdata(f"mtdata.index.{module}").load_all(index)
    return index.entries


def _record(entry: Any) -> IndexEntry:
    form = entry.in_ext or entry.ext
    if form in _UNREADABLE:
        raise SynmtError(
            f"the corpus {entry.did} is in a format that synmt does not read ({form})",
            do=f"Get it with `mtdata get`, and give its files as source and target; it is at {entry.url}",
        )
    addresses = [entry.url] if isinstance(entry.url, str) else list(entry.url)
    first, second = (str(language) for language in entry.did.langs)
    return IndexEntry(
        str(entry.did),
        (first, second),
        tuple(RemoteFile(address, name=entry.filename if "?" in address else "") for address in addresses),
        tuple(entry.in_paths or ()) if entry.is_archive else (),
        form,
        entry,
    )


def _unknown(name: str, did: Any, entries: dict[Any, Any]) -> UsageError:
    """Make the error for an unknown id, with the nearest ids of the same languages."""
    languages = sorted(map(str, did.langs))
    nearest = partial(SequenceMatcher, None, name)
    same = [str(other) for other in entries if sorted(map(str, other.langs)) == languages]
    same.sort(key=lambda other: nearest(other).ratio(), reverse=True)
    return UsageError(
        f"mtdata's index has no corpus '{name}'",
        allowed=f"For {' and '.join(languages)} it has {listed(same, 8)}" if same else "",
        do=did_you_mean(name, same) or f"`mtdata list -l {'-'.join(languages)}` lists all",
    )
