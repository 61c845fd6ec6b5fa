"""Beam search, batched: all beams of all sentences advance together, and a sentence leaves when it is done.

At each step the K best continuations of a sentence, by log-probability, are either live (they go on) or ended (they
chose EOS). Live ones fill the beam of K again; ended ones are kept apart, ranked by score. A sentence is done when

- K hypotheses have ended (so a beam of 1 is greedy), or
- no live hypothesis can still reach the score of the worst one that is asked for, or
- its limit is reached: all live hypotheses then end, at the price of their EOS.

PAD, UNK and BOS are never chosen, and EOS is not chosen first; log-probabilities are the model's own all the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from synmt.batch import Sequences
from synmt.decode.length import best_possible, length_penalty
from synmt.decode.options import SearchOptions
from synmt.model.linear import linear
from synmt.model.seq2seq import Seq2Seq
from synmt.syntax.pieces import BOS, EOS, PAD

# PAD, UNK, BOS and EOS are the first four pieces
_SPECIALS = EOS + 1


@dataclass(frozen=True)
class Hypothesis:
    """One translation.

    ids: its pieces, without EOS.
    score: the log-probability under the length penalty.
    log_probability: of the pieces and EOS, in nats.
    """

    ids: list[int]
    score: float
    log_probability: float


@dataclass(frozen=True)
class Live:
    """Hypotheses that go on.

    pieces: (B, K, T), BOS first; all are of one length.
    log_probabilities: (B, K), best first.
    limits: (B,), pieces allowed, EOS included.
    ended: (B,), how many hypotheses of the sentence have ended so far.
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


@dataclass(frozen=True)
class Continuations:
    """What may follow.

    log_probabilities: (B, K'), the best continuations that do not end, best first.
    beams, pieces: (B, K'), what they continue, and with which piece.
    endings: (B, K), the log-probability of each live hypothesis with EOS behind it.
    """

    log_probabilities: Tensor
    beams: Tensor
    pieces: Tensor
    endings: Tensor


@dataclass(frozen=True)
class Member:
    """A model and what it reads of B sentences; members of an ensemble read the same pieces.

    signals: what the model reads of the trees.
    """

    model: Seq2Seq
    source: Sequences
    signals: dict[str, Tensor]


