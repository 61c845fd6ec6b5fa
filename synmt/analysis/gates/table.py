"""Which parts of speech read syntax: how often their words have the highest gate of the sentence (Tran & Bisk, 2018).

    ratio = share of the sentences whose highest word has the part of speech / the same share by chance

By chance every word of a sentence is as likely to be the highest as any other, so that a part of speech has in each
sentence its share of the words. Words with the same norm share the place. Only words with a norm count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from synmt.arrays import DoubleArray, IntArray
from synmt.errors import SynmtError
from synmt.evaluation.bootstrap import SAMPLES, SEED, ratio_intervals

if TYPE_CHECKING:
    from synmt.analysis.gates.norms import GatedSentence, ModelGates

FEW = 10
"""With fewer words than this, a part of speech is set apart, and no interval is given."""

PUNCTUATION = "PUNCT"
"""Left out for the second ratio: a full stop that is the highest in every sentence would hide all other differences."""

COLUMNS = ["tag", "words", "share", "norm", "highest", "chance", "ratio", "95 %", "no PUNCT"]
"""What the cells of a row are; the table fits on 80 columns."""


@dataclass(frozen=True)
class TagRow:
    """One part of speech.

    words: how many have it.
    share: of all words, 0 to 1.
    norm, deviation: mean and standard deviation of its words' norms.
    highest: share of the sentences in which a word of it has the highest norm, 0 to 1.
    expected: the same by chance.
    interval: 95 % of the ratios that resampled sentences give; None with few words, or with none that is the highest.
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
        """How much more often than by chance its words are the highest; 1 is chance."""
        return self.highest / self.expected

    @property
    def few(self) -> bool:
        """Whether there are too few words to say anything."""
        return self.words < FEW

    @property
    def label(self) -> str:
        """The part of speech, marked where it has few words."""
        return self.tag + " *" * self.few

    def cells(self) -> list[str]:
        """Write the row for people, cell by cell, as COLUMNS names them."""
        return [
            self.label,
            f"{self.words:,}",
            f"{self.share:.1%}",
            f"{self.norm:.3f}",
            f"{self.highest:.1%}",
            f"{self.expected:.1%}",
            f"{self.ratio:.2f}",
            f"{self.interval[0]:.2f}–{self.interval[1]:.2f}" if self.interval else "-",
            "-" if self.unpunctuated is None else f"{self.unpunctuated:.2f}",
        ]


@dataclass(frozen=True)
class GateTable:
    """All parts of speech, the highest ratio first, those of few words last.

    sentences: those with a word that has a norm.
    words: those with a norm.
    without: words of these lines without a piece of their own.
    norm, deviation: mean and standard deviation over all words.
    """

    sentences: int
    words: int
    without: int
    norm: float
    deviation: float
    rows: list[TagRow]


def tabulate(sentences: Iterable[GatedSentence]) -> GateTable:
    """Count by part of speech."""
    given = sorted(sentences, key=lambda one: one.line)
    words = _words(given)
    if not len(words.tags):
        raise SynmtError(
            "no word of the target has a gate: all lines are empty, or longer than the model takes",
            do="Take another test set with `--test`",
        )
    names, tags = np.unique(words.tags, return_inverse=True)  # (G,), (M,)
    highest, expected = _by_sentence(words.highest, tags, words), _by_sentence(words.chance, tags, words)  # (N, G) both
    intervals = ratio_intervals(highest, expected)
    unpunctuated = _ratios(_words(given, without=PUNCTUATION))
    rows = []
    for number, name in enumerate(names.tolist()):
        norms = words.norms[tags == number]
        sure = len(norms) >= FEW and highest[:, number].any()
        row = TagRow(
            tag=name,
            words=len(norms),
            share=len(norms) / len(tags),
            norm=float(norms.mean()),
            deviation=float(norms.std()),
            highest=float(highest[:, number].mean()),
            expected=float(expected[:, number].mean()),
            interval=intervals[number] if sure else None,
            unpunctuated=unpunctuated.get(name),
        )
        rows.append(row)
    rows.sort(key=lambda row: (row.few, -row.ratio, row.tag))
    without = sum(int(np.isnan(one.norms).sum()) for one in given)
    return GateTable(len(highest), len(tags), without, float(words.norms.mean()), float(words.norms.std()), rows)


def highest_shares(norms: DoubleArray) -> DoubleArray:
    """Give the highest place of a sentence to one word, or to all that share it in equal parts: (W,) -> (W,)."""
    first = norms == norms.max()  # (W,)
    return first / first.sum()


@dataclass(frozen=True)
class _Words:
    """The M words with a norm, flat: tag, norm, number of the sentence, and what `TagRow` sums up."""

    tags: npt.NDArray[np.str_]
    norms: DoubleArray
    sentences: IntArray
    highest: DoubleArray
    chance: DoubleArray


def _words(sentences: Iterable[GatedSentence], *, without: str = "") -> _Words:
    """Lay out the words that have a norm, and not the tag `without`; a sentence that has none is no sentence."""
    # tag, norm, sentence, highest, chance; of no words, so that there is something to join
    columns = [(np.zeros(0, str), np.zeros(0), np.zeros(0, int), np.zeros(0), np.zeros(0))]
    for one in sentences:
        tags = np.array(one.tags, dtype=str)  # (W,)
        real = ~np.isnan(one.norms) & (tags != without)  # (W,)
        norms, count = one.norms[real], int(real.sum())
        if count:
            number, chance = np.full(count, len(columns) - 1), np.full(count, 1 / count)  # (W,) both
            columns.append((tags[real], norms, number, highest_shares(norms), chance))
    return _Words(*map(np.concatenate, zip(*columns, strict=True)))


def _by_sentence(values: DoubleArray, tags: IntArray, words: _Words) -> DoubleArray:
    """Sum values of words (M,) for each sentence and tag: (N, G)."""
    sums = np.zeros((words.sentences.max() + 1, tags.max() + 1))  # (N, G)
    np.add.at(sums, (words.sentences, tags), values)
    return sums


def _ratios(words: _Words) -> dict[str, float]:
    """Give the ratio of each tag."""
    names, tags = np.unique(words.tags, return_inverse=True)  # (G,), (M,)
    ratios = np.bincount(tags, weights=words.highest) / np.bincount(tags, weights=words.chance)  # (G,)
    return dict(zip(names.tolist(), ratios.tolist(), strict=True))


def as_json(table: GateTable, gates: ModelGates) -> dict[str, Any]:
    """Write the table and every word as plain values; what is missing is None."""
    return {
        "norm": {"unit": "‖z‖/√D, 0 to 1", "mean": table.norm, "deviation": table.deviation},
        "sentences": table.sentences,
        "left_out": {"too_long": gates.too_long, "empty": gates.empty},
        "words": table.words,
        "words_without_pieces": table.without,
        "intervals": {"share": 0.95, "resamples": SAMPLES, "seed": SEED},
        "tags": [asdict(row) | {"ratio": row.ratio, "few": row.few} for row in table.rows],
        "lines": [_line_as_json(one) for one in gates.sentences],
    }


def _line_as_json(one: GatedSentence) -> dict[str, Any]:
    norms = [None if np.isnan(norm) else norm for norm in one.norms.tolist()]
    words = zip(one.parse.words, one.tags, norms, strict=True)
    return {
        "line": one.line,
        "source": one.source,
        "target": one.target,
        "words": [{"word": word, "tag": tag, "norm": norm} for word, tag, norm in words],
    }
