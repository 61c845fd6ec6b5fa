"""The LSTM against a slow one that follows the equations sentence by sentence, and the laws that
hold for any size."""

import itertools

import pytest
import torch
from attending import assert_alone_as_in_a_batch
from small import PIECES, PUNCTUATION, model_recipe, random_batch, small_model
from torch.autograd import gradcheck

from synmt.data.batch import Sequences
from synmt.data.vocabulary import EOS, PAD
from synmt.errors import UsageError
from synmt.model.recurrent import lstm_cell
from synmt.model.variants.latent_tree import LatentTree
from synmt.recipe.load import check_recipe
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


def slow_cell(weight_x, weight_h, bias, x, h, c, order):
    """One step, (D,) vectors: the weights have the gates in the order given."""
    gates = dict(zip(order, (weight_x @ x + weight_h @ h + bias).chunk(4), strict=True))
    c = torch.sigmoid(gates["f"]) * c + torch.sigmoid(gates["i"]) * torch.tanh(gates["g"])
    return torch.sigmoid(gates["o"]) * torch.tanh(c), c


def slow_encoder(model, ids):
    """Read one sentence of pieces without EOS, word by word in both directions: states (T, D), ends
    of each layer."""
    inputs = [model.source_embedding.table.weight[piece] for piece in ids]
    ends = []
    for layer in range(model.encoder.num_layers):
        outputs = {}
        for suffix, order in (("", range(len(ids))), ("_reverse", reversed(range(len(ids))))):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            w_x, w_h, b_x, b_h = (
                getattr(model.encoder, f"{name}_l{layer}{suffix}") for name in names
            )
            h = c = torch.zeros(model.encoder.hidden_size, dtype=w_x.dtype)
            found = {}
            for place in order:
                h, c = slow_cell(w_x, w_h, b_x + b_h, inputs[place], h, c, "ifgo")
                found[place] = h
            outputs[suffix] = (found, h, c)
        forward, backward = outputs[""], outputs["_reverse"]
        inputs = [torch.cat((forward[0][place], backward[0][place])) for place in range(len(ids))]
        ends.append((torch.cat((forward[1], backward[1])), torch.cat((forward[2], backward[2]))))
    return torch.stack(inputs), ends


def slow_attention(weight, query, keys, values):
    scores = torch.stack([query @ (weight @ key) for key in keys])
    weights = torch.exp(scores) / torch.exp(scores).sum()
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


def slow_decoder(model, states, ends, annotations, target):
    """Write one sentence given its beginning: the states that predict what follows each piece."""
    decoder = model.decoder
    layers = [ends[min(layer, len(ends) - 1)] for layer in range(len(decoder.upper_gates) + 1)]
    fed = torch.zeros(decoder.output.out_features, dtype=states.dtype)
    found = []
    for piece in target:
        x = model.target_embedding.table.weight[piece]
        w_fed, w_h = decoder.first_gates.weight.split((len(fed), states.size(1)), 1)
        w_x = torch.cat((decoder.piece_gates.weight, w_fed), 1)
        layers[0] = slow_cell(
            w_x, w_h, decoder.piece_gates.bias, torch.cat((x, fed)), *layers[0], "ifog"
        )
        for number, layer in enumerate(decoder.upper_gates, start=1):
            w_x, w_h = layer.weight.chunk(2, 1)
            layers[number] = slow_cell(
                w_x, w_h, layer.bias, layers[number - 1][0], *layers[number], "ifog"
            )
        h = layers[-1][0]
        read = [slow_attention(decoder.keys.weight, h, states, states), h]
        if annotations is not None:
            keys, weight = states, decoder.keys.weight
            if decoder.annotation_keys is not None:
                keys, weight = annotations, decoder.annotation_keys.weight
            gate = torch.sigmoid(decoder.gate.project.weight @ h + decoder.gate.project.bias)
            read.append(gate * slow_attention(weight, h, keys, annotations))
        fed = torch.tanh(decoder.output.weight @ torch.cat(read))
        found.append(fed)
    return torch.stack(found)


@pytest.mark.journey
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_equals_the_slow_model(annotation, shape):
    model = lstm(annotation, **shape)
    examples, batch = random_batch(model, [4, 9, 1])
    fast = model(batch).states
    memory, _ = model.remember(batch.source, {})
    for row, example in enumerate(examples):
        length = len(example.source)
        states, ends = slow_encoder(model, example.source.tolist())
        torch.testing.assert_close(memory.states[row, :length], states)
        annotations = None if annotation is None else memory.annotations[row, :length]
        target = [2, *example.target.tolist()]
        slow = slow_decoder(model, states, ends, annotations, target)
        torch.testing.assert_close(fast[row, : len(target)], slow)


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_a_sentence_alone_equals_the_sentence_in_a_batch(annotation):
    assert_alone_as_in_a_batch(lstm(annotation), [2, 9, 5, 1])


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_step_by_step_equals_all_at_once_with_input_feeding(annotation):
    model = lstm(annotation, decoder_layers=3)
    _, batch = random_batch(model, [4, 7])
    memory, _ = model.remember(batch.source, {})
    state = model.start(memory)
    steps = [
        model.step(state, batch.target_input[:, [place]])
        for place in range(batch.target_input.size(1))
    ]
    torch.testing.assert_close(torch.cat(steps, 1), model(batch).states)


