"""The files of results, and the errors of the programs that read and write them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from synmt.errors import SynmtError


def read_result(path: Path) -> dict[str, Any]:
    """Read the file of a result; raises SynmtError if it is damaged."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        if {"system", "seed", "fingerprint", "tests"} <= set(result) and result["validation"]:
            return result
    except (ValueError, TypeError, KeyError):
        pass
    raise SynmtError("damaged, or not a result", where=str(path), do="Remove it to measure the run again")


def read_labels(path: Path, tests: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """Read the labels of the sentences of each test set; raises SynmtError if those of some are missing or damaged."""
    try:
        labels = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(labels, dict) and set(tests) <= set(labels):
            return labels
    except (ValueError, OSError):
        pass
    do = "Remove the result of a run, and run the comparison again, which writes the labels, too"
    raise SynmtError("missing or damaged", where=str(path), do=do)


def read_times(path: Path) -> dict[str, Any]:
    """Read how long the steps of systems take, as `results_times.py` writes it; raises SynmtError if it is damaged."""
    try:
        times = json.loads(path.read_text(encoding="utf-8"))
        whole = all(map(_is_timed, times["systems"].values()))
        if whole and {"machine", "threads", "precision"} <= set(times):
            return times
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    raise SynmtError("damaged", where=str(path), do="Remove it, and measure again: benchmarks/results_times.py")


def _is_timed(measured: dict[str, Any]) -> bool:
    own, other = measured["seconds"], measured["of_baseline"]
    return len(own) == len(other) > 0 and all(second > 0 for second in (*own, *other))


@contextmanager
def ending_errors() -> Iterator[None]:
    """End the program with the message of a user's error, or after Ctrl-C, without a traceback."""
    try:
        yield
    except SynmtError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: the same command goes on\n")
        sys.exit(130)
