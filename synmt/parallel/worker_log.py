"""Brings what workers log to the user: their warnings come back with the results, and are logged
again here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Remark = tuple[str, int, str]
"""The name of a logger, a level and a text."""

_ROOT = "synmt"


@dataclass(frozen=True)
class LoggedResult:
    """A result, and what was logged meanwhile, from warnings on."""

    result: Any
    remarks: tuple[Remark, ...] = ()


def run_logged(
    work: Callable[[Any], Any], item: Any, before: Sequence[Remark] = ()
) -> LoggedResult:
    """Work on an item in a worker, and collect what is logged.

    before: what was logged while the models of the work were loaded; told with every item, since
        one may be lost.
    """
    with _collecting() as remarks:
        result = work(item)
    return LoggedResult(result, (*before, *remarks))


def detach_handlers() -> None:
    """Remove inherited log handlers: those of a forked process are its parent's."""
    logger = logging.getLogger(_ROOT)
    logger.handlers.clear()
    logger.propagate = False


_known = set[Remark]()
"""The remarks of workers that have been logged."""


def result_of(logged: LoggedResult) -> Any:
    """Log what a worker tells, each remark once, however many say the same; return the result."""
    for remark in logged.remarks:
        name, level, text = remark
        if remark not in _known:
            logging.getLogger(name).log(level, "%s", text)
        _known.add(remark)
    return logged.result


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.remarks: list[Remark] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.remarks.append((record.name, record.levelno, record.getMessage()))


@contextmanager
def _collecting() -> Iterator[list[Remark]]:
    collector, logger = _Collector(), logging.getLogger(_ROOT)
    logger.addHandler(collector)
    try:
        yield collector.remarks
    finally:
        logger.removeHandler(collector)
