"""Relations along paths (Cai & Lam, 2020) against loops over the equation and torch's GRU."""

import math
from functools import cache

import numpy as np
import pytest
import torch
from attending import assert_attends, assert_same_with_gradients, drawn, random_trees
from small import MONKEY, MONKEY_WORD_OF, examples_of, random_batch, random_tree, small_model
from walks import number_of_path, path

from synmt.data.batch import collate
from synmt.data.corpus import Tree
from synmt.model.blocks import pair_vectors
from synmt.model.blocks.pair_vectors import pair_scores
from synmt.model.blocks.path_encoder import PathEncoder
from synmt.model.variants.path_relations import PathRelations
from synmt.syntax.kinship import path_levels, path_signal
from synmt.syntax.reading import Reading


def levels_of(paths, longest=8):
    """Sort paths, lists of symbols, with their parts: the row of each, and the levels."""
    parts = [
        symbols[start:end]
        for symbols in paths
        for start in range(len(symbols))
        for end in range(start + 1, len(symbols) + 1)
    ]
    numbers = np.array([number_of_path(symbols) for symbols in (*paths, *parts)])
    rows, levels = path_levels(numbers, longest=longest)
    return rows[: len(paths)], [torch.from_numpy(level) for level in levels]


def encoded(encoder, paths):
    """Compute the vectors of paths, with all that they begin and end with."""
    rows, levels = levels_of(paths)
    return encoder(levels)[rows]


def torch_gru(encoder):
    """Make torch's GRU with the weights of an encoder."""
    first, hidden = encoder.layers[0], encoder.layers[0].bias.size(-1)
    gru = torch.nn.GRU(
        first.input.in_features, hidden, len(encoder.layers), batch_first=True, bidirectional=True
    ).double()
    with torch.no_grad():
        for number, layer in enumerate(encoder.layers):
            for way, end in enumerate((f"l{number}", f"l{number}_reverse")):
                own = slice(3 * hidden * way, 3 * hidden * (way + 1))
                getattr(gru, f"weight_ih_{end}").copy_(layer.input.weight[own])
                getattr(gru, f"bias_ih_{end}").copy_(layer.input.bias[own])
                getattr(gru, f"weight_hh_{end}").copy_(layer.recurrent[way].T)
                bias = getattr(gru, f"bias_hh_{end}")
                bias.zero_()[2 * hidden :] = layer.bias[way, 0]
    return gru


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("longest", [2, 8])
def test_it_equals_loops_over_the_equation(longest, depth):
    sizes = {"label_dim": 3, "hidden_dim": 2, "dropout": 0.0}
    variant = drawn(PathRelations, longest=longest, depth=depth, **sizes)

    # one path at a time, so that it shares nothing with others
    @cache
    def vectors(symbols):
        return variant.relation(encoded(variant.paths, [symbols]))[0].view(2, 2, 4)

    def score(pair):
        query, key = pair.words
        a, b = vectors(tuple(path(pair.parse, key, query, longest)))[:, pair.head]
        return (pair.q + a) @ (pair.k + b) / math.sqrt(4)

    assert_attends(variant, random_trees(depth, words=(1, 4, 7)), score)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("dropout", [0.0, 1e-9], ids=["shared", "each by itself"])
def test_paths_are_read_as_by_the_gru_of_torch(layers, dropout):
    torch.manual_seed(layers)
    # with any dropout, paths share nothing; this one is too small to drop something
    encoder = PathEncoder(20, 4, 3, 5, layers=layers, dropout=dropout).double()
    lengths = [3, 8, 1, 5, 5]
    paths = torch.randint(1, 20, (5, 8)) * (torch.arange(8) < torch.tensor(lengths)[:, None])
    paths[0, :3], paths[3, 1:5] = paths[1, :3], paths[4, 1:5]
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        encoder.symbols[paths], lengths, batch_first=True, enforce_sorted=False
    )
    _, final = torch_gru(encoder)(packed)
    expected = encoder.output(torch.cat((final[-2], final[-1]), -1))
    found = encoded(encoder, [row[row > 0].tolist() for row in paths])
    assert_same_with_gradients(found, expected, (encoder.symbols, *encoder.output.parameters()))


@pytest.mark.parametrize(("layers", "shared"), [(1, False), (2, False), (3, True)])
def test_gradients_of_the_weights_of_paths_are_right(layers, shared):
    torch.manual_seed(layers)
    encoder = PathEncoder(8, 2, 2, 3, layers=layers, dropout=1e-9).double().train(not shared)
    _, levels = levels_of([[1, 2, 3, 4], [1, 2], [5], [2, 3, 7]], longest=5)
    names, weights = zip(*encoder.named_parameters(), strict=True)

    def compute(*weights):
        replaced = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(encoder, replaced, (levels,))

    assert torch.autograd.gradcheck(compute, weights, fast_mode=True)


def test_paths_that_begin_alike_draw_dropout_of_their_own_in_training_only():
    torch.manual_seed(5)
    encoder = PathEncoder(9, 40, 8, 5, layers=1, dropout=0.5)
    with torch.no_grad():
        # only symbol 1 and the direction that reads it first count
        encoder.symbols[2:] = 0
        encoder.output.weight[:, 8:] = 0
    first, second = encoded(encoder, [[1, 2], [1, 3]])
    assert not torch.allclose(first, second)
    first, second = encoded(encoder.eval(), [[1, 2], [1, 3]])
    torch.testing.assert_close(first, second)


