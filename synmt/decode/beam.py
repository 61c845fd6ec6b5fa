"""Batched beam search: the beams of all sentences advance together, and a sentence leaves when it
is done.

At each step, the K best continuations of a sentence by log-probability either stay live or finish
(with EOS). Live ones fill the beam of K again; finished ones are kept separately, ranked by score.
A sentence is done when

- K hypotheses have finished (so a beam of 1 is greedy search), or
- no live hypothesis can still reach the score of the worst one that was requested, or
- its length limit is reached: all live hypotheses then end with EOS, whatever its probability.

PAD, UNK and BOS are never chosen, and EOS is not chosen first, but log-probabilities are the
model's own.

Diverse beam search (Vijayakumar et al., 2018, section 3) with Hamming diversity splits a beam into
G groups of K / G, which choose one after the other; a sentence is done when all of its groups are.
Group g ranks its continuations of step t by

    log P(y_≤t | x) - diversity · (hypotheses of the groups before g that have just chosen y_t)

The penalty affects the choice at this step only: hypotheses keep their log-probability. EOS has no
penalty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from synmt.data.vocabulary import EOS
from synmt.decode.hypotheses import (
    Finished,
    Hypothesis,
    Live,
    begin,
    best_distinct,
    best_possible,
    best_sums,
    collect,
    keep_best,
    looks,
    select,
)
from synmt.decode.next_piece import Constraints, Ensemble, Member, limits_beyond, padded_prefixes
from synmt.decode.options import SearchOptions
from synmt.decode.sampling import sample
from synmt.errors import SynmtError


@dataclass(frozen=True)
class Continuations:
    """How live hypotheses may continue.

    merits: (B, K') what continuations are ranked by: the log-probability minus the diversity
        penalty.
    log_probabilities: (B, K') of the best continuations without EOS, ordered by merit.
    beams, pieces: (B, K') the hypotheses that they continue, and the next piece.
    endings: (B, K) log-probability of each live hypothesis followed by EOS.
    """

    merits: Tensor
    log_probabilities: Tensor
    beams: Tensor
    pieces: Tensor
    endings: Tensor


@torch.inference_mode()
def search(
    members: Sequence[Member],
    options: SearchOptions,
    *,
    limits: Tensor,
    prefixes: Sequence[Sequence[int]] | None = None,
    numbers: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Find the `n_best` best translations of each source, best first; models must be in evaluation
    mode.

    limits: (B,) maximum number of pieces of a translation, EOS included; at least 2. A longer
        prefix raises the limit, so that one more piece and EOS fit after it.
    prefixes: pieces that the translation of each sentence begins with. They count in its
        log-probability and length, and the translation may end right after them.
    numbers: identify the sentences when sampling, whatever batch they are in; by default their
        positions.

    There are fewer translations if no more are possible within the limit, or if groups have found
    the same ones. Raises SynmtError if the model gives no finite probabilities.
    """
    device = members[0].source.ids.device
    limits, forced = limits.to(device), padded_prefixes(prefixes, device)
    if forced is not None:
        assert len(forced) == len(limits), (len(forced), len(limits))
        limits = limits_beyond(forced, limits)
    constraints = Constraints(options.no_repeat, forced)
    if options.sampling is None:
        results = _beam_search(members, options, constraints, limits)
    else:
        results = sample(
            members,
            options,
            constraints,
            limits,
            range(len(limits)) if numbers is None else numbers,
        )
    if not all(results):
        raise broken_weights()
    return results


def broken_weights() -> SynmtError:
    """Make the error for probabilities that are not finite."""
    return SynmtError("the model gives no finite probabilities: its weights are broken")


def _beam_search(
    members: Sequence[Member], options: SearchOptions, constraints: Constraints, limits: Tensor
) -> list[list[Hypothesis]]:
    groups, width, alpha = (
        options.groups,
        options.beam_size // options.groups,
        options.length_penalty,
    )
    ensemble = Ensemble(members)
    # with groups, keep `width` finished hypotheses whatever n_best is: they decide when a group
    # stops, and so what later groups choose
    live, finished = begin(
        limits.repeat_interleave(groups), options.n_best if groups == 1 else width
    )
    sentences = torch.arange(len(limits), device=limits.device)  # (B,)
    results: list[list[Hypothesis]] = [[] for _ in range(len(limits))]
    look = looks(limits.device)
    while len(sentences):
        pieces = live.pieces.view(len(sentences), -1, live.pieces.size(2))  # (B, G K, T)
        logs = ensemble.step(pieces[..., -1])  # (B, G K, V)
        constraints.apply(logs, pieces)
        step = diverse_continuations(
            logs, live.log_probabilities, width, groups=groups, diversity=options.diversity
        )
        beams = _beams_of_sentences(step, groups)  # (B, G K')
        ends = which_end(step, live, width)  # (B G, K)
        finished = keep_best(finished, live, step.endings.where(ends, -math.inf), alpha)
        live = advance(live, step, ends)
        live, done = _stop(live, is_done(live, finished, width, alpha), groups)  # (B,)
        leaving, remaining = look(done)
        if remaining is not None:
            rows = _rows(leaving, groups)  # (B'' G,)
            collect(
                results,
                sentences[leaving].repeat_interleave(groups).tolist(),
                select(finished, rows),
            )
            rows = _rows(remaining, groups)  # (B' G,)
            live, finished, constraints = (
                select(live, rows),
                select(finished, rows),
                constraints.select(remaining),
            )
            sentences, beams = sentences[remaining], beams[remaining]
        if len(sentences) and (remaining is not None or options.beam_size > 1):
            ensemble.select(remaining, beams)
    return results if groups == 1 else [best_distinct(one, options.n_best) for one in results]


def advance(live: Live, step: Continuations, ends: Tensor) -> Live:
    """Replace the live hypotheses by their best continuations; ends (B, K) marks those that
    finish."""
    past = live.pieces.gather(
        1, step.beams[..., None].expand(-1, -1, live.pieces.size(2))
    )  # (B, K', T)
    pieces = torch.cat((past, step.pieces[..., None]), 2)  # (B, K', T + 1)
    return Live(pieces, step.log_probabilities, live.limits, live.finished + ends.sum(1))


def is_done(live: Live, finished: Finished, beam_size: int, alpha: float) -> Tensor:
    """Find the rows that need not or cannot continue: (B,)."""
    reachable = best_possible(live.log_probabilities.amax(1), live.limits, alpha)  # (B,)
    at_limit = live.pieces.size(2) > live.limits  # (B,)
    return (live.finished >= beam_size) | at_limit | (reachable <= finished.scores[:, -1])


def continuations(
    logs: Tensor, log_probabilities: Tensor, beam_size: int, *, penalties: Tensor | None = None
) -> Continuations:
    """Find the best next pieces, from log P of each (B, K, V) and of the live hypotheses (B, K).

    penalties: (B, V) diversity penalty of each piece.
    """
    endings = log_probabilities + logs[..., EOS]  # (B, K)
    logs[..., EOS] = -math.inf
    ranked = logs if penalties is None else logs - penalties[:, None]  # (B, K, V)
    merits, beams, chosen = best_sums(
        ranked, log_probabilities, min(beam_size, ranked[0].numel())
    )  # (B, K')
    if penalties is None:
        return Continuations(merits, merits, beams, chosen, endings)
    own = logs.flatten(1).gather(1, beams * logs.size(2) + chosen)  # (B, K')
    return Continuations(merits, log_probabilities.gather(1, beams) + own, beams, chosen, endings)


def diverse_continuations(
    logs: Tensor, log_probabilities: Tensor, beam_size: int, *, groups: int, diversity: float
) -> Continuations:
    """Choose for the groups of each sentence in turn: (B, G K, V) and (B G, K), `beam_size` in each
    -> B G rows."""
    if groups == 1:
        return continuations(logs, log_probabilities, beam_size)
    by_group = logs.unflatten(1, (groups, -1)).unbind(1)  # (B, K, V) each
    live = log_probabilities.unflatten(0, (-1, groups)).unbind(1)  # (B, K) each
    penalties = torch.zeros_like(logs[:, 0])  # (B, V)
    steps = []
    for group_logs, values in zip(by_group, live, strict=True):
        step = continuations(group_logs, values, beam_size, penalties=penalties)
        steps.append(step)
        # empty places choose nothing
        penalties.scatter_add_(1, step.pieces, diversity * (step.merits > -math.inf).to(penalties))
    columns = ([getattr(step, field.name) for step in steps] for field in fields(Continuations))
    return Continuations(*(torch.stack(column, 1).flatten(0, 1) for column in columns))


def which_end(step: Continuations, live: Live, beam_size: int) -> Tensor:
    """Find the live hypotheses that end here: EOS is among the best continuations, or the limit is
    reached: (B, K)."""
    width = step.merits.size(1)
    both = torch.cat((step.merits, step.endings), 1)  # (B, K' + K)
    chosen = both.topk(min(beam_size, both.size(1))).indices  # (B, beam size)
    ends = torch.zeros_like(both, dtype=torch.bool).scatter(1, chosen, True)[:, width:]  # (B, K)
    at_limit = live.limits <= live.pieces.size(2)  # (B,)
    return (ends | at_limit[:, None]) & (step.endings > -math.inf)


def _stop(live: Live, done: Tensor, groups: int) -> tuple[Live, Tensor]:
    """Empty the groups that are done, (B G,), so that they stay as they are; tell which sentences
    are done: (B,)."""
    values = live.log_probabilities.masked_fill(done[:, None], -math.inf)  # (B G, K)
    return replace(live, log_probabilities=values), done.view(-1, groups).all(1)


def _beams_of_sentences(step: Continuations, groups: int) -> Tensor:
    """Number the continued hypotheses within their sentences, across groups: (B, G K')."""
    if groups == 1:
        return step.beams
    first = step.endings.size(1) * torch.arange(groups, device=step.beams.device)  # (G,)
    return (step.beams.unflatten(0, (-1, groups)) + first[:, None]).flatten(1)  # (B, G K')


def _rows(sentences: Tensor, groups: int) -> Tensor:
    """List the rows of the groups of sentences: (B,) -> (B G,)."""
    if groups == 1:
        return sentences
    return (
        groups * sentences[:, None] + torch.arange(groups, device=sentences.device)
    ).flatten()  # (B G,)
