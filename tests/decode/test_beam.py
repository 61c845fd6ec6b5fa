"""The search: against a search in plain Python, and against itself in other batches."""

import math

import pytest
import torch
from searching import (
    SEARCHES,
    assert_found,
    assert_same_search,
    keep_pieces,
    members_of,
    next_logs,
    plain_search,
    run,
    sharp,
)
from small import random_batch, small_model

from synmt.data.batch import Sequences
from synmt.data.vocabulary import BOS, EOS, PAD, UNK
from synmt.decode.inputs import in_workers, workers
from synmt.decode.next_piece import best_sums, length_penalty, limits_of, looks, repeating
from synmt.decode.options import SearchOptions

PASCAL = {"name": "pascal", "layers": [1], "heads": 2}
LATENT = {"name": "latent_tree", "attention": "separate"}
PREFIXES = [[], [UNK, 9], [7, 7, 7], [5, 30, 12, 6, 21, 8, 9, 10, 11, 12]]
MEMBERS = {
    "post": lambda seed: sharp(seed=seed),
    "pascal": lambda seed: sharp(PASCAL, seed=seed + 1, norm="pre"),
    "lstm": lambda seed: sharp(seed=seed, architecture="lstm"),
    "latent": lambda seed: sharp(LATENT, seed=seed + 2, architecture="lstm"),
}
# what a member of the ensemble did alone would show in the means
SYSTEMS = ["post", "lstm", "post pascal latent"]
others = [pytest.param(system, marks=pytest.mark.journey) for system in SYSTEMS[1:]]
of_each_system = pytest.mark.parametrize("system", ["post", *others])


def models_of(system, seed=1):
    """Make the members of a system; the one that reads trees comes last, for batches that have
    all."""
    names = sorted(system.split(), key=lambda name: name == "pascal")
    return [MEMBERS[name](seed) for name in names]


SEARCHED = """
1  1  1  0  0     0.6
3  3  1  0  0     0.0
3  2  1  1  0     1.5
3  3  1  2  0     0.6
5  4  1  3  0     0.6
6  6  2  0  0.5   0.6
6  3  3  2  2.0   0.6
4  4  4  0  1e3   0.6
6  6  2  0  0     0.6
"""


@of_each_system
def test_a_beam_finds_what_a_search_in_plain_python_finds(system):
    models = models_of(system)
    _, batch = random_batch(models[-1], [5, 3, 9, 4], seed=2)
    logs = [next_logs(members_of(batch, *models, row=row)) for row in range(4)]
    names = ["beam_size", "n_best", "groups", "no_repeat", "diversity", "length_penalty"]
    for line in SEARCHED.strip().splitlines():
        values = (int(one) if one.isdecimal() else float(one) for one in line.split())
        options = SearchOptions(**dict(zip(names, values, strict=True)))
        found = run(members_of(batch, *models), options, 7, prefixes=PREFIXES)
        for hypotheses, own, prefix in zip(found, logs, PREFIXES, strict=True):
            assert_found(hypotheses, plain_search(own, options, 7, prefix))


@pytest.mark.journey
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("options", SEARCHES)
def test_a_sentence_gets_the_same_translations_in_any_batch(system, options):
    models, words = models_of(system, seed=11), [3, 7, 1, 11]
    _, batch = random_batch(models[-1], words, seed=1)
    options, prefixes = SearchOptions(**options), PREFIXES
    numbers = [1000 + 7 * row for row in range(len(words))]
    together = run(members_of(batch, *models), options, 14, prefixes=prefixes, numbers=numbers)
    # the lengths differ, so sentences leave at different steps
    assert system != "post" or len({len(hypotheses[0].ids) for hypotheses in together}) > 1
    for row in reversed(range(len(words))):
        here = slice(row, row + 1)
        single = run(
            members_of(batch, *models, row=row),
            options,
            14,
            prefixes=prefixes[here],
            numbers=numbers[here],
        )
        assert_same_search(single, together[here])