def test_a_compiled_model_is_not_compiled_again_for_each_batch():
    torch.compiler.reset()
    encoder, compiled = PathEncoder(20, 3, 2, 5, layers=2, dropout=0.0).requires_grad_(False), []

    def count(module, _):
        compiled.append(module)
        return module.forward

    def scaled(levels):
        return encoder(levels).mul(2).tanh()

    fast = torch.compile(scaled, backend=count, dynamic=True)
    for paths in ([[1, 2], [3]], [[4], [5, 6, 7], [1, 2]], [[1] * 8, [2]], [[3, 4, 5]]):
        _, levels = levels_of(paths)
        torch.testing.assert_close(fast(levels), scaled(levels))
    assert len(compiled) <= 2


def test_the_layers_read_paths_that_the_first_of_them_computes():
    model = small_model(
        {"name": "path_relations", "heads": 2},
        {"name": "path_relations", "layers": [2], "heads": 1},
    )
    variants, calls = model.variants["source"], []
    found = [(v.place.layer, v.place.entry, v.paths is not None) for v in variants]
    assert found == [(1, 0, True), (2, 0, False), (2, 1, True)]
    variants[0].paths.register_forward_hook(lambda *_: calls.append(1))
    model(random_batch(model, [3, 5])[1])
    assert len(calls) == 1


@pytest.mark.parametrize("room", [1, 100, 1 << 22], ids=["one query at a time", "some", "all"])
def test_scores_of_pairs_equal_a_loop_gradients_too(room, monkeypatch):
    monkeypatch.setattr(pair_vectors, "ROOM", room)
    torch.manual_seed(3)
    shapes = (2, 3, 4, 2), (2, 3, 5, 2), (6, 2, 3, 2)
    q, k, table = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    # no pair has the first vector
    index = torch.randint(1, 6, (2, 4, 5))

    def slow(b, h, i, j):
        of_query, of_key = table[index[b, i, j], :, h]
        return (q[b, h, i] + of_query) @ (k[b, h, j] + of_key) - q[b, h, i] @ k[b, h, j]

    expected = torch.stack([slow(*at) for at in np.ndindex(2, 3, 4, 5)]).view(2, 3, 4, 5)
    leaves = q, k, table
    assert_same_with_gradients(pair_scores(q, k, table, index), expected, leaves)
    assert torch.autograd.gradcheck(
        lambda *leaves: pair_scores(*leaves, index), leaves, fast_mode=True
    )


@pytest.mark.parametrize(("room", "queries"), [(1, 1), (4000, 2), (100_000, 40), (1 << 22, 200)])
def test_scores_of_pairs_never_hold_a_vector_for_each_pair(room, queries, monkeypatch):
    monkeypatch.setattr(pair_vectors, "ROOM", room)
    looked_up = torch.zeros(5, 40)
    sizes = []
    for part in pair_vectors._parts(torch.zeros(5, 40, 40), 2 * 24):
        looked_up[part] += 1
        sizes.append(looked_up[part].numel())
    assert looked_up.eq(1).all()
    assert max(sizes) == queries
    kept: list[int] = []
    q, k, table = (
        torch.randn(*size, 8, requires_grad=True) for size in ((2, 3, 40), (2, 3, 40), (100, 2, 3))
    )
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.append(tensor.numel()), lambda tensor: tensor
    ):
        pair_scores(q, k, table, torch.randint(100, (2, 40, 40)))
    assert max(kept) < 2 * 40 * 40 * 8


def test_a_batch_has_each_path_once():
    small = Tree(random_tree(3, np.random.default_rng(0)), np.arange(3))
    trees, signal = [Tree(MONKEY, MONKEY_WORD_OF), small], path_signal(8)
    signals = collate(examples_of(trees), Reading((signal,))).source_signals
    paths = spelt_out([signals[signal.table_name(length)] for length in range(9)])
    index = signals[signal.name].tolist()
    # the path without symbols is never looked up
    looked_up = {row for sentence in index for rows in sentence for row in rows}
    assert looked_up == set(range(1, len(paths)))
    assert len(set(paths)) == len(paths)
    for sentence, tree in zip(index, trees, strict=True):
        word_of = [*tree.word_of.tolist(), *[-1] * (8 - len(tree.word_of))]
        expected = [[tuple(path(tree.parse, j, i)) for j in word_of] for i in word_of]
        assert [[paths[row] for row in rows] for rows in sentence] == expected


def spelt_out(levels):
    """Spell each path of some levels, once by the symbols that end it and once by those that begin
    it."""
    by_last, by_first = [()], [()]
    for last, first, without_last, without_first in np.concatenate(levels).tolist()[1:]:
        by_last.append((*by_last[without_last], last))
        by_first.append((first, *by_first[without_first]))
    assert by_last == by_first
    lengths = [length for length, level in enumerate(levels) for _ in level]
    assert [len(symbols) for symbols in by_last] == lengths
    return by_last


def test_levels_have_all_that_paths_begin_and_end_with():
    # some symbols need the sign bit of the number
    paths = [(1, 2, 3), (255, 200, 130, 129, 128, 7, 9, 255), (4,), (3, 9), (200,) * 8]
    expected = {path[i:j] for path in paths for i in range(9) for j in range(i, 9)}
    rows, levels = levels_of(paths)
    found = spelt_out(levels)
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert [found[row] for row in rows] == paths
