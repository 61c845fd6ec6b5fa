"""The norm of the gate to syntactic annotations at each target word (Tran & Bisk, 2018).

    norm of piece t = ‖z_t‖ / √D          z_t = σ(W_z h_t + b_z), (D,), at the step that predicts
    piece t

The norm is 0 for a closed gate and 1 for an open one; the paper uses ‖z_t‖, which grows with the
width D. The norm of a word is the mean over its pieces. EOS does not count.

How often each part of speech has the highest norm of a sentence is compared with chance.

    ratio = share of sentences in which a word with the tag has the highest norm / expected share

By chance every word of a sentence is equally likely to have the highest norm, so the expected share
of a tag in a sentence is its share of the words. Words with equal norms share the first place. Only
words with a norm count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from synmt.analysis.forward_passes import ParsedText, run_with_progress
from synmt.arrays import DoubleArray, IntArray
from synmt.data.vocabulary import word_of
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError
from synmt.evaluation.bootstrap import ratio_intervals, sum_by_sentence
from synmt.model.lstm import Gate
from synmt.syntax.parse import Parse

MIN_WORDS = 10
"""Tags with fewer words are marked and have no interval."""

PUNCTUATION = "PUNCT"
"""Left out for the second ratio: if the full stop has the highest norm of every sentence, all other
ratios are 0."""


@dataclass(frozen=True)
class GatedSentence:
    """A pair of lines with the norm of the gate at each target word.

    line: its number, from 1.
    parse: of the target; gives words and tags.
    norms: (W,) from 0 to 1; NaN for a word without a piece of its own.
    """

    line: int
    source: str
    target: str
    parse: Parse
    norms: DoubleArray

    @property
    def tags(self) -> list[str]:
        """The universal part of speech of each word, `_` if unknown."""
        return self.parse.tags or ["_"] * len(self.parse)


def check_gates(translator: Translator, where: str) -> None:
    """Refuse a model without gates, before any long computation."""
    if not any(isinstance(module, Gate) for module in translator.model.modules()):
        raise UsageError(
            "this model has no gates",
            where=where,
            allowed="Models with `model.architecture: lstm` and latent_graph or latent_tree "
            "(`sets: 2`) have gates",
            do="Train one, for example `synmt train multi30k-sa`, or choose its run with `--run`",
        )


def check_tags(parses: Sequence[Parse], parser: str) -> None:
    """Refuse parses without parts of speech."""
    if not any(tag != "_" for parse in parses for tag in parse.tags):
        raise UsageError(
            "the parser gives no parts of speech to group words by",
            where=parser,
            do="Use a Stanza model with the processor `pos`",
        )


def read_gates(translator: Translator, text: ParsedText) -> tuple[list[GatedSentence], int]:
    """Run the model with teacher forcing and read its gates, with progress; the trees are of the
    target.

    Returns the sentences in the order of their lines, and the number of pairs left out because one
    side has more pieces than the model's maximum. Pairs without words on one side are left out,
    too.
    """
    found = []
    too_long = 0
    for forward in run_with_progress(translator, text, "reading gates"):
        assert forward.captured.gates is not None
        assert text.target is not None
        rows = gate_norms(forward.captured.gates).cpu().double().numpy()  # (B, T)
        for row, sentence in zip(rows, forward.sentences, strict=True):
            parse, spans = text.gold[sentence.index], sentence.target
            too_long += sentence.dropped > 0
            if len(parse) and not sentence.dropped:
                lines = text.source[sentence.index], text.target[sentence.index]
                norms = word_norms(row[: len(spans)], spans, parse.spans)  # (W,)
                found.append(GatedSentence(sentence.index + 1, *lines, parse, norms))
    return sorted(found, key=lambda one: one.line), too_long


def gate_norms(gates: Tensor) -> Tensor:
    """Compute the norms of gates (B, T, D), from 0 to 1: (B, T)."""
    return gates.norm(dim=-1) / gates.size(-1) ** 0.5


def word_norms(norms: DoubleArray, spans: IntArray, words: IntArray) -> DoubleArray:
    """Average pieces (T,) with spans (T, 2) over each word of (W, 2): (W,), NaN for a word without
    pieces."""
    owners = word_of(spans, words)  # (T,)
    owned = owners >= 0  # (T,)
    pieces = np.bincount(owners[owned], minlength=len(words))  # (W,)
    totals = np.bincount(owners[owned], weights=norms[owned], minlength=len(words))  # (W,)
    return np.divide(totals, pieces, out=np.full(len(words), np.nan), where=pieces > 0)


@dataclass(frozen=True)
class TagRow:
    """One part of speech.

    words: number of words with the tag.
    share: share of all words, 0 to 1.
    norm, deviation: mean and standard deviation of the norms.
    highest: share of sentences in which a word with the tag has the highest norm, 0 to 1.
    expected: the expected share by chance.
    interval: 95 % bootstrap interval of the ratio; None for few words, or if none ever has the
        highest norm.
    unpunctuated: the ratio among words that are not punctuation; None for punctuation.
    """

    tag: str
    words: int
    share: float
    norm: float
    deviation: float
    highest: float
    expected: float
    interval: tuple[float, float] | None
    unpunctuated: float | None

    @property
    def ratio(self) -> float:
        """How many times as often as by chance the tag has the highest norm."""
        return self.highest / self.expected

    @property
    def few(self) -> bool:
        """Whether there are too few words for a reliable ratio."""
        return self.words < MIN_WORDS


@dataclass(frozen=True)
class GatedWords:
    """The M words with a norm: tag, norm, number of the sentence, share of its first place, and
    chance of that."""

    tags: npt.NDArray[np.str_]
    norms: DoubleArray
    sentences: IntArray
    highest: DoubleArray
    chance: DoubleArray


def gated_words(sentences: Iterable[GatedSentence], *, without: str = "") -> GatedWords:
    """Collect the words with a norm, except those with the tag `without`; sentences without such
    words are skipped."""
    # starts with empty arrays: np.concatenate needs at least one
    columns = [(np.zeros(0, str), np.zeros(0), np.zeros(0, int), np.zeros(0), np.zeros(0))]
    for one in sentences:
        tags = np.array(one.tags, dtype=str)  # (W,)
        real = ~np.isnan(one.norms) & (tags != without)  # (W,)
        norms, count = one.norms[real], int(real.sum())
        if count:
            number, chance = (
                np.full(count, len(columns) - 1),
                np.full(count, 1 / count),
            )  # (W,) both
            columns.append((tags[real], norms, number, highest_shares(norms), chance))
    return GatedWords(*map(np.concatenate, zip(*columns, strict=True)))


def highest_shares(norms: DoubleArray) -> DoubleArray:
    """Mark the word with the highest norm: (W,) -> (W,) of 0 and 1; words with equal norms share
    the 1."""
    first = norms == norms.max()  # (W,)
    return first / first.sum()


def tag_rows(words: GatedWords, unpunctuated: GatedWords) -> list[TagRow]:
    """List the parts of speech by ratio, with those of few words last; the second ratio is of
    `unpunctuated`."""
    if not len(words.tags):
        raise SynmtError(
            "there are no gates of target words: all lines are empty, or longer than the "
            "model takes",
            do="Choose another test set with `--test`",
        )
    names, tags = np.unique(words.tags, return_inverse=True)  # (G,), (M,)
    tagged = tags[:, None] == np.arange(len(names))  # (M, G)
    highest, expected = (
        sum_by_sentence(
            values[:, None] * tagged, words.sentences, words.sentences[-1] + 1
        )  # (N, G)
        for values in (words.highest, words.chance)
    )
    intervals = ratio_intervals(highest, expected)
    rows = []
    for number, name in enumerate(names.tolist()):
        norms = words.norms[tags == number]
        reliable = len(norms) >= MIN_WORDS and highest[:, number].any()
        row = TagRow(
            tag=name,
            words=len(norms),
            share=len(norms) / len(tags),
            norm=float(norms.mean()),
            deviation=float(norms.std()),
            highest=float(highest[:, number].mean()),
            expected=float(expected[:, number].mean()),
            interval=intervals[number] if reliable else None,
            unpunctuated=_ratio(unpunctuated, name),
        )
        rows.append(row)
    return sorted(rows, key=lambda row: (row.few, -row.ratio, row.tag))


def _ratio(words: GatedWords, tag: str) -> float | None:
    tagged = words.tags == tag  # (M,)
    return (
        sum(words.highest[tagged].tolist()) / sum(words.chance[tagged].tolist())
        if tagged.any()
        else None
    )
