"""Parsers: raw lines in, one tree for each line out."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from synmt import files
from synmt.errors import SynmtError
from synmt.parsing import models as stanza_models
from synmt.parsing import pipeline as stanza_pipeline
from synmt.parsing.lines import batches, unreadable
from synmt.syntax.controls import certain_arcs
from synmt.syntax.parse import Parse, flat_parse
from synmt.syntax.whitespace import without_whitespace

OnFailure = Callable[[int, str], None]
"""Takes the index of a line in the call and the reason why its tree is flat or pieced together."""


class Parser(Protocol):
    """What the rest of synmt asks of a parser; it is sent to worker processes, so it must be picklable."""

    @property
    def identity(self) -> dict[str, Any]: ...

    @property
    def fingerprint(self) -> str: ...

    def processes(self) -> int: ...

    def parse(self, lines: Sequence[str], *, on_failure: OnFailure | None = None) -> list[Parse]: ...


class StanzaParser:
    """A Stanza Pipeline that gives one tree for one line, whatever stands beside it.

    language: the code that Stanza uses, such as `en`.
    model: `compact` (ships with synmt), `official` (Stanza's own folder) or a folder with resources.json.
    package: the package of models in that folder.
    device: `auto` (a GPU where there is one), or what torch understands.
    batch_words: words parsed at once. 640 was fastest on one CPU core.
    download: whether official models that are missing may be fetched.
    arcs: whether each tree comes with the probabilities of all arcs. The trees are the same.

    Nothing is loaded before the first parse. A line in which Stanza sees several sentences is one tree: the
    later roots hang on the first one with the relation `parataxis`. A sentence of more than 400 words is
    cut in the same way, since the memory of the parser grows with the square of the length. A line that
    cannot be parsed gets a flat tree, whose arcs are certain.
    """

    def __init__(
        self,
        language: str,
        *,
        model: str = "compact",
        package: str = "default",
        device: str = "auto",
        batch_words: int = 640,
        download: bool = False,
        arcs: bool = False,
    ) -> None:
        self.language, self.model, self.package = language, model, package
        self.device, self.batch_words, self.arcs = device, batch_words, arcs
        self.folder = stanza_models.locate(model, language, package, download=download)

    @classmethod
    def from_identity(
        cls, identity: Mapping[str, Any], device: str = "auto", *, arcs: bool | None = None
    ) -> StanzaParser:
        """Find the parser that an identity describes; comparing fingerprints is for the caller.

        arcs: whether it gives probabilities of arcs; None is what the identity says.
        """
        if identity.get("backend") != "stanza":
            raise SynmtError(
                f"the trees were made by '{identity.get('backend')}', which cannot be run from here",
                allowed="Only Stanza can",
                do="Parse the text with the same parser and hand over the CoNLL-U file (--parses)",
            )
        model, package = str(identity.get("model", "compact")), str(identity.get("package", "default"))
        arcs = bool(identity.get("arcs")) if arcs is None else arcs
        return cls(str(identity["language"]), model=model, package=package, device=device, arcs=arcs)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_pipeline"}

    @property
    def identity(self) -> dict[str, Any]:
        """What makes the trees: backend, language, package, version, hashes of its files; and where they lie."""
        return dict(self._identity)

    @cached_property
    def _identity(self) -> dict[str, Any]:
        import stanza

        return {
            "backend": "stanza",
            "model": self.model,
            "language": self.language,
            "package": self.package,
            "stanza": stanza.__version__,
            "files": {name: files.sha256(path) for name, path in sorted(self._files().items())},
            **({"arcs": True} if self.arcs else {}),
        }

    def with_arcs(self) -> StanzaParser:
        """Give the same parser, with probabilities of arcs."""
        if self.arcs:
            return self
        other = copy.copy(self)
        other.arcs, other._identity = True, {**self._identity, "arcs": True}
        return other

    @property
    def fingerprint(self) -> str:
        """Name the parser in 12 digits; the same files in another folder have the same name."""
        return files.fingerprint(sorted((key, value) for key, value in self.identity.items() if key != "model"))

    def processes(self) -> int:
        """Say how many processes parse best: one for each core, or one that has the GPU."""
        if self.device != "cpu":
            import torch

            if self.device != "auto" or torch.cuda.is_available():
                return 1
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def parse(self, lines: Sequence[str], *, on_failure: OnFailure | None = None) -> list[Parse]:
        """Parse lines: one tree each, in their order; equal lines are parsed once."""
        found: dict[str, Parse] = {}
        reasons: dict[str, str] = {}
        for line in dict.fromkeys(lines):
            reason = unreadable(line)
            if reason or not without_whitespace(line):
                found[line] = flat_parse(line)
            if reason:
                reasons[line] = reason
        for batch in batches([line for line in dict.fromkeys(lines) if line not in found], self.batch_words):
            self._parse_batch(batch, found, reasons)
            self._give_up_if_all_failed(batch, reasons)
        for index, line in enumerate(lines):
            if on_failure and line in reasons:
                on_failure(index, reasons[line])
        if self.arcs:
            found = {line: _with_some_arcs(parse) for line, parse in found.items()}
        return [found[line] for line in lines]

    def _parse_batch(self, batch: list[str], found: dict[str, Parse], reasons: dict[str, str]) -> None:
        """Parse a batch; where that fails, its halves; where one line fails, give it a flat tree."""
        try:
            for line, (parse, reason) in zip(batch, self._analyse(batch), strict=True):
                found[line] = parse
                if reason:
                    reasons[line] = reason
            return
        except SynmtError:
            raise
        except Exception as error:
            # Stanza raises anything, torch RuntimeError for memory; loading has shown that the models work
            # where Ctrl-C meets C code, that may come out as an error of another kind
            if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            reason = f"{type(error).__name__}: {str(error).strip()[:200]}"
        self._forget_memory()
        if len(batch) == 1:
            found[batch[0]], reasons[batch[0]] = flat_parse(batch[0]), reason
            return
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            self._parse_batch(half, found, reasons)

    def _analyse(self, batch: list[str]) -> list[tuple[Parse, str]]:
        return stanza_pipeline.run(self._pipeline, batch, arcs=self.arcs)

    def _give_up_if_all_failed(self, batch: list[str], reasons: Mapping[str, str]) -> None:
        # a lost GPU makes every line fail: a corpus of flat trees would be worse than no corpus
        if len(batch) >= 8 and all(line in reasons for line in batch):
            raise SynmtError(
                f"the parser fails on every line ({reasons[batch[0]]})",
                do="Mend what it says, or choose another --device, and run the same command again",
            )

    def _forget_memory(self) -> None:
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _files(self) -> dict[str, Path]:
        """List the model files that the pipeline has loaded, by their path inside the folder."""
        root = Path(self._pipeline.dir)
        paths = [Path(value) for key, value in self._pipeline.config.items() if key.endswith("_path") and value]
        return {path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name: path for path in paths}

    @cached_property
    def _pipeline(self) -> Any:
        try:
            return stanza_pipeline.load(
                self.folder, self.language, self.package, self.device, self.batch_words, arcs=self.arcs
            )
        except SynmtError:
            raise
        except FileNotFoundError as error:
            file = str(error.filename or error)
            raise stanza_models.missing(self.model, self.folder, self.language, file) from error
        except Exception as error:
            raise SynmtError(
                f"cannot load the Stanza model for '{self.language}', package '{self.package}'"
                f" ({type(error).__name__}: {str(error).strip()})",
                where=str(self.folder),
                do="Look at language, package and device; get the model again if its files are damaged",
            ) from error


def _with_some_arcs(parse: Parse) -> Parse:
    """Make the arcs of a flat tree certain; a line without words has no arcs."""
    return replace(parse, arcs=certain_arcs(parse)) if parse.arcs is None and len(parse) else parse
