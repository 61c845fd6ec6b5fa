"""What is shown of attention heads: entropies, agreement with parents, and what fixed offsets reach on the same words.

    agreement of a head = words whose choice is their parent / words
    agreement of offset k = words whose parent stands k words further / words

The best offset is the one that reaches most, over all words or over those of one relation; like the best head, it is
chosen on these very words. To look at oneself, the offset 0, never agrees: a root, which has no parent, does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from synmt.analysis.attention.heads import Head, Place
from synmt.analysis.attention.statistics import NOWHERE, HeadStatistics, ModelLooks
from synmt.analysis.trees.attachment import Share
from synmt.arrays import DoubleArray, IntArray
from synmt.errors import SynmtError
from synmt.evaluation.bootstrap import ratio_intervals


@dataclass(frozen=True)
class About:
    """What the report is about.

    system, test: names of the run and of its test set.
    text: what was read, such as `source` or `reference`.
    parser: what made the trees, and whether the model reads them; empty where no trees were needed.
    """

    system: str
    test: str
    place: Place
    text: str
    parser: str = ""


@dataclass(frozen=True)
class HeadRow:
    """One head.

    bits: mean entropy over pieces; None where all rows are empty.
    share: mean of the entropy as a share of the largest possible, log2 of the pieces in sight, 0 to 1; None where there
        was never a choice.
    elsewhere: mean weight on no word.
    parent: agreement; None where no words count, as for all that follows.
    weight: mean weight on the parent.
    usual: where its choices stand most often, in words from the word that looks, and their share; None where it never
        chooses.
    """

    head: Head
    bits: float | None
    share: float | None
    elsewhere: float
    parent: Share | None
    weight: float | None
    usual: tuple[int, float] | None


@dataclass(frozen=True)
class Baseline:
    """What looking at a fixed offset reaches."""

    name: str
    offset: int
    parent: Share


@dataclass(frozen=True)
class RelationRow:
    """One relation.

    offset, by_offset: its own best offset, and what it reaches.
    best: the number of the head that agrees most often.
    heads: agreement of each head, 0 to 1.
    """

    relation: str
    words: int
    offset: int
    by_offset: float
    best: int
    heads: list[float]


@dataclass(frozen=True)
class AttentionReport:
    """All numbers of one analysis.

    words: those that count.
    visible: their share of all words that are neither punctuation nor roots; None without any.
    best: the number of the row that agrees most often; None where no words count.
    relations: the most frequent first.
    """

    about: About
    sentences: int
    too_long: int
    empty: int
    pieces: int
    words: int
    visible: float | None
    rows: list[HeadRow]
    best: int | None
    baselines: list[Baseline]
    relations: list[RelationRow]


@dataclass(frozen=True, eq=False)
class _Joined:
    """All sentences end to end; the fields are those of `HeadStatistics`, and `sentence` (M,) the one of each word."""

    entropy: DoubleArray
    visible: IntArray
    elsewhere: DoubleArray
    relations: npt.NDArray[np.str_]
    parents: IntArray
    choices: IntArray
    weights: DoubleArray
    sentence: IntArray
    sentences: int


def report_attention(found: ModelLooks, about: About, *, lines: int) -> AttentionReport:
    """Sum up what heads look at; `lines` is how many sentences there were."""
    if not found.kept:
        raise SynmtError("no sentence is left to look at: all are empty, or longer than the model takes")
    joined = _join(found.looks)
    words, hidden = len(joined.parents), sum(one.hidden for one in found.looks)
    if about.place != "cross" and not words:
        raise SynmtError("no word has a parent in sight: all are punctuation, roots or before their parents")
    right = joined.choices == joined.parents  # (S, M)
    baselines = _baselines(joined) if words else []
    flags = np.stack([*right, *(joined.parents == one for _, one in baselines)]) if words else right  # (S + 4, M)
    shares = _shares(flags, joined)
    heads = len(found.heads)
    return AttentionReport(
        about=about,
        sentences=len(found.kept),
        too_long=found.too_long,
        empty=lines - len(found.kept) - found.too_long,
        pieces=len(joined.visible),
        words=words,
        visible=words / (words + hidden) if words else None,
        rows=[_row(head, number, joined, shares) for number, head in enumerate(found.heads)],
        best=int(right.mean(1).argmax()) if words else None,
        baselines=[Baseline(*one, share) for one, share in zip(baselines, shares[heads:], strict=True)],
        relations=_relations(joined, right),
    )


def _join(looks: Sequence[HeadStatistics]) -> _Joined:
    def side_by_side(name: str) -> Any:
        return np.concatenate([getattr(one, name) for one in looks], axis=-1)

    names = [field.name for field in fields(_Joined) if field.name not in ("sentence", "sentences")]
    sentence = np.repeat(np.arange(len(looks)), [len(one.parents) for one in looks])  # (M,)
    return _Joined(sentence=sentence, sentences=len(looks), **{name: side_by_side(name) for name in names})


def _baselines(joined: _Joined) -> list[tuple[str, int]]:
    """Name the offsets to compare with: the word before, after (where it can be seen), itself, and the best one."""
    nexts = [("next word", 1)] * bool((joined.parents > 0).any())
    named = [("previous word", -1), *nexts, ("itself", 0)]
    best = best_offset(joined.parents)
    if best not in dict(named).values():
        return [*named, ("best offset", best)]
    return [(name + ", best offset" * (offset == best), offset) for name, offset in named]


def best_offset(parents: IntArray) -> int:
    """Find the step that leads to the most parents, the shorter one of two as good: (M,)."""
    steps, counts = np.unique(parents, return_counts=True)
    return int(min(zip(-counts, abs(steps), steps, strict=True))[2])


def _shares(flags: npt.NDArray[np.bool_], joined: _Joined) -> list[Share]:
    """Give the share of each row of flags (R, M) with its interval over sentences; none where there are no words."""
    if not len(joined.parents):
        return []
    right = np.zeros((joined.sentences, len(flags)))  # (N, R)
    np.add.at(right, joined.sentence, flags.T)
    words = np.bincount(joined.sentence, minlength=joined.sentences).astype(np.float64)  # (N,)
    intervals = ratio_intervals(right, np.repeat(words[:, None], len(flags), 1))
    return [Share(value, *ends) for value, ends in zip(flags.mean(1).tolist(), intervals, strict=True)]


def _row(head: Head, number: int, joined: _Joined, shares: list[Share]) -> HeadRow:
    bits = joined.entropy[number]  # (P,)
    choice = joined.visible > 1  # (P,)
    return HeadRow(
        head=head,
        bits=_mean(bits),
        share=_mean(bits[choice] / np.log2(joined.visible[choice])),
        elsewhere=float(joined.elsewhere[number].mean()),
        parent=shares[number] if shares else None,
        weight=float(joined.weights[number].mean()) if shares else None,
        usual=_usual(joined.choices[number]) if shares else None,
    )


def _mean(values: DoubleArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _usual(choices: IntArray) -> tuple[int, float] | None:
    real = choices[choices != NOWHERE]
    if not len(real):
        return None
    usual = best_offset(real)
    return usual, float((choices == usual).mean())


def _relations(joined: _Joined, right: npt.NDArray[np.bool_]) -> list[RelationRow]:
    names, members, counts = np.unique(joined.relations, return_inverse=True, return_counts=True)
    rows = []
    for number in sorted(range(len(names)), key=lambda number: (-counts[number], names[number])):
        chosen = members == number  # (M,)
        parents, agreed = joined.parents[chosen], right[:, chosen].mean(1)  # (m,), (S,)
        offset = best_offset(parents)
        by_offset, best = float((parents == offset).mean()), int(agreed.argmax())
        name, words = str(names[number]), int(counts[number])
        rows.append(RelationRow(name, words, offset, by_offset, best, agreed.tolist()))
    return rows
