"""Statistics of segments, kept in files: what has been counted once is not counted again.

A file's name is a fingerprint of all that the statistics follow from: the metric's signature and the texts. It lies
in the folder of a run's test set, `tests/NAME/segments/`, or in the cache, `$SYNMT_CACHE/segments/`. A kept score is
bit for bit the one that would be counted: a file that is not whole, or of other texts, is counted and written again.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from synmt.arrays import DoubleArray
from synmt.errors import SynmtError
from synmt.evaluation.metrics import Metric, Score, check_texts, score_counted
from synmt.files import cache_folder, fingerprint, write_atomically

_FORMAT = 1
"""To be raised when statistics change their meaning, or files their layout, so that older ones are left alone."""

_STORED = "<f8"
"""A double in the same order of bytes on every machine."""

_WORTH_CACHING = 50
"""Fewer segments are counted again: the cache would fill with small files. A run keeps its own all the same."""


def cached_score(
    metric: Metric,
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    sources: Sequence[str] | None = None,
    folder: Path | None = None,
) -> Score:
    """Score translations as `metrics.score` does, by statistics that are kept.

    folder: where a run keeps them; without one, or where it cannot be written to, they go into the cache.
    """
    check_texts(metric, hypotheses, references, sources)
    sources = sources if metric.reads_source else None
    identity = _identity(metric, hypotheses, references, sources)
    name = f"{fingerprint(identity)}.segments"
    cached = cache_folder() / "segments" / name
    own = cached if folder is None else folder / name
    statistics = _read(own, identity, len(references))
    if statistics is None:
        # what the cache has goes into the run's folder as well, so that a copied run is complete
        found = _read(cached, identity, len(references)) if folder else None
        statistics = metric.statistics(hypotheses, references, sources) if found is None else found
        if folder is not None and _write(own, identity, statistics):
            return score_counted(metric, statistics)
        if found is None and len(references) >= _WORTH_CACHING:
            _write(cached, identity, statistics)
    return score_counted(metric, statistics)


def _identity(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None
) -> str:
    """Write down all that the statistics follow from."""
    texts = [_hash(lines) for lines in (hypotheses, references, sources) if lines is not None]
    return json.dumps([_FORMAT, metric.title, metric.signature, len(references), *texts])


def _hash(lines: Sequence[str]) -> str:
    # as JSON: joined lines could not be told from others that hold the line end themselves
    return hashlib.sha256(json.dumps(list(lines)).encode()).hexdigest()


def _read(path: Path, identity: str, segments: int) -> DoubleArray | None:
    """Read statistics; None where there are none, or where the file is not what it should be."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if head != _head(identity, body):
        return None
    values = np.frombuffer(zlib.decompress(body), dtype=_STORED).reshape(segments, -1)  # (N, S)
    return values.astype(np.float64)


def _write(path: Path, identity: str, statistics: DoubleArray) -> bool:
    """Keep statistics; tell whether that was possible."""
    body = zlib.compress(statistics.astype(_STORED).tobytes())
    with suppress(SynmtError, OSError), write_atomically(path, binary=True) as stream:
        stream.write(_head(identity, body) + b"\n" + body)
        return True
    return False


def _head(identity: str, body: bytes) -> bytes:
    """Say what follows, and its checksum, in the first line."""
    return json.dumps({"of": identity, "sha256": hashlib.sha256(body).hexdigest()}).encode()
