"""From raw text to raw text: tokenize, parse if the model reads trees, segment into pieces, search,
join.

Everything below `translate` and `translate_windows` works on words: raw text too if the run does
not tokenize its text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from synmt.data.batch import collate
from synmt.data.vocabulary import UNK
from synmt.decode import inputs
from synmt.decode.beam import search
from synmt.decode.inputs import (
    Request,
    Source,
    Trees,
    batches,
    in_workers,
    windows,
    workers,
    zip_trees,
)
from synmt.decode.loaded_model import LoadedModel, check_ensemble, load_model
from synmt.decode.next_piece import Member, limits_of
from synmt.decode.options import SearchOptions
from synmt.decode.rescoring import align, rescore
from synmt.decode.translation import Translation, joined, make_translation
from synmt.decode.tree_provider import TreeProvider
from synmt.errors import SynmtError, UsageError, one_text
from synmt.model.device import InferencePrecision
from synmt.model.seq2seq import Seq2Seq
from synmt.parsing.parser import StanzaParser
from synmt.run_folder import Run, find_run
from synmt.syntax.controls import Control
from synmt.syntax.parse import Parse, without_whitespace
from synmt.syntax.reading import Reading

_PIECES = 50
"""Source pieces in a batch, padding included, per sentence that it may have."""
_LOGITS = 1 << 28
"""Maximum number of logits in a step of the search: with a wide beam, batches are smaller."""
_WINDOW = 8
"""Batches that are sorted by length together."""

Sources = tuple[list[Source], ...]
"""One batch, as each model of an ensemble reads it: the same pieces, perhaps with other trees."""


class Translator:
    """Translates raw text with one model, or with an ensemble of several.

        translator = Translator.load("runs/multi30k-pascal", beam_size=8)
        for translation in translator.translate(["The monkey eats a banana."]):
            print(translation.text)

    models: with the same vocabularies; their probabilities are averaged at every step.
    options: how to search; by default as in the recipe of the first model.
    alignment: add a word alignment to each translation.
    parse_cache: store the trees that are parsed here for later runs.
    """

    def __init__(
        self,
        models: Sequence[LoadedModel],
        options: SearchOptions | None = None,
        *,
        alignment: bool = False,
        parse_cache: bool = True,
    ) -> None:
        first = models[0]
        self.models, self.options = (
            tuple(models),
            options or SearchOptions.from_recipe(first.recipe.decoding),
        )
        self.alignment, self.parse_cache = alignment, parse_cache
        self.source, self.target, self.task, self.device = (
            first.source,
            first.target,
            first.task,
            first.device,
        )
        self.tokenizers = first.tokenizers
        self.max_pieces = min(model.recipe.filters.max_pieces for model in models)
        self._tree_provider = TreeProvider(models, device=str(self.device), cached=parse_cache)

    @classmethod
    def load(
        cls,
        run: Run | Path | str,
        *others: Run | Path | str,
        device: str = "auto",
        checkpoint: str = "final",
        parser: str | None = None,
        alignment: bool = False,
        parse_cache: bool = True,
        precision: InferencePrecision = "float32",
        **search: Any,
    ) -> Translator:
        """Load a run, or several as an ensemble; raises SynmtError if they do not exist or do not
        fit together.

        run, others: run folders.
        device: `auto`, `cpu`, `cuda`, `cuda:1` or `mps`; auto takes a GPU if there is one.
        checkpoint: the weights, `final`, `best`, `last` or `average`.
        parser: `compact`, `official` or the folder of the parser, if it is no longer where the run
            recorded it.
        alignment: whether each translation has its word alignment.
        parse_cache: whether trees are read from the cache, and stored there.
        precision: of the linear layers, `float32`, or `bf16` or `int8`, which translate many lines
            faster.
        search: values for fields of `SearchOptions`; by default those of the first run's recipe.
        """
        opened = [one if isinstance(one, Run) else find_run(Path(one)) for one in (run, *others)]
        recipes = [one.recipe() for one in opened]
        options = SearchOptions.from_recipe(recipes[0].decoding, **search)
        models = [
            load_model(
                one,
                recipe,
                device=device,
                checkpoint=checkpoint,
                parser=parser,
                precision=precision,
            )
            for one, recipe in zip(opened, recipes, strict=True)
        ]
        check_ensemble(models, [str(one.folder) for one in opened])
        return cls(models, options, alignment=alignment, parse_cache=parse_cache)

    def with_control(self, control: Control) -> Translator:
        """Return a translator whose models read their trees under another control
        (`parser.control`)."""
        models = [
            replace(model, reading=replace(model.reading, control=control)) for model in self.models
        ]
        return Translator(
            models, self.options, alignment=self.alignment, parse_cache=self.parse_cache
        )

    @property
    def model(self) -> Seq2Seq:
        """The first model."""
        return self.models[0].model

    def refuse_ensemble(self, what: str) -> None:
        """Raise UsageError if there are several models; what: the thing that needs a single one."""
        if len(self.models) > 1:
            what = f"{what} needs one model, and this is an ensemble of {len(self.models)}"
            raise UsageError(what, do="Load each run separately")

    def refuse_linearised(self, what: str) -> None:
        """Raise UsageError if the model reads linearised trees; what: the thing that needs pieces
        of the line."""
        if self.models[0].linearises:
            raise UsageError(
                f"{what} needs the pieces of the line itself, and this model reads "
                "linearised trees",
                do="Use a run without `tasks.mixed_only`",
            )

    @property
    def reading(self) -> Reading:
        """What the first model reads of trees."""
        return self.models[0].reading

    @property
    def parser_identity(self) -> Mapping[str, Any] | None:
        """The parser that made the training trees of the first model; None if its run does not
        record one."""
        return self.models[0].parser

    @property
    def parser(self) -> StanzaParser:
        """The loaded parser of the first model; raises SynmtError if its run does not record
        one."""
        return self._tree_provider.parser()

    @property
    def reads_trees(self) -> bool:
        """Whether any model needs the tree of a source to translate it."""
        return any(model.reads_trees for model in self.models)

    @property
    def window(self) -> int:
        """Number of lines that are best read at once."""
        return _WINDOW * self.options.batch_size

    def translate(
        self, lines: Iterable[str], parses: Iterable[Parse] | None = None
    ) -> Iterator[Translation]:
        """Translate raw lines: one translation each, in their order.

        parses: a tree for each line, of its words if the run tokenizes text; by default, lines are
            parsed where needed.
        """
        if isinstance(lines, str):
            raise one_text(lines, "lines")
        for translations in self.translate_windows(windows(lines, self.window), parses):
            yield from translations

    def translate_windows(
        self, lines: Iterable[list[str]], parses: Iterable[Parse] | None = None
    ) -> Iterator[list[Translation]]:
        """Translate windows of raw lines; each is translated before the next one is read."""
        words = map(self.tokenizers["source"].tokenize_lines, lines)
        for translations in self.translate_words(words, parses):
            yield [joined(one, self.tokenizers["target"]) for one in translations]

    def translate_words(
        self, lines: Iterable[list[str]], parses: Iterable[Parse] | None = None
    ) -> Iterator[list[Translation]]:
        """Translate windows of lines that are tokenized already; the words of their translations
        are not joined."""
        number = 1
        for window, trees in zip_trees(lines, parses):
            requests = [Request(line, tree=tree) for line, tree in zip(window, trees, strict=True)]
            yield self.translate_requests(requests, number)
            number += len(window)

    def translate_requests(self, requests: Sequence[Request], number: int = 1) -> list[Translation]:
        """Translate one window of words into words; `number` is the line number of its first
        request."""
        batches = list(self.read(requests, number))
        translations = [Translation(number + index) for index in range(len(requests))]
        found = in_workers(
            lambda sources: self._search(sources, requests, number), batches, workers(self.device)
        )
        for sources, translated in zip(batches, found, strict=True):
            for source, translation in zip(sources[0], translated, strict=True):
                translations[source.index] = translation
        if self.alignment:
            for index, rescored in rescore(
                self.models, batches, translations, attention=True
            ).items():
                translations[index] = align(
                    translations[index], requests[index].text, rescored, self.target
                )
        return translations

    def read(self, requests: Sequence[Request], number: int = 1) -> Iterator[Sources]:
        """Parse a window of words where needed, and segment it into pieces, in batches."""
        lines = [request.text for request in requests]
        trees = self._tree_provider.trees(lines, [request.tree for request in requests], number)
        return self.batches(lines, trees)

    def trees(self, lines: Sequence[str], given: Trees | None = None, number: int = 1) -> Trees:
        """Find the tree of each line that the first model reads: given, or its parser's; None if it
        reads none.

        number: line number of the first line, for messages.
        """
        return self._tree_provider.trees(lines, given, number)[0]

    def batches(self, lines: Sequence[str], trees: Sequence[Trees]) -> Iterator[Sources]:
        """Segment lines into pieces, in batches, with the trees that each model reads."""
        # the pieces do not depend on the trees, so every model has the same lines in a batch
        return zip(*(self.source_batches(lines, own) for own in trees), strict=True)

    def source_batches(self, lines: Sequence[str], trees: Trees) -> Iterator[list[Source]]:
        """Segment lines into pieces and group similar lengths, longest first; lines without pieces
        are left out."""
        sources = [
            self._segment(index, line, tree)
            for index, (line, tree) in enumerate(zip(lines, trees, strict=True))
            if without_whitespace(line)
        ]
        logits = self.options.beam_size * len(self.target)
        sources = [source for source in sources if len(source)]
        size = max(
            1,
            min(
                self.options.batch_size,
                _LOGITS // logits,
                math.ceil(len(sources) / workers(self.device)),
            ),
        )
        return batches(sources, len, sentences=size, pieces=_PIECES * size)

    def _segment(self, index: int, line: str, tree: Parse | None) -> Source:
        if self.models[0].linearises:
            return inputs.segment_tree(
                index, line, tree, self.source, self.max_pieces, self.reading.control
            )
        return inputs.segment(index, line, tree, self.source, self.max_pieces, task=self.task)

    def _search(
        self, sources: Sources, requests: Sequence[Request], number: int
    ) -> list[Translation]:
        """Translate one batch, in the order of its sources."""
        read = [
            collate([source.example for source in own], model.reading).to(self.device)
            for model, own in zip(self.models, sources, strict=True)
        ]
        numbers = [number + source.index for source in sources[0]]
        prefixes = [
            self._prefix(requests[source.index].prefix, number + source.index)
            for source in sources[0]
        ]
        members = [
            Member(model.model, batch.source, batch.source_signals, model.decoder)
            for model, batch in zip(self.models, read, strict=True)
        ]
        limits = limits_of(read[0].source, self.options)
        found = search(members, self.options, limits=limits, prefixes=prefixes, numbers=numbers)
        translations = []
        for source, hypotheses, limit, prefix in zip(
            sources[0], found, limits.tolist(), prefixes, strict=True
        ):
            # a long prefix raises the limit to what it needs
            limit = max(limit, len(prefix) + 2)
            text = requests[source.index].text
            translations.append(
                make_translation(text, source, hypotheses, self.target, number, limit)
            )
        return translations

    def _prefix(self, text: str, line: int) -> list[int]:
        pieces = self.target.encode_ids(text) if without_whitespace(text) else []
        if UNK in pieces:
            what = f"the target vocabulary has no piece for a part of the prefix '{text}'"
            raise SynmtError(what, where=f"line {line}")
        return pieces
