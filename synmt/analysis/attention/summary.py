"""Attention heads over a whole text: entropy, agreement with parents, and baselines that use a fixed offset.

    agreement of a head = words whose choice is their parent / words
    agreement of offset k = words whose parent is k words away / words

The best offset has the highest agreement over all words, or over the words of one relation; like the best head, it is
selected on the evaluated words. The offset 0 never agrees: roots, which have no other parent, do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from synmt.analysis.attention.heads import AttentionKind, Head
from synmt.analysis.attention.statistics import NO_CHOICE, AttentionStatistics, HeadStatistics
from synmt.arrays import DoubleArray, IntArray
from synmt.errors import SynmtError
from synmt.evaluation.bootstrap import Proportion, proportions


@dataclass(frozen=True)
class AttentionContext:
    """The attention that was measured, and the text.

    system, test: names of the run and of its test set.
    text: what the lines are, such as `source` or `reference`.
    parser: origin of the trees, and how the model reads them; empty for cross-attention.
    given: whether the trees come from a file.
    tagged: whether task tags begin the source.
    """

    system: str
    test: str
    kind: AttentionKind
    text: str
    parser: str = ""
    given: bool = False
    tagged: bool = False


@dataclass(frozen=True)
class HeadRow:
    """Statistics of one head.

    bits: mean entropy over pieces; None if no piece has weights.
    relative_bits: mean of the entropy divided by its maximum, log2 of the visible pieces, 0 to 1; None if every piece
        sees only one piece.
    no_word: mean weight on no word.
    parent: agreement with parents; None if no words count, as for the two below.
    parent_weight: mean weight on the parent.
    usual_offset: the most frequent offset of the choices, in words, and its share; None without choices.
    """

    head: Head
    bits: float | None
    relative_bits: float | None
    no_word: float
    parent: Proportion | None
    parent_weight: float | None
    usual_offset: tuple[int, float] | None


@dataclass(frozen=True)
class OffsetBaseline:
    """The agreement of a fixed offset."""

    name: str
    offset: int
    parent: Proportion


@dataclass(frozen=True)
class RelationRow:
    """Agreement for the words of one relation.

    offset, by_offset: the best offset for the relation, and its agreement.
    best: number of the head with the highest agreement.
    heads: agreement of each head, 0 to 1.
    """

    relation: str
    words: int
    offset: int
    by_offset: float
    best: int
    heads: list[float]


@dataclass(frozen=True)
class AttentionSummary:
    """Statistics of all heads over a text.

    words: number of words that count.
    visible: share of the words with a visible parent among all that are neither punctuation nor roots; None without
        any.
    best: number of the row with the highest agreement; None if no words count.
    relations: the most frequent first.
    """

    context: AttentionContext
    sentences: int
    too_long: int
    empty: int
    pieces: int
    words: int
    visible: float | None
    rows: list[HeadRow]
    best: int | None
    baselines: list[OffsetBaseline]
    relations: list[RelationRow]

    def ranked(self) -> list[HeadRow]:
        """Sort heads by agreement with parents, or by entropy for cross-attention."""
        return sorted(
            self.rows, key=lambda row: -row.parent.value if row.parent else np.inf if row.bits is None else row.bits
        )

    def variants(self) -> list[str]:
        """List the variants that own heads."""
        return sorted({row.head.variant for row in self.rows} - {""})


@dataclass(frozen=True, eq=False)
class _Joined:
    """The `HeadStatistics` of all sentences, concatenated; `sentence` (M,) is the number of each word's sentence."""

    entropy: DoubleArray
    visible: IntArray
    no_word: DoubleArray
    relations: npt.NDArray[np.str_]
    parents: IntArray
    choices: IntArray
    parent_weights: DoubleArray
    sentence: IntArray
    sentences: int


