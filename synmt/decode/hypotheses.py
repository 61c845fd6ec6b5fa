"""Live and finished hypotheses of a search, their scores, the best continuations, and when
sentences leave the batch.

A sentence that is done changes no more, so it can stay: when it leaves, what the decoder remembers
of another one is copied into its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from synmt.data.vocabulary import BOS, EOS, PAD


@dataclass(frozen=True)
class Hypothesis:
    """One translation.

    ids: its pieces, without EOS.
    score: log-probability after the length penalty.
    log_probability: of the pieces and EOS, in nats; a forced prefix counts too.
    """

    ids: list[int]
    score: float
    log_probability: float


@dataclass(frozen=True)
class Live:
    """Hypotheses that continue. In diverse beam search, each group of a sentence has its own row.

    pieces: (B, K, T) BOS first; all have the same length.
    log_probabilities: (B, K) in the order of choice; -inf for an empty place.
    limits: (B,) maximum number of pieces, EOS included.
    finished: (B,) number of hypotheses of the row that have finished so far.
    """

    pieces: Tensor
    log_probabilities: Tensor
    limits: Tensor
    finished: Tensor


@dataclass(frozen=True)
class Finished:
    """The N best finished hypotheses, best first; an empty place has the score -inf.

    pieces: (B, N, T) BOS first, PAD at the end.
    log_probabilities, scores: (B, N).
    """

    pieces: Tensor
    log_probabilities: Tensor
    scores: Tensor


def begin(limits: Tensor, count: int) -> tuple[Live, Finished]:
    """Start each row with one hypothesis, BOS, and `count` empty places for finished ones; limits
    (B,)."""
    rows = len(limits)
    pieces = limits.new_full((rows, 1, 1), BOS)  # (B, 1, 1)
    empty = torch.full((rows, count), -math.inf, device=limits.device)  # (B, N)
    live = Live(
        pieces, torch.zeros(rows, 1, device=limits.device), limits, torch.zeros_like(limits)
    )
    return live, Finished(pieces.new_full((rows, count, 1), PAD), empty, empty)


def keep_best(finished: Finished, live: Live, endings: Tensor, alpha: float) -> Finished:
    """Add the live hypotheses that end here, and keep the best; endings (B, K) are -inf for those
    that do not end."""
    # the pieces include BOS but not EOS, so their number is the length with EOS
    scores = torch.cat(
        (finished.scores, endings / length_penalty(live.pieces.size(2), alpha)), 1
    )  # (B, N + K)
    scores, places = scores.topk(finished.scores.size(1))  # (B, N)
    longer = F.pad(
        finished.pieces, (0, live.pieces.size(2) - finished.pieces.size(2)), value=PAD
    )  # (B, N, T)
    pieces = torch.cat((longer, live.pieces), 1)  # (B, N + K, T)
    return Finished(
        pieces.gather(1, places[..., None].expand(-1, -1, pieces.size(2))),
        torch.cat((finished.log_probabilities, endings), 1).gather(1, places),
        scores,
    )


_Tensors = TypeVar("_Tensors")


def select(tensors: _Tensors, rows: Tensor) -> _Tensors:
    """Select rows of a record of tensors, by number or mask."""
    return type(tensors)(*(tensor[rows] for tensor in vars(tensors).values()))


def collect(results: list[list[Hypothesis]], sentences: list[int], finished: Finished) -> None:
    """Append the finished hypotheses of each row to the results of its sentence."""
    columns = zip(
        finished.pieces.tolist(),
        finished.scores.tolist(),
        finished.log_probabilities.tolist(),
        strict=True,
    )
    for sentence, (pieces, scores, log_probabilities) in zip(sentences, columns, strict=True):
        for row, score, log_probability in zip(pieces, scores, log_probabilities, strict=True):
            if score > -math.inf:
                ids = [piece for piece in row if piece not in (BOS, EOS, PAD)]
                results[sentence].append(Hypothesis(ids, score, log_probability))


def best_first(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    """Sort hypotheses by score."""
    return sorted(hypotheses, key=lambda one: -one.score)


def best_distinct(hypotheses: Iterable[Hypothesis], count: int) -> list[Hypothesis]:
    """Return the best hypotheses without duplicates, at most `count`."""
    distinct: dict[tuple[int, ...], Hypothesis] = {}
    for one in best_first(hypotheses):
        distinct.setdefault(tuple(one.ids), one)
    return list(distinct.values())[:count]


def length_penalty(length: Tensor | float, alpha: float) -> Tensor | float:
    """Compute the divisor of a log-probability (Wu et al., 2016, section 7; without their coverage
    penalty).

        score = log P(y | x) / lp(y)        lp(y) = ((5 + |y|) / 6) ** alpha

    |y| counts the pieces and EOS. An alpha of 0 ranks by log-probability; larger values prefer
    longer translations.
    """
    return ((5 + length) / 6) ** alpha


def best_possible(log_probabilities: Tensor, limits: Tensor, alpha: float) -> Tensor:
    """Bound the scores that live hypotheses can still reach: (B,) and the limits (B,) -> (B,).

    A log-probability can only fall, and the penalty is largest for the longest translation.
    """
    return log_probabilities / length_penalty(limits, alpha)


_BLOCK = 32


def best_sums(values: Tensor, base: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Find the `count` largest sums of values (B, K, V) and base (B, K) in each row of the batch,
    best first.

    Returns the sums and where they are, in K and in V: (B, count) each. On a CPU, they are looked
    for in the `count` blocks of pieces with the largest maxima, which takes a fraction of the time
    of `topk`.
    """
    size = values.size(2)
    if values.device.type != "cpu" or size < 2 * _BLOCK * count:
        sums, places = (values + base[..., None]).flatten(1).topk(count)  # (B, count)
    else:
        candidates = _candidates(values, base, count)  # (B, C)
        found = values.flatten(1).gather(1, candidates) + base.gather(
            1, candidates // size
        )  # (B, C)
        sums, inside = found.topk(count)  # (B, count)
        places = candidates.gather(1, inside)  # (B, count)
    beams = places.div(size, rounding_mode="floor")  # (B, count)
    return sums, beams, places - size * beams


