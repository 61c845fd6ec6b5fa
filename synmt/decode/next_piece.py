"""A step of a search: how probable each next piece is, for an ensemble of models, which pieces must
not or have to follow, which continuations are the best, and which sentences leave the batch.

    P(y_t | y_<t, x) = 1/M Σ_m P_m(y_t | y_<t, x)

Probabilities are averaged, not log-probabilities: a piece that one model is sure of stays possible,
where an average of log-probabilities would let each model rule it out. A single model is an
ensemble of one.

PAD, UNK and BOS are never chosen, and EOS is not chosen first. A forced prefix overrides every
prohibition.

A sentence that is done changes no more, so it can stay: when it leaves, what the decoder remembers
of another one is copied into its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count, repeat
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from synmt.data.batch import Sequences
from synmt.data.vocabulary import BOS, EOS, PAD
from synmt.decode.options import SearchOptions
from synmt.model.seq2seq import Predictor, Seq2Seq

_MIN_LIMIT = 2
"""One piece and EOS."""
_NO_LIMIT = 1 << 30
"""Beyond this, no search goes; larger numbers may not fit into an integer."""


@dataclass(frozen=True)
class Constraints:
    """What is forbidden and forced in B sentences.

    no_repeat: no n-gram of this many pieces occurs twice; 0 allows all. EOS stays possible.
    prefixes: (B, P) pieces that the translations begin with, followed by PAD.
    """

    no_repeat: int
    prefixes: Tensor

    def apply(self, logs: Tensor, pieces: Tensor) -> None:
        """Set the log-probabilities (B, K, V) of what must not follow the pieces (B, K, T), BOS
        first, to -inf."""
        place = pieces.size(2) - 1
        if place >= self.prefixes.size(1):
            _forbid(logs, pieces, self.no_repeat)
            return
        forced = self.prefixes[:, place, None, None].expand(-1, logs.size(1), 1)  # (B, K, 1)
        forced_logs = logs.gather(2, forced)  # (B, K, 1)
        _forbid(logs, pieces, self.no_repeat)
        in_prefix = forced != PAD  # (B, K, 1)
        logs.masked_fill_(in_prefix, -math.inf)
        logs.scatter_(2, forced, forced_logs.where(in_prefix, -math.inf))

    def select(self, sentences: Tensor) -> Constraints:
        """Keep some sentences, (B',)."""
        return replace(self, prefixes=self.prefixes[sentences])


def padded_prefixes(prefixes: Sequence[Sequence[int]]) -> Tensor:
    """Pad prefixes into one tensor: (B, P)."""
    assert not {PAD, BOS, EOS} & {piece for prefix in prefixes for piece in prefix}
    rows = [torch.tensor(prefix, dtype=torch.long) for prefix in prefixes]
    return pad_sequence(rows, True, PAD)


def limits_of(source: Sequences, options: SearchOptions) -> Tensor:
    """Compute the maximum pieces of the translations of a batch, EOS included: (B,)."""
    pieces = source.mask.sum(1) - 1  # (B,), without EOS
    longest = (pieces * options.max_length_ratio).clamp(max=_NO_LIMIT).long()  # (B,)
    return (longest + options.max_length_extra).clamp(min=_MIN_LIMIT)


def repeating(pieces: Tensor, length: int) -> Tensor:
    """Find the pieces that would complete an n-gram a second time: (B, K, T) -> (B, K, T'), PAD for
    none."""
    so_far = pieces.size(2)
    if so_far < length:
        return pieces[..., :0]
    ngrams = pieces.unfold(2, length, 1)  # (B, K, T', length)
    last = pieces[..., None, so_far - length + 1 :]  # (B, K, 1, length - 1)
    begins = (ngrams[..., :-1] == last).all(-1)  # (B, K, T')
    return ngrams[..., -1].where(begins, PAD)


def _forbid(logs: Tensor, pieces: Tensor, no_repeat: int) -> None:
    # PAD, UNK and BOS are the first three pieces
    logs[..., :EOS] = -math.inf
    if pieces.size(2) == 1:
        logs[..., EOS] = -math.inf
    if no_repeat:
        logs.scatter_(2, repeating(pieces, no_repeat), -math.inf)


@dataclass(frozen=True)
class Member:
    """A model and what it reads of B sentences; the members of an ensemble share the target
    vocabulary.

    signals: what the model reads of the trees.
    decoder: predicts instead of the model, with the same weights.
    """

    model: Seq2Seq
    source: Sequences
    signals: dict[str, Tensor]
    decoder: Predictor | None = None


class Ensemble:
    """The models with their decoder states, for B sentences with K hypotheses each.

    All hypotheses of a sentence start as one, so the first step runs once for all of them.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        assert not any(member.model.training for member in members)
        memories = (member.model.remember(member.source, member.signals)[0] for member in members)
        self._decoders = [member.decoder or member.model for member in members]
        pairs = zip(self._decoders, memories, strict=True)
        self._states = [decoder.start(memory) for decoder, memory in pairs]
        self._started = False

    def step(self, pieces: Tensor) -> Tensor:
        """Read the newest pieces (B, K) and compute log P of the next in float32: (B, K, V);
        callers may change it."""
        inputs = pieces if self._started else pieces[:, :1]  # (B, K) or (B, 1)
        by_member = map(_next_logs, self._decoders, self._states, repeat(inputs))
        logs = reduce(torch.logaddexp, by_member)  # (B, K, V) or (B, 1, V)
        if len(self._decoders) > 1:
            logs -= math.log(len(self._decoders))
        return logs if inputs.size(1) == pieces.size(1) else logs.repeat(1, pieces.size(1), 1)

    def select(self, sentences: Tensor | None, beams: Tensor) -> None:
        """Keep some sentences (B',), or all if None, and continue the hypotheses `beams` of each,
        (B', K')."""
        beams = beams if self._started else torch.zeros_like(beams)
        self._started = True
        for state in self._states:
            state.select(sentences, beams)


def _next_logs(decoder: Predictor, state: Any, pieces: Tensor) -> Tensor:
    logits = decoder.predict(state, pieces)  # (B, K, V)
    # on a CPU, log_softmax takes a fifth of the time of logsumexp; without new memory, two thirds
    return torch.log_softmax(logits, -1, out=logits)


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


_Tensors = TypeVar("_Tensors")


def select(tensors: _Tensors, rows: Tensor) -> _Tensors:
    """Select sentences of a record of tensors."""
    return type(tensors)(*(tensor[rows] for tensor in vars(tensors).values()))


def length_penalty(length: Tensor | float, alpha: float) -> Tensor | float:
    """Compute the divisor of a log-probability (Wu et al., 2016, section 7; without their coverage
    penalty).

        score = log P(y | x) / lp(y)        lp(y) = ((5 + |y|) / 6) ** alpha

    |y| counts the pieces and EOS. An alpha of 0 ranks by log-probability; larger values prefer
    longer translations.
    """
    return ((5 + length) / 6) ** alpha


_BLOCK = 32


def best_sums(values: Tensor, base: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Find the `count` largest sums of values (B, K, V) and base (B, K) in each row of the batch,
    best first.

    Returns the sums and their places in K V: (B, count) each. On a CPU, they are looked for in the
    `count` blocks of pieces with the largest maxima, which takes a fraction of the time of `topk`.
    """
    _, beams, size = values.shape
    if values.device.type != "cpu" or size < 2 * _BLOCK * count:
        sums, places = (values + base[..., None]).flatten(1).topk(count)  # (B, count)
        return sums, places
    blocks = size // _BLOCK
    in_blocks = values[..., : blocks * _BLOCK].unflatten(2, (blocks, _BLOCK))
    maxima = in_blocks.amax(-1) + base[..., None]  # (B, K, V / 32)
    chosen = maxima.flatten(1).topk(count).indices  # (B, count)
    first = chosen // blocks * size + chosen % blocks * _BLOCK  # (B, count)
    inside = (first[..., None] + torch.arange(_BLOCK)).flatten(1)  # (B, 32 count)
    # the last pieces fill no block
    last = torch.arange(blocks * _BLOCK, size)  # (V mod 32,)
    rest = (torch.arange(beams)[:, None] * size + last).flatten()  # (K (V mod 32),)
    candidates = torch.cat((inside, rest.expand(len(values), -1)), 1)  # (B, C)
    before = base.gather(1, candidates // size)  # (B, C)
    sums, best = (values.flatten(1).gather(1, candidates) + before).topk(count)  # (B, count)
    return sums, candidates.gather(1, best)


_PERIOD = 8
"""Steps between two checks on a GPU: each check waits until the device has computed everything so
far."""


def looks(device: torch.device) -> Callable[[Tensor], tuple[Tensor, Tensor | None]]:
    """Return a function for all steps of one search: which sentences are done (B,) -> who leaves
    and who remains.

    Both are numbers of sentences, those that remain are None if no sentence leaves. A sentence
    stays in its place if it can: only places that become free are filled, by the last sentences.
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
        staying, leaving = order[:size], order[size:]
        remaining = torch.arange(size, device=done.device)  # (B',)
        remaining[leaving[leaving < size]] = staying[staying >= size]
        return leaving, remaining

    return look


def _rounded(sentences: int) -> int:
    """Round up, by at most 8 up to 128: oneDNN plans products for each size, and keeps some 20
    sizes of them."""
    unit = 4 if sentences <= 32 else max(8, 1 << (sentences - 1).bit_length() - 4)
    return -(-sentences // unit) * unit if sentences > 4 else sentences
