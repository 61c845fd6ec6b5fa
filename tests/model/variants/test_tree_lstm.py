"""Tree-to-sequence against a recursion written from the paper's equations; its example, its memory
and its start."""

import numpy as np
import pytest
import torch
from searching import ids_of
from small import (
    MONKEY,
    MONKEY_WORD_OF,
    batch_for,
    random_batch,
    random_example,
    random_pieces,
    random_tree,
    small_model,
)

from synmt.data.batch import collate
from synmt.data.corpus import Example, Tree
from synmt.decode.beam import search
from synmt.decode.forced import force
from synmt.decode.next_piece import Member
from synmt.decode.options import SearchOptions
from synmt.errors import UsageError
from synmt.model.variants.tree_lstm import TreeCell, join_nodes
from synmt.syntax.constituent_signals import MERGES, merges, owners
from synmt.syntax.constituents import binary_tree
from synmt.syntax.parse import flat_parse
from synmt.syntax.reading import Reading

LSTM = {"architecture": "lstm"}


def slow_cell(cell, left, right):
    """Compute one node from the equations, gate by gate."""
    (h_left, c_left), (h_right, c_right) = left, right
    rows = cell.gates.weight.chunk(5), cell.gates.bias.chunk(5)
    h = torch.cat((h_left, h_right))
    i, f_left, f_right, o, u = (weight @ h + bias for weight, bias in zip(*rows, strict=True))
    c = i.sigmoid() * u.tanh() + f_left.sigmoid() * c_left + f_right.sigmoid() * c_right
    return o.sigmoid() * c.tanh(), c


def slow_nodes(cell, states, parse, word_of):
    """Join the pieces of each word from left to right, then words and phrases; nodes in the order
    of their merges."""
    owner, made = owners(word_of), []

    def join(left, right):
        made.append(slow_cell(cell, left, right))
        return made[-1]

    nodes = []
    for word in range(len(parse)):
        first, *others = [(states[place], states[place]) for place in np.flatnonzero(owner == word)]
        for other in others:
            first = join(first, other)
        nodes.append(first)
    for left, right in binary_tree(parse).tolist():
        nodes.append(join(nodes[left], nodes[right]))
    return made


def padded(tables):
    """Pad tables of merges as a batch does."""
    shape = [max(table.shape[axis] for table in tables) for axis in (0, 1)]
    rows = torch.full((len(tables), *shape, 3), -1)
    for row, table in zip(rows, tables, strict=True):
        row[: table.shape[0], : table.shape[1]] = torch.from_numpy(table)
    return rows


def test_the_merges_of_the_monkey():
    # ▁The ▁mon key ▁eats ▁a ▁ban ana: monkey 0, banana 1; The monkey 2, a banana 3; eats … 4; all 5
    table = merges(MONKEY, np.append(MONKEY_WORD_OF, -1)).tolist()
    assert table == [
        [[1, 2, 0], [5, 6, 1]],
        [[0, -2, 2], [4, -3, 3]],
        [[3, -5, 4], [-1, -1, -1]],
        [[-4, -6, 5], [-1, -1, -1]],
    ]


def test_the_example_with_all_weights_0():
    # gates are ½ and u is 0: c of the phrases is 1.5, 4.5, 3.75, 2.625; h of the sentence ½ tanh
    # 2.625 = 0.4948
    cell = TreeCell(1).double()
    for weight in cell.parameters():
        torch.nn.init.zeros_(weight)
    states = torch.arange(1, 6, dtype=torch.float64)[None, :, None].expand(-1, -1, 2)
    nodes = join_nodes(cell, states, torch.from_numpy(merges(MONKEY, np.arange(5)))[None])
    np.testing.assert_allclose(nodes[0, :4, 1].tolist(), [1.5, 4.5, 3.75, 2.625])
    assert nodes[0, 3, 0].item() == pytest.approx(0.4948, abs=5e-5)


@pytest.mark.parametrize("seed", range(5))
def test_nodes_equal_the_recursion_gradients_too(seed):
    random = np.random.default_rng(seed)
    parses = [random_tree(words, random) for words in (1, 2, 5, 8)]
    word_ofs = [random_pieces(len(parse), random) for parse in parses]
    torch.manual_seed(seed)
    cell, length = TreeCell(3).double(), max(map(len, word_ofs))
    states = torch.randn(4, length, 3, dtype=torch.float64, requires_grad=True)
    table = padded([merges(*sentence) for sentence in zip(parses, word_ofs, strict=True)])
    fast = join_nodes(cell, torch.cat((states, states), -1), table)
    slow = torch.zeros_like(fast)
    for row, (own, parse, word_of) in enumerate(zip(states, parses, word_ofs, strict=True)):
        for number, (h, c) in enumerate(slow_nodes(cell, own, parse, word_of)):
            slow[row, number] = torch.cat((h, c))
    torch.testing.assert_close(fast, slow)
    direction = torch.randn_like(slow)
    leaves = (states, *cell.parameters())
    ours, theirs = (
        torch.autograd.grad(output, leaves, direction, retain_graph=True) for output in (fast, slow)
    )
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("architecture", ["lstm", "transformer"])
def test_the_memory_has_the_states_then_the_phrases_of_each_sentence(architecture):
    model = small_model({"name": "tree_lstm"}, architecture=architecture).eval()
    examples, batch = random_batch(model, [6, 1, 3])
    plain = model.encode(batch.source, model.syntax("source", batch.source_signals))
    memory, _ = model.remember(batch.source, batch.source_signals)
    length = memory.pieces
    assert length == batch.source.ids.size(1)
    torch.testing.assert_close(memory.states[:, :length], plain.states)
    assert torch.equal(memory.mask[:, :length], plain.mask)
    for row, example in enumerate(examples):
        tree = example.trees["source"]
        nodes = slow_nodes(
            model.variants["source"][0].cell, plain.states[row], tree.parse, tree.word_of
        )
        assert memory.mask[row, length:].tolist() == [
            n < len(nodes) for n in range(memory.mask.size(1) - length)
        ]
        assert len(nodes) == len(example.source) - 1
        for number, (h, _) in enumerate(nodes):
            torch.testing.assert_close(memory.states[row, length + number], h)


