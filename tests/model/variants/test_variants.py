"""The contract of a variant, checked for every file in synmt/model/variants/, new ones too."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from attending import assert_alone_as_in_a_batch, assert_step_by_step_as_all_at_once
from small import (
    PIECES,
    batch_for,
    random_batch,
    small_model,
)
from stepping import assert_predicts_alike
from variant_cases import (
    CASES,
    DEFAULTS,
    EDITS_ATTENTION,
    LEARNING,
    ON_TARGET,
    made,
    redrawn,
    sizes,
    variant_of,
)

from synmt.arrays import SIDES
from synmt.data.batch import Batch
from synmt.model.attention import attend, attend_written_out, softmax
from synmt.model.build import variant_class, variant_names
from synmt.model.variant import Place, Syntax
from synmt.model.variants.pascal import Pascal
from synmt.speed import fast

CATALOGUE = variant_names()

_SHARED = {}


def shared(recipe):
    """Return a model of the recipe to read, the same to every test; gradients of tests before are
    gone."""
    key = repr(recipe)
    if key not in _SHARED:
        _SHARED[key] = made(recipe)
    _SHARED[key].zero_grad()
    return _SHARED[key]


def backward(output):
    """Compute the gradients of what the model gives and of its losses."""
    (output.states.square().sum() + sum(output.losses.values())).backward()


@pytest.mark.parametrize("recipe", CASES)
def test_a_sentence_alone_equals_the_sentence_in_a_batch_of_any_order(recipe):
    assert_alone_as_in_a_batch(shared(recipe), [2, 9, 1])


def attend_fused(terms, dropout=0.0):
    """Compute O by torch's fused kernel, with the edited scores in the place of its mask."""
    if terms.normalize is not softmax:
        pytest.skip(
            "the fused kernel has no other N; the variant's own tests loop over its equation"
        )
    scores = terms.scores()
    nothing = torch.zeros_like(terms.q)
    output = F.scaled_dot_product_attention(
        nothing, terms.k, terms.v, attn_mask=scores, dropout_p=dropout
    )
    if terms.relative is not None:
        vectors = terms.relative.table[..., terms.relative.index, :].expand(
            len(scores), *scores.shape[2:], -1
        )
        output = output + torch.einsum("bhqk,bqkd->bhqd", scores.softmax(-1), vectors)
    return output


@pytest.mark.parametrize("recipe", EDITS_ATTENTION)
def test_the_chosen_kernel_equals_the_fused_one_and_the_one_written_out_gradients_too(
    recipe, monkeypatch
):
    assert_kernels_agree(shared(recipe), monkeypatch)


def assert_kernels_agree(model, monkeypatch):
    _, batch = random_batch(model, [3, 6])
    results = []
    kind = type(model.encoder[0].self_attention.attend)
    for kernel in (attend, attend_written_out, attend_fused):
        monkeypatch.setattr(kind, "forward", lambda self, terms, kernel=kernel: kernel(terms))
        model.zero_grad()
        output = model(batch)
        backward(output)
        results.append(
            [output.states.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]
        )
    chosen, *others = results
    for other in others:
        torch.testing.assert_close(chosen, other, rtol=1e-4, atol=1e-4)


# where almost everything is masked
EXTREME = [
    {"name": "deps_san", "side": "source", "layers": [1, 2], "window": 0},
    {"name": "distance_mask", "side": "source", "layers": [1, 2], "heads": 4, "reach": [1]},
]


@pytest.mark.parametrize("recipe", [*CASES, *EXTREME])
def test_every_parameter_of_its_own_gets_a_gradient_and_all_gradients_are_finite(recipe):
    model = shared(recipe)
    own = [
        pair for variant in model.variants[recipe["side"]] for pair in variant.named_parameters()
    ]
    if not own:
        # nor has it added any to the layers that it edits
        plain = small_model(**sizes(recipe)).named_parameters()
        assert [name for name, _ in model.named_parameters()] == [name for name, _ in plain]
    _, batch = random_batch(model, [1, 6, 12])
    backward(model(batch))
    for name, parameter in own:
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("recipe", CASES)
def test_it_changes_the_states_and_adds_the_losses_that_it_learns_by(recipe):
    plain, edited = small_model(**sizes(recipe)).eval(), made(recipe)
    _, batch = random_batch(edited, [5, 8, 3, 6])
    if variant_class(recipe["name"]).annotates_memory():
        # its decoder has weights for the annotations, so it is compared with other annotations
        plain = copy.deepcopy(edited)
        for parameter in plain.variants["source"][0].parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    else:
        edited.load_state_dict(plain.state_dict(), strict=False)
    output, variants = edited(batch), edited.variants[recipe["side"]]
    changed = not torch.allclose(plain(batch).states, output.states)
    assert changed != variants[0].only_learns
    names = {
        f"{type(v).__name__.lower()}.{recipe['side']}.{v.place.layer}" for v in variants if v.learns
    }
    assert output.losses.keys() == names
    assert all(loss > 0 for loss in output.losses.values())