@pytest.mark.journey
@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_beams_carry_their_state_where_they_go(annotation):
    model = lstm(annotation)
    _, batch = random_batch(model, [3, 6, 2])
    memory, _ = model.remember(batch.source, {})
    state = model.start(memory)
    random = torch.Generator().manual_seed(3)
    histories = [[[2]] for _ in range(3)]
    sentences = [0, 1, 2]
    for step in range(5):
        newest = torch.tensor([[beam[-1] for beam in beams] for beams in histories])
        states = model.step(state, newest)
        for row, beams in enumerate(histories):
            for place, history in enumerate(beams):
                own = [sentences[row]]
                source = Sequences(
                    batch.source.ids[own], batch.source.mask[own], batch.source.lengths[own]
                )
                once = model.decode(model.remember(source, {})[0], torch.tensor([history]))
                torch.testing.assert_close(states[row, place], once[0, -1])
        beams = torch.randint(newest.size(1), (len(sentences), 2), generator=random)
        kept = torch.tensor([2, 0]) if step == 2 else None
        if kept is not None:
            beams, sentences = beams[kept], [sentences[row] for row in kept.tolist()]
            histories = [histories[row] for row in kept.tolist()]
        state.select(kept, beams)
        histories = [
            [[*rows[beam], int(torch.randint(4, PIECES, (), generator=random))] for beam in chosen]
            for rows, chosen in zip(histories, beams.tolist(), strict=True)
        ]


def test_what_stands_in_padding_does_not_matter():
    model = lstm("shared")
    _, batch = random_batch(model, [3, 8])
    before = model(batch).states
    batch.source.ids[~batch.source.mask] = 17
    torch.testing.assert_close(model(batch).states, before)


def test_eos_is_not_encoded():
    model = lstm()
    _, batch = random_batch(model, [3])
    memory = model.encode(batch.source)
    assert memory.mask.tolist() == [[True] * (batch.source.ids.size(1) - 1) + [False]]
    assert not memory.states[0, -1].any()


def test_a_source_of_nothing_but_eos_gives_finite_states():
    model = lstm("shared")
    ids = torch.tensor([[EOS, PAD], [7, EOS]])
    memory, _ = model.remember(Sequences(ids, ids != PAD, torch.tensor([1, 2])), {})
    assert model.decode(memory, torch.tensor([[2, 5], [2, 5]])).isfinite().all()


def test_a_piece_that_comes_later_changes_nothing_before():
    model = lstm("separate")
    _, batch = random_batch(model, [4])
    memory, _ = model.remember(batch.source, {})
    one, other = (torch.tensor([[2, 9, 11, last]]) for last in (12, 30))
    torch.testing.assert_close(model.decode(memory, one)[:, :3], model.decode(memory, other)[:, :3])


def test_the_cell_has_the_gradient_that_finite_differences_give():
    torch.manual_seed(0)
    gates, cell = torch.randn(3, 8, dtype=torch.float64), torch.randn(3, 2, dtype=torch.float64)
    assert gradcheck(lstm_cell, (gates.requires_grad_(), cell.requires_grad_()))


def test_with_one_layer_dropout_stands_on_the_attentional_state_only():
    torch.manual_seed(0)
    model = lstm(encoder_layers=1, decoder_layers=1, dropout=0.5).train()
    _, batch = random_batch(model, [4])
    memory, _ = model.remember(batch.source, {})
    again, _ = model.remember(batch.source, {})
    torch.testing.assert_close(memory.states, again.states)
    states = model.decode(memory, batch.target_input)
    assert 0.3 < (states == 0).double().mean() < 0.7


def test_between_the_layers_stands_dropout():
    model = lstm(dropout=0.5).train()
    _, batch = random_batch(model, [4])
    memory, again = (model.remember(batch.source, {})[0] for _ in range(2))
    assert not torch.allclose(memory.states, again.states)
    # the first layer is before it
    torch.testing.assert_close(memory.ends[0][0], again.ends[0][0])
    states = [model.start(memory) for _ in range(2)]
    for state in states:
        model.step(state, batch.target_input[:, :1])
    firsts, seconds = zip(
        *([h for h, _ in state.recurrence.layers] for state in states), strict=True
    )
    torch.testing.assert_close(*firsts)
    assert not torch.allclose(*seconds)


def test_all_weights_are_drawn_from_the_range():
    model = small_model(
        {"name": "latent_tree"}, architecture="lstm", model_dim=64, initial_range=0.04
    )
    for name, parameter in model.named_parameters():
        assert parameter.abs().max() <= 0.04, name
        assert parameter.std() > 0.015, name


