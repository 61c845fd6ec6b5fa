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
penalty. A search without groups has one group. Below, K is the size of a group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from synmt.data.vocabulary import BOS, EOS, PAD
from synmt.decode.next_piece import (
    Constraints,
    Ensemble,
    Hypothesis,
    Member,
    best_sums,
    length_penalty,
    looks,
    padded_prefixes,
    select,
)
from synmt.decode.options import SearchOptions
from synmt.decode.sampling import Samples, begin_samples
from synmt.decode.shortlist import ShortDecoder, shortlists
from synmt.errors import SynmtError


@dataclass(frozen=True)
class Beams:
    """G groups of K live hypotheses for each of B sentences, and the N best ones that have finished
    in each group, best first.

    sentences: (B,) their places among the results.
    limits: (B,) maximum number of pieces, EOS included.
    pieces: (B, G, K, T) BOS first; all have the same length.
    log_probabilities: (B, G, K) in the order of choice; -inf for an empty place.
    ended: (B, G) number of hypotheses that have finished so far.
    finished_pieces: (B, G, N, T - 1) BOS first, PAD at the end.
    finished_log_probabilities, scores: (B, G, N); an empty place has the score -inf.
    """

    sentences: Tensor
    limits: Tensor
    pieces: Tensor
    log_probabilities: Tensor
    ended: Tensor
    finished_pieces: Tensor
    finished_log_probabilities: Tensor
    scores: Tensor

    @property
    def done(self) -> Tensor:
        """Which sentences have no live hypothesis: (B,)."""
        return (self.log_probabilities == -math.inf).flatten(1).all(1)

    def found(self, alpha: float) -> tuple[Tensor, Tensor, Tensor]:
        """Return pieces, scores and log-probabilities of the finished hypotheses: (B, G N, T) and
        (B, G N)."""
        columns = self.finished_pieces, self.scores, self.finished_log_probabilities
        pieces, scores, log_probabilities = (column.flatten(1, 2) for column in columns)
        return pieces, scores, log_probabilities

    def longer(self, logs: Tensor, options: SearchOptions) -> tuple[Beams, Tensor]:
        """Continue or finish the live hypotheses, from log P of their next pieces (B, G K, V).

        Returns the new beams, and which of the live hypotheses of the sentence each one continues:
        (B, G K').
        """
        _, groups, width = self.log_probabilities.shape
        size, length, limits = logs.size(2), self.pieces.size(3), self.limits[:, None]  # (B, 1)
        alpha, most = options.length_penalty, options.beam_size // groups
        logs = logs.unflatten(1, (groups, width))  # (B, G, K, V)
        endings = self.log_probabilities + logs[..., EOS]  # (B, G, K)
        logs[..., EOS] = -math.inf
        merits, places = continuations(logs, self.log_probabilities, most, options.diversity)
        # those end here that are among the best continuations, and all at the limit
        both = torch.cat((merits, endings), 2)  # (B, G, K' + K)
        chosen = both.topk(min(most, both.size(2))).indices  # (B, G, K')
        ends = torch.zeros_like(both, dtype=torch.bool).scatter(2, chosen, True)[..., -width:]
        ends = ends | (limits <= length)[..., None]  # (B, G, K)
        endings = endings.where(ends, -math.inf)
        best_pieces, best_logs, scores = self._finish(endings, alpha)
        ended = self.ended + (endings > -math.inf).sum(2)  # (B, G)

        origins = places // size  # (B, G, K')
        values = logs.flatten(2).gather(2, places) + self.log_probabilities.gather(2, origins)
        newest = (places % size)[..., None]  # (B, G, K', 1)
        pieces = torch.cat((_gather(self.pieces, origins), newest), 3)  # (B, G, K', T + 1)
        # a log-probability can only fall, and the penalty is largest for the longest translation
        reachable = values.amax(2) / length_penalty(limits, alpha)  # (B, G)
        done = (ended >= most) | (length >= limits) | (reachable <= scores[..., -1])  # (B, G)
        values = values.masked_fill(done[..., None], -math.inf)  # (B, G, K')
        following = Beams(
            self.sentences, self.limits, pieces, values, ended, best_pieces, best_logs, scores
        )
        first = width * torch.arange(groups, device=logs.device)[:, None]  # (G, 1)
        return following, (origins + first).flatten(1)

    def _finish(self, endings: Tensor, alpha: float) -> tuple[Tensor, Tensor, Tensor]:
        """Add hypotheses that end, -inf for those that do not, to the finished ones: (B, G, K).

        Returns pieces, log-probabilities and scores of the best: (B, G, N, T) and (B, G, N).
        """
        # the pieces include BOS but not EOS, so their number is the length with EOS
        scores = endings / length_penalty(self.pieces.size(3), alpha)  # (B, G, K)
        scores, best = torch.cat((self.scores, scores), 2).topk(self.scores.size(2))  # (B, G, N)
        logs = torch.cat((self.finished_log_probabilities, endings), 2)  # (B, G, N + K)
        longer = F.pad(self.finished_pieces, (0, 1), value=PAD)  # (B, G, N, T)
        pieces = _gather(torch.cat((longer, self.pieces), 2), best)  # (B, G, N, T)
        return pieces, logs.gather(2, best), scores


