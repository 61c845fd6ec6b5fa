"""Forced prefixes and forbidden repetitions: against enumeration and against loops."""

import itertools
import math

import pytest
import torch
from searching import (
    assert_found,
    enumerate_all,
    keep_pieces,
    members_of,
    next_logs,
    plain_search,
    run,
    sharp,
)
from small import random_batch, small_model

from synmt.data.vocabulary import BOS, EOS, PAD, UNK
from synmt.decode.beam import search
from synmt.decode.next_piece import Constraints, limits_beyond, padded_prefixes, repeating
from synmt.decode.options import Sampling, SearchOptions

PREFIXES = [[], [9], [7, 7, 7], [5, 30, 12, 6, 21, 8, 9, 10, 11, 12]]


@pytest.mark.journey
@pytest.mark.parametrize("prefix", [[], [5], [6, 4], [4, 4]])
@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_after_a_prefix_a_wide_beam_finds_what_enumeration_finds(architecture, prefix):
    model = sharp(seed=1, architecture=architecture)
    keep_pieces(model, 7)
    _, batch = random_batch(model, [3, 5], seed=1)
    options = SearchOptions(beam_size=60, n_best=60)
    for row, hypotheses in enumerate(
        run(members_of(batch, model), options, 4, prefixes=[prefix] * 2)
    ):
        logs = next_logs(members_of(batch, model, row=row))
        assert_found(hypotheses, enumerate_all(logs, prefix=prefix))


@pytest.mark.journey
@pytest.mark.parametrize("system", ["transformer", "lstm", "both", "pascal"])
@pytest.mark.parametrize("no_repeat", [0, 1, 2])
def test_prefixes_no_repeat_and_ensembles_together_are_those_of_plain_python(system, no_repeat):
    models = {
        "transformer": lambda: [sharp(seed=3)],
        "lstm": lambda: [sharp(seed=4, architecture="lstm")],
        "both": lambda: [sharp(seed=3), sharp(seed=4, architecture="lstm")],
        "pascal": lambda: [
            sharp(seed=5),
            sharp({"name": "pascal", "layers": [1], "heads": 2}, seed=6),
        ],
    }[system]()
    _, batch = random_batch(models[-1], [5, 3, 9, 4], seed=2)
    options = SearchOptions(beam_size=3, n_best=3, no_repeat=no_repeat)
    found = run(members_of(batch, *models), options, 7, prefixes=PREFIXES)
    for row, hypotheses in enumerate(found):
        logs = next_logs(members_of(batch, *models, row=row))
        assert_found(hypotheses, plain_search(logs, options, 7, PREFIXES[row]))


@pytest.mark.parametrize("sampling", [None, Sampling(top_k=5, seed=8)], ids=["beam", "samples"])
def test_a_prefix_longer_than_the_limit_leaves_room_for_one_more_piece(sampling):
    model = sharp(seed=3)
    _, batch = random_batch(model, [4, 4, 4, 4])
    options = SearchOptions(beam_size=4, n_best=4, sampling=sampling)
    for prefix, hypotheses in zip(
        PREFIXES, run(members_of(batch, model), options, 3, prefixes=PREFIXES), strict=True
    ):
        assert all(one.ids[: len(prefix)] == prefix for one in hypotheses)
        assert all(len(one.ids) <= max(2, len(prefix) + 1) for one in hypotheses)
    padded = padded_prefixes(PREFIXES, torch.device("cpu"))
    assert padded is not None
    assert limits_beyond(padded, torch.tensor([3, 3, 9, 3])).tolist() == [3, 3, 9, 12]


@pytest.mark.journey
@pytest.mark.parametrize("sampling", [None, Sampling(seed=8)], ids=["beam", "samples"])
def test_a_sentence_with_a_prefix_gets_the_same_translations_in_any_batch(sampling):
    model = sharp({"name": "pascal", "layers": [1], "heads": 2}, seed=1)
    words, prefixes = [3, 7, 1, 5, 2, 4, 6, 1], PREFIXES * 2
    _, batch = random_batch(model, words)
    options = SearchOptions(beam_size=3, n_best=3, no_repeat=2, sampling=sampling)
    together = run(members_of(batch, model), options, 9, prefixes=prefixes)
    for row in range(len(words)):
        [single] = run(
            members_of(batch, model, row=row),
            options,
            9,
            prefixes=prefixes[row : row + 1],
            numbers=[row],
        )
        assert [one.ids for one in single] == [one.ids for one in together[row]]


