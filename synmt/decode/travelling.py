"""Translators elsewhere: in processes of this machine, or in workers of a cluster, which load copies of the models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from synmt.decode.inputs import Request
from synmt.decode.override import translate_counterfactually
from synmt.decode.records import Result
from synmt.decode.translator import Translator
from synmt.parallel.processes import process_count
from synmt.parallel.work import cluster_in_use, in_order
from synmt.run import find_run

_PARSER = "parser"
_WINDOWS = 4
"""Windows of lines that a process must have: with fewer, it takes longer to load the models than it saves."""


@dataclass(frozen=True)
class CopiedTranslator:
    """A translator that each process of this machine loads for itself.

    runs: run folders.
    loading: keyword arguments of `Translator.load`.
    processes: how many of them translate.
    """

    runs: tuple[Path, ...]
    loading: Mapping[str, Any]
    processes: int

    def __reduce__(self) -> tuple[Any, ...]:
        # what a process unpickles is the translator
        return partial(Translator.load, *self.runs, **self.loading), ()


@dataclass(frozen=True)
class TravellingTranslator:
    """A translator that each worker of a cluster loads for itself.

    runs: run folders.
    loading: keyword arguments of `Translator.load`.
    parser: the files of the parser, if it travels, by their paths in its folder.
    """

    runs: tuple[Path, ...]
    loading: Mapping[str, Any]
    parser: Mapping[str, Path]
    processes = 1

    @classmethod
    def of(cls, translator: Translator, runs: Sequence[Path], loading: Mapping[str, Any]) -> TravellingTranslator:
        """Find out what a translator that was loaded here needs elsewhere.

        The parser of a single run travels; those of an ensemble have to be where the runs recorded them.
        """
        parses = len(runs) == 1 and translator.reads_trees and translator.parser_identity is not None
        return cls(tuple(runs), loading, translator.parser.files() if parses else {})

    def files(self) -> dict[str, Path]:
        """Name the files by their paths in a folder of copies; the chosen weights become the final ones."""
        found = {f"{_PARSER}/{name}": path for name, path in self.parser.items()}
        for number, folder in enumerate(self.runs):
            run = find_run(folder)
            kinds = ("run.json", "recipe.yaml", "*.model", "*.words", "*.truecase", "features.json")
            found |= {f"{number}/{path.name}": path for kind in kinds for path in run.folder.glob(kind)}
            found[f"{number}/{run.weights.name}"] = run.weights_of(self.loading.get("checkpoint", "final"))
        return found

    def placed(self, folder: Path) -> Translator:
        """Load the translator from copies of the files."""
        parser = {"parser": str(folder / _PARSER)} if self.parser else {}
        runs = (folder / str(number) for number in range(len(self.runs)))
        return Translator.load(*runs, **{**self.loading, "checkpoint": "final", **parser})


Elsewhere = CopiedTranslator | TravellingTranslator


def elsewhere(
    translator: Translator, runs: Sequence[Path], loading: Mapping[str, Any], *, lines: int | None
) -> Elsewhere | None:
    """Choose who works on lines: the cluster in use, else processes if the lines are many, else (None) the translator.

    Threads of one process wait for each other in Python, and they parse one after the other. A GPU has one process.

    runs, loading: what the translator was loaded from.
    lines: how many there are; None if they come one by one.
    """
    if cluster_in_use():
        return TravellingTranslator.of(translator, runs, loading)
    if lines is None or translator.device.type != "cpu":
        return None
    processes = process_count(lines // (_WINDOWS * translator.window))
    return CopiedTranslator(tuple(runs), loading, processes) if processes > 1 else None


def translate_windows(
    translator: Translator,
    windows: Iterable[list[Request]],
    *,
    counterfactually: bool = False,
    other: Elsewhere | None = None,
) -> Iterator[Sequence[Result]]:
    """Translate windows of words in their order.

    counterfactually: also with the other tree of each request.
    other: the same translator elsewhere, which translates several windows at once.
    """
    work = _translate_both if counterfactually else _translate
    if other is not None:
        yield from in_order(work, other, _numbered(windows), other.processes, where=other.runs[0], keeps=False)
    else:
        yield from (work(translator, window) for window in _numbered(windows))


def _numbered(windows: Iterable[list[Request]]) -> Iterator[tuple[int, list[Request]]]:
    number = 1
    for window in windows:
        yield number, window
        number += len(window)


def _translate(translator: Any, window: tuple[int, list[Request]]) -> Sequence[Result]:
    return translator.translate_requests(window[1], window[0])


def _translate_both(translator: Any, window: tuple[int, list[Request]]) -> Sequence[Result]:
    return translate_counterfactually(translator, window[1], window[0])
