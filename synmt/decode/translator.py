"""Raw text to raw text: parse where the model reads trees, cut into pieces, search, join."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from torch import Tensor

from synmt.data.batch import Batch, Reading, collate
from synmt.data.vocabulary import UNK, Vocabulary
from synmt.decode.beam import search
from synmt.decode.constraints import length_limits
from synmt.decode.degenerate import degenerate
from synmt.decode.ensemble import Member
from synmt.decode.hypotheses import Hypothesis
from synmt.decode.inputs import Request, batches, windows, zip_windows
from synmt.decode.loaded_model import (
    LoadedModel,
    TreeProvider,
    Trees,
    check_alike,
    describe_model,
    load_model,
    load_vocabularies,
)
from synmt.decode.options import SearchOptions, Wanted, override, search_options
from synmt.decode.rescoring import align, rescore
from synmt.decode.source import Remark, Source, cut
from synmt.decode.translation import Translation, make_candidate
from synmt.errors import SynmtError
from synmt.model.seq2seq import Seq2Seq
from synmt.parsing.parser import StanzaParser
from synmt.recipe.schema import DecodingRecipe, Recipe
from synmt.run import Run
from synmt.syntax.parse import Parse
from synmt.syntax.whitespace import without_whitespace

_PIECES = 50
"""For each sentence that a batch may have, so many source pieces fit into it, padding included."""
_LOGITS = 1 << 28
"""So many logits may a step of the search have: a batch for a wide beam is smaller, of one sentence at least."""
_WINDOW = 16
"""Batches that are sorted by length together."""


class Translator:
    """A model, or several, with all that is needed to read and write text.

    source, target: the vocabularies.
    recipe: how the model was trained, and how it searches.
    parser: the identity of the parser whose trees the model has learnt from; None where it is not known.
    others: more models with the same vocabularies; together they are an ensemble.
    remark: told what a person should know, once.
    """

    def __init__(
        self,
        model: Seq2Seq,
        source: Vocabulary,
        target: Vocabulary,
        recipe: Recipe,
        *,
        parser: dict[str, Any] | None = None,
        others: Sequence[LoadedModel] = (),
        wanted: Wanted = Wanted(),
        remark: Remark = lambda text: None,
    ) -> None:
        self.decoding, self.wanted, self.remark = recipe.decoding, wanted, remark
        self.options = search_options(self.decoding, wanted)
        self.readers = (describe_model(model, recipe, parser), *others)
        self.source, self.target = source, target
        self.device = next(model.parameters()).device
        self.max_pieces = min(each.max_pieces for each in self.readers)
        self._own_trees = TreeProvider(self.readers, device=str(self.device), cached=wanted.parse_cache, remark=remark)

    @classmethod
    def load(
        cls,
        run: Run,
        *,
        others: Sequence[Run] = (),
        device: str = "auto",
        which: str = "final",
        wanted: Wanted = Wanted(),
        remark: Remark = lambda text: None,
        **decoding: Any,
    ) -> Translator:
        """Load a run with its weights `final`, `best`, `last` or `average`; `decoding` overrides the recipe.

        others: more runs, of any model with the same vocabularies; the search is that of the first one's recipe.
        """
        recipe = run.recipe()
        recipe = recipe.model_copy(update={"decoding": override(recipe.decoding, decoding)})
        check_alike([run, *others])
        first, *more = (load_model(each, device=device, which=which, parser=wanted.parser) for each in (run, *others))
        vocabularies = load_vocabularies(run)
        return cls(first.model, *vocabularies, recipe, parser=first.parser, others=more, wanted=wanted, remark=remark)

    @property
    def model(self) -> Seq2Seq:
        """The first model, or the only one."""
        return self.readers[0].model

    @property
    def reading(self) -> Reading:
        """What the first model reads of trees."""
        return self.readers[0].reading

    @property
    def parser_identity(self) -> dict[str, Any] | None:
        """What made the trees that the first model has learnt from; None where it is not known."""
        return self.readers[0].parser

    @property
    def task(self) -> str:
        """The tag that the first model wants before and after a source; empty without."""
        return self.readers[0].task

    @property
    def reads_trees(self) -> bool:
        """Tell whether a model needs the tree of a source to translate it."""
        return any(reader.reads_trees for reader in self.readers)

    @property
    def window(self) -> int:
        """Lines that are best taken in together."""
        return _WINDOW * self.decoding.batch_size

    @property
    def parser(self) -> StanzaParser:
        """The parser whose trees the first model has learnt from; an error where the run does not record it."""
        return self._own_trees.parser(self.readers[0])

    def translate(self, lines: Iterable[str], parses: Iterable[Parse] | None = None) -> Iterator[Translation]:
        """Translate lines: one translation each, in their order.

        parses: a tree for each line; without them the recorded parser is applied, if the model reads trees.
        """
        for translations in self.translate_windows(windows(lines, self.window), parses):
            yield from translations

    def translate_windows(
        self, taken: Iterable[list[str]], parses: Iterable[Parse] | None = None
    ) -> Iterator[list[Translation]]:
        """Translate lines as they come in, window by window."""
        if parses is None:
            yield from self.translate_all([Request(line) for line in lines] for lines in taken)
            return
        yield from self.translate_all(
            [Request(line, tree=tree) for line, tree in zip(lines, trees, strict=True)]
            for lines, trees in zip_windows(taken, parses, "trees")
        )

    def translate_all(self, taken: Iterable[list[Request]]) -> Iterator[list[Translation]]:
        """Answer requests as they come in, window by window."""
        number = 1
        for requests in taken:
            yield self.translate_requests(requests, number)
            number += len(requests)

    def translate_requests(self, requests: Sequence[Request], number: int = 1) -> list[Translation]:
        """Translate one window; `number` is the line of its first request."""
        lines, trees = self.read(requests, number)
        found = [Translation(number + index) for index in range(len(lines))]
        for parts in self.parts(lines, trees):
            for one, hypotheses, limit in self._searched(parts, requests, number):
                found[one.index] = self._translation(one, hypotheses, lines[one.index], number, limit)
        if self.wanted.alignment:
            again = rescore(self, lines, trees, found, attention=True)
            for index, written in again.items():
                found[index] = align(found[index], lines[index], written, self)
        return found

    def read(self, requests: Sequence[Request], number: int = 1) -> tuple[list[str], list[Trees]]:
        """Give the lines of a window, and the trees of them that each reader reads."""
        lines = [request.text for request in requests]
        return lines, self._own_trees.of(lines, [request.tree for request in requests], number)

    def trees(self, lines: Sequence[str], given: Trees | None = None, number: int = 1) -> Trees:
        """Find the tree of each line that the first model reads: given, or its own parser's; None where it reads none.

        number: of the first line, for messages.
        """
        return self._own_trees.of(lines, given, number)[0]

    def parts(self, lines: Sequence[str], trees: Sequence[Trees]) -> Iterator[tuple[list[Source], ...]]:
        """Cut lines into pieces and batches: for each batch what each reader reads, which are the same pieces."""
        # equal lengths, so the readers' batches hold the same lines
        return zip(*(self.source_batches(lines, own) for own in trees), strict=True)

    def source_batches(self, lines: Sequence[str], trees: Trees) -> Iterator[list[Source]]:
        """Cut lines into pieces, and put those of like length together, longest first; empty ones are left out."""
        sources = [
            cut(index, line, tree, self.source, self.max_pieces, task=self.task)
            for index, (line, tree) in enumerate(zip(lines, trees, strict=True))
            if without_whitespace(line)
        ]
        logits = self.options.beam_size * len(self.target)
        size = max(1, min(self.decoding.batch_size, _LOGITS // logits))
        return batches([one for one in sources if len(one)], len, sentences=size, pieces=_PIECES * size)

    def _searched(
        self, parts: Sequence[list[Source]], requests: Sequence[Request], number: int
    ) -> Iterator[tuple[Source, list[Hypothesis], int]]:
        """Search for one batch: source, hypotheses, and the pieces that these may have."""
        made = [
            collate([one.example for one in part], reader.reading).to(self.device)
            for reader, part in zip(self.readers, parts, strict=True)
        ]
        prefixes = [self._prefix(requests[one.index].prefix, number + one.index) for one in parts[0]]
        members = [
            Member(reader.model, batch.source, batch.source_signals)
            for reader, batch in zip(self.readers, made, strict=True)
        ]
        limits = _limits(made[0], self.decoding)
        found = _found(
            search(
                members,
                self.options,
                limits=limits,
                prefixes=prefixes if any(prefixes) else None,
                numbers=[number + one.index for one in parts[0]],
            )
        )
        # a longer prefix raises the limit to what it needs
        raised = [max(limit, len(prefix) + 2) for limit, prefix in zip(limits.tolist(), prefixes, strict=True)]
        return zip(parts[0], found, raised, strict=True)

    def _prefix(self, text: str, line: int) -> list[int]:
        pieces = self.target.encode_ids(text) if without_whitespace(text) else []
        if UNK in pieces:
            raise SynmtError(
                f"the target vocabulary has no piece for a part of the prefix '{text}'", where=f"line {line}"
            )
        return pieces

    def _translation(
        self, one: Source, hypotheses: list[Hypothesis], line: str, number: int, limit: int
    ) -> Translation:
        candidates = tuple(make_candidate(hypothesis, self.target) for hypothesis in hypotheses)
        # EOS is one of the pieces that the limit counts
        at_limit = len(candidates[0].pieces) + 1 >= limit
        reason = degenerate(line, candidates[0].text, at_limit=at_limit)
        return Translation(number + one.index, candidates, one.dropped, one.unknown, reason)


def translate_batches(
    model: Seq2Seq, given: Iterable[Batch], decoding: DecodingRecipe, vocabulary: Vocabulary
) -> list[str]:
    """Translate the sources of batches as text, in the order of their lines; the model's mode stays as it was."""
    training, device = model.training, next(model.parameters()).device
    model.eval()
    try:
        texts = {}
        for batch in given:
            batch = batch.to(device)
            members = [Member(model, batch.source, batch.source_signals)]
            options = SearchOptions(decoding.beam_size, decoding.length_penalty)
            hypotheses = _found(search(members, options, limits=_limits(batch, decoding)))
            for line, found in zip(batch.lines, hypotheses, strict=True):
                texts[line] = make_candidate(found[0], vocabulary).text
    finally:
        model.train(training)
    return [texts[line] for line in sorted(texts)]


def _limits(batch: Batch, decoding: DecodingRecipe) -> Tensor:
    """Bound the pieces of the translations of a batch: (B,)."""
    pieces = batch.source.mask.sum(1) - 1  # (B,)
    return length_limits(pieces, ratio=decoding.max_length_ratio, extra=decoding.max_length_extra)


def _found(found: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
    if not all(found):
        raise SynmtError("the model gives no finite probabilities: its weights are broken")
    return found
