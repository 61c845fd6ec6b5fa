"""Tables of attention heads over a whole text: entropy, agreement with parents, and baselines of a fixed offset.

    agreement of a head = words whose choice is their parent / words
    agreement of offset k = words whose parent is k words away / words

The best offset has the highest agreement over all words, or over the words of one relation; like the best head, it is
selected on the evaluated words. The offset 0 never agrees: roots, which have no other parent, do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from synmt.analysis.attention.statistics import NO_CHOICE, HeadStatistics
from synmt.analysis.heads import Head
from synmt.arrays import BoolArray, DoubleArray, IntArray
from synmt.errors import SynmtError
from synmt.evaluation.bootstrap import proportions
from synmt.reporting.values import Column, Marked, Table, count_column, share_column, text_column


def join(sentences: Sequence[HeadStatistics], *, trees: bool = True) -> HeadStatistics:
    """Concatenate the statistics of sentences; `trees`: whether their words have parents."""
    if not sentences:
        raise SynmtError("there are no sentences to measure: all are empty, or longer than the model takes")
    names = [field.name for field in fields(HeadStatistics)]
    joined = HeadStatistics(*(np.concatenate([getattr(one, name) for one in sentences], axis=-1) for name in names))
    if trees and not len(joined.parents):
        raise SynmtError("no word has a visible parent: all are punctuation, roots or to the left of their parents")
    return joined


def best_head(joined: HeadStatistics) -> int:
    """Find the head with the highest agreement, or with the lowest entropy where no words count."""
    has_words = joined.parents.size > 0
    return int(
        np.argmax(joined.agrees.mean(1)) if has_words else np.nan_to_num(joined.entropy, nan=np.inf).mean(1).argmin()
    )


def head_table(heads: Sequence[Head], joined: HeadStatistics, words: Sequence[int], *, ends: str) -> Table:
    """Lay out the statistics of heads, then the baselines.

    words: how many words of each sentence count.
    ends: the positions that belong to no word.
    """
    columns = [
        text_column("head", name="name"),
        Column(title="bits", about="mean entropy of the weights of a piece; 0 = all weight on one piece"),
        share_column("of max", about="entropy relative to uniform attention (100% = uniform)"),
        share_column("parent", about="words whose highest weight on a word is on their parent"),
        share_column("95 % interval"),
        Column(title="weight", digits=3, about="mean weight of a word on its parent, 0 to 1"),
        _offset("mostly at", "most frequent offset of the highest weight (-1: previous word), and its share"),
        share_column("share"),
        Column(title="no word", digits=3, about=f"weight on {ends}, 0 to 1"),
    ]
    best_offset, _ = usual_offset(joined.parents)
    offsets = {"previous word": -1, "next word": 1, "best offset": best_offset} if joined.parents.size else {}
    agreement = [[None, None]] * len(heads)
    if offsets:
        flags = np.stack([*joined.agrees, *(joined.parents == offset for offset in offsets.values())])  # (S + 4, M)
        shares = proportions(flags.T, np.repeat(np.arange(len(words)), words), len(words))
        agreement = [[share.value, share.interval] for share in shares]
    names: list[str | Marked] = [head.name for head in heads]
    notes = []
    if offsets and len(heads) > 1:
        best = best_head(joined)
        names[best] = Marked(heads[best].name, "*")
        notes.append("*: the best head, selected on these words; expect a lower agreement on others")
    rows = []
    for number, head in enumerate(heads):
        bits, weight = joined.entropy[number], _mean(joined.parent_weights[number])
        # a step that predicts a piece does not see it
        visible = joined.visible - head.predicts  # (P,)
        several = visible > 1  # (P,)
        entropy = [_mean(bits), _mean(bits[several] / np.log2(visible[several]))]
        usual, no_word = usual_offset(joined.choices[number]), float(joined.no_word[number].mean())
        rows.append([names[number], *entropy, *agreement[number], weight, *usual, no_word])
    for (name, offset), share in zip(offsets.items(), agreement[len(heads) :], strict=False):
        rows.append([name, None, None, *share, None, offset, None, None])
    if offsets:
        notes.append("previous word, next word, best offset: words whose parent is at this offset")
    return Table(columns=columns, rows=rows, notes=notes).without_empty_columns()


def relation_table(heads: Sequence[Head], joined: HeadStatistics) -> Table:
    """Lay out the best offset and the best head for each relation, the most frequent first."""
    columns = [
        text_column("relation"),
        count_column("words"),
        _offset("best offset", "the most frequent offset of the parent, and its share"),
        share_column("at it"),
        text_column("best head", about="the head with the highest agreement; both are selected on these words"),
        share_column("agreement"),
    ]
    rows = []
    counts = Counter(joined.relations.tolist())
    for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        agreement = relation_agreement(joined, name)
        offset = usual_offset(joined.parents[joined.relations == name])
        rows.append([name, count, *offset, heads[agreement.index(max(agreement))].label, max(agreement)])
    return Table(title="Agreement with parents by relation", columns=columns, rows=rows)


def relation_agreement(joined: HeadStatistics, relation: str) -> list[float]:
    """Compute the agreement of each head for the words of one relation."""
    return joined.agrees[:, joined.relations == relation].mean(1).tolist()


def _offset(title: str, about: str) -> Column:
    return Column(title=title, signed=True, about=about)


def _mean(values: DoubleArray | BoolArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def usual_offset(offsets: IntArray) -> tuple[int, float] | tuple[None, None]:
    """Find the most frequent offset, (M,), and its share; of two with the same count, the shorter one."""
    steps, counts = np.unique(offsets[offsets != NO_CHOICE], return_counts=True)
    if not len(steps):
        return None, None
    usual = min(zip(-counts, abs(steps), steps, strict=True))[2]
    return int(usual), float((offsets == usual).mean())