@pytest.mark.parametrize("recipe", LEARNING)
def test_the_losses_of_a_batch_are_the_sums_of_its_sentences(recipe):
    model = shared(recipe)
    examples, batch = random_batch(model, [1, 6, 3])
    alone = [model(batch_for(model, [example])).losses for example in examples]
    for name, loss in model(batch).losses.items():
        torch.testing.assert_close(sum(losses[name] for losses in alone), loss)


@pytest.mark.parametrize("recipe", CASES)
def test_half_precision_is_near(recipe):
    if recipe.get("hard"):
        pytest.skip("of two parents that are nearly as likely, another one may be chosen")
    model = shared(recipe)
    _, batch = random_batch(model, [4, 7])
    exact = model(batch).states
    with torch.autocast("cpu", torch.bfloat16):
        output = model(batch)
    backward(output)
    assert (output.states - exact).abs().mean() < 0.15 * exact.abs().mean()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("recipe", CASES)
def test_a_decoder_that_it_does_not_edit_is_the_fast_one_and_predicts_alike(recipe):
    model, edits = shared(recipe), not variant_class(recipe["name"]).only_learns
    slow = (recipe["side"] == "target" and edits) or recipe.get("architecture") == "lstm"
    assert (assert_predicts_alike(model) is model) == (slow or fast("decoder") is None)


@pytest.mark.parametrize("recipe", ON_TARGET)
def test_the_target_never_sees_its_future(recipe):
    model = shared(recipe)
    _, batch = random_batch(model, [4])
    before = model(batch).states
    for place in range(1, batch.target_input.size(1)):
        changed = batch.target_input.clone()
        changed[:, place:] = (changed[:, place:] + 1) % PIECES
        after = model(Batch(**{**vars(batch), "target_input": changed})).states
        torch.testing.assert_close(before[:, :place], after[:, :place])
        assert not torch.allclose(before[:, place:], after[:, place:])


@pytest.mark.parametrize("recipe", CASES)
def test_step_by_step_equals_all_at_once(recipe):
    assert_step_by_step_as_all_at_once(shared(recipe))


@pytest.mark.parametrize("recipe", LEARNING)
def test_runs_without_what_it_only_learns_from(recipe):
    model = shared(recipe)
    read = {signal.name for side in ("source", "target") for signal in model.reads(side)}
    _, batch = random_batch(model, [4, 2])
    signals = {name: tensor for name, tensor in batch.source_signals.items() if name in read}
    bare = model(Batch(**{**vars(batch), "source_signals": signals, "target_signals": {}}))
    torch.testing.assert_close(bare.states, model(batch).states)
    assert not bare.losses


# an LSTM refuses to be compiled; path relations are compiled as several graphs, around the encoder
# of paths
COMPILED = [
    case
    for case in CASES
    if (case in DEFAULTS or case.id.endswith("kind=lda"))
    and case.values[0].get("architecture") != "lstm"
    and case.values[0]["name"] != "path_relations"
]
GROUPS = [COMPILED[first::2] for first in range(2)]
MODERN = {"positions": "rotary", "norm": "pre", "norm_kind": "rms", "feed_forward": "swiglu"}


def made_together(recipes, **model):
    """Build a Transformer of one layer in which each of several variants has its heads."""
    heads = {
        side: max(1, sum(one.get("heads", 0) for one in recipes if one["side"] == side))
        for side in SIDES
    }
    variants = [variant_of({**one, "layers": [1]} if "layers" in one else one) for one in recipes]
    sizes = {
        "heads": heads["target"],
        "encoder_heads": [heads["source"]],
        "model_dim": 2 * math.lcm(*heads.values()),
        **model,
    }
    return redrawn(small_model(*variants, encoder_layers=1, decoder_layers=1, **sizes))