@pytest.mark.parametrize("options", SEARCHES)
def test_no_special_piece_is_chosen_and_no_translation_is_empty(options):
    model = small_model().eval()
    with torch.no_grad():
        model.output_weight[: EOS + 1] = 30 * model.output_weight[5]
    _, batch = random_batch(model, [1, 5, 9])
    for hypotheses in run(members_of(batch, model), SearchOptions(**options), 6):
        assert all(1 <= len(one.ids) <= 5 and min(one.ids) > EOS for one in hypotheses)


@pytest.mark.parametrize("options", SEARCHES)
def test_where_every_piece_is_forbidden_the_translation_ends(options):
    # three pieces, none of them twice: no translation has more than three
    model = small_model(seed=2).eval()
    keep_pieces(model, 7)
    with torch.no_grad():
        model.output_weight[EOS] = -20 * model.output_weight[4:].sum(0)
    _, batch = random_batch(model, [4, 2])
    options = SearchOptions(**{**options, "no_repeat": 1})
    for hypotheses in run(members_of(batch, model), options, 12):
        assert hypotheses
        for one in hypotheses:
            assert 1 <= len(one.ids) == len(set(one.ids)) <= 3
            assert math.isfinite(one.score)


def test_the_length_penalty_is_the_formula_of_wu():
    for length, alpha, expected in ((1, 0.6, 1.0), (7, 1.0, 2.0), (19, 0.5, 2.0), (9, 0.0, 1.0)):
        assert length_penalty(length, alpha) == pytest.approx(expected)


def test_limits_grow_with_the_source_and_leave_room_for_one_piece():
    mask = torch.arange(11) < torch.tensor([[1], [11], [2]])
    source = Sequences(mask.long(), mask, mask.sum(1))

    def limits(ratio, extra):
        options = SearchOptions(max_length_ratio=ratio, max_length_extra=extra)
        return limits_of(source, options).tolist()

    assert limits(1.5, 20) == [20, 35, 21]
    assert limits(0.1, 0) == [2, 2, 2]
    # "no limit" does not turn around to the shortest one
    assert limits(1e30, 20)[1] > 1_000_000


def test_sentences_that_are_done_leave_in_groups_of_four():
    look = looks(torch.device("cpu"))

    def stay(done):
        parts = look(torch.tensor([one == "d" for one in done]))
        return [None if part is None else part.tolist() for part in parts]

    # who remains keeps its place if it can; the last ones take the free places
    assert stay(".d" * 6) == [[5, 7, 9, 11], [0, 1, 2, 3, 4, 8, 6, 10]]
    assert stay("d.dd") == [[0, 2, 3], [1]]
    assert stay("...")[1] is None
    assert stay("ddd")[1] == []


@pytest.mark.parametrize("size", [5, 64, 320, 331, 1000])
def test_the_best_sums_are_those_of_topk(size):
    random = torch.Generator().manual_seed(size)
    values, base = torch.randn(3, 4, size, generator=random), torch.randn(3, 4, generator=random)
    values[0, :, 1:], base[1, 2] = -torch.inf, -torch.inf
    sums = (values + base[..., None]).flatten(1)
    for count in (1, 4):
        found, places = best_sums(values, base, count)
        assert torch.equal(found, sums.topk(count).values)
        assert torch.equal(sums.gather(1, places), found)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_repeating_pieces_are_those_that_a_loop_finds(length):
    pieces = torch.randint(4, 7, (18, 1, 9), generator=torch.Generator().manual_seed(0))
    pieces[..., 0] = BOS
    repeated = repeating(pieces, length)[:, 0].tolist()
    for row, found in zip(pieces[:, 0].tolist(), repeated, strict=True):
        runs = [row[first : first + length] for first in range(10 - length)]
        expected = {piece for piece in (4, 5, 6) if [*row[10 - length :], piece] in runs}
        assert {*found} - {PAD, BOS} == expected


def test_results_of_workers_have_the_order_of_their_items_and_threads_stay():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert [workers(torch.device(kind)) for kind in ("cpu", "cuda")] == [3, 1]
        used = in_workers(lambda item: (item, torch.get_num_threads()), range(9), 3)
        assert used == [(item, 1) for item in range(9)]
        with pytest.raises(ZeroDivisionError):
            in_workers(lambda item: 1 / item, [1, 0], 2)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
