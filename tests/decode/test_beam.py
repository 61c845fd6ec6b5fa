"""The search: against enumeration, against itself in other batches, against decoding all at
once."""

import math

import pytest
import torch
from searching import (
    allowed,
    assert_found,
    enumerate_all,
    keep_pieces,
    members_of,
    next_logs,
    plain_search,
    run,
    sharp,
)
from small import PIECES, random_batch, small_model

from synmt.data.vocabulary import BOS, EOS, PAD, UNK
from synmt.decode import beam, sampling
from synmt.decode.beam import Continuations, continuations, which_end
from synmt.decode.hypotheses import (
    Finished,
    Live,
    best_possible,
    best_sums,
    keep_best,
    length_penalty,
    looks,
)
from synmt.decode.inputs import in_workers, workers
from synmt.decode.next_piece import length_limits
from synmt.decode.options import Sampling, SearchOptions

PASCAL = {"name": "pascal", "layers": [1], "heads": 2}
LATENT = {"name": "latent_tree", "attention": "separate"}


def forced(model, batch, row, pieces):
    """Compute the log-probability of pieces and EOS, all positions at once."""
    [member] = members_of(batch, model, row=row)
    with torch.no_grad():
        memory, _ = model.remember(member.source, member.signals)
        states = model.decode(memory, torch.tensor([[BOS, *pieces]]))[0]
        logs = (states @ model.output_weight.T).log_softmax(-1)
    return sum(logs[place, piece].item() for place, piece in enumerate([*pieces, EOS]))


def found(model, batch, limit, beam_size=4, alpha=0.6, n_best=1):
    options = SearchOptions(beam_size=beam_size, length_penalty=alpha, n_best=n_best)
    return run(members_of(batch, model), options, limit)


@pytest.mark.parametrize(
    ("length", "alpha", "expected"), [(1, 0.6, 1.0), (7, 1.0, 2.0), (19, 0.5, 2.0), (9, 0.0, 1.0)]
)
def test_the_length_penalty_is_the_formula_of_wu(length, alpha, expected):
    assert length_penalty(length, alpha) == pytest.approx(expected)
    assert length_penalty(torch.tensor([length]), alpha).tolist() == pytest.approx([expected])


def test_no_unfinished_hypothesis_ends_above_its_bound():
    bound = best_possible(torch.tensor([-6.0]), torch.tensor([7]), 1.0)
    assert bound.tolist() == [-3.0]
    assert all(-6.0 / length_penalty(length, 1.0) <= -3.0 for length in range(1, 8))


def test_limits_grow_with_the_source_and_leave_room_for_one_piece():
    assert length_limits(torch.tensor([0, 10]), ratio=1.5, extra=20).tolist() == [20, 35]
    assert length_limits(torch.tensor([1]), ratio=0.1, extra=0).tolist() == [2]
    # "no limit" does not turn around to the shortest one
    assert length_limits(torch.tensor([10]), ratio=1e30, extra=20).item() > 1_000_000


@pytest.mark.journey
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_a_beam_that_is_wide_enough_finds_what_enumeration_finds(architecture, seed):
    model = sharp(seed=seed, architecture=architecture)
    keep_pieces(model, 7)
    _, batch = random_batch(model, [3, 5], seed)
    # they keep what they have computed, which does not depend on alpha
    logs = [next_logs(members_of(batch, model, row=row)) for row in range(2)]
    for alpha in (0.0, 0.6, 1.5):
        both = found(model, batch, 4, beam_size=60, alpha=alpha, n_best=60)
        for own, hypotheses in zip(logs, both, strict=True):
            assert_found(hypotheses, enumerate_all(own, alpha))


SYSTEMS = {
    "post": ((), {"norm": "post"}),
    "pre": ((), {"norm": "pre"}),
    "pascal": ((PASCAL,), {}),
    "lstm": ((), {"architecture": "lstm"}),
    "latent trees": ((LATENT,), {"architecture": "lstm"}),
}


@pytest.mark.journey
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_sentence_gets_the_same_translations_in_any_batch(system, beam_size):
    variants, options = SYSTEMS[system]
    model = sharp(*variants, seed=11, **options)
    random = torch.Generator().manual_seed(5)
    words = torch.randint(1, 12, (12,), generator=random).tolist()
    _, batch = random_batch(model, words, seed=1)
    together = found(model, batch, 14, beam_size, n_best=beam_size)
    # the lengths differ, so sentences leave at different steps
    assert beam_size == 1 or len({len(one[0].ids) for one in together}) > 1
    for row in range(12):
        options = SearchOptions(beam_size=beam_size, n_best=beam_size)
        [single] = run(members_of(batch, model, row=row), options, 14)
        assert [one.ids for one in single] == [one.ids for one in together[row]]
        assert [one.score for one in single] == pytest.approx(
            [one.score for one in together[row]], abs=1e-4
        )


