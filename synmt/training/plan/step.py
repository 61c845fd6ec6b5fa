"""One step of what a recipe needs, and the estimate of how long a text is parsed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from synmt.errors import SynmtError
from synmt.files.reading import count_lines, read_lines
from synmt.parsing.bulk import usual_processes
from synmt.parsing.parser import StanzaParser
from synmt.parsing.pipeline import default_processes, on_gpu
from synmt.parsing.rates import REFERENCE, measured_rate
from synmt.recipe.data import ParserRecipe

State = Literal["done", "to do", "missing", "changed"]

_NEWS_WORDS = 25
"""Words in a line of news: the estimate for a text that is not on this machine yet."""
_SAMPLE = 2000
"""Lines whose words are counted to estimate those of a text."""


@dataclass(frozen=True)
class PlannedStep:
    """A step of training, or of preparing its data.

    what: begins with a verb.
    state: `done`, `to do`, or `missing` and `changed` if the command would stop here.
    amount: its size or estimated time: bytes, lines, hours, weights; for `changed`, what has changed.
    remark: what the amount is based on.
    problem: what the command would report where it would stop.
    """

    what: str
    state: State
    amount: str = ""
    remark: str = ""
    problem: SynmtError | None = None

    def row(self) -> list[str]:
        """Give the cells of the table."""
        return [self.what, self.state, self.amount]


@dataclass(frozen=True)
class TextSize:
    """How long a text is.

    lines: number of lines; None if it is not known yet.
    words: mean number of words per line.
    measured: whether the words were counted, in the first lines of the text; otherwise they are an estimate.
    """

    lines: int | None
    words: float = _NEWS_WORDS
    measured: bool = False

    @classmethod
    def of(cls, path: Path) -> TextSize:
        """Count the lines of a text, and the words in the first of them."""
        sample = [len(line.split()) for line in islice(read_lines(path), _SAMPLE)]
        return cls(count_lines(path), sum(sample) / max(len(sample), 1), measured=True)

    def __str__(self) -> str:
        return f"{self.lines:,} lines" if self.lines is not None else "number of lines unknown"


def parsing_step(what: str, text: TextSize, parser: StanzaParser | None, settings: ParserRecipe) -> PlannedStep:
    """Estimate how long a text is parsed.

    parser: None if its model is not on this machine yet.
    """
    rate = measured_rate(parser) if parser else None
    if text.lines is None or (rate is None and on_gpu(settings.device) and not settings.workers):
        remark = "" if text.lines is None else "parsing time unknown: no parsing speed measured on this GPU yet"
        return PlannedStep(what, "to do", str(text), remark)
    processes = settings.workers or usual_processes(text.lines, default_processes(settings.device))
    hours = text.lines * text.words / ((rate or REFERENCE) * processes) / 3600
    about = "about" if rate else "at least"
    return PlannedStep(what, "to do", f"{text}, {about} {_duration(hours)}", _basis(text, rate, processes))


def _basis(text: TextSize, rate: float | None, processes: int) -> str:
    words = "" if text.measured else f", {text.words:.0f} words a line"
    each = f"in each of {processes} processes" if processes > 1 else "in one process"
    if rate:
        return f"parsing: {rate:,.0f} words a second {each}, as measured last on this machine{words}"
    return (
        f"parsing: {REFERENCE:,} words a second {each}{words}. This is the rate of the compact English parser on one "
        "core of an AMD Zen 5; official models, long sentences and older machines take longer"
    )


def _duration(hours: float) -> str:
    minutes = 60 * hours
    if minutes < 1:
        return f"{max(60 * minutes, 1):.0f} s"
    return f"{hours:,.1f} hours" if hours >= 1 else f"{minutes:.0f} min"
