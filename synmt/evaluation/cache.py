"""A cache of the statistics of segments, so that a text is scored once by each metric.

The name of a cache file is a fingerprint of the metric's signature and of the texts. The files are
stored in the folder of a run's test set, `tests/NAME/segments/`, or in `$SYNMT_CACHE/segments/`. A
cached score equals the computed one bit for bit; a file that is damaged or belongs to other texts
is ignored and replaced.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np

from synmt.arrays import DoubleArray
from synmt.errors import SynmtError
from synmt.evaluation.metrics import Lines, Metric, Score, check_texts, score_counted
from synmt.files.reading import cache_folder, fingerprint
from synmt.files.writing import write_atomically

_FORMAT = 1
"""Increase it when the statistics or the layout of the files change, so that older files are
ignored."""

_STORED = "<f8"
"""Doubles in the same byte order on every machine."""

_WORTH_CACHING = 50
"""Smaller texts are not cached, except in run folders: the cache would fill with small files."""


def cached_score(
    metric: Metric,
    hypotheses: Lines,
    references: Lines,
    *,
    sources: Lines | None = None,
    folder: Path | None = None,
) -> Score:
    """Score translations as `metrics.score` does, with statistics from the cache where possible.

    folder: where a run stores its statistics; without a folder, or if it is read-only, they go into
        the cache.
    """
    check_texts(metric, hypotheses, references, sources)
    sources = sources if metric.reads_source else None
    # all that the statistics depend on
    texts = [_hash(lines) for lines in (hypotheses, references, sources) if lines is not None]
    identity = json.dumps([_FORMAT, metric.title, metric.signature, len(references), *texts])
    name = f"{fingerprint(identity)}.segments"
    shared = cache_folder() / "segments" / name
    own = shared if folder is None else folder / name
    statistics = _read(own, identity, len(references))
    if statistics is None:
        # cached statistics are copied into the run's folder, so that a copied run is complete
        cached = _read(shared, identity, len(references)) if folder else None
        statistics = (
            metric.statistics(hypotheses, references, sources) if cached is None else cached
        )
        written = folder is not None and _write(own, identity, statistics)
        if not written and cached is None and len(references) >= _WORTH_CACHING:
            _write(shared, identity, statistics)
    return score_counted(metric, statistics)


def _hash(lines: Lines) -> str:
    # as JSON: different lines may be the same text when joined, if a line has a line end in it
    return hashlib.sha256(json.dumps(list(lines)).encode()).hexdigest()


def _read(path: Path, identity: str, segments: int) -> DoubleArray | None:
    """Read statistics; None if there is no file, or if it is damaged."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if head != _head(identity, body):
        return None
    values = np.frombuffer(zlib.decompress(body), dtype=_STORED).reshape(segments, -1)  # (N, S)
    return values.astype(np.float64)


def _write(path: Path, identity: str, statistics: DoubleArray) -> bool:
    """Write statistics; tell whether that was possible."""
    body = zlib.compress(statistics.astype(_STORED).tobytes())
    with suppress(SynmtError, OSError), write_atomically(path, binary=True) as stream:
        stream.write(_head(identity, body) + b"\n" + body)
        return True
    return False


def _head(identity: str, body: bytes) -> bytes:
    """Make the first line of a file: what the statistics depend on, and their checksum."""
    return json.dumps({"of": identity, "sha256": hashlib.sha256(body).hexdigest()}).encode()
