"""From raw text to raw text: tokenize, parse for what reads trees, segment, search, join.

Everything below `translate` works on words: raw text too if the run does not tokenize its text.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

from synmt.data.batch import Batch
from synmt.data.vocabulary import UNK, PieceTable, Vocabulary
from synmt.decode.beam import search
from synmt.decode.explanation import Explanation, explain
from synmt.decode.forced import align, rescore, with_parts
from synmt.decode.inputs import (
    Request,
    Source,
    Trees,
    batches,
    in_workers,
    segment,
    segment_tree,
    windows,
    workers,
    zip_windows,
)
from synmt.decode.loaded_model import LoadedModel, check_ensemble, load_model
from synmt.decode.next_piece import Member, limits_of
from synmt.decode.options import SearchOptions
from synmt.decode.translation import Translation, joined, make_candidate, make_translation
from synmt.decode.tree_provider import TreeProvider, WantedTree
from synmt.errors import SynmtError, UsageError, listed, unknown_name
from synmt.model.device import InferencePrecision
from synmt.model.seq2seq import Seq2Seq
from synmt.parsing.parser import StanzaParser
from synmt.recipe.schema import DecodingRecipe
from synmt.run_folder import Run, find_run
from synmt.syntax.controls import Control, certain_if_given
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


_logger = logging.getLogger(__name__)


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
        self.models = tuple(models)
        self.options = options or SearchOptions.from_recipe(first.recipe.decoding)
        self.alignment = alignment
        self.source, self.target, self.tokenizers = first.source, first.target, first.tokenizers
        self.task, self.device = first.task, first.device
        self.tags = self.task, self.task
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
        target_language: str | None = None,
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
        target_language: the code of one of the languages into which the model translates.
        search: values for fields of `SearchOptions`; by default those of the first run's recipe.
        """
        opened = [
            path if isinstance(path, Run) else find_run(Path(path)) for path in (run, *others)
        ]
        recipes = [opened_run.recipe() for opened_run in opened]
        options = SearchOptions.from_recipe(recipes[0].decoding, **search)
        chosen = partial(
            load_model, device=device, checkpoint=checkpoint, parser=parser, precision=precision
        )
        models = list(map(chosen, opened, recipes))
        check_ensemble(models, [str(opened_run.folder) for opened_run in opened])
        translator = cls(models, options, alignment=alignment, parse_cache=parse_cache)
        translator.choose_language(target_language)
        return translator

    def choose_language(self, code: str | None) -> None:
        """Begin each source with the piece of a target language."""
        pieces = self.source
        known = pieces.languages if isinstance(pieces, PieceTable) else []
        if code is None and len(known) > 1:
            do = f"choose one, or begin each line with its code, such as >>{known[0]}<<"
            _logger.warning(f"the model translates into {listed(known, 5)}: {do}")
        if code is not None:
            if code not in known:
                raise unknown_name("target language", code, known)
            self.tags = f">>{code}<<", ""

    def with_control(self, control: Control) -> Translator:
        """Return a translator whose models read their trees under another control
        (`parser.control`)."""
        other = copy(self)
        other.models = tuple(
            replace(model, reading=replace(model.reading, control=control)) for model in self.models
        )
        return other

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

    def check_other_trees(self) -> None:
        """Raise UsageError for a model that reads the same trees whatever it is given."""
        self.refuse_linearised("--parse-override")
        if self.control or not self.reads_trees:
            raise UsageError(
                f"the model reads {self.control or 'no'} trees, so another tree changes nothing",
                where="--parse-override",
                do="Use a run with variants that read trees, and without `parser.control`",
            )

    @property
    def control(self) -> str:
        """The name of the trees that replace all others, even given ones; empty if none do."""
        names = (model.reading.control.name for model in self.models if model.reads_trees)
        return next(filter(None, names), "")

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
        return self._tree_provider.parser(self.models[0].parser_key)

    @property
    def reads_trees(self) -> bool:
        """Whether any model needs the tree of a source to translate it."""
        return any(model.reads_trees for model in self.models)

    @property
    def tree_kind(self) -> str:
        """What the models read of trees: `trees`, the name of a control, or nothing."""
        return self.control or "trees" if self.reads_trees else ""

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
            raise UsageError("lines: must be a list of texts, not one text")
        words = map(self.tokenizers["source"].tokenize_lines, windows(lines, self.window))
        for translations in self.translate_words(words, parses):
            yield from (
                joined(translation, self.tokenizers["target"]) for translation in translations
            )

    def translate_words(
        self, lines: Iterable[list[str]], parses: Iterable[Parse] | None = None
    ) -> Iterator[list[Translation]]:
        """Translate windows of lines that are tokenized already; the words of their translations
        are not joined."""
        numbers = count(1)
        for window, trees in zip_windows(lines, parses):
            rows = zip(window, trees, numbers, strict=False)
            yield self.translate_requests(
                [Request(line, number, tree=tree) for line, tree, number in rows]
            )

    def explain(self, line: str, tree: WantedTree = None) -> Explanation:
        """Translate a line and show how: its tree, and of a single model alignment and attention.

        tree: read instead of the parser's: another one, a control, or the parents of its words.
        """
        [text] = self.tokenizers["source"].tokenize_lines([line])
        given, probabilities = self._tree_provider.shown(text, tree)
        request = Request(text, tree=certain_if_given(given))
        [translation] = self.translate_requests([request])
        whole = joined(translation, self.tokenizers["target"])
        shown = given and self.reading.control.apply(given, text.encode())
        known = Explanation(text, whole, shown, probabilities, self.tree_kind)
        single = len(self.models) == 1 and not self.models[0].linearises
        for [[source]] in self.read([request]) if single else ():
            return explain(known, self.models[0], source, translation.best, tagged=any(self.tags))
        return known

    def translate_requests(self, requests: Sequence[Request]) -> list[Translation]:
        """Translate one window of words into words, also with the other trees of requests that have
        one."""
        batches = list(self.read(requests))
        search = partial(self._search, requests)
        translated = chain.from_iterable(in_workers(search, batches, workers(self.device)))
        translations = [Translation(request.line) for request in requests]
        for index, translation in translated:
            translations[index] = translation
        asked = batches if self.alignment or self.options.word_scores else ()
        for source, forced in rescore(self.models, asked, translations, attention=self.alignment):
            index = source.index
            if self.alignment:
                line, cross = requests[index].text, forced.cross
                translations[index] = align(translations[index], line, source, cross, self.target)
            if self.options.word_scores:
                translations[index] = with_parts(translations[index], forced, self.target)
        if any(request.other_tree is not None for request in requests):
            return self._with_other_trees(requests, translations)
        return translations

    def _with_other_trees(
        self, requests: Sequence[Request], translations: Sequence[Translation]
    ) -> list[Translation]:
        others = [
            replace(request, tree=certain_if_given(request.other_tree), other_tree=None)
            for request in requests
        ]
        forced = rescore(self.models, self.read(others), translations)
        rescored = {
            source.index: float(decoding.log_probabilities.sum()) for source, decoding in forced
        }
        pairs = zip(translations, self.translate_requests(others), strict=True)
        return [
            replace(translation, other=other, rescored=rescored.get(index, 0.0))
            for index, (translation, other) in enumerate(pairs)
        ]

    def read(self, requests: Sequence[Request]) -> Iterator[Sources]:
        """Parse a window of words where needed, and segment it into pieces, in batches."""
        lines = [request.text for request in requests]
        given = [request.tree for request in requests]
        trees = self._tree_provider.trees(lines, given, requests[0].line)
        # the pieces do not depend on the trees, so every model has the same lines in a batch
        return zip(*(self.source_batches(lines, parses) for parses in trees), strict=True)

    def trees(self, lines: Sequence[str], given: Trees | None = None, number: int = 1) -> Trees:
        """Find the tree of each line that the first model reads: given, or its parser's; None if it
        reads none.

        number: line number of the first line, for messages.
        """
        return self._tree_provider.trees(lines, given or [None] * len(lines), number)[0]

    def source_batches(self, lines: Sequence[str], trees: Trees) -> Iterator[list[Source]]:
        """Segment lines into pieces and group similar lengths, longest first; lines without pieces
        are left out. Few lines are dealt out to the threads in turn, which then end together."""
        sources = [
            source
            for index, (line, tree) in enumerate(zip(lines, trees, strict=True))
            if without_whitespace(line) and len(source := self._segment(index, line, tree))
        ]
        threads = workers(self.device)
        shared = math.ceil(len(sources) / threads)
        most = _LOGITS // (self.options.beam_size * len(self.target))
        size = max(1, min(self.options.batch_size, most, shared))
        if size == shared and max(map(len, sources), default=0) <= _PIECES:
            ordered = sorted(sources, key=len, reverse=True)
            return (ordered[thread::threads] for thread in range(min(threads, len(sources))))
        return batches(sources, len, sentences=size, pieces=_PIECES * size)

    def _segment(self, index: int, line: str, tree: Parse | None) -> Source:
        pieces, longest = self.source, self.max_pieces
        if self.models[0].linearises:
            return segment_tree(index, line, tree, pieces, longest, self.reading.control)
        return segment(index, line, tree, pieces, longest, tags=self.tags)

    def _search(self, requests: Sequence[Request], batch: Sources) -> list[tuple[int, Translation]]:
        """Translate one batch: the translations with their places in the window."""
        pairs = zip(self.models, batch, strict=True)
        members = [loaded.member(sources) for loaded, sources in pairs]
        limits = limits_of(members[0].source, self.options)
        chosen = [requests[source.index] for source in batch[0]]
        texts = [request.prefix if without_whitespace(request.prefix) else "" for request in chosen]
        prefixes = list(map(self.target.encode_ids, texts))
        numbers = [request.line for request in chosen]
        for number, prefix in zip(numbers, prefixes, strict=True):
            if UNK in prefix:
                raise SynmtError(
                    "the target vocabulary has no piece for a part of the prefix",
                    where=f"line {number}",
                )
        candidates = self.models[0].may_become(self.options.shortlist)
        results = search(members, self.options, limits, prefixes, numbers, candidates)
        translations = []
        for source, request, hypotheses, limit, prefix in zip(
            batch[0], chosen, results, limits.tolist(), prefixes, strict=True
        ):
            # a long prefix raises the limit to what it needs
            limit = max(limit, len(prefix) + 2)
            translation = make_translation(request, source, hypotheses, self.target, limit)
            translations.append((source.index, translation))
        return translations


def translate_batches(
    model: Seq2Seq, batches: Iterable[Batch], decoding: DecodingRecipe, vocabulary: Vocabulary
) -> list[str]:
    """Translate the sources of batches that are made already, such as those of validation, in the
    order of their lines; the model stays in its mode."""
    training, device = model.training, next(model.parameters()).device
    options = SearchOptions.from_recipe(decoding)
    # packed now, because the weights change in training
    decoder = model.predictor()

    def translated(batch: Batch) -> list[tuple[int, str]]:
        source = batch.to(device)
        member = Member(model, source.source, source.source_signals, decoder)
        results = search([member], options, limits=limits_of(source.source, options))
        texts = [make_candidate(best, vocabulary).text for best, *_ in results]
        return list(zip(batch.lines, texts, strict=True))

    model.eval()
    try:
        results = in_workers(translated, list(batches), workers(device))
    finally:
        model.train(training)
    return [text for _, text in sorted(chain.from_iterable(results))]
