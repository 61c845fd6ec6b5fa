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

from synmt.errors import SynmtError, UsageError, did_you_mean
from synmt.files.json_files import read_cached_json, read_json_if_there
from synmt.files.reading import cache_folder, fingerprint, offline
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
    if not _has(folder, language):
        check_code(language)
    languages = sorted(_resources(folder, model, language))
    if _has(folder, language):
        return folder
    if model == "compact":
        near = did_you_mean(language, languages)
        raise UsageError(
            f"no compact model for the language '{language}'",
            allowed=f"Languages that ship with synmt: {', '.join(languages)}. {near}".strip(),
            do="Use Stanza's own model: `--parser official`; in a recipe, `parser.model=official` "
            "for the source and "
            "`target_parser.model=official` for the target",
        )
    raise missing(model, folder, language)


def check_code(language: str) -> None:
    """Raise UsageError for the name of a language instead of its code, such as `english` for
    `en`."""
    from stanza.models.common.constant import lang2lcode

    codes = {name.replace("_", " ").lower(): code for name, code in lang2lcode.items()}
    code = codes.get(language.replace("_", " ").lower())
    if code is not None and code != language:
        raise UsageError(
            f"'{language}' is the name of a language, not its code", do=f"Did you mean '{code}'?"
        )


def missing(model: str, folder: Path, language: str, file: str = "") -> SynmtError:
    """Make the error for missing models, which says how to get them with and without a network."""
    what = f"Stanza models for '{language}'"
    if file:
        what = f"the file {file} of the Stanza model for '{language}'"
    if model != "official":
        return SynmtError(
            f"{what} not found" if folder.is_dir() else "there is no such folder of models",
            where=str(folder),
            allowed=f"A folder of models has resources.json and a folder {language} with tokenize, "
            "pos and depparse",
            do="Choose another folder, or use `official` (Stanza's own models) or `compact` (ships "
            "with synmt)",
        )
    ways = [by_hand(folder, language)]
    if offline():
        ways.insert(0, "SYNMT_OFFLINE forbids the network; without it, the model is downloaded.")
    if parser_model("auto", language) == "compact":
        ways.insert(
            0,
            "The compact model needs no download: `parser.model=compact`, or `--parser compact`.",
        )
    return SynmtError(f"{what} not found", where=str(folder), allowed=" ".join(ways))


def no_package(owner: str, package: str, language: str, packages: Iterable[str]) -> UsageError:
    """Make the error for a package of models that its owner, Stanza or a folder, does not have."""
    names = sorted(packages)
    return UsageError(
        f"{owner} has no package '{package}' for the language '{language}'",
        allowed=f"Packages: {', '.join(names)}",
        do=did_you_mean(package, names),
    )


def features_of(files: Mapping[str, Path]) -> list[str]:
    """List what models say of words besides tag and relation; raises any exception of the tagger's
    file.

    files: of the models, by their path in the folder.
    """
    import torch
    from stanza.models.common.vocab import VOCAB_PREFIX

    processors = {Path(name).parent.name: path for name, path in files.items()}
    vocabularies: Mapping[str, Any] = {}
    if "pos" in processors:
        tagger = torch.load(processors["pos"], map_location="cpu", weights_only=True)
        vocabularies = tagger["vocab"]

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
    """Describe how the official models of a language come to a machine without a network."""
    return (
        f"Without a network: run `python -c \"import stanza; stanza.download('{language}')\"` on "
        "another machine with"
        " STANZA_RESOURCES_DIR=stanza_resources, and copy resources.json and the folder "
        f"{language} from there to"
        f" {folder}"
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


def _resources(folder: Path, model: str, language: str) -> dict[str, Any]:
    do = "Copy or download the models again"
    resources = read_json_if_there(folder / "resources.json", dict[str, Any], do=do)
    if resources is None:
        raise missing(model, folder, language, "resources.json")
    return resources


def _has(folder: Path, language: str) -> bool:
    # an alias in resources.json points to the folder of another language
    entry = known_resources(folder).get(language)
    return isinstance(entry, dict) and os.path.isdir(folder / str(entry.get("alias", language)))


def known_resources(folder: Path) -> dict[str, Any]:
    """Read the list of models in a folder; empty if there is none, or it cannot be read."""
    return read_cached_json(folder / "resources.json", dict[str, Any]) or {}


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

    def store(self, folder: Path, facts: dict[str, Any], files: States) -> None:
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
    found = {name: os.stat(name) for name in names}
    # no program can reset the time at which an inode last changed
    return {
        name: [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
        for name, state in found.items()
    }


def _stanza_version() -> str:
    """Name the file that has the version of the Stanza that would be imported."""
    spec = find_spec("stanza")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("stanza")
    return str(Path(spec.origin).with_name("_version.py"))
