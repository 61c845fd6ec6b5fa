"""Sampling: frequencies against probabilities, the same draws in any batch, top-k and top-p against
loops."""

import itertools
import math
from collections import Counter

import pytest
import torch
from searching import (
    assert_found,
    ids_of,
    keep_pieces,
    log_probability,
    members_of,
    next_logs,
    run,
    sharp,
)
from small import random_batch, small_model
from splitmix import scramble

from synmt.data.vocabulary import EOS
from synmt.decode import sampling as module
from synmt.decode.next_piece import length_penalty
from synmt.decode.options import Sampling, SearchOptions
from synmt.decode.sampling import begin_samples, masses, uniform

pytestmark = pytest.mark.journey


def drawing(n_best=1, no_repeat=0, **sampling):
    return SearchOptions(
        beam_size=1, n_best=n_best, no_repeat=no_repeat, sampling=Sampling(**sampling)
    )


def blunt(seed=0, size=7, **options):
    """Make a model of three pieces with flat distributions."""
    model = small_model(seed=seed, **options).eval()
    keep_pieces(model, size)
    return model


@pytest.mark.parametrize(
    ("architecture", "temperature"), [("transformer", 1.0), ("lstm", 1.0), ("transformer", 0.5)]
)
def test_translations_are_as_frequent_as_they_are_probable(architecture, temperature):
    model = blunt(seed=3, architecture=architecture)
    _, batch = random_batch(model, [4, 2], seed=1)
    count = 4000
    found = run(members_of(batch, model), drawing(count, temperature=temperature, seed=5), 3)
    outputs = [ids for length in (1, 2) for ids in itertools.product([4, 5, 6], repeat=length)]
    for row, hypotheses in enumerate(found):
        logs = next_logs(members_of(batch, model, row=row))
        counts = Counter(tuple(one.ids) for one in hypotheses)
        assert {*counts} <= {*outputs}
        expected = [(ids, count * probability(logs, ids, temperature)) for ids in outputs]
        # chi-square with 11 degrees of freedom passes 31.3 once in a thousand times
        assert sum((counts[ids] - often) ** 2 / often for ids, often in expected) < 31.3


def probability(logs, pieces, temperature):
    """Multiply the shares of the pieces of a translation, of two at most, and of EOS."""
    product = 1.0
    for place, piece in enumerate((*pieces, EOS)[:2]):
        allowed = [4, 5, 6, EOS][: 3 + place]
        weights = {one: math.exp(logs(pieces[:place])[one] / temperature) for one in allowed}
        product *= weights[piece] / sum(weights.values())
    return product


@pytest.mark.parametrize(
    "options", [{"top_k": 1}, {"temperature": 1e-4}, {"temperature": 1e-300}, {"top_p": 1e-9}]
)
def test_sampling_from_the_most_probable_piece_only_is_greedy(options):
    model = sharp(seed=2)
    _, batch = random_batch(model, [3, 6, 8, 2], seed=4)
    members, prefixes = members_of(batch, model), [[], [9, 9], [], [12]]
    greedy = run(members, SearchOptions(beam_size=1, no_repeat=2), 10, prefixes=prefixes)
    sampled = run(members, drawing(2, no_repeat=2, **options), 10, prefixes=prefixes)
    assert ids_of(sampled) == [found * 2 for found in ids_of(greedy)]


def test_samples_do_not_depend_on_how_many_are_drawn_together(monkeypatch):
    model = blunt()
    _, batch = random_batch(model, [4, 2, 3])

    def drawn(count=10, **options):
        found = ids_of(run(members_of(batch, model), drawing(count, **options), 6))
        return [Counter(map(tuple, ids)) for ids in found]

    expected = drawn()
    assert drawn(seed=2) != expected
    monkeypatch.setattr(module, "_LOGITS", 7 * 3 * 4)
    assert drawn() == expected
    assert drawn(3)[0] <= expected[0]


def test_a_sample_continues_in_the_same_way_after_its_own_prefix():
    model = blunt(seed=1, size=40)
    _, batch = random_batch(model, [4, 7, 2, 9])
    members = members_of(batch, model)
    drawn = run(members, drawing(), 12)
    prefixes = [found[0].ids[:length] for length, found in zip((0, 1, 2, 3), drawn, strict=True)]
    assert ids_of(run(members, drawing(), 12, prefixes=prefixes)) == ids_of(drawn)


def test_log_probabilities_are_the_models_own_and_the_best_comes_first():
    models = [sharp(seed=3), sharp(seed=4, architecture="lstm")]
    _, batch = random_batch(models[0], [5, 2])
    options = drawing(6, top_k=9, temperature=2.0, top_p=0.9)
    sampled = run(members_of(batch, *models), options, 8, prefixes=[[], [9, 8]])
    for row, found in enumerate(sampled):
        logs = next_logs(members_of(batch, *models, row=row))
        expected = []
        for one in found:
            value = log_probability(logs, one.ids)
            expected.append((value / length_penalty(len(one.ids) + 1, 0.6), value, (*one.ids,)))
        assert_found(found, sorted(expected, reverse=True))


@pytest.mark.parametrize("few", [3, 256])
@pytest.mark.parametrize("top_k", [0, 1, 4, 50])
@pytest.mark.parametrize("top_p", [1.0, 0.8, 0.3, 1e-9])
def test_top_k_and_top_p_are_those_of_a_loop(monkeypatch, top_k, top_p, few):
    monkeypatch.setattr(module, "_TOP", few)
    logs = torch.randn(3, 2, 20, generator=torch.Generator().manual_seed(1)).mul(2).log_softmax(-1)
    logs[..., [0, 7]] = -math.inf
    found = masses(logs, Sampling(top_k=top_k, top_p=top_p, temperature=0.8))
    for row, weights in zip(logs.view(-1, 20).tolist(), found.view(-1, 20), strict=True):
        shares = [math.exp(log / 0.8) for log in row]
        ranked = sorted(range(20), key=shares.__getitem__, reverse=True)[: top_k or None]
        enough, kept = top_p * (1 - 1e-12) * sum(shares[piece] for piece in ranked), {}
        for piece in ranked:
            if sum(kept.values()) < enough:
                kept[piece] = shares[piece]
        expected = [kept.get(piece, 0) / sum(kept.values()) for piece in range(20)]
        assert (weights / weights.sum()).tolist() == pytest.approx(expected)


def test_rounding_rarely_changes_a_sample():
    logs = torch.randn(1000, 1, 1000, generator=torch.Generator().manual_seed(1)).log_softmax(-1)
    noise = 1e-3 * torch.randn(logs.shape, generator=torch.Generator().manual_seed(2))
    [begun] = begin_samples(torch.full((1000,), 9), range(1000), 1, 1)
    one, other = (begun.longer(values, drawing())[0].pieces for values in (logs, logs + noise))
    # where the place decides at which the sum of the probabilities passes a number, ten times as
    # many are others
    assert (one != other).sum() < 3


def test_random_numbers_are_those_of_unsigned_integers():
    numbers, samples = torch.tensor([[0], [3], [1 << 40]]), torch.tensor([[0, 1]])
    found = uniform(9, numbers, samples, 4)
    for row, column in itertools.product(range(3), range(2)):
        state = scramble(9)
        for name in (int(numbers[row, 0]), column, 4):
            state = scramble(state ^ name)
        assert found[row, column].item() == ((state >> 12) + 0.5) / 2**52
