"""Relations along paths (Cai & Lam, 2020) against loops over the equation and torch's GRU; label
paths by hand."""

import math

import numpy as np
import pytest
import torch
from attending import (
    assert_same_with_gradients,
    random_terms,
    random_trees,
    read,
    slow_attend,
    with_eos,
)
from small import (
    MONKEY,
    MONKEY_WORD_OF,
    all_trees,
    make_variant,
    random_batch,
    random_tree,
    relation_warnings,
    small_model,
)

from synmt.data.batch import collate
from synmt.data.corpus import Example, Tree
from synmt.model.attention import attend
from synmt.model.blocks import pair_scores as pair_scores_module
from synmt.model.blocks.pair_scores import pair_scores
from synmt.model.blocks.path_encoder import PathEncoder
from synmt.model.variant import Place
from synmt.model.variants.path_relations import PathRelations
from synmt.syntax.kinship import SYMBOLS, label_paths, path_levels, path_signal, read_paths
from synmt.syntax.parse import Parse
from synmt.syntax.reading import Reading
from synmt.syntax.relations import KNOWN

PLACE = Place("source", layer=1, heads=2, model_dim=8, head_dim=4)
UP, DOWN = 1, len(KNOWN) + 2
ITSELF, FAR, NONE = (DOWN + len(KNOWN) + 1 + number for number in range(3))


def number(relation):
    """Number a relation of KNOWN from 0, without its subtype if the whole name is not there; 71 for
    others."""
    for name in (relation, relation.split(":")[0]):
        if name in KNOWN:
            return KNOWN.index(name)
    return len(KNOWN)


def slow_path(parse, key, query, longest=8):
    """Walk from the key up to what is above both words, and down to the query."""
    if key < 0 or query < 0:
        return [NONE]
    if key == query:
        return [ITSELF]
    ways = []
    for word in (key, query):
        ways.append([word])
        while parse.parents[ways[-1][-1]] != ways[-1][-1]:
            ways[-1].append(int(parse.parents[ways[-1][-1]]))
    rising, sinking = (
        [word for word in way if word not in other] for way, other in (ways, ways[::-1])
    )
    path = [UP + number(parse.relations[word]) for word in rising]
    path += [DOWN + number(parse.relations[word]) for word in reversed(sinking)]
    return path if len(path) <= longest else [FAR]


def paths_of(parse, word_of, longest=8):
    """Read the paths of the signal as lists."""
    numbers = label_paths(parse, np.asarray(word_of), longest=longest)
    rows = read_paths(numbers.flatten())
    found = [[symbol for symbol in row if symbol] for row in rows.tolist()]
    return [found[first : first + len(numbers)] for first in range(0, len(found), len(numbers))]


def encoded(encoder, paths, longest=8):
    """Compute the vectors of paths, lists of symbols, with all that they begin and end with."""
    numbers = np.array([number_of(path) for path in paths])
    rows, levels = path_levels(numbers, longest=longest)
    return encoder([torch.from_numpy(level) for level in levels])[rows]


def number_of(path):
    """Write a list of symbols as one number of eight bytes with a sign."""
    return int.from_bytes(bytes([*path, *[0] * (8 - len(path))]), "little", signed=True)


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
def test_it_equals_loops_over_the_equation_gradients_too(longest, depth):
    torch.manual_seed(1)
    sizes = {"label_dim": 3, "hidden_dim": 2, "dropout": 0.0}
    variant = make_variant(PathRelations, PLACE, longest=longest, depth=depth, **sizes).double()
    for parameter in variant.parameters():
        torch.nn.init.normal_(parameter)
    trees = random_trees(depth, words=(1, 4, 7))
    sentences, (syntax, mask) = with_eos(trees), read(variant, trees)
    terms, encoder = random_terms(3, 2, mask.size(-1), 4, mask, seed=1), variant.paths
    known = {}

    def vectors(b, h, i, j):
        parse, word_of = sentences[b]
        path = tuple(slow_path(parse, word_of[j], word_of[i], longest))
        if path not in known:
            # one path at a time, so that it shares nothing with others
            known[path] = variant.relation(encoded(encoder, [path]))[0].view(2, 2, 4)
        return known[path][:, h]

    def score(b, h, i, j):
        of_query, of_key = vectors(b, h, i, j)
        return (terms.q[b, h, i] + of_query) @ (terms.k[b, h, j] + of_key) / math.sqrt(4)

    expected = slow_attend(terms, score, lengths=[len(word_of) for _, word_of in sentences])
    leaves = (terms.q, terms.k, terms.v, *variant.parameters())
    assert_same_with_gradients(attend(variant.edit(terms, syntax)) * mask.mT, expected, leaves)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("dropout", [0.0, 1e-9], ids=["shared", "each by itself"])
