"""Which words of the reference translate a source word? Alignments from a file, or from the attention of a run."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis.compare.words import word_attention
from synmt.analysis.groups.scores import NAMED_GROUPS
from synmt.analysis.words.counts import WordGroups
from synmt.analysis.words.matching import TokenizedText, join_alignments
from synmt.analysis.words.texts import WordTexts
from synmt.arrays import DoubleArray, IntArray
from synmt.decode.alignment import Pair, best_pairs
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError, listed
from synmt.files.reading import read_lines
from synmt.run import find_run
from synmt.syntax.align import locate_words

if TYPE_CHECKING:
    from synmt.analysis.options import WordOptions

_logger = logging.getLogger(__name__)
_PAIR = re.compile(r"(\d+)-(\d+)")
_Lines = tuple[Sequence[str], Sequence[str]]
_FEW = 30
"""Groups of fewer words say little in any case."""


def find_alignments(options: WordOptions, texts: WordTexts) -> tuple[IntArray, str]:
    """Align source words with words of the references, and say how.

    Attention is the mean over the systems, so that their order does not matter.

    Returns (A, 2) aligned words, numbered through the whole text (see join_alignments), and a line for the legend.
    """
    source, reference = texts.source, texts.reference
    if options.alignments is not None:
        found, made_by = _from_file(options.alignments, texts), options.alignments.name
    elif texts.runs:
        found, systems = _by_attention(texts)
        mean = "mean " * (len(systems) > 1)
        made_by = f"the {mean}attention of {listed(systems)} to the source, with the reference given"
    else:
        raise UsageError(
            "source words need alignments with the references, and there is no run that makes them",
            do="Give them as `--alignments FILE`, or use `--side target` for target words",
        )
    pairs = join_alignments(found, source, reference)
    share = len(np.unique(pairs[:, 0])) / max(len(source), 1)
    return pairs, f"alignments: {made_by}; {share:.0%} of the source words are aligned"


def rarely_aligned(groups: WordGroups, pairs: IntArray) -> list[str]:
    """Name the groups of source words less than half of which are aligned, in a line for the legend."""
    aligned = np.zeros(len(groups.words), dtype=np.bool_)  # (M,)
    aligned[pairs[:, 0]] = True
    inside, count = groups.words >= 0, len(groups.names)
    all_words, found = (np.bincount(groups.words[some], minlength=count) for some in (inside, inside & aligned))
    shares = [(found[row] / all_words[row], name) for row, name in enumerate(groups.names) if all_words[row] >= _FEW]
    few = [f"{name} ({int(100 * share)}%)" for share, name in sorted(shares) if share < 0.5]
    if not few:
        return []
    return [f"less than half of the words are aligned in {listed(few, NAMED_GROUPS)}: their recall says little"]


def _by_attention(texts: WordTexts) -> tuple[list[list[Pair]], list[str]]:
    """Align the references by the mean attention of the systems, each with one of its seeds, and name the systems.

    A system whose model cannot read the text is left out, unless there is no other.
    """
    total: list[DoubleArray | None] = [None] * len(texts.reference.lines)
    names, errors = [], []
    for system in texts.systems:
        seed = next((seed for seed in system.seeds if seed.run), None)
        if seed is None or seed.run is None:
            continue
        lines = seed.as_read()
        try:
            weights = _attention(seed.run, (lines.source, lines.reference), texts.source, texts.reference)
        except SynmtError as error:
            errors.append(error)
            continue
        total = [_sum(one, other) for one, other in zip(total, weights, strict=True)]
        names.append(system.name)
    if not names:
        raise errors[0]
    for error in errors:
        _logger.warning("a system does not help to align words: %s", error)
    return [[] if one is None else best_pairs(one) for one in total], names


def _sum(one: DoubleArray | None, other: DoubleArray | None) -> DoubleArray | None:
    return one if other is None else other if one is None else one + other


def _from_file(path: Path, texts: WordTexts) -> list[list[Pair]]:
    if texts.options.tokenize != "none":
        raise UsageError(
            f"alignments in a file are those of words between spaces, but words are those of {texts.options.tokenize}",
            where="--alignments",
            do="Give tokenized text, and add `--tokenize none`",
        )
    return read_alignments(path, texts.source, texts.reference)


def read_alignments(path: Path, source: TokenizedText, reference: TokenizedText) -> list[list[Pair]]:
    """Read word alignments as Pharaoh wrote them: for each sentence `0-0 1-2`, the source word first, from 0.

    Raises SynmtError if a line is not of this form, or names words that the sentence does not have.
    """
    lines = list(read_lines(path))
    if len(lines) != len(source.lines):
        raise SynmtError(
            f"{len(lines):,} lines of alignments, but there are {len(source.lines):,} sentences", where=str(path)
        )
    texts = zip(lines, source.lines, reference.lines, strict=True)
    return [
        _read_pairs(line, (len(words), len(others)), f"{path}, line {number}")
        for number, (line, words, others) in enumerate(texts, start=1)
    ]


def _read_pairs(line: str, lengths: tuple[int, int], where: str) -> list[Pair]:
    pairs: list[Pair] = []
    for text in line.split():
        found = _PAIR.fullmatch(text)
        if not found:
            raise SynmtError(f"'{text}' is not an aligned pair", where=where, allowed="Pairs: 0-0 1-2, from 0")
        pair = int(found[1]), int(found[2])
        if pair[0] >= lengths[0] or pair[1] >= lengths[1]:
            raise SynmtError(
                f"{text}, but the source has {lengths[0]} words and the reference {lengths[1]}",
                where=where,
                do="Align the same words: those between spaces, source first, counted from 0",
            )
        pairs.append(pair)
    return pairs


def attend(
    run: Path, lines: _Lines, source: TokenizedText, target: TokenizedText, *, raw: bool = False
) -> list[list[Pair]]:
    """Align each target word with the source word that a model attends to most when it has to write the target.

    lines: source and target, as the model reads and writes them, or raw text.
    """
    return [[] if one is None else best_pairs(one) for one in _attention(run, lines, source, target, raw=raw)]


def _attention(
    run: Path, lines: _Lines, source: TokenizedText, target: TokenizedText, *, raw: bool = False
) -> list[DoubleArray | None]:
    try:
        translator = Translator.load(find_run(run))
        if raw:
            lines = (
                translator.tokenizers["source"].tokenize_lines(lines[0]),
                translator.tokenizers["target"].tokenize_lines(lines[1]),
            )
        places = (
            [locate_words(words, line) for words, line in zip(text.lines, some, strict=True)]
            for text, some in zip((source, target), lines, strict=True)
        )
        return word_attention(translator, *lines, *places)
    except SynmtError as error:
        raise error.with_(do=f"{error.do or 'Use another run'}, or give a file: `--alignments FILE`") from None
