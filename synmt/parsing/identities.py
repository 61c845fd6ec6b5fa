"""What a parser is, stored until a file behind it changes: to know a parser, nobody needs to import Stanza.

    $SYNMT_CACHE/parsers/<hash of how the parser was asked for>.json

It is stored with the state of every file that it depends on: the models, their list, and Stanza itself. A file that is
changed or replaced has another size, time or inode, and then everything is found out anew.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from synmt.errors import SynmtError
from synmt.files import cache_folder, fingerprint, write_json
from synmt.parsing.models import PROCESSORS, folder_of
from synmt.parsing.stanza_internals import SUPPORTED

States = dict[str, list[int]]
"""Size, times and inode of files."""

_FORMAT = 1
_OFFICIAL = ("STANZA_RESOURCES_DIR", "STANZA_RESOURCES_VERSION", "XDG_CACHE_HOME", "HOME")
"""What decides where Stanza keeps its official models."""


@dataclass(frozen=True)
class StoredFacts:
    """The place of what is known of a parser: `model`, `language` and `package` as the user named them."""

    model: str
    language: str
    package: str

    def load(self) -> tuple[Path, dict[str, Any]] | None:
        """Read the folder of the models and the facts; None if they were never stored, or a file has changed since."""
        with suppress(OSError, ValueError, LookupError, TypeError):
            stored = json.loads(self._path.read_bytes())
            stanza = sys.modules.get("stanza")
            same = stanza is None or stanza.__version__ == stored["facts"]["stanza"]
            if same and stored["files"] == _states(stored["files"]):
                return Path(stored["folder"]), stored["facts"]
        return None

    def store(self, folder: Path, facts: dict[str, Any], files: States) -> None:
        """Store facts with the `states_of` files before they were read; without a writable cache, nothing is stored."""
        with suppress(SynmtError, OSError):
            write_json(self._path, {"folder": str(folder), "facts": facts, "files": files})

    def states_of(self, folder: Path, models: Iterable[Path]) -> States:
        """Read the state of models, of their list in the folder, and of Stanza."""
        return _states([*map(str, models), str(folder / "resources.json"), _stanza_version()])

    @property
    def _path(self) -> Path:
        official = self.model == "official"
        where: Any = [os.environ.get(name) for name in _OFFICIAL] if official else str(folder_of(self.model).absolute())
        asked = (_FORMAT, SUPPORTED, PROCESSORS, _stanza_version(), where, self.model, self.language, self.package)
        return cache_folder() / "parsers" / f"{fingerprint(*asked)}.json"


def _states(names: Iterable[str]) -> States:
    found = {name: os.stat(name) for name in names}
    # nobody can set back the time of the last change of an inode
    return {name: [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino] for name, state in found.items()}


def _stanza_version() -> str:
    """Name the file that has the version of the Stanza that would be imported."""
    spec = find_spec("stanza")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("stanza")
    return str(Path(spec.origin).with_name("_version.py"))
