"""Raw text to raw text: parse where the model reads trees, cut into pieces, search, join."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from pydantic import ValidationError

from synmt.batch import Batch, Reading, collate, reading_of
from synmt.checkpoint import Run, load_weights
from synmt.decode.beam import Hypothesis, Member, search
from synmt.decode.length import length_limits
from synmt.decode.options import SearchOptions
from synmt.decode.source import Remark, Source, check_arcs, cut, recorded_parser
from synmt.decode.windows import batches, windows
from synmt.device import choose_device
from synmt.errors import SynmtError, UsageError
from synmt.model.build import build_for
from synmt.model.seq2seq import Seq2Seq
from synmt.recipe import DecodingRecipe, Recipe
from synmt.syntax.blanks import visible
from synmt.syntax.parse import Parse
from synmt.syntax.parsers import StanzaParser
from synmt.syntax.pieces import Vocabulary
from synmt.tasks import TRANSLATION, task_tags

_PIECES = 50
"""For each sentence that a batch may have, so many source pieces fit into it, padding included."""
_WINDOW = 16
"""Batches that are sorted by length together."""


@dataclass(frozen=True)
class Candidate:
    """One translation of a line.

    score: the log-probability under the length penalty.
    log_probability: of its pieces and EOS, in nats.
    """

    text: str
    score: float
    log_probability: float


@dataclass(frozen=True)
class Translation:
    """What became of one line.

    line: its number, from 1.
    candidates: the n best, best first; none for a line without text.
    dropped: pieces at the end of the source that were too many for the model and are not translated.
    """

    line: int
    candidates: tuple[Candidate, ...] = ()
    dropped: int = 0

    @property
    def text(self) -> str:
        """The best translation; empty for a line without text."""
        return self.candidates[0].text if self.candidates else ""


class Translator:
    """A model with all that it needs to read and write text.

    source, target: the vocabularies.
    recipe: how the model was trained, and how it searches.
    n_best: translations of each line.
    parser: the identity of the parser whose trees the model has learnt from; None where it is not known.
    remark: told what a person should know, once.
    """

    def __init__(
        self,
        model: Seq2Seq,
        source: Vocabulary,
        target: Vocabulary,
        recipe: Recipe,
        *,
        n_best: int = 1,
        parser: dict[str, Any] | None = None,
        remark: Remark = lambda text: None,
    ) -> None:
        self.decoding = recipe.decoding
        if not 1 <= n_best <= self.decoding.beam_size:
            raise UsageError(
                f"a beam of {self.decoding.beam_size} has no {n_best} best translations",
                allowed=f"--n-best from 1 to {self.decoding.beam_size}",
                do="Take a wider beam (--beam-size)",
            )
        self.model, self.source, self.target = model.eval(), source, target
        self.n_best, self.parser_identity, self.remark = n_best, parser, remark
        self.device = next(model.parameters()).device
        self.max_pieces = recipe.filters.max_pieces
        self.task = TRANSLATION if task_tags(recipe) else ""
        self.reading: Reading = reading_of(model.reads("source"), recipe.parser)

    @classmethod
    def load(
        cls,
        run: Run,
        *,
        device: str = "auto",
        which: str = "final",
        n_best: int = 1,
        remark: Remark = lambda text: None,
        **decoding: Any,
    ) -> Translator:
        """Load a run with its weights `final`, `best`, `last` or `average`; `decoding` overrides the recipe."""
        recipe, info = run.recipe(), run.info()
        source, target = (Vocabulary.load(run.folder, side) for side in ("source", "target"))
        model = build_for(recipe, source, target)
        place = choose_device(device)
        load_weights(run.weights_of(which), model)
        return cls(
            model.to(place),
            source,
            target,
            recipe.model_copy(update={"decoding": _override(recipe.decoding, decoding)}),
            n_best=n_best,
            parser=info.get("parser"),
            remark=remark,
        )

    @property
    def reads_trees(self) -> bool:
        """Tell whether the model needs the tree of a source to translate it."""
        return bool(self.reading.signals)

    @property
    def window(self) -> int:
        """Lines that are best taken in together."""
        return _WINDOW * self.decoding.batch_size

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
        number, trees = 1, iter(parses) if parses is not None else None
        for lines in taken:
            given = list(islice(trees, len(lines))) if trees is not None else None
            if given is not None and len(given) < len(lines):
                raise SynmtError(f"there are only {number - 1 + len(given)} trees", where=f"line {number + len(given)}")
            yield self._translate_window(lines, self.trees(lines, given, number), number)
            number += len(lines)
        # a reader of trees that has some left says so now
        if trees is not None and next(trees, None) is not None:
            raise SynmtError(f"there are more trees than lines, {number - 1}")

    def trees(
        self, lines: Sequence[str], given: Sequence[Parse] | None = None, number: int = 1
    ) -> Sequence[Parse | None]:
        """Find the tree of each line that the model reads: given, or made by its own parser; None where it reads none.

        number: of the first line, for messages.
        """
        if given is not None:
            if self._wants_arcs:
                check_arcs(given, number)
            return given if self.reads_trees else [None] * len(lines)
        if not self.reads_trees:
            return [None] * len(lines)
        return self.parser.parse(
            lines,
            on_failure=lambda index, why: self.remark(f"line {number + index}: its tree is flat or pieced: {why}"),
        )

    @cached_property
    def parser(self) -> StanzaParser:
        """The parser whose trees the model has learnt from; an error where the run does not record it."""
        return recorded_parser(self.parser_identity, str(self.device), self.remark, arcs=self._wants_arcs)

    @property
    def _wants_arcs(self) -> bool:
        return self.reading.arcs and not self.reading.certain

    def _translate_window(self, lines: list[str], trees: Sequence[Parse | None], number: int) -> list[Translation]:
        found = [Translation(number + index) for index in range(len(lines))]
        for sources in self.source_batches(lines, trees):
            batch = collate([one.example for one in sources], self.reading).to(self.device)
            hypotheses = _found(self.model, batch, self.decoding, self.n_best)
            for one, best in zip(sources, hypotheses, strict=True):
                candidates = tuple(_candidate(hypothesis, self.target) for hypothesis in best)
                found[one.index] = Translation(number + one.index, candidates, one.dropped)
        return found

    def source_batches(self, lines: Sequence[str], trees: Sequence[Parse | None]) -> Iterator[list[Source]]:
        """Cut lines into pieces, and put those of like length together, longest first; empty ones are left out."""
        sources = [
            cut(index, line, tree, self.source, self.max_pieces, task=self.task)
            for index, (line, tree) in enumerate(zip(lines, trees, strict=True))
            if visible(line)
        ]
        size = self.decoding.batch_size
        return batches([one for one in sources if len(one)], len, sentences=size, pieces=_PIECES * size)


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
            hypotheses = _found(model, batch, decoding)
            for line, found in zip(batch.lines, hypotheses, strict=True):
                texts[line] = _candidate(found[0], vocabulary).text
    finally:
        model.train(training)
    return [texts[line] for line in sorted(texts)]


def _override(recipe: DecodingRecipe, values: dict[str, Any]) -> DecodingRecipe:
    try:
        return DecodingRecipe.model_validate(recipe.model_dump() | values)
    except ValidationError as error:
        problems = "; ".join(f"{problem['loc'][0]}: {problem['msg']}" for problem in error.errors())
        raise UsageError(f"impossible values for the search: {problems}") from None


def _found(model: Seq2Seq, batch: Batch, decoding: DecodingRecipe, n_best: int = 1) -> list[list[Hypothesis]]:
    source = batch.source
    limits = length_limits(source.mask.sum(1) - 1, ratio=decoding.max_length_ratio, extra=decoding.max_length_extra)
    options = SearchOptions(decoding.beam_size, decoding.length_penalty, n_best)
    found = search([Member(model, source, batch.source_signals)], options, limits=limits)
    if not all(found):
        raise SynmtError("the model gives no finite probabilities: its weights are broken")
    return found


def _candidate(hypothesis: Hypothesis, vocabulary: Vocabulary) -> Candidate:
    # bytes can spell a line end, and a line of output must stay one
    text = vocabulary.decode(hypothesis.ids).replace("\n", " ")
    return Candidate(text, hypothesis.score, hypothesis.log_probability)
