"""What attention heads attend to: entropy, and agreement with dependency parents.

    p[s]        = weights[s] / Σ_t weights[s, t]
    entropy[s]  = -Σ_t p[s, t] · log2 p[s, t]
    words[i, j] = mean of Σ_t weights[s, t] over the pieces s of word i; t runs over the pieces of
        word j
    choice[i]   = argmax_j words[i, j]

A row of weights is a piece that attends, a column a piece attended to: on the source all pieces and
EOS, on the target BOS and the pieces so far, in annotations all pieces. The entropy includes all of
them. The choice is always a word, possibly the word itself; weight on BOS, EOS and task tags is
reported separately, as weight on no word. Ties go to the first word.

A word counts if it is not punctuation, is not the root, and its parent is visible: on the target,
to its left. A head agrees if its choice is the parent. Pieces are merged into words as in Clark et
al. (2019, section 4.1), and EOS is left out as in Voita et al. (2019, section 5.2); unlike there,
shares are of the words whose parent is visible.

Tables of attention heads over a whole text: entropy, agreement with parents, and baselines of a
fixed offset.

    agreement of a head = words whose choice is their parent / words
    agreement of offset k = words whose parent is k words away / words

The best offset has the highest agreement over all words, or over the words of one relation; like
the best head, it is selected on the evaluated words. The offset 0 never agrees: roots, which have
no other parent, do not count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import entr
from torch import Tensor

from synmt.analysis.attention.heads import (
    KINDS,
    AttentionKind,
    Heads,
    owners_with_ends,
    weights_of,
)
from synmt.analysis.forward_passes import (
    ForwardPass,
    LeftOut,
    ParsedText,
    SentencePass,
    measure_text,
)
from synmt.analysis.trees.induced import word_owners
from synmt.arrays import BoolArray, DoubleArray, IntArray, int_array
from synmt.decode.translator import Translator
from synmt.errors import SynmtError
from synmt.evaluation.bootstrap import proportions
from synmt.reporting.values import Column, Table, count_column, share_column, text_column
from synmt.syntax.parse import Parse
from synmt.syntax.trees import not_punctuation

NO_CHOICE = np.iinfo(np.int64).min
"""The choice of a word that gives no weight to any word."""


@dataclass(frozen=True, eq=False)
class HeadStatistics:
    """Statistics of S heads in one sentence, or in several, of P pieces and M words that count.

    entropy: (S, P) in bits; NaN for a piece without any weight.
    visible: (P,) number of visible pieces, BOS and EOS included.
    no_word: (S, P) weight on BOS, EOS and task tags; in attention to the source on its EOS.
    relations: (M,) relation of each word to its parent.
    parents: (M,) offset of the parent; -1 is the previous word.
    choices: (S, M) offset of the word with the highest weight.
    parent_weights: (S, M) weight on the parent.
    hidden: places of the words that do not count because their parent is not visible.
    """

    entropy: DoubleArray
    visible: IntArray
    no_word: DoubleArray
    relations: npt.NDArray[np.str_]
    parents: IntArray
    choices: IntArray
    parent_weights: DoubleArray
    hidden: IntArray

    @property
    def agrees(self) -> BoolArray:
        """Whether the choice is the parent: (S, M)."""
        return self.choices == self.parents


def measure_heads(
    translator: Translator, heads: Heads, kind: AttentionKind, text: ParsedText
) -> tuple[dict[int, HeadStatistics], LeftOut]:
    """Run the model over a text and measure its heads, with progress; cross-attention needs no
    trees.

    Returns the statistics of each line that is not empty, by its number from 0, and the number of
    lines that are left out.
    """

    def read(forward: ForwardPass) -> Tensor:
        return weights_of(forward, kind, heads)  # (B, S, Tq, Tk)

    def measure(sentence: SentencePass, weights: DoubleArray) -> HeadStatistics:
        if kind == "cross":
            # an LSTM does not attend to EOS
            rows, keys = len(sentence.target), len(sentence.source) + (not heads[0].is_lstm)
            return measure_cross_heads(weights[:, :rows, :keys], pieces=len(sentence.source))
        weights = of_predicting_steps(weights, heads)
        owned = word_owners if kind == "parents" else owners_with_ends
        owners = owned(translator, text, sentence)  # (T,)
        inner = weights[:, : len(owners), : len(owners)]  # without padding
        gold = text.gold[sentence.index]
        return measure_self_heads(inner, owners, gold, causal=kind == "target")

    lines = replace(text, target=None) if KINDS[kind].side == "source" else text
    return measure_text(
        translator,
        lines,
        "reading attention",
        read,
        measure,
        what=("cross",) if kind == "cross" else ("attention",),
    )


def of_predicting_steps(weights: DoubleArray, heads: Heads) -> DoubleArray:
    """Shift the rows of heads whose weights belong to the step that predicts a piece, which is the
    step before: (…, S, T, T)."""
    predict = np.array([head.predicts for head in heads])  # (S,)
    before = np.roll(weights, 1, axis=-2)  # (…, S, T, T)
    # nothing predicts BOS
    before[..., 0, :] = 0
    return np.where(predict[:, None, None], before, weights)


def measure_self_heads(
    weights: DoubleArray, owners: IntArray, gold: Parse, *, causal: bool
) -> HeadStatistics:
    """Compare heads with a tree: weights (S, T, T), the word of each position (T,).

    causal: whether a position sees only the positions up to itself, as on the target.
    """
    pieces = np.flatnonzero(owners >= 0)  # (P,)
    counted, hidden = counted_words(gold, owners, causal=causal)
    words = word_level_weights(weights, owners, len(gold))  # (S, W, W)
    choices = words.argmax(-1) - np.arange(len(gold))  # (S, W)
    choices[~words.any(-1)] = NO_CHOICE
    parents = gold.parents[counted]  # (M,)
    return HeadStatistics(
        entropy=entropies(weights[:, pieces]),
        visible=pieces + 1 if causal else np.full(len(pieces), len(owners)),
        no_word=weights[:, pieces][..., owners < 0].sum(-1),
        relations=np.array(gold.relations, dtype=np.str_)[counted],
        parents=parents - counted,
        choices=choices[:, counted],
        parent_weights=words[:, counted, parents],
        hidden=hidden,
    )


def measure_cross_heads(weights: DoubleArray, *, pieces: int) -> HeadStatistics:
    """Measure attention to the source, (S, Tq, Tk), whose first columns are its pieces."""
    heads, rows, keys = weights.shape
    none = int_array([])
    return HeadStatistics(
        entropy=entropies(weights),
        visible=np.full(rows, keys),
        no_word=weights[..., pieces:].sum(-1),
        relations=np.zeros(0, np.str_),
        parents=none,
        choices=np.zeros((heads, 0), np.int64),
        parent_weights=np.zeros((heads, 0)),
        hidden=none,
    )


def entropies(weights: DoubleArray) -> DoubleArray:
    """Compute the entropy of each row in bits, normalized to a sum of 1: (…, T) -> (…); NaN for a
    row of zeros."""
    sums = weights.sum(-1)  # (…)
    known = np.where(sums > 0, sums, np.nan)  # (…)
    # Σ w/s · ln(w/s) = Σ w · ln w / s - ln s
    return (entr(weights).sum(-1) / known + np.log(known)) / math.log(2)


def word_level_weights(weights: DoubleArray, owners: IntArray, words: int) -> DoubleArray:
    """Merge weights of pieces into weights of words: the mean over the pieces that attend, the sum
    over those attended.

    weights (S, T, T), the word of each position (T,), -1 for none -> (S, W, W)
    """
    belongs = (owners[:, None] == np.arange(words)).astype(float)  # (T, W)
    shares = belongs / np.maximum(belongs.sum(0), 1)  # (T, W)
    return shares.T @ weights @ belongs


def counted_words(gold: Parse, owners: IntArray, *, causal: bool) -> tuple[IntArray, IntArray]:
    """Find the words that count, (M,), and those that do not because their parent is not
    visible."""
    places = np.arange(len(gold))
    has_pieces = np.isin(places, owners)  # (W,)
    candidates = not_punctuation(gold) & (gold.parents != places) & has_pieces  # (W,)
    visible = has_pieces[gold.parents] & ((gold.parents < places) | (not causal))  # (W,)
    return np.flatnonzero(candidates & visible), np.flatnonzero(candidates & ~visible)


def join(sentences: Sequence[HeadStatistics]) -> HeadStatistics:
    """Concatenate the statistics of sentences."""
    if not sentences:
        raise SynmtError(
            "there are no sentences to measure: all are empty, or longer than the model takes"
        )
    by_field = zip(*(vars(sentence).values() for sentence in sentences), strict=True)
    return HeadStatistics(*(np.concatenate(arrays, -1) for arrays in by_field))


def head_table(heads: Heads, joined: HeadStatistics, words: Sequence[int], *, ends: str) -> Table:
    """Lay out the statistics of heads, then the baselines.

    words: how many words of each sentence count.
    ends: the positions that belong to no word.
    """
    columns = [
        text_column("head", name="name"),
        Column(
            "bits",
            about="mean entropy of the weights of a piece; 0 = all weight on one piece",
        ),
        share_column("of max", about="entropy relative to uniform attention (100% = uniform)"),
        share_column(
            "parent",
            about="words whose highest weight on a word is on their parent; on the target, of the "
            "words whose parent is to the left",
        ),
        share_column("95 % interval"),
        Column("weight", digits=3, about="mean weight of a word on its parent, 0 to 1"),
        Column(
            "mostly at",
            signed=True,
            about="most frequent offset of the highest weight (-1: previous word), and its share",
        ),
        share_column("share"),
        Column("no word", digits=3, about=f"weight on {ends}, 0 to 1"),
    ]
    rows = []
    for number, head in enumerate(heads):
        bits, weight = joined.entropy[number], _mean(joined.parent_weights[number])
        # a step that predicts a piece does not see it
        visible = joined.visible - head.predicts  # (P,)
        several = visible > 1  # (P,)
        entropy = [_mean(bits), _mean(bits[several] / np.log2(visible[several]))]
        usual, no_word = usual_offset(joined.choices[number]), float(joined.no_word[number].mean())
        rows.append([head.name, *entropy, None, None, weight, *usual, no_word])
    if joined.parents.size:
        best_offset, _ = usual_offset(joined.parents)
        offsets = {"previous word": -1, "next word": 1, "best offset": best_offset}
        rows += [[name, *[None] * 5, offset, None, None] for name, offset in offsets.items()]
        at_offsets = joined.parents == np.array([*offsets.values()])[:, None]  # (3, M)
        flags = np.vstack([joined.agrees, at_offsets]).T  # (M, S + 3)
        shares = proportions(flags, np.repeat(np.arange(len(words)), words), len(words))
        for row, share in zip(rows, shares, strict=True):
            row[3:5] = share.value, share.interval
    return Table(
        columns=columns,
        rows=rows,
        notes=["previous word, next word, best offset: words whose parent is at this offset"],
    ).without_empty_columns()


def relation_table(heads: Heads, joined: HeadStatistics) -> Table:
    """Lay out the best offset and the best head for each relation, the most frequent first."""
    columns = [
        text_column("relation"),
        count_column("words"),
        Column(
            "best offset",
            signed=True,
            about="the most frequent offset of the parent, and its share",
        ),
        share_column("at it"),
        text_column(
            "best head",
            about="the head with the highest agreement; both are selected on these words",
        ),
        share_column("agreement"),
    ]
    rows = []
    for relation, agreement in relation_agreement(heads, joined).items():
        parents = joined.parents[joined.relations == relation]
        best = max(agreement, key=agreement.__getitem__)
        rows.append([relation, len(parents), *usual_offset(parents), best, agreement[best]])
    rows.sort(key=lambda row: -row[1])
    return Table(title="Agreement with parents by relation", columns=columns, rows=rows)


def relation_agreement(heads: Heads, joined: HeadStatistics) -> dict[str, dict[str, float]]:
    """Compute the agreement of each head, by its name, for the words of each relation."""
    names, relations = [head.name for head in heads], joined.relations
    return {
        relation: dict(
            zip(names, joined.agrees[:, relations == relation].mean(1).tolist(), strict=True)
        )
        for relation in np.unique(relations).tolist()
    }


def _mean(values: DoubleArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def usual_offset(offsets: IntArray) -> tuple[int, float] | tuple[None, None]:
    """Find the most frequent offset, (M,), and its share; of two with the same count, the shorter
    one."""
    steps, counts = np.unique(offsets[offsets != NO_CHOICE], return_counts=True)
    if not len(steps):
        return None, None
    usual = min(zip(-counts, abs(steps), steps, strict=True))[2]
    return int(usual), float((offsets == usual).mean())
