"""The norm of the gate to syntactic annotations at each target word (Tran & Bisk, 2018).

    norm of piece t = ‖z_t‖ / √D
    z_t = σ(W_z h_t + b_z), (D,), at the step that predicts piece t

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

from synmt.analysis.forward_passes import (
    ForwardPass,
    LeftOut,
    ParsedText,
    SentencePass,
    measure_text,
)
from synmt.arrays import DoubleArray, IntArray, Texts
from synmt.decode.explanation import gate_norms, word_norms
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError
from synmt.evaluation.bootstrap import ratio_intervals, sum_by_sentence
from synmt.model.lstm import Gate
from synmt.reporting.values import (
    Column,
    Table,
    count_column,
    share_column,
    text_column,
)
from synmt.syntax.parse import Parse

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
        return self.parse.or_unknown(self.parse.tags)


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


def read_gates(translator: Translator, text: ParsedText) -> tuple[list[GatedSentence], LeftOut]:
    """Run the model with teacher forcing and read its gates, with progress; the trees are of the
    target.

    Returns the sentences in the order of their lines, and the number of pairs that are left out;
    pairs without words on one side are `empty`.
    """

    def read(forward: ForwardPass) -> Tensor:
        assert forward.captured.gates is not None
        return gate_norms(forward.captured.gates)  # (B, T)

    def measure(sentence: SentencePass, norms: DoubleArray) -> GatedSentence:
        assert text.target is not None
        line, parse = sentence.index, text.gold[sentence.index]
        of_words = word_norms(norms[: len(sentence.target)], sentence.target, parse.spans)  # (W,)
        return GatedSentence(line + 1, text.source[line], text.target[line], parse, of_words)

    by_sentence, left_out = measure_text(translator, text, "reading gates", read, measure)
    return list(by_sentence.values()), left_out


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
    for sentence in sentences:
        tags = np.array(sentence.tags, dtype=str)  # (W,)
        real = ~np.isnan(sentence.norms) & (tags != without)  # (W,)
        norms = sentence.norms[real]
        if len(norms):
            first = norms == norms.max()
            number = np.full(len(norms), len(columns) - 1)  # (W,)
            chance = np.full(len(norms), 1 / len(norms))  # (W,)
            columns.append((tags[real], norms, number, first / first.sum(), chance))
    return GatedWords(*map(np.concatenate, zip(*columns, strict=True)))


def tag_table(sentences: Sequence[GatedSentence], notes: Texts = ()) -> Table:
    """Make the table of parts of speech, by ratio."""
    words, unpunctuated = gated_words(sentences), gated_words(sentences, without=PUNCTUATION)
    if not len(words.tags):
        raise SynmtError(
            "there are no gates of target words: all lines are empty, or longer than the "
            "model takes",
            do="Choose another test set with `--test`",
        )
    names = np.unique(words.tags)  # (G,)
    tagged = words.tags[:, None] == names  # (M, G)
    count = words.sentences[-1] + 1
    firsts = sum_by_sentence(words.highest[:, None] * tagged, words.sentences, count)  # (N, G)
    chances = sum_by_sentence(words.chance[:, None] * tagged, words.sentences, count)  # (N, G)
    rows = []
    for number, interval in enumerate(ratio_intervals(firsts, chances)):
        norms = words.norms[tagged[:, number]]
        highest, expected = float(firsts[:, number].mean()), float(chances[:, number].mean())
        others = unpunctuated.tags == names[number]
        chance = sum(unpunctuated.chance[others].tolist())
        rows.append(
            [
                str(names[number]),
                len(norms),
                len(norms) / len(words.tags),
                float(norms.mean()),
                float(norms.std()),
                highest,
                expected,
                highest / expected,
                interval,
                sum(unpunctuated.highest[others].tolist()) / chance if chance else None,
            ]
        )
    rows.sort(key=lambda row: -row[7])
    columns = [
        text_column("tag"),
        count_column("words"),
        share_column("share"),
        Column("norm", digits=3, about="mean norm of the gate, 0 = closed, 1 = open"),
        Column("±", digits=3, name="deviation", about="standard deviation of the norms"),
        share_column(
            "highest",
            about="sentences with the highest norm on this tag; chance: expected share",
        ),
        share_column("chance", name="expected"),
        Column(
            "ratio",
            about="highest / chance, with 95 % interval; no PUNCT: without punctuation",
        ),
        Column("95 %", name="interval"),
        Column("no PUNCT", name="unpunctuated"),
    ]
    return Table(columns=columns, rows=rows, notes=notes)
