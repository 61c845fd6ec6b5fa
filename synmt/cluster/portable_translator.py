"""A translator that workers load from copies of its runs and of its parser."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from synmt.decode.loaded_model import READ
from synmt.decode.remote import SharedTranslator
from synmt.run_folder import find_run

_PARSER = "parser"


@dataclass(frozen=True)
class PortableTranslator:
    """A translator of this machine."""

    shared: SharedTranslator

    def files(self) -> dict[str, Path]:
        """Name the files by their paths in a folder of copies; the chosen weights become the final
        ones."""
        shared, files_by_name = self.shared, {}
        # the parsers of an ensemble have to be where its runs have recorded them
        if shared.here and shared.parses and shared.here.parser_identity and len(shared.runs) == 1:
            files = shared.here.parser.files()
            files_by_name |= {f"{_PARSER}/{name}": path for name, path in files.items()}
        for number, folder in enumerate(shared.runs):
            run = find_run(folder)
            paths = (path for kind in READ for path in run.folder.glob(kind))
            files_by_name |= {f"{number}/{path.relative_to(run.folder)}": path for path in paths}
            weights = run.weights_of(shared.loading.get("checkpoint", "final"))
            files_by_name[f"{number}/{run.weights.name}"] = weights
        return files_by_name

    def relocated(self, folder: Path) -> SharedTranslator:
        """Make the same translator, which loads the copies in this folder."""
        runs = tuple(folder / str(number) for number in range(len(self.shared.runs)))
        loading = {**self.shared.loading, "checkpoint": "final"}
        if (folder / _PARSER).is_dir():
            loading["parser"] = str(folder / _PARSER)
        return replace(self.shared, runs=runs, loading=loading)
