"""Where Stanza's models are stored, and what a parser is, which stays stored until one of its files
changes.

Models are in synmt (one ships with it), in Stanza's own folder, or in any other folder. What is
known of a parser is stored in `$SYNMT_CACHE/parsers/<hash>.json`, with the state of every file that
it depends on: the models, their list, and Stanza itself. So a parser is identified without
importing Stanza. If a file has another size, time or inode, all is computed again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from synmt.arrays import Facts, Values
from synmt.errors import SynmtError, UsageError
from synmt.files.json_files import read_cached_json, read_json_if_there
from synmt.files.reading import cache_folder, fingerprint
from synmt.files.schemas import ParserFacts, StoredParser
from synmt.files.writing import write_json
from synmt.parsing.stanza_internals import SUPPORTED
from synmt.recipe.data import COMPACT, parser_model
from synmt.syntax.parse import FEATURES

PROCESSORS = "tokenize,pos,lemma,depparse"
ADDED = frozenset({"arcs", "features"})
"""What a parser's identity says that only adds something to the same trees."""


def locate(model: str, language: str) -> Path:
    """Find the folder with the models of a language."""
    model = parser_model(model, language)
    folder = folder_of(model)
    do = "Copy or download the models again"
    resources = read_json_if_there(folder / "resources.json", Values, do=do) or {}
    entry = resources.get(language)
    # an alias points to the folder of another language
    if isinstance(entry, dict) and os.path.isdir(folder / str(entry.get("alias", language))):
        return folder
    if model == "compact":
        raise UsageError(
            f"no compact model for the language '{language}'",
            allowed=f"Languages that ship with synmt: {', '.join(resources)}",
            do="Use Stanza's own model: `--parser official`; in a recipe, `parser.model=official` "
            "for the source and `target_parser.model=official` for the target",
        )
    raise missing(model, folder, language)


def missing(model: str, folder: Path, language: str, file: str = "") -> SynmtError:
    """Make the error for missing models."""
    do = by_hand(folder, language)
    if model != "official":
        do = "Choose another folder, or `official` (Stanza's own) or `compact` (ships with synmt)"
    return SynmtError(
        f"Stanza models for '{language}' not found{file and ': '}{file}",
        where=folder,
        allowed=f"A folder of models has resources.json and a folder {language}",
        do=do,
    )


def features_of(files: Mapping[str, Path]) -> list[str]:
    """List what models say of words besides tag and relation; raises any exception of the tagger's
    file.

    files: of the models, by their path in the folder.
    """
    import torch
    from stanza.models.common.vocab import VOCAB_PREFIX

    processors = {Path(name).parent.name: path for name, path in files.items()}
    tagger = torch.load(processors["pos"], map_location="cpu", weights_only=True)
    vocabularies: Facts = tagger["vocab"]

    def has_values(name: str) -> bool:
        # units by name, or a table of them for each part of a value
        units = vocabularies[name]["_unit2id"] if name in vocabularies else {}
        tables = [table for table in units.values() if isinstance(table, Mapping)] or [units]
        return any(unit not in VOCAB_PREFIX for table in tables for unit in table)

    # a lemmatizer that repeats the words has no file
    has = "lemma" in processors, has_values("xpos"), has_values("feats")
    return [name for name, has_it in zip(FEATURES, has, strict=True) if has_it]


def check_features(needed: Collection[str], given: Collection[str], what: str) -> None:
    """Refuse a model, which the message calls `what`, if it lacks a needed feature of words, or has
    none at all."""
    lacking = [name for name in needed or (() if given else FEATURES) if name not in given]
    if lacking:
        raise UsageError(
            f"{what} gives no {', no '.join(lacking)}",
            allowed=f"It gives {', '.join(('tag', 'relation', *given))}",
            do="Use Stanza's own model (`official`), or give trees that have these columns of "
            "CoNLL-U",
        )


def by_hand(folder: Path, language: str) -> str:
    """Describe how the official models of a language come to this machine."""
    download = f"python -c \"import stanza; stanza.download('{language}')\""
    return (
        f"Unset SYNMT_OFFLINE to download them, or run `{download}` on another machine, and copy "
        f"resources.json and the folder {language} of its stanza_resources to {folder}"
    )


def folder_of(model: str) -> Path:
    """Name the folder of `compact`, of `official`, or of a model that is a folder itself."""
    if model == "compact":
        return COMPACT
    if model != "official":
        return Path(model).expanduser()
    if os.environ.get("STANZA_RESOURCES_DIR"):
        return Path(os.environ["STANZA_RESOURCES_DIR"]).expanduser()
    # only Stanza knows its default folder, whose name depends on the version
    from stanza.resources.common import DEFAULT_MODEL_DIR

    return Path(DEFAULT_MODEL_DIR)


def known_resources(folder: Path) -> Values:
    """Read the list of models in a folder; empty if there is none, or it cannot be read."""
    return read_cached_json(folder / "resources.json", Values) or {}


States = dict[str, list[int]]
"""Size, times and inode of files."""

_FORMAT = 1
_OFFICIAL = ("STANZA_RESOURCES_DIR", "STANZA_RESOURCES_VERSION", "XDG_CACHE_HOME", "HOME")
"""What decides where Stanza keeps its official models."""


@dataclass(frozen=True)
class StoredFacts:
    """The place of what is known of a parser: `model`, `language` and `package` as the user named
    them."""

    model: str
    language: str
    package: str

    def load(self) -> tuple[Path, ParserFacts] | None:
        """Read the folder of the models and the facts; None if they were never stored, or a file
        has changed since."""
        # a file that is gone has no state
        with suppress(OSError, ValueError):
            stored, stanza = read_cached_json(self._path, StoredParser), sys.modules.get("stanza")
            if stored and (stanza is None or stanza.__version__ == stored["facts"]["stanza"]):
                same = stored["files"] == _states(stored["files"])
                return (Path(stored["folder"]), stored["facts"]) if same else None
        return None

    def store(self, folder: Path, facts: Values, files: States) -> None:
        """Store facts with the `states_of` files before they were read; without a writable cache,
        nothing is stored."""
        with suppress(SynmtError, OSError):
            write_json(self._path, {"folder": str(folder), "facts": facts, "files": files})

    def states_of(self, folder: Path, models: Iterable[Path]) -> States:
        """Read the state of models, of their list in the folder, and of Stanza."""
        return _states([*map(str, models), str(folder / "resources.json"), _stanza_version()])

    @property
    def _path(self) -> Path:
        where: Any = [os.environ.get(name) for name in _OFFICIAL]
        if self.model != "official":
            where = str(folder_of(self.model).absolute())
        versions = _FORMAT, SUPPORTED, PROCESSORS, _stanza_version()
        name = fingerprint(*versions, where, self.model, self.language, self.package)
        return cache_folder() / "parsers" / f"{name}.json"


def _states(names: Iterable[str]) -> States:
    states = {name: os.stat(name) for name in names}
    # no program can reset the time at which an inode last changed
    return {
        name: [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
        for name, state in states.items()
    }


def _stanza_version() -> str:
    """Name the file that has the version of the Stanza that would be imported."""
    spec = find_spec("stanza")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("stanza")
    return str(Path(spec.origin).with_name("_version.py"))
