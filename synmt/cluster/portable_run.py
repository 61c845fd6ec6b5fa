"""A run that travels: what a worker of a cluster trains it from, and how its folder comes and
goes."""

from __future__ import annotations

import copyreg
import io
import pickle
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from synmt.decode.loaded_model import READ
from synmt.errors import SynmtError
from synmt.files.checksums import RECORD
from synmt.files.reading import fingerprint
from synmt.files.writing import remove, write_content, write_folder_atomically
from synmt.parsing.parser import StanzaParser
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run
from synmt.training.preparation import Prepared

T = TypeVar("T")

Content = Mapping[str, bytes]
"""The files of a run folder by their paths in it."""

_NOT_READ = {"lock", "kept.arrow"}
"""Files of a prepared corpus that training does not read."""


@dataclass(frozen=True)
class PortableRun:
    """A run whose folder is set up and whose data are prepared.

    parser: parses the test sets; None if nothing does.
    parser_folder: where a worker has it.
    """

    recipe: Recipe
    prepared: Prepared
    parser: StanzaParser | None = None
    parser_folder: Path | None = None

    def files(self) -> dict[str, Path]:
        """Name the files that training reads by their paths in a folder of copies."""
        named = {_name(path): path for path in self._texts()}
        for folder, paths in self._folders().items():
            named |= {f"{_name(folder)}/{path.relative_to(folder)}": path for path in paths}
        if self.parser is not None:
            named |= {
                f"{_name_of_parser(self.parser)}/{name}": path
                for name, path in self.parser.files().items()
            }
        return named

    def relocated(self, folder: Path) -> PortableRun:
        """Make the same run, which reads the copies in this folder."""
        folders = [self.prepared.folder, *filter(None, [self.recipe.model.init])]
        places = {path: folder / _name(path) for path in (*self._texts(), *folders)}
        parser = folder / _name_of_parser(self.parser) if self.parser is not None else None
        recipe, prepared = _moved((self.recipe, self.prepared), places)
        return PortableRun(recipe, prepared, self.parser, parser)

    def _texts(self) -> list[Path]:
        """List the files of text: those to validate and to test with, and truecase models."""
        corpora = [self.prepared.corpus, self.prepared.raw]
        splits = [split for corpus in corpora for split in (corpus.valid, *corpus.test.values())]
        cased = [
            tokenizer.truecaser.path
            for tokenizer in self.prepared.tokenizers.values()
            if tokenizer.truecaser
        ]
        paths = [path for split in splits for path in dict(split).values() if path is not None]
        return list(dict.fromkeys([*paths, *cased]))

    def _folders(self) -> dict[Path, list[Path]]:
        """List the files of the prepared corpus, and those of the run whose weights are taken."""
        folder, init = self.prepared.folder, self.recipe.model.init
        parts = [folder, *(folder / name for name in self.prepared.trees.values())]
        files = {
            folder: [
                path
                for part in parts
                for path in sorted(part.iterdir())
                if path.is_file() and path.name not in _NOT_READ and not path.name.startswith(".")
            ]
        }
        if init is not None:
            files[init] = [
                path
                for kind in (*READ, "model.safetensors")
                for path in sorted(init.expanduser().glob(kind))
            ]
        return files


def _name(path: Path) -> str:
    """Name the copy of a file or folder, wherever that is."""
    return f"{fingerprint(str(path))}/{path.name}"


def _name_of_parser(parser: StanzaParser) -> str:
    return f"parser-{parser.fingerprint}"


def _moved(records: T, places: Mapping[Path, Path]) -> T:
    """Copy records of records, with other paths."""

    def moved(path: Path) -> tuple[type[Path], tuple[str]]:
        return Path, (str(places.get(path, path)),)

    stream = io.BytesIO()
    pickler = pickle.Pickler(stream)
    pickler.dispatch_table = copyreg.dispatch_table | {type(Path()): moved}
    pickler.dump(records)
    return pickle.loads(stream.getvalue())


def pack(run: Run) -> dict[str, bytes]:
    """Read all files of a run folder that are not a process's own."""
    names = [
        path.relative_to(run.folder) for path in sorted(run.folder.rglob("*")) if path.is_file()
    ]
    return {
        name.as_posix(): (run.folder / name).read_bytes()
        for name in names
        if name != Path("lock") and not any(part.startswith(".") for part in name.parts)
    }


def unpack(run: Run, content: Content) -> None:
    """Make a run folder contain these files and no others; the caller holds its lock.

    Whenever this is interrupted, the run in the folder can be continued: checkpoints are whole, and
    run.json, which tells whether the run has finished, comes last.
    """
    _check_names(content, run)
    for step, files in sorted(_checkpoints(content).items()):
        with write_folder_atomically(run.folder / "checkpoints" / step) as folder:
            for name, data in files.items():
                (folder / name).write_bytes(data)
    # they come after what they are of
    for record in run.folder.rglob(RECORD):
        if record.relative_to(run.folder).parts[0] != "checkpoints":
            remove(record)
    for name, data in sorted(content.items(), key=lambda item: item[0].endswith(RECORD)):
        if not name.startswith("checkpoints/") and name != "run.json":
            write_content(run.folder / name, data)
    for path in _others(run, content):
        remove(path)
    if "run.json" in content:
        write_content(run.folder / "run.json", content["run.json"])


_NAME = r"[^./\\:\0][^/\\:\0]*"
_OF_A_RUN = re.compile(rf"checkpoints/step-\d+/{_NAME}|(?!checkpoints(?:/|$)){_NAME}(/{_NAME})*")
"""The paths of files in a run folder."""


def _check_names(content: Content, run: Run) -> None:
    """Raise SynmtError for the name of a file that would be written outside the run folder, or is
    not one of a run."""
    for name in content:
        if not _OF_A_RUN.fullmatch(name):
            raise SynmtError(
                f"a worker of the cluster sent a file that no run has, {name!r}: nothing was "
                "written",
                where=run.folder,
                do="Use only workers that you trust (synmt --docs security)",
            )


def _checkpoints(content: Content) -> dict[str, dict[str, bytes]]:
    files_of_step: dict[str, dict[str, bytes]] = {}
    for name, data in content.items():
        top, _, rest = name.partition("/")
        if top == "checkpoints":
            step, _, file = rest.partition("/")
            files_of_step.setdefault(step, {})[file] = data
    return files_of_step


def _others(run: Run, content: Content) -> Iterator[Path]:
    """Find what is in a run folder but not in its new content; a folder includes all that is in
    it."""
    kept = {Path("lock"), Path("run.json")}
    for file in map(Path, content):
        kept |= {file, *file.parents}
    for path in sorted(run.folder.rglob("*")):
        name = path.relative_to(run.folder)
        if name not in kept and name.parent in kept:
            yield path


def newest_step(content: Content) -> str:
    """Name the newest checkpoint among the files of a run; empty if there is none."""
    return max(_checkpoints(content), default="")
