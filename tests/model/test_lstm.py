"""The LSTM against a slow one that follows the equations sentence by sentence, and the laws that
hold for any size."""

import pytest
import torch
from attending import assert_alone_as_in_a_batch, assert_step_by_step_as_all_at_once
from refusing import assert_refused
from small import random_batch, small_model, small_recipe
from torch.autograd import gradcheck

from synmt.data.batch import Sequences
from synmt.data.vocabulary import EOS, PAD
from synmt.model.lstm import lstm_cell
from synmt.recipe.schema import ModelRecipe
from synmt.training.pipeline import check_values

ANNOTATIONS = [None, "shared", "separate"]
SHAPES = [
    {},
    {"encoder_layers": 1, "decoder_layers": 1},
    {"encoder_layers": 1, "decoder_layers": 3, "embedding_dim": 10},
    {"encoder_layers": 3, "decoder_layers": 2, "embeddings": "separate", "embedding_dim": 22},
    {"embeddings": "tied"},
]


def lstm(annotation=None, **options):
    """Build a small LSTM in float64, with annotations where a way of reading them is given."""
    variants = [{"name": "latent_tree", "attention": annotation}] if annotation else []
    return small_model(*variants, architecture="lstm", **options).double().eval()


def slow_cell(weights, bias, inputs, cell, order):
    """One step, (D,) vectors: the weights have the gates in the order given."""
    parts = (weights @ torch.cat(inputs) + bias).chunk(4)
    gates = dict(zip(order, parts, strict=True))
    cell = gates["f"].sigmoid() * cell + gates["i"].sigmoid() * gates["g"].tanh()
    return gates["o"].sigmoid() * cell.tanh(), cell


