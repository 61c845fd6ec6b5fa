"""Trees and word alignments of compared sentences; those that cannot be computed are left out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synmt.analysis.compare.sentences import ComparedSentence, word_spans
from synmt.analysis.forward_passes import run_forward
from synmt.analysis.inputs import file_language, find_parser, name_parser, parse_lines
from synmt.arrays import DoubleArray, IntArray
from synmt.decode.alignment import best_pairs, default_head_weights, word_weights
from synmt.decode.forced import cross_by_head
from synmt.decode.translator import Translator
from synmt.errors import SynmtError
from synmt.parsing.parser import StanzaParser
from synmt.recipe.data import TextRecipe
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run, find_run
from synmt.syntax.parse import Parse

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class SentenceWords:
    """The words of one compared sentence.

    tree: of the source; None without a parser.
    source_words: (W, 2) character spans of the source words.
    attentions: of each system, (V, W) attention of each translated word to the source words; None
        without a model.
    """

    tree: Parse | None
    source_words: IntArray
    attentions: tuple[DoubleArray | None, ...] = ()


@dataclass(frozen=True, eq=False)
class WordDetails:
    """The words of all compared sentences, by line number.

    source, target: language codes; empty if unknown.
    parser: name of the parser that made the trees; empty without trees.
    """

    by_line: dict[int, SentenceWords]
    source: str = ""
    target: str = ""
    parser: str = ""

    def as_json(self, line: int) -> dict[str, Any]:
        """Convert the words, the tree and the alignments of a sentence to plain values; missing
        values are None."""
        words, tree = self.by_line[line], self.by_line[line].tree
        parents = (
            {"parents": tree.parents.tolist(), "relations": tree.relations, "tags": tree.tags}
            if tree
            else None
        )
        return {
            "source_words": words.source_words.tolist(),
            "tree": parents,
            "alignments": [None if one is None else best_pairs(one) for one in words.attentions],
        }


def find_words(
    sentences: Sequence[ComparedSentence],
    runs: Sequence[Path | None],
    source: Path | None,
    parser: str | None,
    *,
    raw: bool = False,
) -> WordDetails:
    """Parse the sources, and align the translations of runs.

    runs: the run folder of each system; None for files.
    source: the file of the source; its name tells the language if there is no run.
    parser: the Stanza model to use instead of the recipe's.
    raw: whether the sentences are raw text, although a run tokenizes it: then nothing is aligned.
    """
    lines = [one.source for one in sentences]
    opened = [None if folder is None else find_run(folder) for folder in runs]
    recipe = next((run.recipe() for run in reversed(opened) if run), None)
    translators = [None if raw or run is None else _load(run) for run in opened]
    if raw:
        _logger.info("no alignments: the systems tokenize the source in different ways")
    if raw and recipe:
        recipe = recipe.model_copy(update={"text": TextRecipe()})
    parses, name = _parse(lines, translators, recipe, source, parser) if any(lines) else (None, "")
    trees = parses or [None] * len(lines)
    spans = [
        tree.spans if tree else word_spans(line) for tree, line in zip(trees, lines, strict=True)
    ]
    attentions = [
        _align(translator, lines, [one.translations[place] for one in sentences], spans)
        for place, translator in enumerate(translators)
    ]
    words = map(SentenceWords, trees, spans, zip(*attentions, strict=True))
    by_line = {one.line: found for one, found in zip(sentences, words, strict=True)}
    return WordDetails(
        by_line, *((recipe.source, recipe.target) if recipe else ("", "")), parser=name
    )


def _load(run: Run) -> Translator | None:
    try:
        return Translator.load(run)
    except SynmtError as error:
        _logger.warning("no alignments of %s: %s", run.name, error)
        return None


def _parse(
    lines: list[str],
    translators: Sequence[Translator | None],
    recipe: Recipe | None,
    source: Path | None,
    model: str | None,
) -> tuple[list[Parse] | None, str]:
    """Parse the sources and name the parser; without a parser for the language there are no trees.

    The parser is `model`, else that of a model that reads trees, else the recipe's or the
    language's.
    """
    readers = [
        one for one in translators if one and one.reads_trees and one.parser_identity is not None
    ]
    try:
        if recipe is None:
            parser = StanzaParser(file_language(source), model=model or "auto", download=True)
        elif readers and model is None:
            parser = readers[-1].parser
        else:
            parser = find_parser(recipe, "source", model, to="parse")
        return parse_lines(parser, lines), name_parser(parser)
    except SynmtError as error:
        if model:
            raise
        _logger.info("no trees of the source: %s", error)
        return None, ""


def _align(
    translator: Translator | None,
    sources: list[str],
    targets: list[str],
    source_words: list[IntArray],
) -> list[DoubleArray | None]:
    if translator is not None:
        try:
            return word_attention(
                translator, sources, targets, source_words, [word_spans(line) for line in targets]
            )
        except SynmtError as error:
            # for example, the model reads trees and its run does not record their parser
            _logger.info("no alignments of one system: %s", error)
    return [None] * len(sources)


def word_attention(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    source_words: Sequence[IntArray],
    target_words: Sequence[IntArray],
) -> list[DoubleArray | None]:
    """Compute the attention of target words to source words with teacher forcing: (V, W) for each
    pair of lines.

    source_words, target_words: (W, 2), (V, 2) character spans of the words of each line.
    The model's own parser makes the trees that it reads. The result for an empty line is None.
    """
    found: list[DoubleArray | None] = [None] * len(sources)
    for forward in run_forward(translator, sources, targets, what=("cross",)):
        cross = cross_by_head(forward.captured)  # (B, T, S) each
        weights = default_head_weights(cross, max(layer for layer, _ in cross))  # (B, T, S)
        for one, row in zip(forward.sentences, weights, strict=True):
            words = source_words[one.index], target_words[one.index]
            found[one.index] = word_weights(row, one.target, one.source, *words)
    return found
