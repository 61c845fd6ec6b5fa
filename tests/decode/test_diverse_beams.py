"""Diverse beam search: against loops, and where it is plain beam search."""

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from searching import assert_found, ids_of, members_of, next_logs, plain_search, run, sharp
from small import random_batch

from synmt.data.vocabulary import EOS
from synmt.decode.beam import continuations, diverse_continuations, is_done
from synmt.decode.hypotheses import Finished, Live, length_penalty
from synmt.decode.options import SearchOptions


@pytest.mark.journey
@pytest.mark.parametrize(
    ("beam_size", "groups", "diversity", "no_repeat"),
    [(6, 2, 0.5, 0), (6, 3, 2.0, 2), (4, 4, 1.0, 0), (6, 2, 0.0, 0)],
)
@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_groups_find_what_groups_in_plain_python_find(
    architecture, beam_size, groups, diversity, no_repeat
):
    model = sharp(seed=7, architecture=architecture)
    _, batch = random_batch(model, [5, 3, 9], seed=2)
    prefixes = [[], [8], [6, 6]]
    grouping = {"groups": groups, "diversity": diversity, "no_repeat": no_repeat}
    options = SearchOptions(beam_size=beam_size, n_best=beam_size, **grouping)
    for row, hypotheses in enumerate(run(members_of(batch, model), options, 7, prefixes=prefixes)):
        expected = plain_search(
            next_logs(members_of(batch, model, row=row)), options, 7, prefixes[row]
        )
        assert_found(hypotheses, expected)
        assert [one.score for one in hypotheses] == pytest.approx(
            [one.log_probability / length_penalty(len(one.ids) + 1, 0.6) for one in hypotheses]
        )


@pytest.mark.parametrize("seed", range(3))
def test_without_diversity_every_group_is_the_same_smaller_beam(seed):
    model = sharp(seed=seed)
    _, batch = random_batch(model, [5, 3, 9, 6], seed=seed)
    grouped = run(
        members_of(batch, model), SearchOptions(beam_size=6, n_best=2, groups=3, diversity=0.0), 9
    )
    plain = run(members_of(batch, model), SearchOptions(beam_size=2, n_best=2), 9)
    assert ids_of(grouped) == ids_of(plain)


def test_n_best_does_not_change_what_groups_find():
    model = sharp(seed=3)
    _, batch = random_batch(model, [5, 3, 9, 6, 2, 8], seed=3)
    every = run(members_of(batch, model), SearchOptions(beam_size=6, n_best=6, groups=3), 9)
    for n_best in (1, 3):
        some = run(members_of(batch, model), SearchOptions(beam_size=6, n_best=n_best, groups=3), 9)
        assert ids_of(some) == [ids[:n_best] for ids in ids_of(every)]


def test_translations_are_distinct_and_best_first():
    model = sharp(seed=4)
    _, batch = random_batch(model, [5, 3, 9, 6], seed=4)
    for hypotheses in run(
        members_of(batch, model), SearchOptions(beam_size=8, n_best=8, groups=4, diversity=0.1), 9
    ):
        assert len({tuple(one.ids) for one in hypotheses}) == len(hypotheses)
        scores = [one.score for one in hypotheses]
        assert scores == sorted(scores, reverse=True)


def test_strong_diversity_makes_groups_begin_differently():
    model = sharp(seed=5)
    _, batch = random_batch(model, [5, 3, 9], seed=5)
    options = SearchOptions(beam_size=4, n_best=4, groups=4, diversity=1000.0)
    for hypotheses in run(members_of(batch, model), options, 9):
        assert len({one.ids[0] for one in hypotheses}) == 4


def test_each_group_is_penalised_for_the_choices_of_earlier_groups():
    logs = torch.randn(2, 6, 12, generator=torch.Generator().manual_seed(2)).log_softmax(-1)
    logs[..., :EOS] = -math.inf
    values = torch.randn(6, 2, generator=torch.Generator().manual_seed(3))
    # the first group of the second sentence has stopped
    values[3] = -math.inf
    step = diverse_continuations(logs.clone(), values, 2, groups=3, diversity=0.7)
    for sentence in range(2):
        chosen = Counter()
        for group in range(3):
            row = 3 * sentence + group
            every = [
                (values[row, k].item() + logs[sentence, 2 * group + k, v].item(), k, v)
                for k in range(2)
                for v in range(EOS + 1, 12)
            ]
            best = sorted(every, key=lambda one: 0.7 * chosen[one[2]] - one[0])[:2]
            if values[row, 0] == -math.inf:
                continue
            assert step.log_probabilities[row].tolist() == pytest.approx(
                [value for value, *_ in best]
            )
            found = list(zip(step.beams[row].tolist(), step.pieces[row].tolist(), strict=True))
            assert found == [(k, v) for _, k, v in best]
            chosen.update(v for *_, v in best)


def test_a_group_continues_while_any_of_its_hypotheses_can_win():
    # the first one was chosen for its piece, the second is the likelier
    live = Live(
        torch.full((1, 2, 3), 5), torch.tensor([[-5.0, -1.0]]), torch.tensor([9]), torch.zeros(1)
    )
    kept = Finished(torch.full((1, 1, 3), 5), torch.tensor([[-2.0]]), torch.tensor([[-2.0]]))
    assert not is_done(live, kept, 2, 0.0)
    assert is_done(replace(live, log_probabilities=torch.tensor([[-5.0, -3.0]])), kept, 2, 0.0)


def test_one_group_is_the_plain_beam():
    logs = torch.randn(2, 3, 12, generator=torch.Generator().manual_seed(2)).log_softmax(-1)
    values = torch.randn(2, 3, generator=torch.Generator().manual_seed(3))
    plain = continuations(logs.clone(), values, 3)
    grouped = diverse_continuations(logs.clone(), values, 3, groups=1, diversity=9.0)
    assert torch.equal(plain.merits, grouped.merits)
    assert torch.equal(plain.pieces, grouped.pieces)