def slow_encoder(model, ids):
    """Read one sentence of pieces without EOS, word by word in both directions: states (T, D), ends
    of each layer."""
    encoder, ends = model.encoder, []
    inputs = model.source_embedding.table.weight[ids]
    for layer in range(encoder.num_layers):
        outputs, lasts = [], []
        for suffix, order in (("", range(len(ids))), ("_reverse", reversed(range(len(ids))))):
            w_x, w_h, b_x, b_h = (
                getattr(encoder, f"{name}_l{layer}{suffix}")
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            h = c = torch.zeros(encoder.hidden_size, dtype=w_x.dtype)
            rows = {}
            for place in order:
                weights = torch.cat((w_x, w_h), 1)
                rows[place] = h, c = slow_cell(weights, b_x + b_h, (inputs[place], h), c, "ifgo")
            outputs.append(torch.stack([rows[place][0] for place in range(len(ids))]))
            lasts.append((h, c))
        inputs = torch.cat(outputs, 1)
        ends.append([torch.cat(parts) for parts in zip(*lasts, strict=True)])
    return inputs, ends


def slow_attention(weight, query, keys, values):
    return torch.stack([query @ weight @ key for key in keys]).softmax(0) @ values


def slow_decoder(model, states, ends, annotations, target):
    """Write one sentence given its beginning: the states that predict what follows each piece."""
    decoder, found = model.decoder, []
    gates = [decoder.first_gates, *decoder.upper_gates]
    layers = [ends[min(layer, len(ends) - 1)] for layer in range(len(gates))]
    fed = torch.zeros(decoder.output.out_features, dtype=states.dtype)
    for piece in target:
        # the first layer has its bias beside the weights of the pieces
        x = model.target_embedding.table.weight[piece]
        inputs, bias = (fed,), decoder.piece_gates(x)
        for number, (layer, (h, c)) in enumerate(zip(gates, layers, strict=True)):
            bias = layer.bias if number else bias
            layers[number] = slow_cell(layer.weight, bias, (*inputs, h), c, "ifog")
            inputs = (layers[number][0],)
        (h,) = inputs
        read = [slow_attention(decoder.keys.weight, h, states, states), h]
        if annotations is not None:
            keys, weight = states, decoder.keys.weight
            if decoder.annotation_keys is not None:
                keys, weight = annotations, decoder.annotation_keys.weight
            gate = torch.sigmoid(decoder.gate.project(h))
            read.append(gate * slow_attention(weight, h, keys, annotations))
        fed = torch.tanh(decoder.output(torch.cat(read)))
        found.append(fed)
    return torch.stack(found)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_it_equals_the_slow_model(annotation, shape):
    model = lstm(annotation, **shape)
    examples, batch = random_batch(model, [4, 9, 1])
    fast = model(batch).states
    memory, _ = model.remember(batch.source, {})
    for row, example in enumerate(examples):
        length, target = len(example.source), [2, *example.target.tolist()]
        states, ends = slow_encoder(model, example.source)
        torch.testing.assert_close(memory.states[row, :length], states)
        annotations = None if annotation is None else memory.annotations[row, :length]
        slow = slow_decoder(model, states, ends, annotations, target)
        torch.testing.assert_close(fast[row, : len(target)], slow)


def test_the_plain_one_keeps_the_laws_of_variants():
    model = lstm(decoder_layers=3)
    assert_alone_as_in_a_batch(model, [2, 9, 5, 1])
    assert_step_by_step_as_all_at_once(model)


def test_eos_is_not_encoded_unless_it_is_alone():
    model = lstm("shared")
    ids = torch.tensor([[EOS, PAD], [7, EOS]])
    memory, _ = model.remember(Sequences(ids, ids != PAD, torch.tensor([1, 2])), {})
    assert memory.mask.tolist() == [[True, False], [True, False]]
    assert not memory.states[:, 1].any()
    assert model.decode(memory, torch.tensor([[2, 5], [2, 5]])).isfinite().all()


def test_the_cell_has_the_gradient_that_finite_differences_give():
    gates, cell = (torch.randn(3, width, dtype=torch.float64) for width in (8, 2))
    assert gradcheck(lstm_cell, (gates.requires_grad_(), cell.requires_grad_()))


def test_dropout_is_between_the_layers_and_on_the_attentional_state():
    for layers in (1, 2):
        model = lstm(encoder_layers=layers, decoder_layers=layers, dropout=0.5).train()
        _, batch = random_batch(model, [4])
        memory, again = (model.remember(batch.source, {})[0] for _ in range(2))
        # the first layer is before it
        torch.testing.assert_close(memory.ends[0][0], again.ends[0][0])
        assert torch.allclose(memory.states, again.states) == (layers == 1)
        states = [model.start(memory) for _ in range(2)]
        fed = torch.cat([model.step(state, batch.target_input[:, :1]) for state in states])
        assert 0.2 < (fed == 0).double().mean() < 0.8
        for number, outputs in enumerate(zip(*(s.recurrence.layers for s in states), strict=True)):
            assert torch.allclose(outputs[0][0], outputs[1][0]) == (number == 0)


def test_all_weights_are_drawn_from_the_range_and_padding_is_zero():
    sizes = {"model_dim": 64, "initial_range": 0.04, "embeddings": "separate"}
    model = small_model({"name": "latent_tree"}, architecture="lstm", **sizes)
    for name, parameter in model.named_parameters():
        assert parameter.abs().max() <= 0.04, name
        assert parameter.std() > 0.015, name
    for table in (model.source_embedding.table, model.target_embedding.table, model.output):
        assert not table.weight[PAD].any()


@pytest.mark.parametrize(("embeddings", "tables"), [("shared", 1), ("tied", 2), ("separate", 3)])
def test_tables_are_shared_as_their_name_says(embeddings, tables):
    model = small_model(architecture="lstm", embeddings=embeddings)
    found = (model.source_embedding.table, model.target_embedding.table, model.output)
    assert len({id(table.weight) for table in found}) == tables


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_a_stored_recipe_is_read_again(architecture):
    recipe = ModelRecipe.model_validate({"architecture": architecture, "size": "tiny"})
    assert ModelRecipe.model_validate(recipe.model_dump()) == recipe


@pytest.mark.parametrize(
    ("size", "layers", "width"), [("tiny", 1, 128), ("small", 2, 256), ("big", 2, 1024)]
)
def test_sizes_fill_in_layers_and_width(size, layers, width):
    recipe = ModelRecipe.model_validate({"architecture": "lstm", "size": size})
    found = recipe.encoder_layers, recipe.decoder_layers, recipe.model_dim
    assert found == (layers, layers, width)


@pytest.mark.journey
@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"compile": True}, "`training.compile` does not work for an lstm"),
        ({"cuda_graphs": True}, "`training.cuda_graphs` does not work for an lstm"),
        ({"precision": "fp16", "device": "cpu"}, "fp16 on a CPU"),
    ],
)
def test_training_that_an_lstm_cannot_do_is_refused(training, message):
    lstm = {"model": {"architecture": "lstm"}, "training": training}
    assert_refused(message, lambda: check_values(small_recipe(**lstm)))


def test_features_in_an_embedding_narrower_than_the_states():
    size = {"architecture": "lstm", "embedding_dim": 10}
    assert_refused(
        "1 to 10, the width of an embedding",
        small_model,
        {"name": "tag_embedding", "size": 12},
        **size,
    )
    model = small_model({"name": "tag_embedding", "size": 4}, **size).eval()
    _, batch = random_batch(model, [4, 6])
    before = model(batch).states
    batch.source_signals["relation"][:] = batch.source_signals["relation"].flip(1)
    assert not torch.allclose(model(batch).states, before)
