"""Trees and word alignments of compared sentences; those that cannot be computed are left out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from synmt.analysis.compare.sentences import ComparedSentence, word_spans
from synmt.analysis.forward_passes import run_forward
from synmt.analysis.groups.trees import find_side_parser
from synmt.analysis.inputs import name_parser, parse_lines
from synmt.arrays import DoubleArray, IntArray, Texts, Values
from synmt.decode.alignment import attention_to_source, best_pairs, word_weights
from synmt.decode.translator import Translator
from synmt.errors import SynmtError
from synmt.run_folder import find_run
from synmt.syntax.parse import Parse

Attentions = list[DoubleArray | None]
"""For each line, the attention of V target words to W source words, (V, W); None if it is not
known."""

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

    def as_json(self) -> Values:
        """Return the words, the tree and the alignments as plain values; missing ones are None."""
        tree = self.tree
        return {
            "source_words": self.source_words.tolist(),
            "tree": {
                "relations": tree.relations,
                "tags": tree.tags,
                "parents": tree.parents.tolist(),
            }
            if tree
            else None,
            "alignments": [
                None if attention is None else best_pairs(attention)
                for attention in self.attentions
            ],
        }


@dataclass(frozen=True, eq=False)
class WordDetails:
    """The words of all compared sentences, by line number.

    parser: name of the parser that made the trees; empty without trees.
    """

    by_line: dict[int, SentenceWords]
    parser: str = ""


def find_words(
    sentences: Sequence[ComparedSentence],
    runs: Sequence[Path | None],
    source: Path | None,
    model: str | None,
    *,
    raw: bool = False,
) -> WordDetails:
    """Parse the sources, and align the translations of runs.

    runs: the run folder of each system; None for files.
    source: the file of the source; its name tells the language if there is no run.
    model: the Stanza model to use instead of the last run's.
    raw: whether the sentences are raw text, although a run tokenizes it: then nothing is parsed or
        aligned.
    """
    lines = [sentence.source for sentence in sentences]
    run = next((find_run(folder) for folder in reversed(runs) if folder), None)
    trees, name = [None] * len(lines), ""
    if any(lines) and not raw:
        try:
            parser = find_side_parser(model, run, "source", source)
            trees, name = parse_lines(parser, lines), name_parser(parser)
        except SynmtError as error:
            if model:
                raise
            _logger.info("no trees of the source: %s", error)
    spans = [
        tree.spans if tree else word_spans(line) for tree, line in zip(trees, lines, strict=True)
    ]
    attentions = [
        _align(
            None if raw else folder,
            lines,
            [sentence.translations[place] for sentence in sentences],
            spans,
        )
        for place, folder in enumerate(runs)
    ]
    words = map(SentenceWords, trees, spans, zip(*attentions, strict=True))
    return WordDetails(
        {
            sentence.line: sentence_words
            for sentence, sentence_words in zip(sentences, words, strict=True)
        },
        name,
    )


def _align(
    run: Path | None, sources: list[str], targets: list[str], source_words: list[IntArray]
) -> Attentions:
    if run is not None:
        try:
            target_words = list(map(word_spans, targets))
            return word_attention(
                Translator.load(run), sources, targets, source_words, target_words
            )
        except SynmtError as error:
            # for example, the model reads trees and its run does not record their parser
            _logger.info("no alignments of %s: %s", run.name, error)
    return [None] * len(sources)


def word_attention(
    translator: Translator,
    sources: Texts,
    targets: Texts,
    source_words: Sequence[IntArray],
    target_words: Sequence[IntArray],
) -> Attentions:
    """Compute the attention of target words to source words with teacher forcing: (V, W) for each
    pair of lines.

    source_words, target_words: (W, 2), (V, 2) character spans of the words of each line.
    The model's own parser makes the trees that it reads. The result for an empty line is None.
    """
    attentions: Attentions = [None] * len(sources)
    for forward in run_forward(translator, sources, targets, what=("cross",)):
        weights = attention_to_source(forward.captured.cross)  # (B, T, S)
        for sentence, row in zip(forward.sentences, weights, strict=True):
            line = sentence.index
            attentions[line] = word_weights(
                row, sentence.target, sentence.source, source_words[line], target_words[line]
            )
    return attentions