def test_paths_are_read_as_by_the_gru_of_torch(layers, dropout):
    torch.manual_seed(layers)
    # with any dropout, paths share nothing; this one is too small to drop something
    encoder = PathEncoder(20, 4, 3, 5, layers=layers, dropout=dropout).double()
    lengths = [3, 8, 1, 5, 5]
    paths = torch.randint(1, 20, (5, 8)) * (torch.arange(8) < torch.tensor(lengths)[:, None])
    paths[0, :3] = paths[1, :3]
    paths[3, 1:5] = paths[4, 1:5]
    embedded = torch.nn.functional.embedding(paths, encoder.symbols)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        embedded, lengths, batch_first=True, enforce_sorted=False
    )
    gru = torch_gru(encoder)
    _, final = gru(packed)
    expected = encoder.output(torch.cat((final[-2], final[-1]), -1))
    found = encoded(
        encoder, [path[:length] for path, length in zip(paths.tolist(), lengths, strict=True)]
    )
    assert_same_with_gradients(found, expected, (encoder.symbols, *encoder.output.parameters()))


@pytest.mark.parametrize(("layers", "shared"), [(1, False), (2, False), (2, True), (3, True)])
def test_gradients_of_the_weights_of_paths_are_right(layers, shared):
    torch.manual_seed(layers)
    encoder = PathEncoder(8, 2, 2, 3, layers=layers, dropout=1e-9).double().train(not shared)
    _, levels = path_levels(
        np.array([number_of(path) for path in ([1, 2, 3, 4], [1, 2], [5], [2, 3, 7])]), longest=5
    )
    levels = [torch.from_numpy(level) for level in levels]
    names, weights = zip(*encoder.named_parameters(), strict=True)

    def compute(*weights):
        return torch.func.functional_call(
            encoder, dict(zip(names, weights, strict=True)), (levels,)
        )

    assert torch.autograd.gradcheck(compute, weights)


def test_dropout_changes_paths_in_training_only():
    torch.manual_seed(2)
    encoder, paths = PathEncoder(20, 16, 8, 5, layers=2, dropout=0.5), [[3, 4, 5, 6], [7, 8], [3]]
    assert not torch.equal(encoded(encoder, paths), encoded(encoder, paths))
    encoder.eval()
    assert torch.equal(encoded(encoder, paths), encoded(encoder, paths))


def test_paths_that_begin_alike_draw_dropout_of_their_own():
    torch.manual_seed(5)
    encoder = PathEncoder(9, 40, 8, 5, layers=1, dropout=0.5)
    with torch.no_grad():
        # only symbol 1 and the direction that reads it first count
        encoder.symbols[2:] = 0
        encoder.output.weight[:, 8:] = 0
    found = encoded(encoder, [[1, 2], [1, 3]])
    assert not torch.allclose(found[0], found[1])
    found = encoded(encoder.eval(), [[1, 2], [1, 3]])
    torch.testing.assert_close(found[0], found[1])


def test_a_compiled_model_is_not_compiled_again_for_each_batch():
    torch.compiler.reset()
    torch.manual_seed(4)
    encoder, compiled = PathEncoder(20, 3, 2, 5, layers=2, dropout=0.0).requires_grad_(False), []

    def count(module, _):
        compiled.append(module)
        return module.forward

    scaled = torch.compile(
        lambda levels: encoder(levels).mul(2).tanh(), backend=count, dynamic=True
    )
    for paths in ([[1, 2], [3]], [[4], [5, 6, 7], [1, 2]], [[1] * 8, [2]], [[3, 4, 5]]):
        levels = path_levels(np.array([number_of(path) for path in paths]), longest=8)[1]
        levels = [torch.from_numpy(level) for level in levels]
        torch.testing.assert_close(scaled(levels), encoder(levels).mul(2).tanh())
    assert len(compiled) <= 2


