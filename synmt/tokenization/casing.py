"""True case: the first word of a sentence is written as it is usually written elsewhere (Moses'
truecase.perl).

sacremoses learns the model and reads its file. The words are replaced here, because its own
function looks for XML tags in the text and cuts them off.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from synmt.errors import RESTORE, SynmtError
from synmt.files.reading import stored_sha256
from synmt.files.writing import write_atomically

_ENDS = {".", ":", "?", "!"}
_DELAYS = {"(", "[", '"', "'", "&apos;", "&quot;", "&#91;", "&#93;"}
"""Words before the first word of a sentence."""
_DOTTED = {"az", "crh", "kaa", "tr", "tt"}
"""Languages whose Latin alphabet has `i` with its capital `İ`, and `ı` with its capital `I`."""


class Truecaser:
    """Restores the case of words by a model file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    @property
    def identity(self) -> str:
        """SHA-256 of the model."""
        return stored_sha256(self.path)

    @cached_property
    def _model(self) -> tuple[dict[str, str], Any]:
        from sacremoses import MosesTruecaser

        try:
            model: Any = MosesTruecaser(load_from=str(self.path)).model
        except (OSError, ValueError):
            what = "missing, or not a truecase model"
            raise SynmtError(f"broken: {what}", where=str(self.path), do=RESTORE) from None
        return model["best"], model["known"]

    def truecase(self, words: Sequence[str]) -> list[str]:
        """Write the words of a line in their true case."""
        best, known = self._model
        cased: list[str] = []
        first = True
        for word in words:
            # an unknown form of a known word, such as one in capitals, is replaced anywhere
            chosen = best.get(word.lower(), word) if first or word not in known else word
            cased.append(chosen)
            first = chosen in _ENDS or (first and chosen in _DELAYS)
        return cased

    def truecase_lines(self, lines: Sequence[str]) -> list[str]:
        """Write lines of words in their true case."""
        return [" ".join(self.truecase(line.split())) for line in lines]

    def capitalize(self, words: Sequence[str], language: str) -> list[str]:
        """Capitalize the first word of each sentence, as detruecase.perl does; in Turkish, `i`
        becomes `İ`."""
        dotted = language in _DOTTED
        cased: list[str] = []
        first = True
        for word in words:
            initial = "İ" if dotted and word[:1] == "i" else word[:1].upper()
            cased.append(initial + word[1:] if first else word)
            first = word in _ENDS or (first and word in _DELAYS)
        return cased


def learn_truecase(lines: Iterable[str], path: Path) -> None:
    """Learn a model from lines of words into a file that appears when it is complete."""
    from sacremoses import MosesTruecaser

    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model")
        MosesTruecaser().train(map(str.split, lines), save_to=str(model))
        with write_atomically(path, binary=True) as out:
            out.write(model.read_bytes())
