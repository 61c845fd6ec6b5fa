"""Which words of the reference translate a source word? Alignments from a file, or from the
attention of runs."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis.compare.words import word_attention
from synmt.analysis.groups.results import NAMED_GROUPS
from synmt.analysis.words.accuracy import WordGroups
from synmt.analysis.words.texts import TokenizedText, TranslatedText, WordTexts
from synmt.arrays import DoubleArray, IntArray
from synmt.decode.alignment import Pair, best_pairs
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError, listed
from synmt.files.reading import read_lines
from synmt.run_folder import find_run
from synmt.syntax.align import locate_words

if TYPE_CHECKING:
    from synmt.analysis.options import WordOptions

_logger = logging.getLogger(__name__)
_PAIR = re.compile(r"(\d+)-(\d+)")
_FEW = 30
"""Groups of fewer words say little in any case."""


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
        found, made_by = (
            read_alignments(options.alignments, source, reference),
            options.alignments.name,
        )
    elif texts.runs:
        found, systems = _by_attention(texts)
        mean = "mean " * (len(systems) > 1)
        made_by = (
            f"the {mean}attention of {listed(systems)} to the source, with the reference given"
        )
    else:
        raise UsageError(
            "source words need alignments with the references, and there is no run that makes them",
            do="Give them as `--alignments FILE`, or use `--side target` for target words",
        )
    pairs = join_alignments(found, source, reference)
    share = len(np.unique(pairs[:, 0])) / max(len(source), 1)
    return pairs, f"alignments: {made_by}; {share:.0%} of the source words are aligned"


def join_alignments(
    alignments: Iterable[Sequence[Pair]], source: TokenizedText, reference: TokenizedText
) -> IntArray:
    """Number the words of aligned pairs through the whole text: for each sentence its pairs -> (A,
    2)."""
    starts = zip(source.starts.tolist(), reference.starts.tolist(), strict=True)
    pairs = [
        (start + one, other_start + other)
        for (start, other_start), some in zip(starts, alignments, strict=True)
        for one, other in some
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def rarely_aligned(groups: WordGroups, pairs: IntArray) -> list[str]:
    """Name the groups of source words less than half of which are aligned, in a line for the
    legend."""
    aligned = np.zeros(len(groups.words), dtype=np.bool_)  # (M,)
    aligned[pairs[:, 0]] = True
    shares = []
    for number, name in enumerate(groups.names):
        words = aligned[groups.words == number]
        if len(words) >= _FEW and words.mean() < 0.5:
            shares.append((words.mean(), name))
    if not shares:
        return []
    few = [f"{name} ({int(100 * share)}%)" for share, name in sorted(shares)]
    return [
        f"less than half of the words are aligned in {listed(few, NAMED_GROUPS)}: their recall "
        "says little"
    ]


def _by_attention(texts: WordTexts) -> tuple[list[list[Pair]], list[str]]:
    """Align the references by the mean attention of the systems, each with one of its seeds, and
    name the systems.

    A system whose model cannot read the text is left out, unless there is no other.
    """
    found, errors = {}, []
    for system in texts.systems:
        for run, lines in [(seed.run, seed.as_read()) for seed in system.seeds if seed.run][:1]:
            read = lines.source, lines.reference
            try:
                found[system.name] = attention(run, read, texts.source, texts.reference)
            except SynmtError as error:
                errors.append(error)
    if not found:
        raise errors[0]
    for error in errors:
        _logger.warning("a system does not help to align words: %s", error)
    known = ([one for one in some if one is not None] for some in zip(*found.values(), strict=True))
    return most_attended(np.sum(some, axis=0) if some else None for some in known), list(found)


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

    def align(one: TranslatedText) -> IntArray:
        seed, lines = one.outputs, one.outputs.as_read()
        # a file is raw text, unless words are scored
        raw = seed.run is None and not seed.scoring.on_tokens
        run = seed.run or texts.run_folders[0]
        found = attention(run, (lines.source, lines.hypothesis), texts.source, one.words, raw=raw)
        return join_alignments(most_attended(found), texts.source, one.words)

    aligned = list(map(align, texts.translations)) if options.alignments is None else []
    return [
        replace(
            group,
            by=group.by.replace("source word", "aligned source word"),
            side="target",
            words=carry_over(group.words, pairs, len(texts.reference)),
            translated=[
                carry_over(group.words, own, len(one.words))
                for own, one in zip(aligned, texts.translations, strict=False)
            ],
        )
        for group in groups
    ]


def carry_over(numbers: IntArray, pairs: IntArray, words: int) -> IntArray:
    """Copy to each target word the group of its first source word: (M,) -> (words,), -1 for
    none."""
    found = np.full(words, -1, dtype=np.int64)
    source, target = pairs[::-1].T
    found[target] = numbers[source]
    return found


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
            where=str(path),
        )
    texts = zip(lines, source.lines, reference.lines, strict=True)
    return [
        _read_pairs(line, (len(words), len(others)), f"{path}, line {number}")
        for number, (line, words, others) in enumerate(texts, start=1)
    ]


def _read_pairs(line: str, lengths: tuple[int, int], where: str) -> list[Pair]:
    pairs = []
    for text in line.split():
        found = _PAIR.fullmatch(text)
        if not found:
            raise SynmtError(
                f"'{text}' is not an aligned pair", where=where, allowed="Pairs: 0-0 1-2, from 0"
            )
        pair = int(found[1]), int(found[2])
        if pair[0] >= lengths[0] or pair[1] >= lengths[1]:
            raise SynmtError(
                f"{text}, but the source has {lengths[0]} words and the reference {lengths[1]}",
                where=where,
                do="Align the same words: those between spaces, source first, counted from 0",
            )
        pairs.append(pair)
    return pairs


def attention(
    run: Path,
    lines: tuple[Sequence[str], Sequence[str]],
    source: TokenizedText,
    target: TokenizedText,
    *,
    raw: bool = False,
) -> list[DoubleArray | None]:
    """Compute the attention of target words to source words, of a model that has to write the
    target.

    lines: source and target, as the model reads and writes them, or raw text.
    """
    try:
        translator = Translator.load(find_run(run))
        if raw:
            tokenizers = translator.tokenizers
            lines = (
                tokenizers["source"].tokenize_lines(lines[0]),
                tokenizers["target"].tokenize_lines(lines[1]),
            )
        places = (
            [locate_words(words, line) for words, line in zip(text.lines, some, strict=True)]
            for text, some in zip((source, target), lines, strict=True)
        )
        return word_attention(translator, *lines, *places)
    except SynmtError as error:
        raise error.with_(
            do=f"{error.do or 'Use another run'}, or give a file: `--alignments FILE`"
        ) from None


def most_attended(weights: Iterable[DoubleArray | None]) -> list[list[Pair]]:
    """Align each target word with the source word that it attends to most; lines without attention
    have no pairs."""
    return [[] if one is None else best_pairs(one) for one in weights]
