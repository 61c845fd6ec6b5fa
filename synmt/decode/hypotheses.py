"""Translations that go on, translations that have ended, their scores, and how they leave the search."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from synmt.data.vocabulary import BOS, EOS, PAD


@dataclass(frozen=True)
class Hypothesis:
    """One translation.

    ids: its pieces, without EOS.
    score: the log-probability under the length penalty.
    log_probability: of the pieces and EOS, in nats, those of a forced beginning too.
    """

    ids: list[int]
    score: float
    log_probability: float


@dataclass(frozen=True)
class Live:
    """Hypotheses that go on; those of a group, where a sentence has several, are a row of their own.

    pieces: (B, K, T), BOS first; all are of one length.
    log_probabilities: (B, K), in the order of choice; -inf where a place is empty.
    limits: (B,), pieces allowed, EOS included.
    ended: (B,), how many hypotheses of the row have ended so far.
    """

    pieces: Tensor
    log_probabilities: Tensor
    limits: Tensor
    ended: Tensor


@dataclass(frozen=True)
class Kept:
    """The N best ended hypotheses, best first; a place that is still free has the score -inf.

    pieces: (B, N, T), BOS first, PAD at the end.
    log_probabilities, scores: (B, N).
    """

    pieces: Tensor
    log_probabilities: Tensor
    scores: Tensor


def begin(limits: Tensor, count: int) -> tuple[Live, Kept]:
    """Begin with one hypothesis for each row, BOS, and nothing kept, of places for `count`; limits (B,)."""
    rows = len(limits)
    pieces = limits.new_full((rows, 1, 1), BOS)  # (B, 1, 1)
    nothing = torch.full((rows, count), -math.inf, device=limits.device)  # (B, N)
    live = Live(pieces, torch.zeros(rows, 1, device=limits.device), limits, torch.zeros_like(limits))
    return live, Kept(pieces.new_full((rows, count, 1), PAD), nothing, nothing)


def keep_best(kept: Kept, live: Live, endings: Tensor, alpha: float) -> Kept:
    """Take what ends here, (B, K), -inf where nothing does, among the kept hypotheses."""
    # BOS is in the pieces and EOS is not, so their number is the length with EOS
    scores = torch.cat((kept.scores, endings / length_penalty(live.pieces.size(2), alpha)), 1)  # (B, N + K)
    scores, places = scores.topk(kept.scores.size(1))  # (B, N)
    longer = F.pad(kept.pieces, (0, live.pieces.size(2) - kept.pieces.size(2)), value=PAD)  # (B, N, T)
    pieces = torch.cat((longer, live.pieces), 1)  # (B, N + K, T)
    return Kept(
        pieces.gather(1, places[..., None].expand(-1, -1, pieces.size(2))),
        torch.cat((kept.log_probabilities, endings), 1).gather(1, places),
        scores,
    )


_Tensors = TypeVar("_Tensors", Live, Kept)


def select(tensors: _Tensors, rows: Tensor) -> _Tensors:
    """Take some rows, by number or by mask."""
    return replace(tensors, **{f.name: getattr(tensors, f.name)[rows] for f in fields(tensors)})


def collect(found: list[list[Hypothesis]], sentences: list[int], kept: Kept) -> None:
    """Put the kept hypotheses of rows that are done where they belong: with these sentences."""
    columns = zip(kept.pieces.tolist(), kept.scores.tolist(), kept.log_probabilities.tolist(), strict=True)
    for sentence, (pieces, scores, log_probabilities) in zip(sentences, columns, strict=True):
        for row, score, log_probability in zip(pieces, scores, log_probabilities, strict=True):
            if score > -math.inf:
                ids = [piece for piece in row if piece not in (BOS, EOS, PAD)]
                found[sentence].append(Hypothesis(ids, score, log_probability))


def best_first(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    """Order hypotheses by score."""
    return sorted(hypotheses, key=lambda one: -one.score)


def best_distinct(hypotheses: Iterable[Hypothesis], count: int) -> list[Hypothesis]:
    """Take the best hypotheses, each translation once."""
    distinct: dict[tuple[int, ...], Hypothesis] = {}
    for one in best_first(hypotheses):
        distinct.setdefault(tuple(one.ids), one)
    return list(distinct.values())[:count]


def length_penalty(length: Tensor | float, alpha: float) -> Tensor | float:
    """Compute what a log-probability is divided by (Wu et al., 2016, section 7; their coverage is left out).

        score = log P(y | x) / lp(y)        lp(y) = ((5 + |y|) / 6) ** alpha

    |y| counts the pieces with EOS. An alpha of 0 ranks by log-probability alone; larger ones favour longer
    translations.
    """
    return ((5 + length) / 6) ** alpha


def best_possible(log_probabilities: Tensor, limits: Tensor, alpha: float) -> Tensor:
    """Bound the scores that unfinished hypotheses can still reach: (B,) and the limits (B,) -> (B,).

    A log-probability only falls from here, and no normaliser is larger than that of the longest translation.
    """
    return log_probabilities / length_penalty(limits, alpha)
