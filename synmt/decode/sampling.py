"""Sampling: draw translations at random, piece by piece.

    y_t ~ P(y | y_<t, x) ^ (1 / temperature), renormalized over the pieces that are left

Forbidden pieces are removed first, then the temperature is applied, then top_k, then top_p. The
pieces run a race: with u between 0 and 1,

    y_t = argmax_y mass(y) / -log u_y        is y with probability mass(y) / Σ mass

u_y depends on the seed, the sentence, the sample, the position and the piece only, so the other
sentences of a batch do not change a translation. It is a hash of these numbers: a chain of
SplitMix64's output function (Steele, Lea & Flood, 2014), modulo 2^64:

    z = h + 0x9E3779B97F4A7C15
    z = (z ⊕ (z >> 30)) · 0xBF58476D1CE4E5B9
    z = (z ⊕ (z >> 27)) · 0x94D049BB133111EB
    h' = z ⊕ (z >> 31)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from synmt.data.vocabulary import BOS, EOS, PAD
from synmt.decode.hypotheses import (
    Finished,
    Hypothesis,
    best_first,
    collect,
    length_penalty,
    looks,
    select,
)
from synmt.decode.next_piece import Constraints, Ensemble, Member
from synmt.decode.options import Sampling, SearchOptions

_LOGITS = 1 << 23
"""Maximum number of logits computed at a time, unless one sample of each sentence needs more."""
_TOP = 256
"""Number of pieces that usually hold most of the probability."""
# torch has signed integers only; their products wrap around as unsigned ones do
_GAMMA, _FIRST, _SECOND = (
    constant - (1 << 64)
    for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_BITS = 52


@dataclass(frozen=True)
class Samples:
    """K unfinished samples of each of B sentences.

    places: (B,) position of the sentence in the results.
    numbers: (B,) identify the sentences, for the random numbers.
    limits: (B,) maximum number of pieces, EOS included.
    samples: (B, K) number of the sample, for the random numbers.
    pieces: (B, K, T) BOS first; a finished sample ends in EOS and PAD.
    log_probabilities: (B, K) of the pieces so far, as the model gives them.
    """

    places: Tensor
    numbers: Tensor
    limits: Tensor
    samples: Tensor
    pieces: Tensor
    log_probabilities: Tensor

    @property
    def finished(self) -> Tensor:
        """Which samples are complete: (B, K)."""
        newest = self.pieces[..., -1]  # (B, K)
        return (newest == EOS) | (newest == PAD)


def sample(
    members: Sequence[Member],
    options: SearchOptions,
    constraints: Constraints,
    limits: Tensor,
    numbers: Sequence[int],
) -> list[list[Hypothesis]]:
    """Draw `n_best` translations of each source independently, so two may be equal; return them
    best first.

    limits: (B,) maximum number of pieces; at the limit, a translation ends with EOS, whatever its
        probability.
    numbers: identify the sentences, for the random numbers.
    """
    assert options.sampling is not None
    assert len(numbers) == len(limits), (len(numbers), len(limits))
    results: list[list[Hypothesis]] = [[] for _ in numbers]
    rows = _LOGITS // members[0].model.output_weight.size(0)
    parallel = max(1, rows // max(1, len(numbers)))
    for first in range(0, options.n_best, parallel):
        samples = _begin(limits, numbers, range(first, min(first + parallel, options.n_best)))
        ensemble, rules, look = Ensemble(members), constraints, looks(limits.device)
        while len(samples.places):
            logs = ensemble.step(samples.pieces[..., -1])  # (B, K, V)
            rules.apply(logs, samples.pieces)
            samples = draw(logs, samples, options.sampling)
            leaving, remaining = look(samples.finished.all(1))
            if remaining is not None:
                _collect(results, select(samples, leaving), options.length_penalty)
                samples, rules = select(samples, remaining), rules.select(remaining)
            if len(samples.places):
                beams = torch.arange(samples.pieces.size(1), device=limits.device)  # (K,)
                ensemble.select(remaining, beams.expand(len(samples.places), -1))
    return [best_first(one) for one in results]


def draw(logs: Tensor, samples: Samples, sampling: Sampling) -> Samples:
    """Draw the next piece of each sample from log P of the allowed ones, (B, K, V)."""
    place = samples.pieces.size(2) - 1
    pieces = torch.arange(logs.size(2), device=logs.device)  # (V,)
    random = uniform(
        sampling.seed, samples.numbers[:, None, None], samples.samples[..., None], place, pieces
    )  # (B, K, V)
    newest = first_of(random, masses(logs, sampling))  # (B, K)
    newest = newest.masked_fill(samples.limits[:, None] <= place + 1, EOS)
    values = logs.gather(2, newest[..., None])[..., 0]  # (B, K)
    return replace(
        samples,
        pieces=torch.cat((samples.pieces, newest.masked_fill(samples.finished, PAD)[..., None]), 2),
        log_probabilities=samples.log_probabilities + values.masked_fill(samples.finished, 0.0),
    )


def masses(logs: Tensor, sampling: Sampling) -> Tensor:
    """Compute a weight for each piece, 0 if it may not be drawn: (…, V) -> (…, V), in float64."""
    # relative to the largest, in float64: with a temperature near 0, only the largest is left
    mass = ((logs.double() - logs.amax(-1, keepdim=True)) / sampling.temperature).exp()  # (…, V)
    if not sampling.top_k and sampling.top_p == 1:
        return mass
    pieces = _most_probable(logs, mass, sampling)  # (…, k)
    best = mass.gather(-1, pieces)  # (…, k)
    whole = best if sampling.top_k else mass  # (…, k) or (…, V)
    # a piece is needed if the more probable ones do not reach top_p without it
    needed = best.cumsum(-1) - best < sampling.top_p * whole.sum(-1, keepdim=True)  # (…, k)
    return torch.zeros_like(mass).scatter(-1, pieces, best * needed)


def _most_probable(logs: Tensor, mass: Tensor, sampling: Sampling) -> Tensor:
    """List the most probable pieces in order: all that may be drawn, perhaps more: (…, V) -> (…,
    k)."""
    size = logs.size(-1)
    if sampling.top_k:
        return logs.topk(min(sampling.top_k, size)).indices
    # sorting all pieces takes several times as long, and is rarely necessary
    pieces = logs.topk(min(_TOP, size)).indices  # (…, k)
    enough = mass.gather(-1, pieces).sum(-1) >= sampling.top_p * mass.sum(-1)  # (…)
    return pieces if enough.all() else logs.argsort(descending=True)


def first_of(random: Tensor, mass: Tensor) -> Tensor:
    """Find the piece that wins the race, from numbers between 0 and 1 and weights: (…, V) both ->
    (…)."""
    # One random number per step and the cumulative sum of the weights would do as well, but the
    # sums of thousands of pieces change with the rounding of a batch, and each change may draw
    # another piece.
    return (mass / -random.log()).argmax(-1)


def uniform(seed: int, *names: Tensor | int) -> Tensor:
    """Compute the number between 0 and 1, both excluded, that belongs to a seed and some integers,
    in float64."""
    device = next(name.device for name in names if isinstance(name, Tensor))
    # filled there: a GPU would wait for a number that is copied
    state = hashed(torch.full((), seed, device=device))
    for name in names:
        state = hashed(state ^ name)
    # half a step up, so that it is never 0
    return (_shifted(state, 64 - _BITS).double() + 0.5) * 2.0**-_BITS


def hashed(values: Tensor) -> Tensor:
    """Hash 64-bit integers, one to one."""
    z = values + _GAMMA
    z = (z ^ _shifted(z, 30)) * _FIRST
    z = (z ^ _shifted(z, 27)) * _SECOND
    return z ^ _shifted(z, 31)


def _begin(limits: Tensor, numbers: Sequence[int], samples: range) -> Samples:
    sentences = len(limits)
    device = limits.device
    return Samples(
        torch.arange(sentences, device=device),
        torch.tensor(numbers, device=device, dtype=torch.long),
        limits,
        torch.tensor(samples, device=device).expand(sentences, -1),
        limits.new_full((sentences, len(samples), 1), BOS),
        torch.zeros(sentences, len(samples), device=device),
    )


def _collect(results: list[list[Hypothesis]], samples: Samples, alpha: float) -> None:
    lengths = (samples.pieces != PAD).sum(2) - 1  # (B, K)
    scores = samples.log_probabilities / length_penalty(lengths, alpha)  # (B, K)
    collect(
        results,
        samples.places.tolist(),
        Finished(samples.pieces, samples.log_probabilities, scores),
    )


def _shifted(values: Tensor, bits: int) -> Tensor:
    # a right shift of signed integers repeats the sign bit
    return (values >> bits) & ((1 << (64 - bits)) - 1)