def test_the_layers_read_paths_that_the_first_of_them_computes():
    model = small_model(
        {"name": "path_relations", "heads": 2},
        {"name": "path_relations", "layers": [2], "heads": 1},
    )
    found = [(v.place.layer, v.place.entry, v.paths is not None) for v in model.variants["source"]]
    assert found == [(1, 0, True), (2, 0, False), (2, 1, True)]
    assert [v.relation.weight.shape for v in model.variants["source"]] == [
        (16, 16),
        (16, 16),
        (8, 16),
    ]
    calls = []
    model.variants["source"][0].paths.register_forward_hook(lambda *_: calls.append(1))
    _, batch = random_batch(model, [3, 5])
    model(batch)
    assert len(calls) == 1


def test_they_stand_in_all_layers_and_heads():
    model = small_model({"name": "path_relations"})
    assert [(v.place.layer, v.place.heads) for v in model.variants["source"]] == [(1, 4), (2, 4)]
    assert model.reads("source") == (path_signal(8),)


def test_relations_that_no_scheme_has_are_named():
    found = relation_warnings(PathRelations, {"nsubj": 4, "nsubj:odd": 2, "odd": 3})
    assert found == [
        "1 relation (3 of 9 words) is unknown to path_relations; these words share one label: "
        "odd (3)"
    ]


# scores of pairs


@pytest.mark.parametrize(
    "room", [1, 100, 1 << 22], ids=["one query at a time", "some", "all at once"]
)
def test_scores_of_pairs_equal_a_loop_gradients_too(room, monkeypatch):
    monkeypatch.setattr(pair_scores_module, "ROOM", room)
    torch.manual_seed(3)
    shapes = (2, 3, 4, 2), (2, 3, 5, 2), (6, 2, 3, 2)
    q, k, table = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    index = torch.randint(6, (2, 4, 5))

    def slow(b, h, i, j):
        of_query, of_key = table[index[b, i, j], :, h]
        return (q[b, h, i] + of_query) @ (k[b, h, j] + of_key) - q[b, h, i] @ k[b, h, j]

    expected = [slow(*at) for at in np.ndindex(2, 3, 4, 5)]
    expected = torch.stack(expected).view(2, 3, 4, 5)
    assert_same_with_gradients(pair_scores(q, k, table, index), expected, (q, k, table))
    assert torch.autograd.gradcheck(
        lambda q, k, table: pair_scores(q, k, table, index), (q, k, table)
    )


def test_a_row_without_pairs_has_no_gradient():
    q, k, table = (
        torch.randn(shape, requires_grad=True)
        for shape in ((1, 2, 3, 4), (1, 2, 3, 4), (9, 2, 2, 4))
    )
    pair_scores(q, k, table, torch.tensor([[[2, 5, 5], [5, 2, 7], [7, 7, 2]]])).sum().backward()
    assert [row for row, slope in enumerate(table.grad) if slope.any()] == [2, 5, 7]


@pytest.mark.parametrize(
    ("room", "expected"),
    [(1, (1, 1)), (4000, (1, 2)), (100_000, (1, 40)), (200_000, (2, 40)), (1 << 22, (5, 40))],
)
def test_scores_of_pairs_never_hold_a_vector_for_each_pair(room, expected, monkeypatch):
    monkeypatch.setattr(pair_scores_module, "ROOM", room)
    index = torch.zeros(5, 40, 40)
    parts = list(pair_scores_module._parts(index, 2 * 24))
    looked_up = torch.zeros(5, 40)
    for part in parts:
        looked_up[part] += 1
    assert looked_up.eq(1).all()
    assert (
        tuple(max(sizes) for sizes in zip(*(looked_up[part].shape for part in parts), strict=True))
        == expected
    )
    kept: list[int] = []
    q, k = (torch.randn(2, 3, 40, 8, requires_grad=True) for _ in range(2))
    table = torch.randn(100, 2, 3, 8, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.append(tensor.numel()), lambda tensor: tensor
    ):
        pair_scores(q, k, table, torch.randint(100, (2, 40, 40)))
    assert max(kept) < 2 * 40 * 40 * 8


# label paths


def test_paths_of_the_monkey():
    det, nsubj, obj = (number(name) for name in ("det", "nsubj", "obj"))
    found = paths_of(MONKEY, range(5))
    the, banana = 0, 4
    # the released code calls the second half det_r, …
    assert found[banana][the] == [UP + det, UP + nsubj, DOWN + obj]
    assert found[the][banana] == [UP + obj, DOWN + nsubj, DOWN + det]
    assert found[the][1] == [DOWN + det]
    assert found[1][the] == [UP + det]
    assert [found[word][word] for word in range(5)] == [[ITSELF]] * 5