@pytest.mark.journey
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("system", ["pascal", "latent trees"])
def test_a_log_probability_found_step_by_step_is_that_of_the_whole_at_once(system, seed):
    variants, options = SYSTEMS[system]
    model = sharp(*variants, seed=seed, **options)
    _, batch = random_batch(model, [2, 7, 4, 9, 1], seed)
    for row, hypotheses in enumerate(found(model, batch, 12, n_best=4)):
        for one in hypotheses:
            assert one.log_probability == pytest.approx(
                forced(model, batch, row, one.ids), abs=1e-4
            )
            assert one.score == pytest.approx(
                one.log_probability / length_penalty(len(one.ids) + 1, 0.6), abs=1e-4
            )


def test_a_beam_of_one_takes_the_most_probable_piece_each_time():
    model = sharp(seed=2)
    _, batch = random_batch(model, [3, 6, 8, 2], seed=4)
    for row, [best] in enumerate(found(model, batch, 10, beam_size=1)):
        logs, pieces = next_logs(members_of(batch, model, row=row)), ()
        while len(pieces) < 9 and EOS not in pieces:
            pieces += (max(allowed(pieces, PIECES, 0, ()), key=logs(pieces).__getitem__),)
        assert best.ids == [piece for piece in pieces if piece != EOS]


@pytest.mark.journey
@pytest.mark.parametrize("system", ["post", "latent trees"])
def test_a_narrow_beam_finds_what_a_search_in_plain_python_finds(system):
    variants, options = SYSTEMS[system]
    model = sharp(*variants, seed=6, **options)
    _, batch = random_batch(model, [5, 3, 9], seed=2)
    for row, hypotheses in enumerate(found(model, batch, 8, beam_size=3, n_best=3)):
        logs = next_logs(members_of(batch, model, row=row))
        assert_found(hypotheses, plain_search(logs, SearchOptions(beam_size=3, n_best=3), 8))


def test_stopping_early_never_changes_the_best_translation(monkeypatch):
    model = sharp(seed=8)
    _, batch = random_batch(model, [4] * 12, seed=9)
    early = found(model, batch, 12)
    monkeypatch.setattr(
        beam, "best_possible", lambda logs, limits, alpha: torch.full_like(logs, math.inf)
    )
    assert [one[0].ids for one in found(model, batch, 12)] == [one[0].ids for one in early]


@pytest.mark.parametrize(
    "options",
    [{"n_best": 4}, {"n_best": 4, "groups": 2}, {"n_best": 3, "sampling": Sampling(seed=3)}],
    ids=["beam", "groups", "samples"],
)
def test_sentences_that_leave_only_at_every_eighth_step_as_on_a_gpu_get_the_same_translations(
    options, monkeypatch
):
    model = sharp(seed=11)
    _, batch = random_batch(model, [1, 5, 9, 2, 7], seed=1)
    both = []
    for look in (looks, lambda device: looks(torch.device("cuda"))):
        for module in (beam, sampling):
            monkeypatch.setattr(module, "looks", look)
        both.append(
            run(
                members_of(batch, model),
                SearchOptions(beam_size=4, **options),
                20,
                prefixes=[[], [7], *[[]] * 3],
            )
        )
    for at_once, later in zip(*both, strict=True):
        assert [one.ids for one in later] == [one.ids for one in at_once]
        # a product may depend on its number of rows in the last digit
        assert [one.score for one in later] == pytest.approx(
            [one.score for one in at_once], rel=1e-5
        )
    # some are done long before the others
    assert len({len(hypotheses[0].ids) for hypotheses in both[0]}) > 1


def test_no_special_piece_is_chosen_and_no_translation_is_empty():
    model = small_model().eval()
    with torch.no_grad():
        model.output_weight[: EOS + 1] = 30 * model.output_weight[5]
    _, batch = random_batch(model, [1, 5, 9])
    for hypotheses in found(model, batch, 6, n_best=4):
        for one in hypotheses:
            assert 1 <= len(one.ids) <= 5
            assert min(one.ids) > EOS


