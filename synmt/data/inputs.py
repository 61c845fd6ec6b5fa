"""What a run is trained on: the hashes of its texts, their trees, its parsers and the weights it
starts from.

run.json records them as `inputs`, by the key of the recipe (`train.0`, `valid`, `parser`) and by
file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from synmt.arrays import Facts, Pair
from synmt.files.reading import stored_sha256
from synmt.recipe.corpus import SplitFiles

Inputs = dict[str, dict[str, str]]
"""Hashes by key and file; a text is hashed as it is read, so that compressing it changes
nothing."""

_PARSERS = ("parser", "target_parser")


def hash_files(texts: Mapping[str, SplitFiles], read: Mapping[str, Collection[str]]) -> Inputs:
    """Hash those files of texts that are read and still there; `read` names the fields of each
    text."""
    return {
        key: {
            field: stored_sha256(path, unpacked=True)
            for field, path in files
            if path is not None and field in read.get(key, ()) and path.is_file()
        }
        for key, files in texts.items()
    }


def recorded_inputs(info: Facts) -> Inputs:
    """Read what run.json records; earlier versions recorded only the weights that a run started
    from."""
    inputs = {**info.get("inputs", {}), "init": info.get("init")}
    # the same weights may be in another folder
    return {
        key: {file: digest for file, digest in hashes.items() if file != "run"}
        for key, hashes in inputs.items()
        if hashes is not None
    }


def differences(first: Inputs, other: Inputs) -> Iterator[Pair]:
    """Yield key and file of each input that differs; what only one of them knows is not
    compared."""
    for key in sorted(first.keys() & other.keys()):
        before, after = first[key], other[key]
        # a parser is known as a whole, but a text may have lost some of its files
        files = before.keys() | after.keys() if key in _PARSERS else before.keys() & after.keys()
        yield from ((key, file) for file in sorted(files) if before.get(file) != after.get(file))
