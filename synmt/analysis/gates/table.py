"""How often each part of speech has the highest gate norm of a sentence, relative to chance (Tran & Bisk, 2018).

    ratio = share of sentences in which a word with the tag has the highest norm / expected share

By chance every word of a sentence is equally likely to have the highest norm, so the expected share of a tag in a
sentence is its share of the words. Words with equal norms share the first place. Only words with a norm count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from synmt.arrays import DoubleArray, IntArray
from synmt.errors import SynmtError
from synmt.evaluation.bootstrap import SAMPLES, SEED, ratio_intervals, sum_by_sentence

if TYPE_CHECKING:
    from synmt.analysis.gates.norms import GatedSentence, ModelGates

MIN_WORDS = 10
"""Tags with fewer words are marked and have no interval."""

PUNCTUATION = "PUNCT"
"""Left out for the second ratio: if the full stop has the highest norm of every sentence, all other ratios are 0."""

COLUMNS = ["tag", "words", "share", "norm", "highest", "chance", "ratio", "95 %", "no PUNCT"]
"""Names of the cells of a row; the table fits into 80 columns."""


@dataclass(frozen=True)
class TagRow:
    """One part of speech.

    words: number of words with the tag.
    share: share of all words, 0 to 1.
    norm, deviation: mean and standard deviation of the norms.
    highest: share of sentences in which a word with the tag has the highest norm, 0 to 1.
    expected: the expected share by chance.
    interval: 95 % bootstrap interval of the ratio; None for few words, or if none ever has the highest norm.
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

    @property
    def label(self) -> str:
        """The tag, marked with an asterisk for few words."""
        return self.tag + " *" * self.few

    def cells(self) -> list[str]:
        """Format the cells of the row, as in `COLUMNS`."""
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
    """All parts of speech, by ratio; tags with few words are last.

    sentences: number of sentences in which a word has a norm.
    words: number of words with a norm.
    without: number of words without a norm, since they have no piece of their own.
    norm, deviation: mean and standard deviation over all words.
    """

    sentences: int
    words: int
    without: int
    norm: float
    deviation: float
    rows: list[TagRow]


def tabulate(sentences: Iterable[GatedSentence]) -> GateTable:
    """Make the table of parts of speech."""
    ordered = sorted(sentences, key=lambda one: one.line)
    words = _words(ordered)
    if not len(words.tags):
        raise SynmtError(
            "there are no gates of target words: all lines are empty, or longer than the model takes",
            do="Choose another test set with `--test`",
        )
    names, tags = np.unique(words.tags, return_inverse=True)  # (G,), (M,)
    tagged = tags[:, None] == np.arange(len(names))  # (M, G)
    highest, expected = (
        sum_by_sentence(values[:, None] * tagged, words.sentences, words.sentences.max() + 1)  # (N, G)
        for values in (words.highest, words.chance)
    )
    intervals = ratio_intervals(highest, expected)
    unpunctuated = _ratios(_words(ordered, without=PUNCTUATION))
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
            unpunctuated=unpunctuated.get(name),
        )
        rows.append(row)
    rows.sort(key=lambda row: (row.few, -row.ratio, row.tag))
    without = sum(int(np.isnan(one.norms).sum()) for one in ordered)
    return GateTable(len(highest), len(tags), without, float(words.norms.mean()), float(words.norms.std()), rows)


def highest_shares(norms: DoubleArray) -> DoubleArray:
    """Mark the word with the highest norm: (W,) -> (W,) of 0 and 1; words with equal norms share the 1."""
    first = norms == norms.max()  # (W,)
    return first / first.sum()


@dataclass(frozen=True)
class _Words:
    """The M words with a norm, in flat arrays: tag, norm, number of the sentence, first place and chance of it."""

    tags: npt.NDArray[np.str_]
    norms: DoubleArray
    sentences: IntArray
    highest: DoubleArray
    chance: DoubleArray


def _words(sentences: Iterable[GatedSentence], *, without: str = "") -> _Words:
    """Flatten the words with a norm, except those with the tag `without`; sentences without such words are skipped."""
    # starts with empty arrays: np.concatenate needs at least one
    columns = [(np.zeros(0, str), np.zeros(0), np.zeros(0, int), np.zeros(0), np.zeros(0))]
    for one in sentences:
        tags = np.array(one.tags, dtype=str)  # (W,)
        real = ~np.isnan(one.norms) & (tags != without)  # (W,)
        norms, count = one.norms[real], int(real.sum())
        if count:
            number, chance = np.full(count, len(columns) - 1), np.full(count, 1 / count)  # (W,) both
            columns.append((tags[real], norms, number, highest_shares(norms), chance))
    return _Words(*map(np.concatenate, zip(*columns, strict=True)))


def _ratios(words: _Words) -> dict[str, float]:
    """Compute the ratio of each tag."""
    names, tags = np.unique(words.tags, return_inverse=True)  # (G,), (M,)
    ratios = np.bincount(tags, weights=words.highest) / np.bincount(tags, weights=words.chance)  # (G,)
    return dict(zip(names.tolist(), ratios.tolist(), strict=True))


def gates_as_json(table: GateTable, gates: ModelGates) -> dict[str, Any]:
    """Convert the table and every word to plain values; missing values are None."""
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