@pytest.mark.parametrize("longest", [1, 2, 8])
@pytest.mark.parametrize("words", range(1, 6))
def test_paths_equal_walks_through_every_tree_of_few_words(words, longest):
    relations = ["nsubj", "obj", "det", "odd", "nsubj:pass"][:words]
    for parents in all_trees(words):
        parse = Parse([""] * words, np.zeros((words, 2), int), parents, relations)
        expected = [[slow_path(parse, j, i, longest) for j in range(words)] for i in range(words)]
        assert paths_of(parse, range(words), longest) == expected


def test_paths_of_a_long_sentence_equal_walks_and_some_are_too_far():
    parse = random_tree(60, np.random.default_rng(4))
    chain = Parse([""] * 20, np.zeros((20, 2), int), np.arange(20).clip(1) - 1, ["det"] * 20)
    for tree in (parse, chain):
        words = range(len(tree))
        found = paths_of(tree, words)
        assert found == [[slow_path(tree, j, i) for j in words] for i in words]
    assert [found[0][word] for word in (8, 9)] == [[UP + number("det")] * 8, [FAR]]


def test_pieces_of_a_word_are_the_word_itself_and_specials_have_their_own_symbol():
    found, by_word = paths_of(MONKEY, [*MONKEY_WORD_OF, -1]), paths_of(MONKEY, range(5))
    for i, row in enumerate(MONKEY_WORD_OF):
        assert found[i][:7] == [by_word[row][column] for column in MONKEY_WORD_OF]
        assert found[i][7] == [NONE]
    assert found[7] == [[NONE]] * 8
    nothing = Parse([], np.zeros((0, 2), int), np.zeros(0, int), [])
    assert paths_of(nothing, [-1, -1]) == [[[NONE]] * 2] * 2


def test_every_symbol_fits_a_byte():
    assert SYMBOLS == NONE + 1 <= 256


def test_a_batch_has_each_path_once():
    trees = [
        Tree(MONKEY, MONKEY_WORD_OF),
        Tree(random_tree(3, np.random.default_rng(0)), np.arange(3)),
    ]
    examples = [
        Example(n, np.full(len(tree.word_of), 5), np.array([7]), {"source": tree})
        for n, tree in enumerate(trees)
    ]
    signal = path_signal(8)
    signals = collate(examples, Reading((signal,))).source_signals
    index, levels = (
        signals[signal.name].numpy(),
        [signals[signal.table_name(n)].numpy() for n in range(9)],
    )
    assert index.shape == (2, 8, 8)
    paths = spelt_out(levels)
    assert (
        len(set(paths)) == len(paths) == len(np.unique(index)) + 1
    )  # the path without symbols is never looked up
    for sentence, tree in zip(index, trees, strict=True):
        word_of = np.append(tree.word_of, -1)
        expected = read_paths(label_paths(tree.parse, word_of, longest=8).flatten())
        found = [paths[row] for row in sentence[: len(word_of), : len(word_of)].flatten()]
        assert found == [tuple(symbol for symbol in row if symbol) for row in expected.tolist()]
    # padding has the path of specials
    assert paths[index[1, 5, 5]] == (NONE,)


def spelt_out(levels):
    """Spell each path of some levels, once by the symbols that end it and once by those that begin
    it."""
    rows = np.concatenate(levels).tolist()
    by_last, by_first = [()], [()]
    for last, first, without_last, without_first in rows[1:]:
        by_last.append((*by_last[without_last], last))
        by_first.append((first, *by_first[without_first]))
    assert by_last == by_first
    assert [len(path) for path in by_last] == [
        length for length, level in enumerate(levels) for _ in level
    ]
    return by_last


def test_levels_have_all_that_paths_begin_and_end_with():
    # some symbols need the sign bit of the number
    paths = [(1, 2, 3), (255, 200, 130, 129, 128, 7, 9, 255), (4,), (3, 9), (200,) * 8]
    expected = {path[i:j] for path in paths for i in range(9) for j in range(i, 9)}
    rows, levels = path_levels(np.array([number_of(path) for path in paths]), longest=8)
    found = spelt_out(levels)
    assert len(levels) == 9
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert [found[row] for row in rows] == paths