def test_continuations_are_the_best_of_all_beams():
    logits = torch.randn(2, 3, 9, generator=torch.Generator().manual_seed(1))
    values = torch.tensor([[0.0, -1.0, -math.inf], [-2.0, -2.5, -3.0]])
    step = continuations(_ordinary(logits.log_softmax(-1)), values, 4)
    logs = values[..., None] + logits.log_softmax(-1)
    assert torch.allclose(step.endings, logs[..., EOS])
    for sentence in range(2):
        every = [(logs[sentence, k, v].item(), k, v) for k in range(3) for v in range(EOS + 1, 9)]
        best = sorted(every, reverse=True)[:4]
        assert step.log_probabilities[sentence].tolist() == pytest.approx(
            [value for value, *_ in best]
        )
        places = zip(step.beams[sentence].tolist(), step.pieces[sentence].tolist(), strict=True)
        assert list(places) == [(k, v) for _, k, v in best]


def _ordinary(logs):
    logs[..., [PAD, UNK, BOS]] = -math.inf
    return logs


def test_an_ending_counts_where_it_is_among_the_best_or_the_limit_is_reached():
    values = torch.tensor([[-1.0, -3.0], [-1.0, -1.1]])
    step = Continuations(
        merits=values,
        log_probabilities=values,
        beams=torch.zeros(2, 2, dtype=torch.long),
        pieces=torch.full((2, 2), 5),
        endings=torch.tensor([[-2.0, -4.0], [-2.0, -4.0]]),
    )
    live = Live(torch.full((2, 2, 3), 5), torch.zeros(2, 2), torch.tensor([9, 9]), torch.zeros(2))
    assert which_end(step, live, 2).tolist() == [[True, False], [False, False]]
    at_limit = Live(live.pieces, live.log_probabilities, torch.tensor([9, 3]), live.finished)
    assert which_end(step, at_limit, 2).tolist() == [[True, False], [True, True]]


def test_finished_hypotheses_are_ranked_by_score_not_by_log_probability():
    kept = Finished(torch.tensor([[[BOS, 7]]]), torch.tensor([[-1.0]]), torch.tensor([[-1.0]]))
    live = Live(
        torch.tensor([[[BOS, *[5] * 12]]]), torch.zeros(1, 1), torch.tensor([20]), torch.zeros(1)
    )
    # 13 pieces with EOS: -2 / (18 / 6) ** 1
    better = keep_best(kept, live, torch.tensor([[-2.0]]), alpha=1.0)
    assert better.scores.tolist() == [[pytest.approx(-2 / 3)]]
    assert better.pieces.tolist() == [[[BOS, *[5] * 12]]]
    worse = keep_best(kept, live, torch.tensor([[-4.0]]), alpha=1.0)
    assert worse.pieces[0, 0].tolist() == [BOS, 7, *[PAD] * 11]


def test_sentences_that_are_done_leave_in_groups_of_four():
    look = looks(torch.device("cpu"))
    leaving, remaining = look(torch.tensor([False, True] * 6))
    # who remains keeps its place if it can; the last ones take the free places
    assert (leaving.tolist(), remaining.tolist()) == ([5, 7, 9, 11], [0, 1, 2, 3, 4, 8, 6, 10])
    leaving, remaining = look(torch.tensor([True, False, True, True]))
    assert (leaving.tolist(), remaining.tolist()) == ([0, 2, 3], [1])
    assert look(torch.tensor([False] * 3))[1] is None
    assert look(torch.tensor([True] * 3))[1].tolist() == []


@pytest.mark.parametrize("size", [5, 64, 320, 331, 1000])
def test_the_best_sums_are_those_of_topk(size):
    random = torch.Generator().manual_seed(size)
    values, base = torch.randn(3, 4, size, generator=random), torch.randn(3, 4, generator=random)
    values[0, :, 1:], base[1, 2] = -torch.inf, -torch.inf
    for count in (1, 4):
        found, beams, pieces = best_sums(values, base, count)
        sums = (values + base[..., None]).flatten(1)
        assert torch.equal(found, sums.topk(count).values)
        assert torch.equal(sums.gather(1, size * beams + pieces), found)


def test_results_of_workers_have_the_order_of_their_items_and_threads_stay():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert workers(torch.device("cpu")) == 3
        assert workers(torch.device("cuda")) == 1
        used = in_workers(lambda item: (item, torch.get_num_threads()), range(9), 3)
        assert used == [(item, 1) for item in range(9)]
        with pytest.raises(ZeroDivisionError):
            in_workers(lambda item: 1 / item, [1, 0], 2)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