def test_padding_is_zero_in_every_table():
    model = small_model(architecture="lstm", embeddings="separate")
    for table in (model.source_embedding.table, model.target_embedding.table, model.output):
        assert not table.weight[PAD].any()
        assert table.weight[PAD + 1].any()


@pytest.mark.parametrize(("embeddings", "tables"), [("shared", 1), ("tied", 2), ("separate", 3)])
def test_tables_are_shared_as_asked_for(embeddings, tables):
    model = small_model(architecture="lstm", embeddings=embeddings)
    found = (
        model.source_embedding.table.weight,
        model.target_embedding.table.weight,
        model.output_weight,
    )
    assert len({id(table) for table in found}) == tables


def test_bf16_comes_near_float32():
    model = lstm("shared").float()
    _, batch = random_batch(model, [4, 7])
    exact = model(batch).states
    with torch.autocast("cpu", torch.bfloat16):
        states = model(batch).states
    states.float().square().sum().backward()
    torch.testing.assert_close(states.float(), exact, rtol=0.1, atol=0.05)
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_a_stored_recipe_is_read_again(architecture):
    recipe = ModelRecipe.model_validate({"architecture": architecture, "size": "tiny"})
    assert ModelRecipe.model_validate(recipe.model_dump()) == recipe


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"architecture": "lstm", "heads": 8}, "heads belongs to architecture: transformer"),
        ({"architecture": "lstm", "norm": "pre"}, "norm belongs"),
        ({"architecture": "lstm", "model_dim": 15}, "odd"),
        ({"embedding_dim": 12}, "embedding_dim belongs to architecture: lstm"),
        ({"initial_range": 0.1}, "initial_range belongs to architecture: lstm"),
    ],
    ids=str,
)
def test_what_belongs_to_the_other_architecture_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        model_recipe(**{"model_dim": 16, **options})


@pytest.mark.parametrize(
    ("variant", "options", "message"),
    [
        *(
            ({"name": name}, {}, "an LSTM has none")
            for name in ("pascal", "lisa", "relative", "tree_attention")
        ),
        (
            {"name": "tag_embedding", "size": 12},
            {"embedding_dim": 10},
            "1 to 10, the width of an embedding",
        ),
        ({"name": "latent_tree"}, {"architecture": "transformer"}, "tree_attention"),
    ],
)
def test_a_variant_that_does_not_fit_the_architecture_is_refused(variant, options, message):
    with pytest.raises(UsageError, match=message):
        small_model(variant, **{"architecture": "lstm", **options})


@pytest.mark.journey
@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"compile": True}, "`training.compile` does not work for an lstm"),
        ({"precision": "fp16", "device": "cpu"}, "fp16 on a CPU"),
    ],
)
def test_training_that_an_lstm_cannot_do_is_refused(training, message):
    values = {"name": "x", "source": "en", "target": "de", "corpus": {"name": "controlled"}}
    with pytest.raises(UsageError, match=message):
        check_values(
            check_recipe(
                {**values, "model": {"architecture": "lstm"}, "training": training}, where="test"
            )
        )


def test_two_variants_that_annotate_the_source_are_refused(monkeypatch):
    class Other(LatentTree):
        pass

    monkeypatch.setattr(
        "synmt.model.build.variant_class", lambda name, *_: {"other": Other}.get(name, LatentTree)
    )
    with pytest.raises(UsageError, match="both annotate the source"):
        small_model({"name": "latent_tree"}, {"name": "other"}, architecture="lstm")
    # the annotation of one that edits the states is made from the edited states
    small_model({"name": "latent_tree", "sets": 1}, {"name": "other"}, architecture="lstm")


def test_tag_embeddings_stand_in_an_lstm():
    model = small_model({"name": "tag_embedding", "size": 4}, architecture="lstm").eval()
    _, batch = random_batch(model, [4, 6])
    before = model(batch).states
    batch.source_signals["relation"][:] = batch.source_signals["relation"].flip(1)
    assert not torch.allclose(model(batch).states, before)


@pytest.mark.parametrize(
    ("size", "layers", "width"), [("tiny", 1, 128), ("small", 2, 256), ("big", 2, 1024)]
)
def test_sizes_fill_in_layers_and_width(size, layers, width):
    recipe = ModelRecipe.model_validate({"architecture": "lstm", "size": size})
    assert (recipe.encoder_layers, recipe.decoder_layers, recipe.model_dim) == (
        layers,
        layers,
        width,
    )


def test_punctuation_of_the_vocabulary_is_never_a_parent():
    model = small_model({"name": "latent_tree"}, architecture="lstm").eval()
    _, batch = random_batch(model, [6])
    batch.source.ids[0, 2] = PUNCTUATION[0]
    memory, _ = model.remember(batch.source, {})
    chosen = [
        place for place, piece in enumerate(batch.source.ids[0].tolist()) if piece in PUNCTUATION
    ]
    for child, parent in itertools.product(range(batch.source.ids.size(1) - 1), chosen):
        assert memory.weights[0, child, parent] == 0
