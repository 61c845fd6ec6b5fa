"""Translating windows of lines elsewhere: in other processes of this machine, or in workers of a
cluster; and finding on disk those that an interrupted command has finished."""

from __future__ import annotations

import json
import math
import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import tee
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from synmt.arrays import Facts
from synmt.decode.inputs import Request
from synmt.decode.translation import Translation
from synmt.decode.translator import Translator
from synmt.files.json_files import read_cached_json
from synmt.files.reading import fingerprint, stored_sha256
from synmt.files.writing import is_stream, write_content
from synmt.parallel.engine import cluster_in_use, in_order, versions
from synmt.parallel.processes import Pool, can_fork, inherited, process_count
from synmt.run_folder import find_run

T = TypeVar("T")
R = TypeVar("R")

_WINDOWS = 4
"""Windows of lines that a process must have if it loads the models: with fewer, loading takes
longer than it saves."""
_LINES = 128
"""Lines that a forked process must have."""


@dataclass(frozen=True)
class SharedTranslator:
    """A translator that works here, in other processes, or in workers of a cluster: forks of this
    process have it already, and others load it.

    here: the translator of this process.
    window: number of lines that are best translated at once.
    runs: run folders.
    loading: keyword arguments of `Translator.load`.
    processes: how many processes of this machine translate; one is this process itself.
    pool: these processes, if they are forks.
    parses: whether lines have to be parsed.
    """

    portable: ClassVar[str] = "portable_translator:PortableTranslator"
    """What travels to a cluster in its place, see `synmt.cluster`."""

    here: Translator | None
    window: int
    runs: tuple[Path, ...] = ()
    loading: Facts = field(default_factory=dict)
    processes: int = 1
    pool: Pool | None = None
    parses: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, self.window, self.runs, self.loading)

    @cached_property
    def translator(self) -> Translator:
        """The translator of the process that asks for it."""
        return self.here or inherited() or Translator.load(*self.runs, **self.loading)

    def work(self, work: Callable[[Translator, T], R], items: Iterator[T]) -> Iterator[R]:
        """Yield `work(translator, item)` of each item in their order."""
        there, where = partial(_work_there, work), Path(*self.runs[:1])
        workers, pool = self.processes, self.pool
        return in_order(there, self, items, workers, where=where, pool=pool)


def _work_there(work: Callable[[Translator, T], R], shared: SharedTranslator, item: T) -> R:
    return work(shared.translator, item)


@contextmanager
def shared_translator(
    translator: Translator,
    runs: Sequence[Path],
    loading: Facts,
    *,
    lines: int | None,
    has_trees: bool = False,
) -> Iterator[SharedTranslator]:
    """Choose who works on lines: the cluster in use, else processes if the lines are many, else
    this process.

    Threads of one process wait for each other in Python, and they parse one after the other. A GPU
    has one process.

    runs, loading: what the translator was loaded from.
    lines: how many there are; None if they come one by one.
    has_trees: whether all lines come with trees.
    """
    parses = translator.reads_trees and not has_trees
    shared = SharedTranslator(translator, translator.window, tuple(runs), loading, parses=parses)
    forks, count = can_fork(), lines or 0
    processes = process_count(count // (_LINES if forks else _WINDOWS * shared.window))
    if processes == 1 or translator.device.type != "cpu" or cluster_in_use():
        yield shared
    elif not forks:
        yield replace(shared, processes=processes)
    else:
        # all processes have as many windows, of like size, so that all end at the same time
        windows = processes * math.ceil(count / (processes * shared.window))
        window, pool = math.ceil(count / windows), Pool(processes, inherited=translator)
        try:
            yield replace(shared, window=window, processes=processes, pool=pool)
        finally:
            pool.end()


def translate_windows(
    shared: SharedTranslator,
    windows: Iterable[list[Request]],
    finished: FinishedWindows | None = None,
) -> Iterator[tuple[list[Request], list[Translation]]]:
    """Translate windows of words in their order.

    finished: windows whose translations are on disk.
    """
    # each window is looked for once: another process may store it at any time
    with_stored, again = tee((window, finished and finished.read(window)) for window in windows)
    missing = (window for window, stored in again if stored is None)
    others = shared.work(_translate, missing)
    for window, stored in with_stored:
        translations = next(others) if stored is None else stored
        if finished and stored is None:
            finished.write(window, translations)
        yield window, translations


def _translate(translator: Translator, requests: list[Request]) -> list[Translation]:
    return translator.translate_requests(requests)


@dataclass(frozen=True)
class FinishedWindows:
    """A folder with the translations of windows, each in a file that is named by what was
    translated: after an interruption, the same command goes on with the others.

    job: identifies all else that the translations depend on.
    """

    folder: Path
    job: str

    def read(self, window: list[Request]) -> list[Translation] | None:
        """Read the translations of a window; None if they are not on disk."""
        return read_cached_json(self._path(window), list[Translation])

    def write(self, window: list[Request], translations: list[Translation]) -> None:
        """Write the translations of a window."""
        # a quarter of the time of `asdict`, which copies every number
        write_content(self._path(window), json.dumps(translations, default=vars))

    def _path(self, window: list[Request]) -> Path:
        return self.folder / fingerprint(self.job, pickle.dumps(window))


@contextmanager
def finished_windows(
    output: Path | None, runs: Sequence[Path], loading: Facts
) -> Iterator[FinishedWindows | None]:
    """Provide the folder next to an output, which is removed at the end of the block; None if there
    is no output file.

    runs, loading: what the translator was loaded from.
    """
    if output is None or is_stream(output):
        yield None
        return
    read = []
    for run in map(find_run, runs):
        weights = run.weights_of(loading.get("checkpoint", "final"))
        read += [stored_sha256(weights), stored_sha256(run.folder / "recipe.yaml")]
    folder = output.with_name(f".{output.name}.windows")
    yield FinishedWindows(folder, fingerprint(versions(), sorted(map(repr, loading.items())), read))
    shutil.rmtree(folder, ignore_errors=True)
