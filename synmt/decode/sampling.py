"""Translations drawn at random, piece by piece.

    y_t ~ P(y | y_<t, x) ^ (1 / temperature), scaled to sum to 1 over the pieces that are left

What is forbidden goes first, then comes the temperature, then top_k, then top_p. Pieces race: with u between 0 and 1,

    y_t = argmax_y mass(y) / -log u_y        is y with the probability mass(y) / Σ mass

u_y belongs to the seed, the sentence, the sample, the place and the piece: nothing beside a sentence changes its
translations. It is a hash of them: a chain of SplitMix64's output function (Steele, Lea & Flood, 2014), modulo 2^64:

    z = h + 0x9E3779B97F4A7C15
    z = (z ⊕ (z >> 30)) · 0xBF58476D1CE4E5B9
    z = (z ⊕ (z >> 27)) · 0x94D049BB133111EB
    h' = z ⊕ (z >> 31)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from synmt.data.vocabulary import BOS, EOS, PAD
from synmt.decode.constraints import Constraints
from synmt.decode.ensemble import Ensemble, Member
from synmt.decode.hypotheses import Hypothesis, Kept, best_first, collect, length_penalty
from synmt.decode.options import Sampling, SearchOptions

_LOGITS = 1 << 23
"""So many logits are held at a time, a sample of each sentence at least."""
_FEW = 256
"""Most of the probability is usually in so many pieces."""
# torch has signed integers only, whose products wrap around as the unsigned ones do
_GAMMA, _FIRST, _SECOND = (
    constant - (1 << 64) for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_BITS = 52


@dataclass(frozen=True)
class Drawn:
    """K samples of each of B sentences, which go on together.

    places, numbers, limits: (B,), where a sentence stands, what tells it apart, pieces allowed, EOS included.
    samples: (B, K), which of the sentence's samples these are.
    pieces: (B, K, T), BOS first, EOS and PAD behind what has ended.
    log_probabilities: (B, K), of the pieces so far, the model's own.
    """

    places: Tensor
    numbers: Tensor
    limits: Tensor
    samples: Tensor
    pieces: Tensor
    log_probabilities: Tensor

    @property
    def ended(self) -> Tensor:
        """Tell which samples are complete: (B, K)."""
        newest = self.pieces[..., -1]  # (B, K)
        return (newest == EOS) | (newest == PAD)

    def select(self, sentences: Tensor) -> Drawn:
        """Take some sentences, by number or by mask."""
        return replace(self, **{f.name: getattr(self, f.name)[sentences] for f in fields(self)})


def sample(
    members: Sequence[Member],
    options: SearchOptions,
    constraints: Constraints,
    limits: Tensor,
    numbers: Sequence[int],
) -> list[list[Hypothesis]]:
    """Draw `n_best` translations of each source, each by itself, so that two may be the same; best first.

    limits: (B,), pieces that a translation may have: what reaches its limit ends, at the price of its EOS.
    numbers: what tells the sentences apart.
    """
    assert options.sampling is not None
    assert len(numbers) == len(limits), (len(numbers), len(limits))
    found: list[list[Hypothesis]] = [[] for _ in numbers]
    rows = _LOGITS // members[0].model.output_weight.size(0)
    together = max(1, rows // max(1, len(numbers)))
    for first in range(0, options.n_best, together):
        drawn = _begin(limits, numbers, range(first, min(first + together, options.n_best)))
        ensemble, rules = Ensemble(members), constraints
        while len(drawn.places):
            logs = ensemble.step(drawn.pieces[..., -1])  # (B, K, V)
            rules.forbid(logs, drawn.pieces)
            drawn = draw(logs, drawn, options.sampling)
            done = drawn.ended.all(1)  # (B,)
            going_on = None
            if done.any():
                _collect(found, drawn.select(done), options.alpha)
                going_on = (~done).nonzero()[:, 0]  # (B',)
                drawn, rules = drawn.select(going_on), rules.select(going_on)
            if len(drawn.places):
                themselves = torch.arange(drawn.pieces.size(1), device=limits.device)  # (K,)
                ensemble.select(going_on, themselves.expand(len(drawn.places), -1))
    return [best_first(one) for one in found]


def draw(logs: Tensor, drawn: Drawn, sampling: Sampling) -> Drawn:
    """Draw the next piece of each sample from log P of the allowed ones, (B, K, V)."""
    place = drawn.pieces.size(2) - 1
    pieces = torch.arange(logs.size(2), device=logs.device)  # (V,)
    numbers = uniform(sampling.seed, drawn.numbers[:, None, None], drawn.samples[..., None], place, pieces)  # (B, K, V)
    newest = first_of(numbers, masses(logs, sampling))  # (B, K)
    newest = newest.masked_fill(drawn.limits[:, None] <= place + 1, EOS)
    values = logs.gather(2, newest[..., None])[..., 0]  # (B, K)
    return replace(
        drawn,
        pieces=torch.cat((drawn.pieces, newest.masked_fill(drawn.ended, PAD)[..., None]), 2),
        log_probabilities=drawn.log_probabilities + values.masked_fill(drawn.ended, 0.0),
    )


def masses(logs: Tensor, sampling: Sampling) -> Tensor:
    """Weigh the pieces that may be drawn, and those that may not with 0: (…, V) -> (…, V), in float64."""
    # from the largest, in float64: a temperature near 0 leaves that one alone
    mass = ((logs.double() - logs.amax(-1, keepdim=True)) / sampling.temperature).exp()  # (…, V)
    if not sampling.top_k and sampling.top_p == 1:
        return mass
    pieces = _likeliest(logs, mass, sampling)  # (…, k)
    best = mass.gather(-1, pieces)  # (…, k)
    whole = best if sampling.top_k else mass  # (…, k) or (…, V)
    # a piece is in the smallest set that is heavy enough if what is before it is too light
    needed = best.cumsum(-1) - best < sampling.top_p * whole.sum(-1, keepdim=True)  # (…, k)
    return torch.zeros_like(mass).scatter(-1, pieces, best * needed)


def _likeliest(logs: Tensor, mass: Tensor, sampling: Sampling) -> Tensor:
    """List the likeliest pieces, in their order, as many as may be drawn and perhaps more: (…, V) -> (…, k)."""
    size = logs.size(-1)
    if sampling.top_k:
        return logs.topk(min(sampling.top_k, size)).indices
    # to sort all pieces takes several times as long, and is seldom needed
    pieces = logs.topk(min(_FEW, size)).indices  # (…, k)
    enough = mass.gather(-1, pieces).sum(-1) >= sampling.top_p * mass.sum(-1)  # (…)
    return pieces if enough.all() else logs.argsort(descending=True)


def first_of(numbers: Tensor, mass: Tensor) -> Tensor:
    """Find the piece that wins the race, by numbers between 0 and 1 and masses: (…, V) both -> (…)."""
    # one number for the place where a sum of masses passes it would do, but the sums of thousands of pieces shift with
    # the rounding of a batch, and each shift is a chance to draw another piece
    return (mass / -numbers.log()).argmax(-1)


def uniform(seed: int, *names: Tensor | int) -> Tensor:
    """Give the number between 0 and 1, both excluded, that belongs to a seed and to integers: in float64."""
    device = next(name.device for name in names if isinstance(name, Tensor))
    state = hashed(torch.tensor(seed, device=device))
    for name in names:
        state = hashed(state ^ name)
    # half a step up, so that 0 is never drawn
    return (_shifted(state, 64 - _BITS).double() + 0.5) * 2.0**-_BITS


def hashed(values: Tensor) -> Tensor:
    """Hash 64-bit integers, one to one."""
    z = values + _GAMMA
    z = (z ^ _shifted(z, 30)) * _FIRST
    z = (z ^ _shifted(z, 27)) * _SECOND
    return z ^ _shifted(z, 31)


def _begin(limits: Tensor, numbers: Sequence[int], samples: range) -> Drawn:
    sentences = len(limits)
    device = limits.device
    return Drawn(
        torch.arange(sentences, device=device),
        torch.tensor(numbers, device=device, dtype=torch.long),
        limits,
        torch.tensor(samples, device=device).expand(sentences, -1),
        limits.new_full((sentences, len(samples), 1), BOS),
        torch.zeros(sentences, len(samples), device=device),
    )


def _collect(found: list[list[Hypothesis]], drawn: Drawn, alpha: float) -> None:
    lengths = (drawn.pieces != PAD).sum(2) - 1  # (B, K)
    scores = drawn.log_probabilities / length_penalty(lengths, alpha)  # (B, K)
    collect(found, drawn.places.tolist(), Kept(drawn.pieces, drawn.log_probabilities, scores))


def _shifted(values: Tensor, places: int) -> Tensor:
    # a shift to the right repeats the sign, which unsigned numbers do not have
    return (values >> places) & ((1 << (64 - places)) - 1)