# several variants in a model: most of the time goes to what all models have
@pytest.mark.journey
@pytest.mark.parametrize(
    ("cases", "parts"),
    [
        pytest.param(group, parts, id=" ".join(case.id for case in group))
        for group, parts in zip(GROUPS, ({}, MODERN), strict=True)
    ],
)
def test_it_compiles_with_others_as_one_graph(cases, parts):
    model = made_together([case.values[0] for case in cases], **parts)
    _, batch = random_batch(model, [4, 2])
    # what was compiled for the models before counts against the limit of this one
    torch.compiler.reset()
    # torch 2.6 compiles the newer parts by themselves
    whole = not parts or tuple(map(int, torch.__version__.split(".")[:2])) > (2, 6)
    # one graph or several: no backend has a say; the test below traces gradients, too
    compiled = torch.compile(model, fullgraph=whole, backend="eager")
    torch.testing.assert_close(compiled(batch).states, model(batch).states, rtol=1e-5, atol=1e-5)


@pytest.mark.journey
# torch looks at tensors between two graphs, and hides this warning of its own, unless warnings are
# errors
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_path_relations_compile_as_several_graphs():
    # each length has a table, whose sizes are parts of the graphs
    model = made_together([{"name": "path_relations", "side": "source", "heads": 2, "longest": 2}])
    torch.compiler.reset()
    # the decoder, which knows nothing of them, takes longer than all of these graphs
    compiled = torch.compile(model.remember, dynamic=True, backend="eager")
    # other numbers of words and pieces than the graphs were made for
    for words in ([7, 3, 5], [9, 6, 4]):
        _, batch = random_batch(model, words)
        read = batch.source, batch.source_signals
        torch.testing.assert_close(
            compiled(*read)[0].states, model.remember(*read)[0].states, rtol=1e-5, atol=1e-5
        )


MIXTURE = [
    {"name": "pascal", "layers": [1], "heads": 1},
    {"name": "dbsa", "side": "target", "layers": [1], "heads": 1},
]


# with all lengths, to trace gradients takes eight times as long: torch does sums with their names
@pytest.mark.journey
@pytest.mark.parametrize(
    ("backend", "dynamic", "batches"),
    [("eager", True, ([4, 2], [7, 3, 5])), ("aot_eager", False, ([4, 2],))],
)
def test_a_mixture_compiles_with_its_losses(backend, dynamic, batches):
    plain, compiled = (small_model(*MIXTURE, encoder_layers=1, decoder_layers=1) for _ in range(2))
    torch.compiler.reset()
    run = torch.compile(compiled, fullgraph=True, dynamic=dynamic, backend=backend)
    for words in batches:
        _, batch = random_batch(plain, words)
        for call in (plain, run):
            backward(call(batch))
        for one, other in zip(plain.parameters(), compiled.parameters(), strict=True):
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-4)


def test_a_model_without_its_variants_is_bitwise_the_plain_one():
    plain, scaled = small_model(seed=3).eval(), small_model({"name": "pascal"}, seed=3).eval()
    assert plain.syntax("source", {}) is None
    assert plain.reads("source") == ()
    for own, other in zip(plain.named_parameters(), scaled.named_parameters(), strict=True):
        assert own[0] == other[0]
        assert torch.equal(own[1], other[1])
    _, batch = random_batch(scaled, [4, 9])
    for layer in scaled.encoder:
        layer.self_attention.variants = torch.nn.ModuleList()
    assert torch.equal(plain(batch).states, scaled(batch).states)


def test_variants_in_a_layer_take_consecutive_heads_and_the_others_are_plain():
    model = small_model(
        {"name": "pascal", "heads": 1, "variance": 1}, {"name": "pascal", "heads": 2, "variance": 4}
    )
    _, batch = random_batch(model, [4, 6])
    attention, syntax = model.encoder[0].self_attention, Syntax(batch.source_signals)
    attention.output = torch.nn.Identity()
    x, mask = torch.randn(2, batch.source.ids.size(1), 16), batch.source.mask[:, None, None]
    both, (first, second) = attention(x, mask, syntax), attention.variants
    for variant, heads in ((first, slice(0, 4)), (second, slice(4, 12)), (None, slice(12, 16))):
        widened = (
            [Pascal(Place("source", 1, 4, 16, 4), variance=variant.variance)] if variant else []
        )
        attention.variants = torch.nn.ModuleList(widened)
        torch.testing.assert_close(both[..., heads], attention(x, mask, syntax)[..., heads])
