"""Beam search, batched: all beams of all sentences advance together, and a sentence leaves when it is done.

At each step the K best continuations of a sentence, by log-probability, are either live (they go on) or ended (they
chose EOS). Live ones fill the beam of K again; ended ones are kept apart, ranked by score. A sentence is done when

- K hypotheses have ended (so a beam of 1 is greedy), or
- no live hypothesis can still reach the score of the worst one that is asked for, or
- its limit is reached: all live hypotheses then end, at the price of their EOS.

PAD, UNK and BOS are never chosen, and EOS is not chosen first; log-probabilities are the model's own all the same.
The groups of a diverse beam are beams of K / G, each with its own end; a sentence is done when all of them are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from synmt.decode.constraints import Constraints, limits_beyond, padded_prefixes
from synmt.decode.continuations import Continuations, diverse_continuations, which_end
from synmt.decode.ensemble import Ensemble, Member
from synmt.decode.hypotheses import (
    Hypothesis,
    Kept,
    Live,
    begin,
    best_distinct,
    best_possible,
    collect,
    keep_best,
    select,
)
from synmt.decode.options import SearchOptions, check_options
from synmt.decode.sampling import sample


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

    limits: (B,), pieces that a translation may have, EOS included; at least 2. A prefix raises the limit where it
        has to, so that one more piece and EOS fit behind it.
    prefixes: pieces that the translations of each sentence begin with, or none. They count in the log-probability and
        the length, and a translation may end right behind them.
    numbers: what tells the sentences apart when pieces are drawn at random; by default their places.

    There are fewer translations where no more are possible within the limit, or where groups have found the same ones.
    """
    check_options(options)
    device = members[0].source.ids.device
    limits, forced = limits.to(device), padded_prefixes(prefixes, device)
    if forced is not None:
        assert len(forced) == len(limits), (len(forced), len(limits))
        limits = limits_beyond(forced, limits)
    constraints = Constraints(options.no_repeat, forced)
    if options.sampling is None:
        return _search(members, options, constraints, limits)
    return sample(members, options, constraints, limits, range(len(limits)) if numbers is None else numbers)


def _search(
    members: Sequence[Member], options: SearchOptions, constraints: Constraints, limits: Tensor
) -> list[list[Hypothesis]]:
    groups, width, alpha = options.groups, options.beam_size // options.groups, options.alpha
    ensemble = Ensemble(members)
    # what is kept tells a group when to stop, and the groups behind it notice: it must not depend on n_best
    live, kept = begin(limits.repeat_interleave(groups), options.n_best if groups == 1 else width)
    places = torch.arange(len(limits), device=limits.device)  # (B,)
    found: list[list[Hypothesis]] = [[] for _ in range(len(limits))]
    while len(places):
        pieces = live.pieces.view(len(places), -1, live.pieces.size(2))  # (B, G K, T)
        logs = ensemble.step(pieces[..., -1])  # (B, G K, V)
        constraints.forbid(logs, pieces)
        step = diverse_continuations(logs, live.log_probabilities, width, groups=groups, diversity=options.diversity)
        beams = _beams_of_sentences(step, groups)  # (B, G K')
        ended = which_end(step, live, width)  # (B G, K)
        kept = keep_best(kept, live, step.endings.where(ended, -math.inf), alpha)
        live = advance(live, step, ended)
        live, done = _stop(live, is_done(live, kept, width, alpha), groups)  # (B,)
        going_on = None
        if done.any():
            collect(
                found, places[done].repeat_interleave(groups).tolist(), select(kept, done.repeat_interleave(groups))
            )
            going_on = (~done).nonzero()[:, 0]  # (B',)
            rows = _rows(going_on, groups)  # (B' G,)
            live, kept, constraints = select(live, rows), select(kept, rows), constraints.select(going_on)
            places, beams = places[going_on], beams[going_on]
        if len(places) and (going_on is not None or options.beam_size > 1):
            ensemble.select(going_on, beams)
    return found if groups == 1 else [best_distinct(one, options.n_best) for one in found]


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
    """Tell which rows cannot or need not go on: (B,)."""
    reachable = best_possible(live.log_probabilities.amax(1), live.limits, alpha)  # (B,)
    at_limit = live.pieces.size(2) > live.limits  # (B,)
    return (live.ended >= beam_size) | at_limit | (reachable <= kept.scores[:, -1])


def _stop(live: Live, done: Tensor, groups: int) -> tuple[Live, Tensor]:
    """Empty the groups that are done, (B G,), and tell which sentences are: (B,)."""
    if groups == 1:
        return live, done
    values = live.log_probabilities.masked_fill(done[:, None], -math.inf)  # (B G, K)
    return replace(live, log_probabilities=values), done.view(-1, groups).all(1)


def _beams_of_sentences(step: Continuations, groups: int) -> Tensor:
    """Count the continued hypotheses within their sentences, where the groups stand side by side: (B, G K')."""
    if groups == 1:
        return step.beams
    first = step.endings.size(1) * torch.arange(groups, device=step.beams.device)  # (G,)
    return (step.beams.unflatten(0, (-1, groups)) + first[:, None]).flatten(1)  # (B, G K')


def _rows(sentences: Tensor, groups: int) -> Tensor:
    """List the rows of the groups of sentences: (B,) -> (B G,)."""
    if groups == 1:
        return sentences
    return (groups * sentences[:, None] + torch.arange(groups, device=sentences.device)).flatten()  # (B G,)