def _candidates(values: Tensor, base: Tensor, count: int) -> Tensor:
    """List places of (B, K V) that the largest sums are among: (B, C)."""
    _, beams, size = values.shape
    blocks = size // _BLOCK
    maxima = (
        values[..., : blocks * _BLOCK].unflatten(2, (blocks, _BLOCK)).amax(-1) + base[..., None]
    )  # (B, K, V / 32)
    chosen = maxima.flatten(1).topk(count).indices  # (B, count)
    first = (
        chosen.div(blocks, rounding_mode="floor") * size + chosen % blocks * _BLOCK
    )  # (B, count)
    inside = (first[..., None] + torch.arange(_BLOCK)).flatten(1)  # (B, 32 count)
    # the last pieces fill no block
    rest = torch.arange(beams)[:, None] * size + torch.arange(
        blocks * _BLOCK, size
    )  # (K, V mod 32)
    return torch.cat((inside, rest.flatten().expand(len(values), -1)), 1)  # (B, C)


_PERIOD = 8
"""Steps between two checks on a GPU: each check waits until the device has computed everything so
far."""

Look = Callable[[Tensor], tuple[Tensor, Tensor | None]]


def looks(device: torch.device) -> Look:
    """Return a function for all steps of one search: which sentences are done (B,) -> who leaves
    and who remains.

    Both are numbers of sentences, those that remain are None if no sentence leaves. A sentence
    stays in its place if it
    can: only places that become free are filled, by the last sentences.
    """
    steps, period = count(1), 1 if device.type == "cpu" else _PERIOD

    def look(done: Tensor) -> tuple[Tensor, Tensor | None]:
        nobody = done.new_empty(0, dtype=torch.long), None
        if next(steps) % period:
            return nobody
        size = _rounded(len(done) - int(done.sum()))
        if size >= len(done):
            return nobody
        order = done.byte().argsort(stable=True)  # (B,), those that are done last
        kept, leaving = order[:size], order[size:]
        remaining = torch.arange(size, device=done.device)  # (B',)
        remaining[leaving[leaving < size]] = kept[kept >= size]
        return leaving, remaining

    return look


def _rounded(sentences: int) -> int:
    """Round up, by at most 8 up to 128: oneDNN plans products for each size, and keeps some 20
    sizes of them."""
    unit = 4 if sentences <= 32 else max(8, 1 << (sentences - 1).bit_length() - 4)
    return -(-sentences // unit) * unit if sentences > 4 else sentences