def summarize(statistics: AttentionStatistics, context: AttentionContext, *, lines: int) -> AttentionSummary:
    """Summarize statistics of heads over a text; `lines` is the number of its lines."""
    if not statistics.lines:
        raise SynmtError("there are no sentences to measure: all are empty, or longer than the model takes")
    joined = _join(statistics.sentences)
    words, hidden = len(joined.parents), sum(one.hidden for one in statistics.sentences)
    if context.kind != "cross" and not words:
        raise SynmtError("no word has a visible parent: all are punctuation, roots or to the left of their parents")
    agrees = joined.choices == joined.parents  # (S, M)
    offsets = _baseline_offsets(joined.parents) if words else []
    flags = np.stack([*agrees, *(joined.parents == offset for _, offset in offsets)]) if words else agrees  # (S + 4, M)
    shares = proportions(flags.T, joined.sentence, joined.sentences) if words else []
    heads = len(statistics.heads)
    return AttentionSummary(
        context=context,
        sentences=len(statistics.lines),
        too_long=statistics.too_long,
        empty=lines - len(statistics.lines) - statistics.too_long,
        pieces=len(joined.visible),
        words=words,
        visible=words / (words + hidden) if words else None,
        rows=[_row(head, number, joined, shares) for number, head in enumerate(statistics.heads)],
        best=int(agrees.mean(1).argmax()) if words else None,
        baselines=[OffsetBaseline(*offset, share) for offset, share in zip(offsets, shares[heads:], strict=True)],
        relations=_relation_rows(joined, agrees),
    )


def _join(sentences: Sequence[HeadStatistics]) -> _Joined:
    def concatenated(name: str) -> Any:
        return np.concatenate([getattr(one, name) for one in sentences], axis=-1)

    names = [field.name for field in fields(_Joined) if field.name not in ("sentence", "sentences")]
    sentence = np.repeat(np.arange(len(sentences)), [len(one.parents) for one in sentences])  # (M,)
    return _Joined(sentence=sentence, sentences=len(sentences), **{name: concatenated(name) for name in names})


def _baseline_offsets(parents: IntArray) -> list[tuple[str, int]]:
    """Name the baseline offsets: the previous word, the next one (if it is visible), the word itself, the best one."""
    next_word = [("next word", 1)] * bool((parents > 0).any())
    named = [("previous word", -1), *next_word, ("itself", 0)]
    best = best_offset(parents)
    if best not in dict(named).values():
        return [*named, ("best offset", best)]
    return [(name + ", best offset" * (offset == best), offset) for name, offset in named]


def best_offset(offsets: IntArray) -> int:
    """Find the most frequent offset (M,); of two with the same count, the shorter one."""
    steps, counts = np.unique(offsets, return_counts=True)
    return int(min(zip(-counts, abs(steps), steps, strict=True))[2])


def _row(head: Head, number: int, joined: _Joined, shares: list[Proportion]) -> HeadRow:
    bits = joined.entropy[number]  # (P,)
    # a step that predicts a piece does not see it
    visible = joined.visible - head.predicts  # (P,)
    several = visible > 1  # (P,)
    return HeadRow(
        head=head,
        bits=_mean(bits),
        relative_bits=_mean(bits[several] / np.log2(visible[several])),
        no_word=float(joined.no_word[number].mean()),
        parent=shares[number] if shares else None,
        parent_weight=float(joined.parent_weights[number].mean()) if shares else None,
        usual_offset=_usual_offset(joined.choices[number]) if shares else None,
    )


def _mean(values: DoubleArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _usual_offset(choices: IntArray) -> tuple[int, float] | None:
    made = choices[choices != NO_CHOICE]
    if not len(made):
        return None
    usual = best_offset(made)
    return usual, float((choices == usual).mean())


def _relation_rows(joined: _Joined, agrees: npt.NDArray[np.bool_]) -> list[RelationRow]:
    names, members, counts = np.unique(joined.relations, return_inverse=True, return_counts=True)
    rows = []
    for number in sorted(range(len(names)), key=lambda number: (-counts[number], names[number])):
        chosen = members == number  # (M,)
        parents, heads = joined.parents[chosen], agrees[:, chosen].mean(1)  # (m,), (S,)
        offset = best_offset(parents)
        by_offset, best = float((parents == offset).mean()), int(heads.argmax())
        rows.append(RelationRow(str(names[number]), int(counts[number]), offset, by_offset, best, heads.tolist()))
    return rows
