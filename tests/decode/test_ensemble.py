"""Ensembles: the mean of the members' probabilities, whatever the members are."""

import itertools

import pytest
from searching import (
    assert_found,
    enumerate_all,
    ids_of,
    keep_pieces,
    members_of,
    next_logs,
    run,
    sharp,
)
from small import random_batch

from synmt.decode.next_piece import Ensemble
from synmt.decode.options import Sampling, SearchOptions

PASCAL = {"name": "pascal", "layers": [1], "heads": 2}
LATENT = {"name": "latent_tree", "attention": "separate"}
ALL = [
    lambda: sharp(seed=1),
    lambda: sharp(PASCAL, seed=2, norm="pre"),
    lambda: sharp(LATENT, seed=3, architecture="lstm"),
]


@pytest.mark.journey
def test_a_wide_beam_finds_what_enumeration_of_the_mean_finds():
    models = [make() for make in ALL]
    for model in models:
        keep_pieces(model, 7)
    _, batch = random_batch(models[1], [3], seed=4)
    options = SearchOptions(beam_size=60, n_best=60)
    for row, hypotheses in enumerate(run(members_of(batch, *models), options, 4)):
        logs = next_logs(members_of(batch, *models, row=row))
        assert_found(hypotheses, enumerate_all(logs))


@pytest.mark.journey
@pytest.mark.parametrize("sampling", [None, Sampling(seed=4)], ids=["beam", "samples"])
@pytest.mark.parametrize("number", range(3))
def test_a_model_and_itself_are_the_model_alone(number, sampling):
    model = ALL[number]()
    _, batch = random_batch(model, [3, 8, 5], seed=number)
    options = SearchOptions(beam_size=4, n_best=4, sampling=sampling)
    once, twice = (run(members_of(batch, *[model] * times), options, 10) for times in (1, 2))
    assert ids_of(once) == ids_of(twice)
    for one, two in zip(once, twice, strict=True):
        assert [each.score for each in one] == pytest.approx([each.score for each in two], abs=1e-5)


@pytest.mark.journey
@pytest.mark.parametrize("sampling", [None, Sampling(seed=4)], ids=["beam", "samples"])
def test_the_order_of_the_members_does_not_matter(sampling):
    models = [make() for make in ALL]
    _, batch = random_batch(models[1], [3, 8, 5, 2])
    options = SearchOptions(beam_size=4, n_best=4, sampling=sampling)
    first, *others = [
        run(members_of(batch, *order), options, 10, prefixes=[[], [8], [], [9, 9]])
        for order in itertools.permutations(models)
    ]
    for other in others:
        assert ids_of(other) == ids_of(first)


def test_a_piece_that_one_member_is_sure_of_stays_possible():
    # 0.5 from one member and e^-30 from the other: the mean of log-probabilities would leave e^-15
    models = [sharp(seed=1), sharp(seed=2)]
    _, batch = random_batch(models[0], [4])
    alone = [next_logs(members_of(batch, model, row=0))(()) for model in models]
    both = next_logs(members_of(batch, *models, row=0))(())
    assert all(mean >= max(logs) - 0.6932 for mean, *logs in zip(both, *alone, strict=True))


def test_members_must_share_the_target_vocabulary():
    models = [sharp(seed=1), sharp(seed=2)]
    keep_pieces(models[1], 7)
    _, batch = random_batch(models[0], [4])
    with pytest.raises(AssertionError):
        Ensemble(members_of(batch, *models))
