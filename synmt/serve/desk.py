"""Where requests wait: the lines of those that arrive together are translated in one batch.

Each core has a worker with its own batches: while one waits for requests and the event loop
reads and answers them, the others compute.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TypeVar

import torch

from synmt.data.vocabulary import PieceTable
from synmt.decode.translation import Translation
from synmt.decode.translator import Translator

T = TypeVar("T")

_PATIENCE, _TIMES = 0.004, 75
"""Seconds to wait for other requests before a batch, and how often if some have come."""


class Busy(Exception):
    """As many requests wait as may."""


class Served:
    """A run that is served, or an ensemble.

    name: of the run.
    """

    def __init__(self, name: str, translator: Translator) -> None:
        self.name, self.translator = name, translator
        self.source = translator.models[0].recipe.source

    @cached_property
    def targets(self) -> list[str]:
        """The languages that it translates into."""
        pieces = self.translator.source
        several = pieces.languages if isinstance(pieces, PieceTable) else []
        return several or [self.translator.models[0].recipe.target]

    @lru_cache(maxsize=64)  # noqa: B019 one that is served lives as long as the process
    def variety(self, n_best: int, target: str) -> Translator:
        """Return its translator for this many translations of a line, at most the width of the
        beam, into one of its languages."""
        chosen = copy(self.translator)
        options = chosen.options
        chosen.options = replace(options, n_best=max(1, min(n_best, options.beam_size)))
        if len(self.targets) > 1:
            chosen.choose_language(target)
        return chosen

    def warm_up(self) -> None:
        """Load what the first request would wait for."""
        self.translator.explain("A word.")


@dataclass(eq=False)
class _Job:
    """The lines of a request, some of which may have been given out."""

    translator: Translator
    lines: Sequence[str]
    done: asyncio.Future[list[Translation]]
    given: int = 0
    results: dict[int, Translation] = field(default_factory=dict)


_Window = list[tuple[_Job, int]]
"""Jobs, each with the number of one of its lines."""


class Desk:
    """Collects jobs, and lets workers do them.

    Lines are taken in turn from all jobs that wait, so a long text does not hold up a short one.

    most: jobs that may wait or be worked at.
    """

    def __init__(self, most: int, workers: int) -> None:
        self._most, self._count = most, 0
        self._waiting: list[_Job] = []
        # even a line alone is translated no faster by several threads
        self._threads = ThreadPoolExecutor(workers, "synmt-serve", torch.set_num_threads, (1,))
        self._workers, self._computing = workers, 0
        self._running = set[asyncio.Task[None]]()
        self._seats, self._alone = asyncio.Semaphore(workers), asyncio.Lock()

    async def translate(self, translator: Translator, lines: Sequence[str]) -> list[Translation]:
        """Translate lines; raises Busy. One that is cancelled gives its turn to others."""
        if not lines:
            return []
        job = _Job(translator, lines, asyncio.get_running_loop().create_future())
        with self._place():
            self._waiting.append(job)
            # one that has just ended would not take this job
            self._running = {worker for worker in self._running if not worker.done()}
            while len(self._running) < self._workers:
                self._running.add(asyncio.create_task(self._work()))
            try:
                return await job.done
            finally:
                if job in self._waiting:
                    self._waiting.remove(job)

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function while nothing is translated; raises Busy."""
        with self._place():
            async with self._alone, AsyncExitStack() as seats:
                for _ in range(self._workers):
                    await seats.enter_async_context(self._seats)
                return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Take one of the places, for a job."""
        if self._count >= self._most:
            raise Busy
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    async def _work(self) -> None:
        while self._waiting:
            await self._collect()
            if not self._waiting:
                return
            async with self._seats:
                # another worker may have taken all
                if not self._waiting:
                    return
                window = self._window()
                try:
                    translations = await self._translated(window)
                except Exception as error:
                    for job in {job for job, _ in window if not job.done.done()}:
                        job.done.set_exception(error)
                    continue
            for (job, number), translation in zip(window, translations, strict=True):
                job.results[number] = translation
                # its client may have stopped waiting
                if len(job.results) == len(job.lines) and not job.done.done():
                    job.done.set_result([job.results[place] for place in range(len(job.lines))])

    async def _translated(self, window: _Window) -> list[Translation]:
        lines, translator = [job.lines[number] for job, number in window], window[0][0].translator
        self._computing += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, lambda: list(translator.translate(lines))
            )
        finally:
            self._computing -= 1

    async def _collect(self) -> None:
        """Wait for others, while they come."""
        for _ in range(_TIMES):
            before = len(self._waiting)
            await asyncio.sleep(_PATIENCE)
            if len(self._waiting) == before:
                return

    def _window(self) -> _Window:
        """Take a line from each job for the translator of the first one in turn, until there are
        enough; workers that do nothing leave each other as many."""
        window, translator = _Window(), self._waiting[0].translator
        sharing = [job for job in self._waiting if job.translator is translator]
        lines = sum(len(job.lines) - job.given for job in sharing)
        most = min(translator.window, math.ceil(lines / (self._workers - self._computing)))
        while sharing and len(window) < most:
            for job in sharing[: most - len(window)]:
                window.append((job, job.given))
                job.given += 1
            sharing = [job for job in sharing if job.given < len(job.lines)]
        self._waiting = [job for job in self._waiting if job.given < len(job.lines)]
        return window

    def close(self) -> None:
        """Let the threads end after their batches."""
        self._threads.shutdown(cancel_futures=True)
