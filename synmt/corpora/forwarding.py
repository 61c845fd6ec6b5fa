"""Shows the progress that generators of this package yield; goes with them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from typing import TypeVar

from synmt.corpora.progress import Progress
from synmt.reporting.progress import progress

T = TypeVar("T")


def shown(steps: Generator[Progress, None, T]) -> T:
    """Run a generator to its end, show its progress, and return its result."""
    with ExitStack() as bar:
        last, advance = None, None
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return end.value
            scale = 1e-6 if step.unit == "bytes" else 1
            if last is None or advance is None or step.stage != last.stage or step.done < last.done:
                bar.close()
                unit = "MB" if step.unit == "bytes" else step.unit
                total = None if step.total is None else step.total * scale
                last, advance = None, bar.enter_context(progress(step.stage, total, unit))
            advance((step.done - (last.done if last else 0)) * scale)
            last = step