@torch.inference_mode()
def search(
    members: Sequence[Member],
    options: SearchOptions,
    limits: Tensor,
    prefixes: Sequence[Sequence[int]] = (),
    numbers: Sequence[int] | None = None,
    candidates: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """Find the `n_best` best translations of each source, best first, or draw as many at random;
    models must be in evaluation mode.

    limits: (B,) maximum number of pieces of a translation, EOS included; at least 2. A longer
        prefix raises the limit, so that one more piece and EOS fit after it.
    prefixes: pieces that the translation of each sentence begins with. They count in its
        log-probability and length, and the translation may end right after them.
    numbers: identify the sentences when sampling, whatever batch they are in; by default their
        positions.
    candidates: (V, N) the target pieces that each source piece may become; None for all. Samples
        are drawn from all.

    There are fewer translations if no more are possible within the limit, or if groups have found
    the same ones; samples may be equal. Raises SynmtError if the model gives no finite
    probabilities.
    """
    forced = padded_prefixes(prefixes or [()] * len(limits)).to(members[0].source.ids.device)
    limits = limits.to(forced.device).maximum((forced != PAD).sum(1) + 2)
    pieces = None
    if candidates is not None and options.sampling is None:
        pieces, forced = shortlists(candidates, members[0].source.ids, forced)
        members = [
            replace(member, decoder=ShortDecoder(member.model, member.decoder, pieces))
            for member in members
        ]
    constraints = Constraints(options.no_repeat, forced)
    if options.sampling is None:
        starts = iter([begin(limits, options)])
    else:
        size = members[0].model.output_weight.size(0)
        starts = begin_samples(limits, numbers or range(len(limits)), options.n_best, size)
    results: list[list[Hypothesis]] = [[] for _ in limits]
    for start in starts:
        for place, hypotheses in _found(start, Ensemble(members), constraints, options):
            results[place] += hypotheses
    if not all(results):
        raise broken_weights()
    if pieces is not None:
        results = [
            [replace(one, ids=[row[place] for place in one.ids]) for one in found]
            for row, found in zip(pieces.tolist(), results, strict=True)
        ]
    for hypotheses in results:
        hypotheses.sort(key=lambda hypothesis: -hypothesis.score)
    if options.groups > 1:
        results = [_distinct(hypotheses)[: options.n_best] for hypotheses in results]
    return results


def _distinct(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """Remove what several groups have found, except where it comes first."""
    distinct: dict[tuple[int, ...], Hypothesis] = {}
    for hypothesis in hypotheses:
        distinct.setdefault(tuple(hypothesis.ids), hypothesis)
    return list(distinct.values())


def broken_weights() -> SynmtError:
    """Make the error for probabilities that are not finite."""
    return SynmtError("the model gives no finite probabilities: its weights are broken")


def _found(
    state: Beams | Samples, ensemble: Ensemble, constraints: Constraints, options: SearchOptions
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Add one piece after the other until all sentences are done; yield the place of each, and what
    was found for it."""
    look = looks(state.pieces.device)
    while len(state.sentences):
        pieces = state.pieces.flatten(1, -2)  # (B, K, T), of all groups
        logs = ensemble.step(pieces[..., -1])  # (B, K, V)
        constraints.apply(logs, pieces)
        state, beams = state.longer(logs, options)
        leaving, remaining = look(state.done)
        if remaining is not None:
            # the last digit of a power depends on its place in a tensor
            left = select(state, leaving)
            columns = left.sentences, *left.found(options.length_penalty)
            for place, *rows in zip(*(column.tolist() for column in columns), strict=True):
                yield place, _read(*rows)
            state, constraints = select(state, remaining), constraints.select(remaining)
            beams = beams[remaining]
        # one hypothesis continues itself
        if len(state.sentences) and (remaining is not None or beams.size(1) > 1):
            ensemble.select(remaining, beams)


def _read(
    pieces: list[list[int]], scores: list[float], log_probabilities: list[float]
) -> list[Hypothesis]:
    """Read hypotheses of one sentence; a score of -inf marks an empty place."""
    return [
        Hypothesis([piece for piece in row if piece not in (BOS, EOS, PAD)], score, log_probability)
        for row, score, log_probability in zip(pieces, scores, log_probabilities, strict=True)
        if score > -math.inf
    ]


def begin(limits: Tensor, options: SearchOptions) -> Beams:
    """Start each group with one hypothesis, BOS, and with empty places for finished ones; limits
    (B,)."""
    sentences, groups = len(limits), options.groups
    # with groups, keep all finished hypotheses whatever n_best is: they decide when a group stops,
    # and so what later groups choose
    places = options.n_best if groups == 1 else options.beam_size // groups
    empty = torch.full((sentences, groups, places), -math.inf, device=limits.device)  # (B, G, N)
    return Beams(
        torch.arange(sentences, device=limits.device),
        limits,
        limits.new_full((sentences, groups, 1, 1), BOS),
        torch.zeros(sentences, groups, 1, device=limits.device),
        limits.new_zeros(sentences, groups),
        limits.new_empty(sentences, groups, places, 0),
        empty,
        empty,
    )


def continuations(
    logs: Tensor, log_probabilities: Tensor, count: int, diversity: float
) -> tuple[Tensor, Tensor]:
    """Choose the best next pieces of each group in turn, from log P of each (B, G, K, V) and of the
    live hypotheses (B, G, K).

    Returns the log-probabilities minus the penalties, and the places in K V: (B, G, K') each.
    """
    prior: list[tuple[Tensor, Tensor]] = []
    for group, live in zip(logs.unbind(1), log_probabilities.unbind(1), strict=True):
        ranked = group - _penalties(prior, logs.size(3), diversity) if prior else group  # (B, K, V)
        prior.append(best_sums(ranked, live, min(count, ranked[0].numel())))
    merits, places = zip(*prior, strict=True)
    return torch.stack(merits, 1), torch.stack(places, 1)


def _penalties(prior: list[tuple[Tensor, Tensor]], size: int, diversity: float) -> Tensor:
    """Compute the penalty of each piece from the choices of the groups before: (B, 1, V)."""
    merits, places = (torch.cat(column, 1) for column in zip(*prior, strict=True))  # (B, n)
    # empty places choose nothing
    penalties = diversity * (merits > -math.inf).to(merits.dtype)  # (B, n)
    return merits.new_zeros(len(merits), size).scatter_add(1, places % size, penalties)[:, None]


def _gather(pieces: Tensor, places: Tensor) -> Tensor:
    """Choose hypotheses of each group: (B, G, N, T) and (B, G, K) -> (B, G, K, T)."""
    return pieces.gather(2, places[..., None].expand(-1, -1, -1, pieces.size(3)))
