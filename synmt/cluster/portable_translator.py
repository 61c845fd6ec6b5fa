"""A translator that each worker of a cluster loads for itself, from copies of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synmt.decode.translator import Translator
from synmt.run_folder import find_run

_PARSER = "parser"


@dataclass(frozen=True)
class PortableTranslator:
    """A translator that each worker of a cluster loads for itself.

    runs: run folders.
    loading: keyword arguments of `Translator.load`.
    parser: the files of the parser, if it travels, by their paths in its folder.
    window: number of lines that are best translated at once.
    """

    runs: tuple[Path, ...]
    loading: Mapping[str, Any]
    parser: Mapping[str, Path]
    window: int
    processes = 1
    pool = None

    @classmethod
    def of(
        cls,
        translator: Translator,
        runs: Sequence[Path],
        loading: Mapping[str, Any],
        *,
        has_trees: bool = False,
    ) -> PortableTranslator:
        """Find out what a translator that was loaded here needs on another machine.

        The parser of a single run travels; those of an ensemble have to be where the runs recorded
        them. If all lines come with trees, no parser is needed.
        """
        reads_trees = translator.reads_trees and translator.parser_identity is not None
        parses = len(runs) == 1 and reads_trees and not has_trees
        return cls(
            tuple(runs), loading, translator.parser.files() if parses else {}, translator.window
        )

    def files(self) -> dict[str, Path]:
        """Name the files by their paths in a folder of copies; the chosen weights become the final
        ones."""
        found = {f"{_PARSER}/{name}": path for name, path in self.parser.items()}
        for number, folder in enumerate(self.runs):
            run = find_run(folder)
            kinds = (
                "run.json",
                "recipe.yaml",
                "*.model",
                "*.words",
                "*.truecase",
                "features.json",
                "code/**/*.*",
            )
            found |= {
                f"{number}/{path.relative_to(run.folder)}": path
                for kind in kinds
                for path in run.folder.glob(kind)
            }
            found[f"{number}/{run.weights.name}"] = run.weights_of(
                self.loading.get("checkpoint", "final")
            )
        return found

    def relocated(self, folder: Path) -> Translator:
        """Load the translator from copies of the files."""
        parser = {"parser": str(folder / _PARSER)} if self.parser else {}
        runs = (folder / str(number) for number in range(len(self.runs)))
        return Translator.load(*runs, **{**self.loading, "checkpoint": "final", **parser})
