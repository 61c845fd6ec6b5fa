"""Shared by the tests of the search: models with strong preferences, and a search in plain
Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
import torch
from small import small_model
from torch import Tensor

from synmt.data.batch import Batch, Sequences
from synmt.data.vocabulary import BOS, EOS
from synmt.decode.beam import search
from synmt.decode.next_piece import Hypothesis, Member, length_penalty
from synmt.decode.options import Sampling, SearchOptions
from synmt.model.seq2seq import Seq2Seq

SEARCHES: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 4, "n_best": 3},
    {"beam_size": 6, "groups": 3, "n_best": 4},
    {"beam_size": 3, "no_repeat": 2},
    {"n_best": 3, "sampling": Sampling(top_p=0.9, seed=3)},
]
"""Options of one search of each kind."""

NextLogs = Callable[[tuple[int, ...]], list[float]]
"""The log-probability of each piece after these."""
Ended = tuple[float, float, tuple[int, ...]]
"""Score, log-probability, pieces."""


def sharp(*variants: dict[str, Any], seed: int = 0, **options: Any) -> Seq2Seq:
    """Make a model whose choices are far apart, and that ends its translations."""
    model = small_model(*variants, seed=seed, **options).eval()
    with torch.no_grad():
        model.output_weight.mul_(4)
        model.output_weight[EOS] *= 3
    return model


def keep_pieces(model: Seq2Seq, size: int) -> None:
    """Shorten the target's table to `size` pieces; sources use the same ones."""
    table: Any = model.target_embedding.table  # type: ignore[union-attr]
    table.weight = torch.nn.Parameter(table.weight[:size].clone())
    table.num_embeddings = size
    embedding: Any = model.source_embedding
    source = embedding.forward
    embedding.forward = lambda ids, *rest, **more: source(ids.clamp(max=size - 1), *rest, **more)


def members_of(batch: Batch, *models: Seq2Seq, row: int | None = None) -> list[Member]:
    """Read a batch with models, or one sentence of it without padding."""
    source, signals = (batch.source, batch.source_signals) if row is None else alone(batch, row)
    return [
        Member(
            model, source, {signal.name: signals[signal.name] for signal in model.reads("source")}
        )
        for model in models
    ]


def alone(batch: Batch, row: int) -> tuple[Sequences, dict[str, Tensor]]:
    """Take one sentence of a batch, without padding."""
    length = int(batch.source.mask[row].sum())
    ids, mask = (part[row : row + 1, :length] for part in (batch.source.ids, batch.source.mask))
    source = Sequences(ids, mask, torch.tensor([length]))
    return source, {
        name: signal[row : row + 1, :length] for name, signal in batch.source_signals.items()
    }


def run(
    members: Sequence[Member], options: SearchOptions, limit: int, **more: Any
) -> list[list[Hypothesis]]:
    """Search with one limit for all sentences."""
    return search(members, options, limits=torch.full((len(members[0].source.ids),), limit), **more)


def ids_of(found: Sequence[Sequence[Hypothesis]]) -> list[list[list[int]]]:
    """Take the pieces of every translation of every sentence."""
    return [[one.ids for one in hypotheses] for hypotheses in found]


def assert_same_search(
    found: Sequence[Sequence[Hypothesis]],
    expected: Sequence[Sequence[Hypothesis]],
    tolerance: float = 1e-4,
) -> None:
    """Compare what two searches have found: the same pieces, and nearly the same scores."""
    assert ids_of(found) == ids_of(expected)
    scores, others = ([one.score for row in rows for one in row] for rows in (found, expected))
    assert scores == pytest.approx(others, abs=tolerance)


def assert_found(hypotheses: Sequence[Hypothesis], expected: Sequence[Ended]) -> None:
    """Compare what a search has found for a sentence with what it should find, in order."""
    assert [tuple(one.ids) for one in hypotheses] == [ids for *_, ids in expected]
    assert [one.log_probability for one in hypotheses] == pytest.approx(
        [log for _, log, _ in expected], abs=1e-4
    )
    assert [one.score for one in hypotheses] == pytest.approx(
        [score for score, *_ in expected], abs=1e-4
    )


def next_logs(members: Sequence[Member]) -> NextLogs:
    """Compute the mean of the members' probabilities for one sentence, all positions at once in
    each step."""
    with torch.no_grad():
        memories = [member.model.remember(member.source, member.signals)[0] for member in members]

    @cache
    def logs(pieces: tuple[int, ...]) -> list[float]:
        with torch.no_grad():
            probabilities = [
                (
                    member.model.decode(memory, torch.tensor([[BOS, *pieces]]))[0, -1]
                    @ member.model.output_weight.T
                )
                .double()
                .softmax(-1)
                for member, memory in zip(members, memories, strict=True)
            ]
        return (sum(probabilities[1:], probabilities[0]) / len(members)).log().tolist()

    return logs


def log_probability(logs: NextLogs, pieces: Sequence[int]) -> float:
    """Add up the log-probabilities of pieces and EOS."""
    return sum(logs(tuple(pieces[:place]))[piece] for place, piece in enumerate([*pieces, EOS]))


def allowed(pieces: tuple[int, ...], size: int, no_repeat: int, prefix: Sequence[int]) -> list[int]:
    """List the pieces that may come next, word for word from the rules."""
    if len(pieces) < len(prefix):
        return [prefix[len(pieces)]]
    found = [EOS] if pieces else []
    for piece in range(EOS + 1, size):
        longer = (*pieces, piece)
        runs = [longer[k : k + no_repeat] for k in range(len(longer) - no_repeat + 1)]
        if not no_repeat or runs.count(longer[-no_repeat:]) < 2:
            found.append(piece)
    return found


def plain_search(
    logs: NextLogs, options: SearchOptions, limit: int, prefix: Sequence[int] = ()
) -> list[Ended]:
    """Search for the translations of one sentence, hypothesis by hypothesis."""
    size = options.beam_size // options.groups
    keep = options.n_best if options.groups == 1 else size
    limit = max(limit, len(prefix) + 2) if prefix else limit
    live: list[list[tuple[float, tuple[int, ...]]]] = [[(0.0, ())] for _ in range(options.groups)]
    ended: list[list[Ended]] = [[] for _ in live]
    for length in range(1, limit + 1):
        chosen, most = Counter[int](), length_penalty(limit, options.length_penalty)
        for group, found in enumerate(ended):
            ranked = []
            for value, pieces in live[group]:
                for piece in allowed(pieces, len(logs(())), options.no_repeat, prefix):
                    sum_ = value + logs(pieces)[piece]
                    ranked.append((sum_ - options.diversity * chosen[piece], sum_, pieces, piece))
            ranked.sort(key=lambda one: -one[0])
            going = [one for one in ranked if one[3] != EOS][:size]
            first = [one for one in ranked if one[3] == EOS or one in going]
            for _, value, pieces, piece in first if length == limit else first[:size]:
                if piece == EOS:
                    score = value / length_penalty(length, options.length_penalty)
                    found.append((score, value, pieces))
            chosen.update(piece for *_, piece in going)
            live[group] = [(value, (*pieces, piece)) for _, value, pieces, piece in going]
            scores = sorted((score for score, *_ in found), reverse=True)
            bound = max((value for value, _ in live[group]), default=-1e9) / most
            if len(scores) >= size or (len(scores) >= keep and bound <= scores[keep - 1]):
                live[group] = []
    distinct = {one[2]: one for found in ended for one in sorted(found, reverse=True)[:keep]}
    return sorted(distinct.values(), reverse=True)[: options.n_best]
