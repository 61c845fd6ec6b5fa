"""How fast this machine parses: measured while a text is parsed, and kept in the cache for the next
estimate."""

from __future__ import annotations

import contextlib
import platform
from pathlib import Path
from typing import Annotated

from pydantic import Field

from synmt.errors import SynmtError
from synmt.files.json_files import read_cached_json
from synmt.files.reading import cache_folder, fingerprint
from synmt.files.writing import write_json
from synmt.parsing.parser import Parser

REFERENCE = 4_500
"""Words that the compact English parser parses in a second on one core of an AMD Zen 5
(`synmt --docs results`)."""
_Rate = Annotated[float, Field(gt=0, le=1e18)]
_ENOUGH = 200_000
"""Words. Fewer may have been parsed in one process, and loading the models took a good part of the
time."""


def remember_rate(parser: Parser, words: int, seconds: float, processes: int) -> None:
    """Keep the rate at which a text was parsed, unless the text was short.

    processes: how many parsed it together.
    """
    if words < _ENOUGH or seconds <= 0:
        return
    # without a writable cache, the next estimate is only less exact
    with contextlib.suppress(SynmtError):
        write_json(_path(parser), {"words_per_second": words / seconds / processes})


def measured_rate(parser: Parser) -> float | None:
    """Return how many words a second one process of this parser parsed here the last time; None if
    it never did."""
    return (read_cached_json(_path(parser), dict[str, _Rate]) or {}).get("words_per_second")


def _path(parser: Parser) -> Path:
    # several machines may share one cache
    return cache_folder() / "rates" / f"{fingerprint(platform.node(), parser.fingerprint)}.json"
