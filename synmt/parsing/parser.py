"""Parsers: raw lines in, one dependency tree for each line out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from synmt.arrays import Facts, Values
from synmt.errors import SynmtError
from synmt.files.reading import fingerprint, stored_sha256
from synmt.parallel.threads import chosen_cores
from synmt.parsing import models as stanza_models
from synmt.parsing import pipeline as stanza_pipeline
from synmt.parsing.lines import Parsed, batches, unreadable
from synmt.parsing.models import StoredFacts
from synmt.parsing.official import fetch
from synmt.parsing.stanza_internals import checked_version
from synmt.recipe.data import parser_model
from synmt.speed import fast
from synmt.syntax.controls import certain_arcs
from synmt.syntax.parse import Parse, flat_parse, without_whitespace

OnFailure = Callable[[int, str], None]
"""Takes the index of a line in the call, and the reason why its tree is flat or joined."""


NOT_IN_TREES = frozenset({"model", "resources"})
"""What an identity says that changes no tree: the folder of the files, and the list that they were
downloaded from."""


class StanzaParser:
    """A Stanza Pipeline that gives one tree for each line, whichever lines are in the same batch.

    language: the code that Stanza uses, such as `en`.
    model: `compact` (ships with synmt), `official` (Stanza's own folder), `auto` (compact if it
        ships for the language, else official) or a folder with resources.json.
    package: the package of models in that folder.
    device: `auto` (a GPU if there is one), or a device of PyTorch.
    batch_words: words parsed at once. 2,000 were fastest on one CPU core.
    download: whether official models that are missing are downloaded, as `official.fetch` does.
    arcs: whether each tree has the probabilities of all arcs. The trees are the same.
    pretokenized: the lines are words with a space between two, and each of them is one word of the
        tree.

    The models are loaded by the first parse. A line in which Stanza finds several sentences becomes
    one tree: the later roots are attached to the first one with the relation `parataxis`. A
    sentence of more than 400 words is split and joined in the same way, since the parser's memory
    grows with the square of the length. A line that cannot be parsed gets a flat tree, whose arcs
    are certain.
    """

    def __init__(
        self,
        language: str,
        *,
        model: str = "auto",
        package: str = "default",
        device: str = "auto",
        batch_words: int = 2000,
        download: bool = False,
        arcs: bool = False,
        pretokenized: bool = False,
    ) -> None:
        model = parser_model(model, language)
        self.language, self.model, self.package = language, model, package
        self.device, self.batch_words = device, batch_words
        self.arcs, self.pretokenized = arcs, pretokenized
        self.features: list[str] = []
        self._stored = StoredFacts(model, language, package)
        if stored := self._stored.load():
            self.folder, self._facts = stored[0], dict(stored[1])
            return
        if download and model == "official":
            fetch(language, package)
        self.folder = stanza_models.locate(model, language)

    @classmethod
    def from_identity(
        cls, identity: Facts, device: str = "auto", *, arcs: bool | None = None
    ) -> StanzaParser:
        """Find the parser that an identity describes; the caller compares the fingerprints.

        arcs: whether it gives probabilities of arcs; None takes that from the identity.
        """
        return cls(
            str(identity["language"]),
            model=str(identity.get("model", "compact")),
            package=str(identity.get("package", "default")),
            device=device,
            # a run may come from another machine
            download=True,
            arcs=bool(identity.get("arcs") if arcs is None else arcs),
            pretokenized=bool(identity.get("pretokenized")),
        )

    def __getstate__(self) -> Values:
        models = ("_pipeline", "_direct")
        return {key: value for key, value in vars(self).items() if key not in models}

    @cached_property
    def identity(self) -> Values:
        """What determines the trees (backend, language, package, version, hashes of model files),
        and their origin."""
        return {
            "backend": "stanza",
            "model": self.model,
            "language": self.language,
            "package": self.package,
            **self._facts,
            **{name: True for name in ("pretokenized", "arcs") if getattr(self, name)},
        }

    @cached_property
    def _facts(self) -> Values:
        """What the folder of the models and Stanza say, stored for later processes."""
        version = checked_version()
        with self._naming_model():
            paths = self._model_files()
            states = self._stored.states_of(self.folder, paths.values())
        sums = {name: stored_sha256(path) for name, path in sorted(paths.items())}
        facts = {"stanza": version, "files": sums}
        # Stanza itself fills a folder without it
        if listed := stanza_models.known_resources(self.folder).get("resources_version"):
            facts["resources"] = str(listed)
        self._stored.store(self.folder, facts, states)
        return facts

    def _model_files(self) -> dict[str, Path]:
        return stanza_pipeline.model_files(self.folder, self.language, self.package)

    def files(self) -> dict[str, Path]:
        """Name the files that parsing needs by their paths in the folder of models, for a worker
        elsewhere."""
        return {name: self.folder / name for name in ("resources.json", *self.identity["files"])}

    def relocated(self, folder: Path) -> StanzaParser:
        """Make the same parser, which reads its models from another folder."""
        other = copy.copy(self)
        other.folder = folder
        return other

    def with_arcs(self) -> StanzaParser:
        """Make the same parser with probabilities of arcs."""
        return self if self.arcs else self._with(arcs=True)

    def with_features(self, needed: Collection[str] = ()) -> StanzaParser:
        """Make the same parser with all features that its models give; raises UsageError if they
        lack a needed one."""
        with self._naming_model():
            features = stanza_models.features_of(self._model_files())
        stanza_models.check_features(
            needed, features, f"the {self.model} model for '{self.language}'"
        )
        return self._with(features=features)

    def _with(self, **values: Any) -> StanzaParser:
        other = copy.copy(self)
        other.__dict__.update(values, identity={**self.identity, **values})
        return other

    @property
    def fingerprint(self) -> str:
        """Identify the parser by 12 digits, which do not depend on the folder of its files."""
        return fingerprint(
            sorted(item for item in self.identity.items() if item[0] not in NOT_IN_TREES)
        )

    def processes(self) -> int:
        """Return the best number of processes: the number of CPU cores, or 1 on a GPU."""
        return 1 if stanza_pipeline.on_gpu(self.device) else chosen_cores()

    def parse(self, lines: Sequence[str], *, on_failure: OnFailure | None = None) -> list[Parse]:
        """Parse lines: one tree each, in their order; equal lines are parsed once."""
        if direct := self.__dict__.get("_direct"):
            direct.forget()
        parsed: dict[str, Parsed] = {}
        for line in lines:
            if (reason := unreadable(line)) or not without_whitespace(line):
                parsed[line] = flat_parse(line), reason
        missing = [line for line in dict.fromkeys(lines) if line not in parsed]
        for batch in batches(missing, self.batch_words):
            results = self._parse_batch(batch)
            # after the loss of a GPU every line fails: no corpus is better than a corpus of flat
            # trees
            if len(batch) >= 8 and all(reason for _, reason in results):
                _, reason = results[0]
                raise SynmtError(
                    f"the parser fails on every line ({reason})",
                    do="Fix the cause, or choose another --device, and run the same command again",
                ) from RuntimeError(reason)
            parsed |= zip(batch, results, strict=True)
        if self.arcs:
            for line, (parse, reason) in parsed.items():
                # the arcs of a flat tree are certain; a line without words has none
                if parse.arcs is None and len(parse):
                    parsed[line] = replace(parse, arcs=certain_arcs(parse)), reason
        for index, line in enumerate(lines):
            if on_failure and parsed[line][1]:
                on_failure(index, parsed[line][1])
        return [parsed[line][0] for line in lines]

    def _parse_batch(self, batch: list[str]) -> list[Parsed]:
        """Parse a batch: tree and failure of each line. If Stanza fails, parse its halves; a single
        line is flat."""
        try:
            return self._run(batch)
        except SynmtError:
            raise
        except Exception as error:
            # Stanza raises any exception, and PyTorch a RuntimeError if memory runs out; the models
            # themselves work, since they were tested when they were loaded. Ctrl-C in C code may
            # turn into another exception.
            if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            reason = f"{type(error).__name__}: {str(error).strip()[:200]}"
        stanza_pipeline.free_memory()
        if len(batch) == 1:
            return [(flat_parse(batch[0]), reason)]
        middle = len(batch) // 2
        return self._parse_batch(batch[:middle]) + self._parse_batch(batch[middle:])

    def _run(self, batch: list[str]) -> list[Parsed]:
        arcs, pretokenized = self.arcs, self.pretokenized
        if not self.features and self._direct is not None and self._direct.reads(batch):
            return self._direct.parse(batch, arcs=arcs, pretokenized=pretokenized)
        return stanza_pipeline.run(
            self._pipeline, batch, arcs=arcs, pretokenized=pretokenized, features=self.features
        )

    @cached_property
    def _direct(self) -> Any:
        """The models without Stanza's documents; None if they cannot be called so."""
        wing = fast("parser.direct")
        return wing and wing.DirectParser.of(self._pipeline)

    @cached_property
    def _pipeline(self) -> Any:
        with self._naming_model():
            return stanza_pipeline.load(
                self.folder,
                self.language,
                self.package,
                self.device,
                self.batch_words,
                arcs=self.arcs,
            )

    @contextmanager
    def _naming_model(self) -> Iterator[None]:
        """Turn every exception that Stanza raises while it finds or loads a model into a
        SynmtError."""
        try:
            yield
        except SynmtError:
            raise
        except FileNotFoundError as error:
            raise stanza_models.missing(
                self.model, self.folder, self.language, str(error.filename or error)
            ) from error
        except Exception as error:
            raise SynmtError(
                f"cannot load the Stanza model for '{self.language}', package '{self.package}'"
                f" ({type(error).__name__}: {str(error).strip()})",
                where=self.folder,
                do="Check language, package and device; download or copy the model again if its "
                "files are damaged",
            ) from error
