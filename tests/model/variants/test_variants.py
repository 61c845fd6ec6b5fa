"""The contract of a variant, checked for every file in synmt/model/variants/, new ones too."""

import copy
import inspect
import math
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from attending import assert_alone_as_in_a_batch, assert_step_by_step_as_all_at_once
from small import PIECES, random_batch, random_example, small_model
from variant_cases import (
    CASES,
    DEFAULTS,
    EDITS_ATTENTION,
    LEARNING,
    ON_TARGET,
    made,
    places,
    redrawn,
    sizes,
    variant_of,
)

from synmt.arrays import SIDES
from synmt.data.batch import Batch
from synmt.model.attention import attend, attend_written_out, softmax
from synmt.model.build import variant_class, variant_names
from synmt.model.variant import Place, Syntax, Variant
from synmt.model.variant_options import option_defaults
from synmt.syntax.feature_signals import STORED

CATALOGUE = variant_names()


_SHARED = {}


def shared(recipe):
    """Give a model of the recipe to read, the same to every test; gradients of tests before are
    gone."""
    key = repr(recipe)
    if key not in _SHARED:
        _SHARED[key] = made(recipe)
    _SHARED[key].zero_grad()
    return _SHARED[key]


def backward(output):
    """Compute the gradients of what the model gives and of its losses."""
    (output.states.square().sum() + sum(output.losses.values())).backward()


def test_the_catalogue_is_not_empty():
    assert "pascal" in CATALOGUE


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_variant_fits_some_side(name):
    assert places(name)


@pytest.mark.parametrize("name", CATALOGUE)
def test_builds_with_defaults_on_a_place(name):
    kind = variant_class(name)
    recipe = places(name)[0]
    place = Place(recipe["side"], layer=1, heads=recipe.get("heads", 0), model_dim=32, head_dim=2)
    assert isinstance(kind(place), Variant)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_file_opens_with_paper_and_equation(name):
    text = inspect.getdoc(inspect.getmodule(variant_class(name)))
    assert re.search(r"\((?:19|20)\d\d|, (?:19|20)\d\d", text), "no year of a paper"
    assert re.search(r"^ {4}\S", text, re.MULTILINE), "no indented equation"


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_option_is_keyword_only_documented_and_has_a_default(name):
    kind = variant_class(name)
    documented = inspect.getdoc(kind)
    for option in list(inspect.signature(kind).parameters.values())[1:]:
        assert option.kind is inspect.Parameter.KEYWORD_ONLY, option.name
        assert option.default is not inspect.Parameter.empty, option.name
        assert re.search(rf"^{option.name}: ", documented, re.MULTILINE), (
            f"'{option.name}' is not documented"
        )


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


@pytest.mark.parametrize("recipe", CASES)
def test_every_parameter_of_its_own_gets_a_gradient(recipe):
    model = shared(recipe)
    own = [
        pair for variant in model.variants[recipe["side"]] for pair in variant.named_parameters()
    ]
    if not own:
        # nor has it added any to the layers that it edits
        names = [
            [name for name, _ in one.named_parameters()]
            for one in (model, small_model(**sizes(recipe)))
        ]
        assert names[0] == names[1]
        return
    _, batch = random_batch(model, [3, 6, 8])
    backward(model(batch))
    for name, parameter in own:
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


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
    learns = any(variant.learns for variant in variants)
    # a variant without parameters may only add a loss to plain heads
    assert changed or (
        learns and not any(True for variant in variants for _ in variant.parameters())
    )
    names = {
        f"{type(v).__name__.lower()}.{recipe['side']}.{v.place.layer}" for v in variants if v.learns
    }
    assert output.losses.keys() == names
    assert all(loss > 0 for loss in output.losses.values())


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


def test_some_variants_are_tested_on_the_target_side():
    assert {case.values[0]["name"] for case in ON_TARGET} >= {"dbsa", "relative"}


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
    for case in DEFAULTS
    if case.values[0].get("architecture") != "lstm" and case.values[0]["name"] != "path_relations"
]
GROUPS = [COMPILED[first::4] for first in range(4)]


def made_together(recipes):
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
    }
    return redrawn(small_model(*variants, encoder_layers=1, decoder_layers=1, **sizes))


# several variants in a model: most of the time goes to what all models have
@pytest.mark.journey
@pytest.mark.parametrize(
    "cases", [pytest.param(group, id=" ".join(case.id for case in group)) for group in GROUPS]
)
def test_it_compiles_with_others_as_one_graph(cases):
    model = made_together([case.values[0] for case in cases])
    _, batch = random_batch(model, [4, 2])
    # what was compiled for the models before counts against the limit of this one
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(batch).states, model(batch).states, rtol=1e-5, atol=1e-5)


@pytest.mark.journey
# torch looks at tensors between two graphs, and hides this warning of its own, unless warnings are
# errors
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_path_relations_compile_as_several_graphs():
    model = made_together(
        [case.values[0] for case in DEFAULTS if case.values[0]["name"] == "path_relations"]
    )
    torch.compiler.reset()
    compiled = torch.compile(model, dynamic=True, backend="aot_eager")
    for words in ([4, 2], [7, 3, 5]):
        _, batch = random_batch(model, words)
        torch.testing.assert_close(
            compiled(batch).states, model(batch).states, rtol=1e-5, atol=1e-5
        )


