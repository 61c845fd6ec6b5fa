"""What may follow the hypotheses of a beam, and in which groups of it.

Diverse beam search (Vijayakumar et al., 2018, section 3) with Hamming diversity splits a beam into G groups, which
choose one after the other. Group g ranks its continuations of step t by

    log P(y_≤t | x) - diversity · (hypotheses of the groups before g that have just chosen y_t)

The loss is of this step alone and is forgotten behind it: hypotheses keep their log-probability. EOS loses nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from synmt.data.vocabulary import EOS
from synmt.decode.hypotheses import Live


@dataclass(frozen=True)
class Continuations:
    """What may follow.

    merits: (B, K'), what continuations are chosen by: the log-probability, less what diversity takes.
    log_probabilities: (B, K'), of the best continuations that do not end, by merit, best first.
    beams, pieces: (B, K'), what they continue, and with which piece.
    endings: (B, K), the log-probability of each live hypothesis with EOS behind it.
    """

    merits: Tensor
    log_probabilities: Tensor
    beams: Tensor
    pieces: Tensor
    endings: Tensor


def continuations(
    logs: Tensor, log_probabilities: Tensor, beam_size: int, *, losses: Tensor | None = None
) -> Continuations:
    """Find the best pieces to go on with, from log P of each (B, K, V) and of the live hypotheses (B, K).

    losses: (B, V), what diversity takes from each piece.
    """
    endings = log_probabilities + logs[..., EOS]  # (B, K)
    logs[..., EOS] = -math.inf
    ranked = logs if losses is None else logs - losses[:, None]  # (B, K, V)
    # no beam has more than beam_size of the best of all beams
    best, pieces = ranked.topk(min(beam_size, logs.size(-1)))  # (B, K, M)
    sums = (log_probabilities[..., None] + best).flatten(1)  # (B, K M)
    merits, places = sums.topk(min(beam_size, sums.size(1)))  # (B, K')
    beams = places.div(best.size(2), rounding_mode="floor")  # (B, K')
    chosen = pieces.flatten(1).gather(1, places)  # (B, K')
    if losses is None:
        return Continuations(merits, merits, beams, chosen, endings)
    own = logs.flatten(1).gather(1, beams * logs.size(2) + chosen)  # (B, K')
    return Continuations(merits, log_probabilities.gather(1, beams) + own, beams, chosen, endings)


def diverse_continuations(
    logs: Tensor, log_probabilities: Tensor, beam_size: int, *, groups: int, diversity: float
) -> Continuations:
    """Let the groups of each sentence choose in turn: (B, G K, V) and (B G, K), `beam_size` in each -> B G rows."""
    if groups == 1:
        return continuations(logs, log_probabilities, beam_size)
    by_group = logs.unflatten(1, (groups, -1)).unbind(1)  # (B, K, V) each
    live = log_probabilities.unflatten(0, (-1, groups)).unbind(1)  # (B, K) each
    losses = torch.zeros_like(logs[:, 0])  # (B, V)
    steps = []
    for group_logs, values in zip(by_group, live, strict=True):
        step = continuations(group_logs, values, beam_size, losses=losses)
        # empty places choose nothing
        steps.append(step)
        losses.scatter_add_(1, step.pieces, diversity * (step.merits > -math.inf).to(losses))
    names = ("merits", "log_probabilities", "beams", "pieces", "endings")
    return Continuations(*(torch.stack([getattr(step, name) for step in steps], 1).flatten(0, 1) for name in names))


def which_end(step: Continuations, live: Live, beam_size: int) -> Tensor:
    """Tell which live hypotheses end here, because EOS is among the best continuations or the limit is near: (B, K)."""
    going_on = step.merits.size(1)
    both = torch.cat((step.merits, step.endings), 1)  # (B, K' + K)
    chosen = both.topk(min(beam_size, both.size(1))).indices  # (B, beam size)
    ended = torch.zeros_like(both, dtype=torch.bool).scatter(1, chosen, True)[:, going_on:]  # (B, K)
    at_limit = live.limits <= live.pieces.size(2)  # (B,)
    return (ended | at_limit[:, None]) & (step.endings > -math.inf)
