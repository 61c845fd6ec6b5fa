"""What attention heads look at: how sharply, and how often at a word's parent.

    p[s]       = weights[s] / Σ_t weights[s, t]
    entropy[s] = -Σ_t p[s, t] · log2 p[s, t]
    words[i, j] = mean of Σ_t weights[s, t] over the pieces s of the word i; t runs over the pieces of the word j
    choice[i]  = argmax_j words[i, j]

A row of weights is a piece that looks, a column what it looks at: all pieces of the sentence and its EOS, on the target
BOS and the pieces so far. The entropy runs over all of these. A choice is one of the words, the word itself among them;
what a head gives to BOS, EOS and task tags is no choice, and is counted as given to no word. Of words that are as good
the first is chosen.

A word counts if it is no punctuation, is no root, and its parent can be seen: on the target, stands to its left. A head
agrees where the choice is the parent. Splitting words as Clark et al. (2019, section 4.1) do, and leaving EOS out as
Voita et al. (2019, section 5.2) do; other than they, the shares are of words that have a parent in sight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from synmt.analysis.attention.heads import Head, Place, weights_of
from synmt.analysis.forward_passes import Sentence, run_forward
from synmt.analysis.trees.attachment import not_punctuation
from synmt.analysis.trees.induced import Texts, piece_owners
from synmt.arrays import DoubleArray, IntArray
from synmt.decode.translator import Translator
from synmt.model.capture import ActivationKind
from synmt.syntax.parse import Parse

NOWHERE = np.iinfo(np.int64).min
"""The choice of a word that gives no word any weight."""


@dataclass(frozen=True, eq=False)
class HeadStatistics:
    """What S heads do with one sentence of P pieces, of which M words count.

    entropy: (S, P) in bits; NaN where a piece gives no weight at all.
    visible: (P,) how many pieces it can see, BOS and EOS among them.
    elsewhere: (S, P) weight that goes to no word.
    relations: (M,) of each word to its parent.
    parents: (M,) steps from the word to its parent; -1 is the word before it.
    choices: (S, M) steps to the word that it gives most weight to.
    weights: (S, M) what it gives to its parent.
    hidden: words that would count if their parent could be seen.
    """

    entropy: DoubleArray
    visible: IntArray
    elsewhere: DoubleArray
    relations: npt.NDArray[np.str_]
    parents: IntArray
    choices: IntArray
    weights: DoubleArray
    hidden: int


@dataclass(frozen=True, eq=False)
class ModelLooks:
    """What heads do with all sentences.

    kept: the numbers of the sentences, in order; the others are too long for the model or have no words.
    too_long: how many the model takes only in part.
    """

    heads: list[Head]
    kept: list[int]
    looks: list[HeadStatistics]
    too_long: int


def measure_heads(
    translator: Translator,
    heads: Sequence[Head],
    place: Place,
    texts: Texts,
    advance: Callable[[float], None] = lambda sentences: None,
) -> ModelLooks:
    """Run the model over the texts and say what heads look at; the trees are needed for self-attention only."""
    what: tuple[ActivationKind, ...] = ("cross",) if place == "cross" else ("attention",)
    target = None if place == "source" else texts.target
    found: dict[int, HeadStatistics] = {}
    too_long = 0
    for passed in run_forward(translator, texts.source, target, texts.read, what=what):
        weights = weights_of(passed.captured, place, heads).cpu().numpy()  # (B, S, Tq, Tk)
        for row, sentence in enumerate(passed.sentences):
            too_long += sentence.dropped > 0
            if not sentence.dropped:
                inner = weights[row].astype(np.float64)  # (S, Tq, Tk)
                found |= _sentence(translator, inner, place, texts, sentence, ends=bool(heads[0].layer))
        advance(len(passed.sentences))
    kept = sorted(found)
    return ModelLooks(list(heads), kept, [found[index] for index in kept], too_long)


def _sentence(
    translator: Translator, weights: DoubleArray, place: Place, texts: Texts, sentence: Sentence, *, ends: bool
) -> dict[int, HeadStatistics]:
    """Look at the real part of padded weights (S, Tq, Tk); nothing for a sentence without words."""
    if place == "cross":
        rows, keys = len(sentence.target), len(sentence.source)
        # an LSTM has no weight for EOS
        looks = look_across(weights[:, :rows, : keys + ends], ends=ends) if rows else None
    else:
        gold = texts.gold[sentence.index]
        owners = owners_of(translator, texts, sentence)  # (T + 1,)
        part = weights[:, : len(owners), : len(owners)]  # (S, T + 1, T + 1)
        looks = look_at_words(part, owners, gold, causal=place == "target") if len(gold) else None
    return {} if looks is None else {sentence.index: looks}


def owners_of(translator: Translator, texts: Texts, sentence: Sentence) -> IntArray:
    """Find the word of each position of self-attention, BOS or EOS among them: (T + 1,), -1 for what is no word's."""
    owners = piece_owners(translator, texts, sentence)  # (T,)
    return np.append(-1, owners) if texts.side == "target" else np.append(owners, -1)  # (T + 1,)