def test_empty_prefixes_change_nothing():
    model = sharp()
    _, batch = random_batch(model, [4, 2])
    options = SearchOptions(beam_size=4, n_best=4)
    members = members_of(batch, model)
    assert run(members, options, 8, prefixes=[[], []]) == run(members, options, 8)


def test_an_unknown_piece_in_a_prefix_is_kept():
    model = sharp()
    _, batch = random_batch(model, [4])
    [[best]] = run(members_of(batch, model), SearchOptions(beam_size=4), 8, prefixes=[[UNK, 7]])
    assert best.ids[:2] == [UNK, 7]
    assert UNK not in best.ids[2:]


@pytest.mark.parametrize("length", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_repeating_pieces_are_those_that_a_loop_finds(length, seed):
    pieces = torch.randint(4, 7, (2, 3, 9), generator=torch.Generator().manual_seed(seed))
    pieces[..., 0] = BOS
    found = repeating(pieces, length)
    for sentence, beam in itertools.product(range(2), range(3)):
        row = pieces[sentence, beam].tolist()
        runs = {tuple(row[first : first + length]) for first in range(len(row) - length + 1)}
        expected = {
            piece for piece in range(4, 7) if (*row[len(row) - length + 1 :], piece) in runs
        }
        assert set(found[sentence, beam].tolist()) - {PAD, BOS} == expected


def test_a_run_of_one_piece_repeats_itself():
    # 5 5 5 with another 5 would have 5 5 5 twice
    assert repeating(torch.tensor([[[BOS, 5, 5, 5]]]), 3).max() == 5
    assert repeating(torch.tensor([[[BOS, 5, 5]]]), 3).max() == PAD


@pytest.mark.parametrize("sampling", [None, Sampling(seed=3)], ids=["beam", "samples"])
def test_where_every_piece_is_forbidden_the_translation_ends(sampling):
    # three pieces, none of them twice: no translation has more than three
    model = small_model(seed=2).eval()
    keep_pieces(model, 7)
    with torch.no_grad():
        model.output_weight[EOS] = -20 * model.output_weight[4:].sum(0)
    _, batch = random_batch(model, [4, 2])
    options = SearchOptions(beam_size=4, n_best=4, no_repeat=1, sampling=sampling)
    for hypotheses in run(members_of(batch, model), options, 12):
        assert len(hypotheses) == 4
        assert all(
            1 <= len(one.ids) <= 3 and len(set(one.ids)) == len(one.ids) for one in hypotheses
        )
        assert all(math.isfinite(one.score) for one in hypotheses)


def test_what_is_forbidden_is_what_a_loop_forbids():
    pieces = torch.tensor([[[BOS, 4, 5, 4], [BOS, 6, 6, 5]], [[BOS, 4, 4, 4], [BOS, 5, 6, 5]]])
    logs = torch.zeros(2, 2, 8)
    prefixes = torch.tensor([[5, 5, 5, 7], [5, PAD, PAD, PAD]])
    Constraints(2, prefixes).apply(logs, pieces)
    allowed = [
        [(logs[row, beam] > -math.inf).nonzero()[:, 0].tolist() for beam in range(2)]
        for row in range(2)
    ]
    assert allowed == [[[7], [7]], [[EOS, 5, 6, 7], [EOS, 4, 5, 7]]]


def test_there_must_be_one_prefix_per_sentence():
    model = sharp()
    _, batch = random_batch(model, [4, 2])
    with pytest.raises(AssertionError):
        search(
            members_of(batch, model),
            SearchOptions(beam_size=4),
            limits=torch.tensor([5, 5]),
            prefixes=[[5]],
        )