@pytest.mark.journey
def test_a_mixture_compiles_for_all_lengths_with_its_losses_and_gradients():
    mixture = [
        {"name": "pascal", "layers": [1], "heads": 1},
        {"name": "dbsa", "side": "target", "layers": [1], "heads": 1},
    ]
    plain, compiled = (small_model(*mixture, encoder_layers=1, decoder_layers=1) for _ in range(2))
    torch.compiler.reset()
    run = torch.compile(compiled, fullgraph=True, dynamic=True, backend="aot_eager")
    for words in ([4, 2], [7, 3, 5]):
        _, batch = random_batch(plain, words)
        for call in (plain, run):
            backward(call(batch))
        for one, other in zip(plain.parameters(), compiled.parameters(), strict=True):
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-4)


def signals_of(name):
    kind = variant_class(name)
    return kind.reads_for(**option_defaults(kind)) + kind.learns_for(**option_defaults(kind))


@pytest.mark.parametrize("name", [name for name in CATALOGUE if signals_of(name)])
def test_its_signals_name_what_they_need(name):
    for signal in signals_of(name):
        assert signal.needs in (
            "words",
            "parents",
            "labels",
            "relations",
            "tags",
            "arcs",
            "constituents",
            *STORED,
        )
        example = random_example(5, np.random.default_rng(0))
        tree = example.trees["source"]
        array = signal.compute(tree.parse, np.append(tree.word_of, -1))
        # nodes are listed by what is joined into them
        assert array.shape[-1] == (3 if signal.name == "merges" else len(example.source) + 1)


def test_without_variants_no_syntax_travels():
    model = small_model()
    assert model.syntax("source", {}) is None
    assert model.reads("source") == ()
    assert not any(isinstance(module, Variant) for module in model.modules())


def test_a_variant_changes_no_weight_of_the_plain_model():
    plain, scaled = small_model(seed=3), small_model({"name": "pascal"}, seed=3)
    for (name, weight), (other, same) in zip(
        plain.named_parameters(), scaled.named_parameters(), strict=True
    ):
        assert name == other
        assert torch.equal(weight, same)


def test_without_its_variants_a_model_is_bitwise_the_plain_one():
    plain, scaled = small_model(seed=3).eval(), small_model({"name": "pascal"}, seed=3).eval()
    _, batch = random_batch(scaled, [4, 9])
    for layer in scaled.encoder:
        layer.self_attention.variants = torch.nn.ModuleList()
    assert torch.equal(plain(batch).states, scaled(batch).states)


LAB = '''
"""Steps from each word to the root, added to every score (Somebody, 2026).

    S_tj = q_t · k_j / √d + weight · depth_j
"""
import numpy as np
import torch
from torch import nn

from synmt.model.variant import Variant
from synmt.syntax.signals import Signal


def depth(parse, word_of):
    """Steps from each piece's word to the root; 0 for specials: (T,)."""
    depths = np.zeros(len(parse) + 1, np.float32)
    for word in range(len(parse)):
        at = word
        while parse.parents[at] != at:
            at, depths[word] = parse.parents[at], depths[word] + 1
    return depths[word_of]


DEPTH = Signal("depth", needs="parents", compute=depth, pad=0)


class Depth(Variant):
    """Look at deep words.

    start: the weight to begin with.
    """

    learns = (DEPTH,)

    def __init__(self, place, *, start: float = 0.5):
        super().__init__(place)
        self.weight = nn.Parameter(torch.tensor(start))

    def edit(self, terms, syntax):
        if "depth" in syntax.signals:
            self.supervise(syntax, (self.weight - 1) ** 2 * syntax.signals["depth"].sum())
        return terms.edit(bias=self.weight * torch.ones_like(terms.q[..., :1, :1]))
'''


def test_a_module_of_ones_own_is_a_variant(tmp_path, monkeypatch):
    (tmp_path / "my_lab").mkdir()
    (tmp_path / "my_lab" / "depth.py").write_text(LAB, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SYNMT_ALLOW_CODE", "1")
    model = small_model({"name": "my_lab.depth", "start": 0.25, "loss_weight": 2.0, "heads": 1})
    _, batch = random_batch(model, [3, 5])
    losses = model(batch).losses
    expected = 2.0 * 0.75**2 * batch.source_signals["depth"].sum()
    torch.testing.assert_close(losses["depth.source.1"], expected)


def test_two_variants_in_a_layer_take_consecutive_heads():
    model = small_model(
        {"name": "pascal", "heads": 1, "variance": 1}, {"name": "pascal", "heads": 2, "variance": 4}
    )
    taken = [variant.place.heads for variant in model.encoder[0].self_attention.variants]
    assert taken == [1, 2]
    _, batch = random_batch(model, [4, 6])
    attention, syntax = model.encoder[0].self_attention, Syntax(batch.source_signals)
    attention.output = torch.nn.Identity()
    x = torch.randn(2, batch.source.ids.size(1), 16)
    both = attention(x, batch.source.mask[:, None, None], syntax)
    first, second = attention.variants
    for variant, heads in ((first, slice(0, 4)), (second, slice(4, 12))):
        widened = type(variant)(Place("source", 1, 4, 16, 4), variance=variant.variance)
        attention.variants = torch.nn.ModuleList([widened])
        alone = attention(x, batch.source.mask[:, None, None], syntax)
        torch.testing.assert_close(both[..., heads], alone[..., heads])
