"""Finished translations on disk, window by window: after an interruption, the same command goes on
with the others."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from itertools import tee
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from synmt.arrays import IntArray
from synmt.decode.inputs import Request
from synmt.decode.override import CounterfactualTranslation
from synmt.decode.records import Result
from synmt.decode.translation import Candidate, Reason, Translation, WordAlignment
from synmt.files.json_files import Count, read_cached_json
from synmt.files.reading import fingerprint, stored_sha256
from synmt.files.writing import is_stream, write_atomically
from synmt.parallel.versions import versions
from synmt.run_folder import find_run

Numbered = tuple[int, list[Request]]
"""A window of requests, and the number of its first line."""


@dataclass(frozen=True)
class FinishedWindows:
    """A folder with the translations of windows, each in a file that is named by what was
    translated.

    job: identifies all else that the translations depend on.
    """

    folder: Path
    job: str

    def translate(
        self,
        windows: Iterator[Numbered],
        translated: Callable[[Iterator[Numbered]], Iterator[Sequence[Result]]],
    ) -> Iterator[Sequence[Result]]:
        """Yield the translations of windows in their order; `translated` makes those that are not
        on disk."""
        # each window is looked for once: another process may store it at any time
        looked_for, again = tee(
            (window, path := self._path(window), _read(path)) for window in windows
        )
        others = translated(window for window, _, results in again if results is None)
        for _, path, results in looked_for:
            if results is None:
                results = next(others)
                with write_atomically(path) as out:
                    out.write(json.dumps(results, default=_plain))
            yield results

    def _path(self, window: Numbered) -> Path:
        return self.folder / fingerprint(self.job, pickle.dumps(window))


def _plain(value: Any) -> Any:
    # a quarter of the time of `asdict`, which copies every number
    return vars(value) if is_dataclass(value) else value.tolist()


_Pairs = list[tuple[Count, Count]]


class _Alignment(TypedDict):
    pairs: _Pairs
    source_words: _Pairs
    target_words: _Pairs


class _Translation(TypedDict):
    line: Count
    candidates: tuple[Candidate, ...]
    dropped: Count
    unknown: tuple[str, ...]
    degenerate: Reason | None
    alignment: _Alignment | None


class _Counterfactual(TypedDict):
    own: _Translation
    other: _Translation
    own_rescored: float


def _read(path: Path) -> Sequence[Result] | None:
    # a disk may damage what was written completely
    found = read_cached_json(path, list[_Translation | _Counterfactual])
    return None if found is None else list(map(_result, found))


def _result(fields: _Translation | _Counterfactual) -> Result:
    if "own" not in fields:
        return _translation(fields)
    return CounterfactualTranslation(
        _translation(fields["own"]), _translation(fields["other"]), fields["own_rescored"]
    )


def _translation(fields: _Translation) -> Translation:
    found = fields["alignment"]
    alignment = found and WordAlignment(
        found["pairs"], _spans(found["source_words"]), _spans(found["target_words"])
    )
    return Translation(**{**fields, "alignment": alignment})


def _spans(rows: _Pairs) -> IntArray:
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


@contextmanager
def finished_windows(
    output: Path | None, runs: Sequence[Path], loading: Mapping[str, Any]
) -> Iterator[FinishedWindows | None]:
    """Provide the folder next to an output, which is removed at the end of the block; None if there
    is no output file.

    runs, loading: what the translator was loaded from.
    """
    if output is None or is_stream(output):
        yield None
        return
    found = [find_run(run) for run in runs]
    files = [
        (run.weights_of(loading.get("checkpoint", "final")), run.folder / "recipe.yaml")
        for run in found
    ]
    hashes = [stored_sha256(path) for paths in files for path in paths]
    job = fingerprint(versions(), sorted(map(repr, loading.items())), hashes)
    folder = output.with_name(f".{output.name}.windows")
    yield FinishedWindows(folder, job)
    shutil.rmtree(folder, ignore_errors=True)
