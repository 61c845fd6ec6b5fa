"""Which words of the reference translate a source word? Alignments from a file, or from the
attention of runs."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from synmt.analysis.compare.words import Attentions, word_attention
from synmt.analysis.options import WordOptions
from synmt.analysis.words.accuracy import WordGroups
from synmt.analysis.words.texts import TokenizedText, TranslatedText, WordTexts
from synmt.arrays import DoubleArray, IntArray, Texts, int_pairs
from synmt.decode.alignment import Pair, best_pairs
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError
from synmt.files.reading import read_lines
from synmt.run_folder import find_run
from synmt.syntax.align import locate_words

_logger = logging.getLogger(__name__)
_PAIR = re.compile(r"(\d+)-(\d+)")


def find_alignments(options: WordOptions, texts: WordTexts) -> tuple[IntArray, str]:
    """Align source words with words of the references, and say how.

    Attention is the mean over the systems, so that their order does not matter.

    Returns (A, 2) aligned words, numbered through the whole text (see join_alignments), and a line
    for the legend.
    """
    source, reference = texts.source, texts.reference
    if options.alignments is not None:
        if texts.scoring.tokenize != "none":
            raise UsageError(
                f"alignments in a file are those of words between spaces, but words are those of "
                f"{texts.scoring.tokenize}",
                where="--alignments",
                do="Give tokenized text, and add `--tokenize none`",
            )
        alignments = read_alignments(options.alignments, source, reference)
        made_by = options.alignments.name
    else:
        alignments, systems = _by_attention(texts)
        made_by = f"attention to the source, with the reference given, of {', '.join(systems)}"
    pairs = join_alignments(alignments, source, reference)
    share = len(np.unique(pairs[:, 0])) / max(len(source), 1)
    return pairs, f"alignments: {made_by}; {share:.0%} of the source words are aligned"


def join_alignments(
    alignments: Iterable[Sequence[Pair]], source: TokenizedText, reference: TokenizedText
) -> IntArray:
    """Number the words of aligned pairs through the whole text: for each sentence its pairs -> (A,
    2)."""
    starts = zip(source.starts.tolist(), reference.starts.tolist(), strict=True)
    pairs = [
        (start + source_word, other_start + reference_word)
        for (start, other_start), sentence_pairs in zip(starts, alignments, strict=True)
        for source_word, reference_word in sentence_pairs
    ]
    return int_pairs(pairs)


def _by_attention(texts: WordTexts) -> tuple[list[list[Pair]], list[str]]:
    """Align the references by the mean attention of the systems, each with one of its seeds, and
    name the systems; one whose model cannot read the text is left out."""
    attentions = dict[str, Attentions]()
    for system in texts.systems:
        seed = next((seed for seed in system.seeds if seed.run), None)
        if seed and seed.run:
            lines = seed.as_read().source, seed.as_read().reference
            try:
                attentions[system.name] = attention(seed.run, lines, texts.source, texts.reference)
            except SynmtError as error:
                _logger.warning("%s does not help to align words: %s", system.name, error)
    if not attentions:
        raise UsageError(
            "source words need alignments with the references, and there is no run that makes them",
            do="Give them as `--alignments FILE`, or use `--side target` for target words",
        )
    # a line that one model cannot read is aligned by the others
    means = []
    for of_line in zip(*attentions.values(), strict=True):
        known = [matrix for matrix in of_line if matrix is not None]
        means.append(np.sum(known, axis=0) if known else None)
    return most_attended(means), list(attentions)


def by_aligned_words(
    options: WordOptions, texts: WordTexts, groups: Sequence[WordGroups], pairs: IntArray
) -> list[WordGroups]:
    """Group target words as the source words that they are aligned with; words without an alignment
    are in no group.

    groups: of the source words.
    pairs: (A, 2) aligned words of source and references, numbered through the whole text.

    Words of a translation are aligned by the attention of its run, or of the first run if it is a
    file. A file of alignments says nothing about translations, so that the groups have no
    translated words, and recall only.
    """

    def align(translation: TranslatedText) -> IntArray:
        seed, lines = translation.outputs, translation.outputs.as_read()
        # a file is raw text, unless words are scored
        raw = seed.run is None and not seed.scoring.on_tokens
        run = seed.run or texts.run_folders[0]
        attentions = attention(
            run, (lines.source, lines.hypothesis), texts.source, translation.words, raw=raw
        )
        return join_alignments(most_attended(attentions), texts.source, translation.words)

    aligned = list(map(align, texts.translations)) if options.alignments is None else []
    return [
        replace(
            group,
            by=group.by.replace("source word", "aligned source word"),
            side="target",
            words=carry_over(group.words, pairs, len(texts.reference)),
            translated=[
                carry_over(group.words, aligned_words, len(translation.words))
                for aligned_words, translation in zip(aligned, texts.translations, strict=False)
            ],
        )
        for group in groups
    ]


def carry_over(numbers: IntArray, pairs: IntArray, words: int) -> IntArray:
    """Copy to each target word the group of its first source word: (M,) -> (words,), -1 for
    none."""
    carried = np.full(words, -1, dtype=np.int64)
    source, target = pairs[::-1].T
    carried[target] = numbers[source]
    return carried


def read_alignments(
    path: Path, source: TokenizedText, reference: TokenizedText
) -> list[list[Pair]]:
    """Read word alignments as Pharaoh wrote them: for each sentence `0-0 1-2`, the source word
    first, from 0.

    Raises SynmtError if a line is not of this form, or names words that the sentence does not have.
    """
    lines = list(read_lines(path))
    if len(lines) != len(source.lines):
        raise SynmtError(
            f"{len(lines):,} lines of alignments, but there are {len(source.lines):,} sentences",
            where=path,
        )
    alignments = []
    for number, line in enumerate(lines):
        lengths = len(source.lines[number]), len(reference.lines[number])
        pairs = list[Pair]()
        for text in line.split():
            pair = _PAIR.fullmatch(text)
            if not pair or int(pair[1]) >= lengths[0] or int(pair[2]) >= lengths[1]:
                raise SynmtError(
                    f"'{text}' is not a pair of a source word, of {lengths[0]}, and a reference "
                    f"word, of {lengths[1]}",
                    where=f"{path}, line {number + 1}",
                    allowed="Pairs: 0-0 1-2, counted from 0",
                )
            pairs.append((int(pair[1]), int(pair[2])))
        alignments.append(pairs)
    return alignments


def attention(
    run: Path,
    lines: tuple[Texts, Texts],
    source: TokenizedText,
    target: TokenizedText,
    *,
    raw: bool = False,
) -> Attentions:
    """Compute the attention of target words to source words, of a model that has to write the
    target.

    lines: source and target, as the model reads and writes them, or raw text.
    """
    translator = Translator.load(find_run(run))
    sources, targets = lines
    if raw:
        sources = translator.tokenizers["source"].tokenize_lines(sources)
        targets = translator.tokenizers["target"].tokenize_lines(targets)
    places = (
        [locate_words(words, line) for words, line in zip(text.lines, lines_of_text, strict=True)]
        for text, lines_of_text in ((source, sources), (target, targets))
    )
    return word_attention(translator, sources, targets, *places)


def most_attended(weights: Iterable[DoubleArray | None]) -> list[list[Pair]]:
    """Align each target word with the source word that it attends to most; lines without attention
    have no pairs."""
    return [[] if matrix is None else best_pairs(matrix) for matrix in weights]