def test_an_lstm_starts_from_its_last_state_and_the_root_and_without_phrases_from_its_last_state():
    model = small_model({"name": "tree_lstm"}, **LSTM).eval()
    examples = [random_example(4, np.random.default_rng(0))]
    one = Example(1, np.array([9]), np.array([7]), {"source": Tree(flat_parse("a"), np.array([0]))})
    batch = batch_for(model, [*examples, one])
    plain = model.encode(batch.source, model.syntax("source", batch.source_signals))
    memory, _ = model.remember(batch.source, batch.source_signals)
    tree, variant = examples[0].trees["source"], model.variants["source"][0]
    root = slow_nodes(variant.cell, plain.states[0], tree.parse, tree.word_of)[-1]
    for layer in range(2):
        h, c = slow_cell(variant.start, (plain.ends[0][layer, 0], plain.ends[1][layer, 0]), root)
        torch.testing.assert_close(memory.ends[0][layer, 0], h)
        torch.testing.assert_close(memory.ends[1][layer, 0], c)
    torch.testing.assert_close(memory.ends[0][:, 1], plain.ends[0][:, 1])


@pytest.mark.parametrize("architecture", ["lstm", "transformer"])
def test_a_sentence_without_words_and_a_batch_of_such_sentences_have_no_phrases(architecture):
    model = small_model({"name": "tree_lstm"}, architecture=architecture).eval()
    empty = Example(
        0,
        np.array([], dtype=np.int64),
        np.array([7]),
        {"source": Tree(flat_parse(""), np.zeros(0, int))},
    )
    assert batch_for(model, [empty]).source_signals["merges"].shape == (1, 0, 0, 3)
    alone = model(batch_for(model, [empty])).states
    beside = model(batch_for(model, [empty, random_example(5, np.random.default_rng(1))])).states
    assert alone.isfinite().all()
    torch.testing.assert_close(alone[0], beside[0, : alone.size(1)], rtol=1e-5, atol=1e-5)


def test_all_forget_biases_begin_at_1_in_both_architectures():
    for options in ({}, LSTM):
        variant = small_model({"name": "tree_lstm"}, **options).variants["source"][0]
        cells = [cell for cell in (variant.cell, variant.start) if cell is not None]
        assert len(cells) == (2 if options else 1)
        for cell in cells:
            assert (cell.gates.bias.chunk(5)[1] == 1).all()
            assert (cell.gates.bias.chunk(5)[2] == 1).all()
            assert (cell.gates.bias.chunk(5)[0] != 1).all()


def test_the_fast_decoder_reads_the_phrases_and_translates_alike():
    model = small_model({"name": "tree_lstm"}, seed=3).eval()
    _, batch = random_batch(model, [7, 2, 5])
    decoder = model.predictor()
    given = (model, batch.source, batch.source_signals)
    with torch.inference_mode():
        slow, fast = (
            search([Member(*given, used)], SearchOptions(beam_size=3), limits=torch.full((3,), 12))
            for used in (None, decoder)
        )
    assert ids_of(slow) == ids_of(fast)


def test_alignments_read_the_pieces_only():
    model = small_model({"name": "tree_lstm"}).eval()
    examples, batch = random_batch(model, [4, 6])
    for example, forced in zip(examples, force(model, batch, attention=True), strict=True):
        assert {weights.shape[1] for weights in forced.cross.values()} == {len(example.source) + 1}
        # phrases have the rest of the weight
        assert all((weights.sum(1) < 1).all() for weights in forced.cross.values())


def test_what_edits_the_states_comes_before_the_phrases():
    with pytest.raises(
        UsageError, match="latent_tree reads the source after tree_lstm, which appends phrases"
    ):
        small_model({"name": "tree_lstm"}, {"name": "latent_tree", "sets": 1}, **LSTM)
    model = small_model({"name": "latent_tree", "sets": 1}, {"name": "tree_lstm"}, **LSTM)
    _, batch = random_batch(model, [3, 5])
    assert model(batch).states.isfinite().all()
    assert model.reads("source") == (MERGES,)


@pytest.mark.parametrize("other", [{"name": "latent_tree"}, {"name": "latent_graph"}], ids=str)
@pytest.mark.parametrize("order", [1, -1])
def test_it_is_refused_beside_annotations_since_phrases_have_none(other, order):
    with pytest.raises(UsageError, match="the other appends phrases, which have no annotation"):
        small_model(*[{"name": "tree_lstm"}, other][::order], **LSTM)


def test_signals_of_a_batch_are_padded_along_every_axis():
    examples = [random_example(words, np.random.default_rng(words)) for words in (2, 9)]
    table = collate(examples, Reading([MERGES])).source_signals["merges"]
    own = merges(
        examples[0].trees["source"].parse, np.append(examples[0].trees["source"].word_of, -1)
    )
    assert table[0, : own.shape[0], : own.shape[1]].tolist() == own.tolist()
    assert (table[0, own.shape[0] :] == -1).all()