def look_at_words(weights: DoubleArray, owners: IntArray, gold: Parse, *, causal: bool) -> HeadStatistics:
    """Compare what heads look at with a tree: weights (S, T, T), the word of each position (T,)."""
    pieces = np.flatnonzero(owners >= 0)  # (P,)
    counts, hidden = counted(gold, owners, causal=causal)
    words = collapse(weights, owners, len(gold))  # (S, W, W)
    choices = words.argmax(-1) - np.arange(len(gold))  # (S, W)
    choices[~words.any(-1)] = NOWHERE
    parents = gold.parents[counts]  # (M,)
    return HeadStatistics(
        entropy=entropies(weights[:, pieces]),
        visible=pieces + 1 if causal else np.full(len(pieces), len(owners)),
        elsewhere=weights[:, pieces][..., owners < 0].sum(-1),
        relations=np.array([gold.relations[word] for word in counts.tolist()], dtype=np.str_),
        parents=parents - counts,
        choices=choices[:, counts],
        weights=words[:, counts, parents],
        hidden=hidden,
    )


def look_across(weights: DoubleArray, *, ends: bool = True) -> HeadStatistics:
    """Say how sharply heads look at the source: (S, Tq, Tk), of which EOS is the last key if it `ends` in it."""
    heads, rows, keys = weights.shape
    return HeadStatistics(
        entropy=entropies(weights),
        visible=np.full(rows, keys),
        elsewhere=weights[..., -1] if ends else np.zeros((heads, rows)),
        relations=np.zeros(0, np.str_),
        parents=np.zeros(0, np.int64),
        choices=np.zeros((heads, 0), np.int64),
        weights=np.zeros((heads, 0)),
        hidden=0,
    )


def entropies(weights: DoubleArray) -> DoubleArray:
    """Compute the entropy of each row in bits, as if it summed to 1: (…, T) -> (…); NaN for a row of zeros."""
    sums = weights.sum(-1)  # (…)
    known = np.where(sums > 0, sums, np.nan)  # (…)
    # Σ w/s · ln(w/s) = Σ w · ln w / s - ln s
    return (entr(weights).sum(-1) / known + np.log(known)) / math.log(2)


def collapse(weights: DoubleArray, owners: IntArray, words: int) -> DoubleArray:
    """Make weights of words: the mean over their pieces that look, the sum over those looked at.

    weights (S, T, T), owners (T,), -1 for a piece of no word -> (S, W, W)
    """
    belongs = (owners[:, None] == np.arange(words)).astype(np.float64)  # (T, W)
    shares = belongs / np.maximum(belongs.sum(0), 1)  # (T, W)
    return shares.T @ weights @ belongs


def counted(gold: Parse, owners: IntArray, *, causal: bool) -> tuple[IntArray, int]:
    """Find the words that count (M,), and how many more would if their parent could be seen."""
    places = np.arange(len(gold))
    spelled = np.isin(places, owners)  # (W,)
    candidates = not_punctuation(gold) & (gold.parents != places) & spelled  # (W,)
    in_sight = spelled[gold.parents] & ((gold.parents < places) | (not causal))  # (W,)
    return np.flatnonzero(candidates & in_sight), int((candidates & ~in_sight).sum())
