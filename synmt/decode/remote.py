"""Remote translators: in processes of this machine, which copy it or load it again, or in workers
of a cluster."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from synmt.decode.finished_windows import FinishedWindows, Numbered
from synmt.decode.inputs import Request
from synmt.decode.override import translate_counterfactually
from synmt.decode.records import Result
from synmt.decode.translator import Translator
from synmt.errors import SynmtError
from synmt.parallel.engine import cluster_in_use, in_order, portable_translator
from synmt.parallel.processes import Pool, can_fork, process_count
from synmt.parallel.worker import inherited

T = TypeVar("T")
R = TypeVar("R")

_WINDOWS = 4
"""Windows of lines that a process must have if it loads the models: with fewer, loading takes
longer than it saves."""
_LINES = 128
"""Lines that a forked process must have."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ForkedTranslator:
    """The translator of this process, which its copies have, too.

    runs: run folders.
    window: number of lines that are best translated at once.
    processes: how many copies translate.
    pool: the copies.
    """

    runs: tuple[Path, ...]
    window: int
    processes: int
    pool: Pool

    def __reduce__(self) -> tuple[Any, ...]:
        # what a copy unpickles is its own translator
        return inherited, ()


@dataclass(frozen=True)
class CopiedTranslator:
    """A translator that each process of this machine loads for itself.

    runs: run folders.
    loading: keyword arguments of `Translator.load`.
    window, processes: as for `ForkedTranslator`.
    """

    runs: tuple[Path, ...]
    loading: Mapping[str, Any]
    window: int
    processes: int
    pool = None

    def __reduce__(self) -> tuple[Any, ...]:
        # what a process unpickles is the translator
        return partial(Translator.load, *self.runs, **self.loading), ()


class RemoteTranslator(Protocol):
    """A translator in other processes or on other machines, which unpickle it as their own."""

    @property
    def runs(self) -> tuple[Path, ...]:
        """Return the run folders."""
        ...

    @property
    def window(self) -> int:
        """Return the number of lines that are best translated at once."""
        ...

    @property
    def processes(self) -> int:
        """Return how many processes of this machine translate."""
        ...

    @property
    def pool(self) -> Pool | None:
        """Return the processes if they run already."""
        ...


@contextmanager
def remote_translator(
    translator: Translator,
    runs: Sequence[Path],
    loading: Mapping[str, Any],
    *,
    lines: int | None,
    has_trees: bool = False,
) -> Iterator[RemoteTranslator | None]:
    """Choose who works on lines: the cluster in use, else processes if the lines are many, else
    (None) the translator.

    Threads of one process wait for each other in Python, and they parse one after the other. A GPU
    has one process.

    runs, loading: what the translator was loaded from.
    lines: how many there are; None if they come one by one.
    has_trees: whether all lines come with trees.
    """
    if cluster_in_use():
        yield portable_translator().of(translator, runs, loading, has_trees=has_trees)
    elif lines is None or translator.device.type != "cpu":
        yield None
    elif can_fork():
        with _forked(translator, runs, lines) as other:
            yield other
    else:
        processes = process_count(lines // (_WINDOWS * translator.window))
        copied = CopiedTranslator(tuple(runs), loading, translator.window, processes)
        yield copied if processes > 1 else None


@contextmanager
def _forked(
    translator: Translator, runs: Sequence[Path], lines: int
) -> Iterator[ForkedTranslator | None]:
    processes = process_count(lines // _LINES)
    if processes == 1:
        yield None
        return
    try:
        pool = Pool(processes, inherited=translator)
    except SynmtError as error:
        _logger.warning("%s, so this one does all the work", error.what)
        yield None
        return
    # all processes have as many windows, of like size, so that all end at the same time
    windows = processes * math.ceil(lines / (processes * translator.window))
    try:
        yield ForkedTranslator(tuple(runs), math.ceil(lines / windows), processes, pool)
    finally:
        pool.end()


def in_order_remotely(
    work: Callable[[Any, T], R], other: RemoteTranslator, items: Iterator[T], *, keeps: bool = False
) -> Iterator[R]:
    """Yield `work(translator, item)` of each item in their order.

    keeps: whether the same command goes on from what is finished.
    """
    return in_order(
        work, other, items, other.processes, where=other.runs[0], keeps=keeps, pool=other.pool
    )


def translate_windows(
    translator: Translator,
    windows: Iterable[list[Request]],
    *,
    counterfactually: bool = False,
    other: RemoteTranslator | None = None,
    finished: FinishedWindows | None = None,
) -> Iterator[Sequence[Result]]:
    """Translate windows of words in their order.

    counterfactually: also with the other tree of each request.
    other: remote translators, which translate several windows at once.
    finished: windows whose translations are on disk.
    """
    work = _translate_both if counterfactually else _translate

    def translated(some: Iterator[Numbered]) -> Iterator[Sequence[Result]]:
        if other:
            return in_order_remotely(work, other, some, keeps=finished is not None)
        return (work(translator, window) for window in some)

    numbered = _numbered(windows)
    return finished.translate(numbered, translated) if finished else translated(numbered)


def _numbered(windows: Iterable[list[Request]]) -> Iterator[Numbered]:
    number = 1
    for window in windows:
        yield number, window
        number += len(window)


def _translate(translator: Any, window: Numbered) -> Sequence[Result]:
    return translator.translate_requests(window[1], window[0])


def _translate_both(translator: Any, window: Numbered) -> Sequence[Result]:
    return translate_counterfactually(translator, window[1], window[0])
