"""The test sets of sacreBLEU, read by its own code from archives that synmt downloads and opens."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synmt.corpora.archives import Packed
from synmt.corpora.download import RemoteFile, local_path
from synmt.errors import SynmtError, UsageError, counted
from synmt.files.reading import count_lines, read_lines


def test_sets() -> dict[str, Any]:
    """Return sacreBLEU's test sets by name, such as `wmt17` and `wmt17/improved`."""
    from sacrebleu.dataset import DATASETS

    return DATASETS


def files_of_test_set(name: str, source: str, target: str) -> list[RemoteFile]:
    """List what a test set is made from; raises UsageError if it does not have this direction."""
    found, pair = test_sets()[name], f"{source}-{target}"
    if pair not in found.langpairs:
        raise UsageError(
            f"the test set {name} has no language pair {pair}",
            allowed=f"sacreBLEU has it for {', '.join(sorted(found.langpairs))}",
        )
    sums = found.md5 or [""] * len(found.data)
    return [RemoteFile(address, md5=md5) for address, md5 in zip(found.data, sums, strict=True)]


def pairs_of_test_set(name: str, source: str, target: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield source and first reference of a test set whose archives have been downloaded.

    folder: an empty one, for the files on the way.
    """
    pair = f"{source}-{target}"
    # a copy: sacreBLEU's own works in the home folder, and unpacks archives under the names inside
    own = copy.copy(test_sets()[name])
    own._outdir, own._rawdir = str(folder), str(folder / "raw")
    _provide(own, pair, files_of_test_set(name, source, target), folder / "raw")
    own.process_to_text(pair)
    texts = own.get_source_file(pair), own.get_reference_files(pair)[0]
    sources, references = map(count_lines, texts)
    if sources != references:
        both = f"{counted(sources, 'sentence')} and {counted(references, 'reference')}"
        raise SynmtError(f"the test set has {both}", where=name)
    yield from zip(*map(read_lines, texts), strict=True)


def _provide(own: Any, pair: str, files: list[RemoteFile], raw: Path) -> None:
    """Put the files that sacreBLEU reads where it would have put them itself."""
    raw.mkdir(parents=True)
    for file in files:
        # what exists there is neither downloaded nor unpacked by sacreBLEU
        shutil.copyfile(local_path(file), raw / own._get_tarball_filename(file.address))
    given = own.langpairs[pair]
    for entry in [given["path"]] if isinstance(given, dict) else given:
        # tables have the number of a column before the name
        name = entry.rpartition(":")[2]
        if not (raw / name).exists():
            _copy_member(name, files, raw / name)


def _copy_member(name: str, files: list[RemoteFile], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    for last, file in enumerate(files, start=1):
        try:
            with Packed((local_path(file),), (name,)).open() as stream, open(target, "wb") as out:
                shutil.copyfileobj(stream, out)
            return
        except SynmtError:
            if last == len(files):
                raise
