"""A translator that travels: what a worker of a cluster loads the models of this machine from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synmt.decode.inputs import Request
from synmt.decode.override import translate_counterfactually
from synmt.decode.records import Result
from synmt.decode.translator import Translator
from synmt.parallel.work import in_order
from synmt.run import find_run

_PARSER = "parser"


@dataclass(frozen=True)
class TravellingTranslator:
    """The runs of a translator, and how it is loaded.

    runs: run folders.
    loading: keyword arguments of `Translator.load`.
    parser: the files of the parser, if it travels, by their paths in its folder.
    """

    runs: tuple[Path, ...]
    loading: Mapping[str, Any]
    parser: Mapping[str, Path]

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


def translate_windows(
    translator: Translator,
    windows: Iterable[list[Request]],
    *,
    counterfactually: bool = False,
    travelling: TravellingTranslator | None = None,
) -> Iterator[Sequence[Result]]:
    """Translate windows of words in their order.

    counterfactually: also with the other tree of each request.
    travelling: the same translator for workers; the cluster in use translates with it, several windows at once.
    """
    work = _translate_both if counterfactually else _translate
    if travelling is not None:
        yield from in_order(work, travelling, _numbered(windows), 1, where=travelling.runs[0])
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