@torch.inference_mode()
def search(
    members: Sequence[Member],
    options: SearchOptions,
    *,
    limits: Tensor,
    prefixes: Sequence[Sequence[int]] | None = None,
    numbers: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Find the `n_best` best translations of each source, best first; models must be in evaluation mode.

    limits: (B,), pieces that a translation may have, EOS included; at least 2.
    prefixes: pieces that the translations of each sentence begin with.
    numbers: what tells the sentences apart when pieces are drawn at random; by default their places.
    """
    [(model, source, signals)] = [(one.model, one.source, one.signals) for one in members]
    assert prefixes is None
    assert options.groups == 1
    assert options.no_repeat == 0
    assert options.sampling is None
    beam_size, alpha, n_best = options.beam_size, options.alpha, options.n_best
    assert not model.training
    assert 1 <= n_best <= beam_size, (n_best, beam_size)
    state = model.start(model.remember(source, signals)[0])
    live, kept = _begin(limits.to(source.ids.device), n_best)
    places = torch.arange(len(limits), device=source.ids.device)  # (B,)
    found: list[list[Hypothesis]] = [[] for _ in range(len(limits))]
    while len(places):
        states = model.step(state, live.pieces[..., -1], model.syntax("target", {}))  # (B, K, D)
        logits = linear(states, model.output_weight)  # (B, K, V)
        step = continuations(logits, live.log_probabilities, beam_size, may_end=live.pieces.size(2) > 1)
        ended = which_end(step, live, beam_size)  # (B, K)
        kept = keep_best(kept, live, step.endings.where(ended, -math.inf), alpha)
        live = advance(live, step, ended)
        done = is_done(live, kept, beam_size, alpha)  # (B,)
        beams, going_on = step.beams, None
        if done.any():
            _collect(found, places[done].tolist(), select(kept, done))
            going_on = (~done).nonzero()[:, 0]  # (B',)
            live, kept = select(live, going_on), select(kept, going_on)
            places, beams = places[going_on], beams[going_on]
        if len(places) and (going_on is not None or beam_size > 1):
            state.select(going_on, beams)
    return found


def continuations(logits: Tensor, log_probabilities: Tensor, beam_size: int, *, may_end: bool = True) -> Continuations:
    """Find the best pieces to go on with: logits (B, K, V), log-probabilities of the live hypotheses (B, K)."""
    # on a CPU log_softmax takes a fifth of the time of logsumexp
    logs = logits.float().log_softmax(-1)  # (B, K, V)
    endings = log_probabilities + logs[..., EOS] if may_end else torch.full_like(log_probabilities, -math.inf)
    logs[..., :_SPECIALS] = -math.inf
    # no beam has more than beam_size of the best of all beams
    best, pieces = logs.topk(min(beam_size, logs.size(-1)))  # (B, K, M)
    sums = (log_probabilities[..., None] + best).flatten(1)  # (B, K M)
    top, places = sums.topk(min(beam_size, sums.size(1)))  # (B, K')
    beams = places.div(best.size(2), rounding_mode="floor")  # (B, K')
    return Continuations(top, beams, pieces.flatten(1).gather(1, places), endings)


def which_end(step: Continuations, live: Live, beam_size: int) -> Tensor:
    """Tell which live hypotheses end here, because EOS is among the best continuations or the limit is near: (B, K)."""
    going_on = step.log_probabilities.size(1)
    both = torch.cat((step.log_probabilities, step.endings), 1)  # (B, K' + K)
    chosen = both.topk(min(beam_size, both.size(1))).indices  # (B, beam size)
    ended = torch.zeros_like(both, dtype=torch.bool).scatter(1, chosen, True)[:, going_on:]  # (B, K)
    at_limit = live.limits <= live.pieces.size(2)  # (B,)
    return (ended | at_limit[:, None]) & (step.endings > -math.inf)


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


def advance(live: Live, step: Continuations, ended: Tensor) -> Live:
    """Put the best continuations in the place of the live hypotheses."""
    past = live.pieces.gather(1, step.beams[..., None].expand(-1, -1, live.pieces.size(2)))  # (B, K', T)
    return Live(
        torch.cat((past, step.pieces[..., None]), 2),
        step.log_probabilities,
        live.limits,
        live.ended + ended.sum(1),
    )


def is_done(live: Live, kept: Kept, beam_size: int, alpha: float) -> Tensor:
    """Tell which sentences cannot or need not go on: (B,)."""
    reachable = best_possible(live.log_probabilities[:, 0], live.limits, alpha)  # (B,)
    at_limit = live.pieces.size(2) > live.limits  # (B,)
    return (live.ended >= beam_size) | at_limit | (reachable <= kept.scores[:, -1])


def _begin(limits: Tensor, n_best: int) -> tuple[Live, Kept]:
    """Begin with one hypothesis for each sentence, BOS, and nothing kept."""
    sentences = len(limits)
    pieces = limits.new_full((sentences, 1, 1), BOS)  # (B, 1, 1)
    nothing = torch.full((sentences, n_best), -math.inf, device=limits.device)  # (B, N)
    live = Live(pieces, torch.zeros(sentences, 1, device=limits.device), limits, torch.zeros_like(limits))
    return live, Kept(pieces.new_full((sentences, n_best, 1), PAD), nothing, nothing)


_Tensors = TypeVar("_Tensors", Live, Kept)


def select(tensors: _Tensors, sentences: Tensor) -> _Tensors:
    """Take some sentences, by number or by mask."""
    return replace(tensors, **{f.name: getattr(tensors, f.name)[sentences] for f in fields(tensors)})


def _collect(found: list[list[Hypothesis]], numbers: list[int], kept: Kept) -> None:
    """Put the kept hypotheses of sentences that are done where they belong."""
    columns = zip(kept.pieces.tolist(), kept.scores.tolist(), kept.log_probabilities.tolist(), strict=True)
    for number, (pieces, scores, log_probabilities) in zip(numbers, columns, strict=True):
        for row, score, log_probability in zip(pieces, scores, log_probabilities, strict=True):
            if score > -math.inf:
                ids = [piece for piece in row if piece not in (BOS, PAD)]
                found[number].append(Hypothesis(ids, score, log_probability))
