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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from synmt.data.vocabulary import BOS, EOS, PAD
from synmt.decode.next_piece import length_penalty
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
    """K samples of each of B sentences.

    sentences: (B,) their places among the results.
    numbers: (B,) identify the sentences, for the random numbers.
    limits: (B,) maximum number of pieces, EOS included; at the limit, a translation ends with EOS,
        whatever its probability.
    samples: (B, K) number of the sample, for the random numbers.
    pieces: (B, K, T) BOS first; a finished sample ends in EOS and PAD.
    log_probabilities: (B, K) of the pieces so far, as the model gives them.
    """

    sentences: Tensor
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

    @property
    def done(self) -> Tensor:
        """Which sentences have only complete samples: (B,)."""
        return self.finished.all(1)

    def found(self, alpha: float) -> tuple[Tensor, Tensor, Tensor]:
        """Return pieces, scores and log-probabilities of the samples: (B, K, T) and (B, K)."""
        lengths = (self.pieces != PAD).sum(2) - 1  # (B, K)
        scores = self.log_probabilities / length_penalty(lengths, alpha)  # (B, K)
        return self.pieces, scores, self.log_probabilities

    def longer(self, logs: Tensor, options: SearchOptions) -> tuple[Samples, Tensor]:
        """Draw the next piece of each sample from log P of the allowed ones, (B, K, V).

        Returns the longer samples, and which sample each one continues: itself, (B, K).
        """
        assert options.sampling is not None
        place, limits = self.pieces.size(2), self.limits[:, None]  # (B, 1)
        pieces = torch.arange(logs.size(2), device=logs.device)  # (V,)
        names = self.numbers[:, None, None], self.samples[..., None], place - 1, pieces
        random = uniform(options.sampling.seed, *names)  # (B, K, V)
        # One random number per step and the cumulative sum of the weights would do as well, but the
        # sums of thousands of pieces change with the rounding of a batch, and each change may draw
        # another piece.
        newest = (masses(logs, options.sampling) / -random.log()).argmax(-1)  # (B, K)
        newest = newest.masked_fill(limits <= place, EOS)
        values = logs.gather(2, newest[..., None])[..., 0]  # (B, K)
        newest = newest.masked_fill(self.finished, PAD)[..., None]  # (B, K, 1)
        longer = replace(
            self,
            pieces=torch.cat((self.pieces, newest), 2),
            log_probabilities=self.log_probabilities + values.masked_fill(self.finished, 0.0),
        )
        return longer, torch.arange(values.size(1), device=logs.device).expand_as(values)


def begin_samples(
    limits: Tensor, numbers: Sequence[int], count: int, size: int
) -> Iterator[Samples]:
    """Start `count` samples of each sentence, in parts that fit into memory.

    limits: (B,) maximum number of pieces.
    numbers: identify the sentences.
    size: of the vocabulary.
    """
    sentences, device = len(limits), limits.device
    parallel = max(1, _LOGITS // size // max(1, sentences))
    for samples in torch.arange(count, device=device).split(parallel):
        yield Samples(
            torch.arange(sentences, device=device),
            torch.tensor(numbers, device=device, dtype=torch.long),
            limits,
            samples.expand(sentences, -1),
            limits.new_full((sentences, len(samples), 1), BOS),
            torch.zeros(sentences, len(samples), device=device),
        )


def masses(logs: Tensor, sampling: Sampling) -> Tensor:
    """Compute a weight for each piece, 0 if it may not be drawn: (…, V) -> (…, V), in float64."""
    # relative to the largest, in float64: with a temperature near 0, only the largest is left
    mass = ((logs.double() - logs.amax(-1, keepdim=True)) / sampling.temperature).exp()  # (…, V)
    if not sampling.top_k and sampling.top_p == 1:
        return mass
    pieces = logs.topk(min(sampling.top_k or _TOP, logs.size(-1))).indices  # (…, k)
    best = mass.gather(-1, pieces)  # (…, k)
    whole = best if sampling.top_k else mass  # (…, k) or (…, V)
    enough = sampling.top_p * whole.sum(-1, keepdim=True)  # (…, 1)
    # sorting all pieces takes several times as long, and is rarely necessary
    if not sampling.top_k and (best.sum(-1, keepdim=True) < enough).any():
        pieces = logs.argsort(descending=True)  # (…, V)
        best = mass.gather(-1, pieces)  # (…, V)
    # a piece is needed if the more probable ones do not reach top_p without it
    needed = best.cumsum(-1) - best < enough  # (…, k)
    return torch.zeros_like(mass).scatter(-1, pieces, best * needed)


def uniform(seed: int, *names: Tensor | int) -> Tensor:
    """Compute the number between 0 and 1, both excluded, that belongs to a seed and some integers,
    in float64."""
    device = next(name.device for name in names if isinstance(name, Tensor))
    # filled there: a GPU would wait for a number that is copied
    state = torch.full((), seed, device=device)
    for name in (0, *names):
        state = hashed(state ^ name)
    # half a step up, so that it is never 0
    return (_shifted(state, 64 - _BITS).double() + 0.5) * 2.0**-_BITS


def hashed(values: Tensor) -> Tensor:
    """Hash 64-bit integers, one to one."""
    z = values + _GAMMA
    z = (z ^ _shifted(z, 30)) * _FIRST
    z = (z ^ _shifted(z, 27)) * _SECOND
    return z ^ _shifted(z, 31)


def _shifted(values: Tensor, bits: int) -> Tensor:
    # a right shift of signed integers repeats the sign bit
    return (values >> bits) & ((1 << (64 - bits)) - 1)
