"""How a recipe becomes a model: which layers and heads a variant gets, and what is refused."""

import json
import re
import sys

import pytest
import torch
import yaml
from refusing import assert_refused
from small import model_recipe, small_model, small_recipe

from synmt.errors import UsageError
from synmt.model.build import place_variants, variant_class, variant_names
from synmt.model.variant_keys import variant_keys
from synmt.model.variants.pascal import Pascal
from synmt.recipe.schema import SyntaxRecipe


def placed(*variants):
    """Place variants in the encoder of a model of two layers with four heads."""
    syntax = SyntaxRecipe.model_validate_json(json.dumps({"variants": variants}))
    layers = place_variants(model_recipe(), syntax)["source"]
    return [[variant.build() for variant in layer] for layer in layers]


def pascal(**options):
    return {"name": "pascal", **options}


def test_layers_count_from_one_and_all_means_every_free_head():
    assert placed() == [[], []]
    first, [variant] = placed(pascal(layers=[2], variance=2.5))
    assert first == []
    assert isinstance(variant, Pascal)
    place = variant.place
    assert (place.side, place.layer, place.heads, place.head_dim) == ("source", 2, 4, 4)
    assert variant.variance == 2.5


def test_each_variant_takes_the_first_heads_that_are_free():
    first, second = placed(
        pascal(layers=[1, 2], heads=1),
        {"name": "dbsa", "layers": [1], "heads": 2, "loss_weight": 0.5},
        {"name": "tag_embedding"},
        pascal(layers=[1]),
    )
    assert [(v.place.first_head, v.place.heads) for v in first] == [(0, 1), (1, 2), (3, 0), (3, 1)]
    assert [variant.place.heads for variant in second] == [1]
    assert first[1].loss_weight == 0.5


def test_a_name_is_a_file_and_the_class_has_the_same_name():
    assert "pascal" in variant_names()
    assert variant_class("pascal") is variant_class("synmt.model.variants.pascal") is Pascal


# variants of a recipe, and what is said of them, in a Transformer
REFUSED = """
{name: pascal, heads: 5} => syntax.variants.0: pascal needs 5 heads of layer 1, but 4 of them are
{name: pascal, heads: 0} => pascal needs 0 heads of layer 1, but 4 of them are free
{name: pascal, heads: 3}, {name: pascal, heads: 2} =>
    syntax.variants.1: pascal needs 2 heads of layer 1, but 1 of them are free. Set `heads` of
{name: pascal}, {name: pascal} => pascal needs all heads of layer 1, but 0 of them are free
{name: pascal, layers: [3]} => syntax.variants.0: pascal has `layers` [3]; this
{name: pascal, layers: [0]} => pascal has `layers` [0]; this model has layers 1 to 2
{name: pascal, layers: [1, 1]} => pascal must name each layer once in `layers`, or `all`
{name: latent_tree, layers: [2], sets: 1} => latent_tree acts once, not in every layer
{name: latent_tree, heads: 1, sets: 1} => edits no attention: it owns no heads. Leave out `heads`
{name: tree_regularization, layers: [1]}, {name: tree_regularization, layers: [1]} =>
    is named twice: the second would undo the first
{name: pascla} => there is no variant 'pascla'. Variants:
{name: pascla} => Did you mean 'pascal'?
{name: json.decoder} => json.decoder has no variant 'Decoder'
{name: nowhere.mine} => there is no variant 'nowhere.mine'. Variants:
{name: pascal, varience: 2} => varience: pascal has no such option. Options:
{name: pascal, ignore: often} => syntax.variants.0.ignore:
{name: pascal, ignore: true} => syntax.variants.0.ignore:
{name: pascal, side: target} => pascal cannot be used on the target side
{name: pascal, loss_weight: 2.0} => pascal has no auxiliary loss. Leave out `loss_weight`
{name: pascal, loss_steps: [1, 9]} => pascal has no auxiliary loss. Leave out
{name: relative, shared: true, values: false} => relative has no table to share
{name: distance_mask, reach: [1, 2, 3]} => 3 reaches for 4 heads of layer 1
{name: kinship_mask, masks: [self]} => `masks` of kinship_mask lacks `all`
{name: kinship_mask, masks: [all, all]} => names a mask twice
{name: dependency_distribution} => has 16 groups, one for each head, but owns 4 heads
{name: dependency_distribution, groups: []} => `groups` is empty, and each is read by
{name: tag_embedding, size: 17} => the size of tag_embedding is 17. 1 to 16
{name: tag_embedding, features: {case: 8, tag: 9}} =>
    the size of tag_embedding is 17. 1 to 16, the width of an embedding
{name: tag_embedding, features: {tags: 9}} => syntax.variants.0.features
{name: syntax_infused, features: []} => `features` of syntax_infused is empty
{name: syntax_infused, features: [tag, tag]} => names one twice
{name: latent_tree} =>
    annotates the source for the decoder of an LSTM; a Transformer's decoder reads no
"""
REFUSED_IN_LSTMS = """
{name: pascal} => pascal edits self-attention, and an LSTM has none
{name: lisa} => lisa edits self-attention, and an LSTM has none
{name: relative} => relative edits self-attention, and an LSTM has none
{name: tree_attention} => tree_attention edits self-attention, and an LSTM has none
{name: tree_regularization, layers: [1]} => learns from layers of attention, and an LSTM has none
{name: tree_lstm}, {name: latent_tree, sets: 1} =>
    latent_tree reads the source after tree_lstm, which append
{name: tree_lstm}, {name: latent_tree} => cannot be combined: a decoder reads one annotation
{name: latent_graph}, {name: tree_lstm} => cannot be combined: a decoder reads one annotation
{name: latent_tree}, {name: latent_graph} => latent_graph and latent_tree cannot be combined
{name: latent_graph, loss_weight: 0.5} => latent_graph has no auxiliary loss
"""


def rows_of(table):
    """Read the rows: the value of a key in YAML, and the words that are expected."""
    rows = [row.split(" =>") for row in table.replace("=>\n ", "=> ").strip().split("\n")]
    return [(yaml.safe_load(f"[{value}]"), words.strip()) for value, words in rows]


@pytest.mark.parametrize(("variants", "words"), rows_of(REFUSED), ids=str)
def test_what_cannot_be_placed_is_refused(variants, words):
    assert_refused(re.escape(words), placed, *variants)


@pytest.mark.parametrize(("variants", "words"), rows_of(REFUSED_IN_LSTMS), ids=str)
def test_what_does_not_fit_an_lstm_is_refused(variants, words):
    assert_refused(re.escape(words), small_model, *variants, architecture="lstm")


# the section `model` of a recipe
REFUSED_MODELS = """
{architecture: lstm, model_dim: 15} => odd
{model_dim: 12, heads: 4, positions: rotary} => is odd: rotary turns pairs
{encoder_layers: 1, model_dim: 16, heads: 4, encoder_heads: [16], positions: rotary} => rotary turns
{positions: learned} => 'sinusoid', 'vaswani', 'rotary', 'alibi' or 'none'
"""


@pytest.mark.parametrize(("models", "words"), rows_of(REFUSED_MODELS), ids=str)
def test_parts_that_a_model_cannot_have_are_refused(models, words):
    assert_refused(re.escape(words), small_recipe, model=models[0])


def test_heads_of_odd_width_may_have_other_positions():
    model = {"model_dim": 9, "heads": 3, "positions": "alibi"}
    assert small_recipe(model=model).model.positions == "alibi"


def test_every_misfit_is_reported_at_once():
    with pytest.raises(UsageError) as raised:
        placed(pascal(layers=[3]), pascal(varience=2, heads=9), {"name": "pascla"})
    assert [f"syntax.variants.{index}" in str(raised.value) for index in range(3)] == [True] * 3
    assert raised.value.exit_code == 2


def test_the_same_seed_gives_the_same_weights():
    one, other, third = (list(small_model(seed=seed).parameters()) for seed in (1, 1, 2))
    assert all(map(torch.equal, one, other))
    assert not all(map(torch.equal, one, third))


def test_what_edits_the_states_comes_before_annotations_and_phrases():
    for other in ("latent_graph", "tree_lstm"):
        small_model({"name": "latent_tree", "sets": 1}, {"name": other}, architecture="lstm")


def test_a_recipe_is_checked_without_making_a_variant(monkeypatch):
    def make(*args, **options):
        raise AssertionError("a variant was made")

    monkeypatch.setattr("synmt.model.variant.Variant.__init__", make)
    variants = {"name": "pascal", "heads": 2}, {"name": "dbsa", "layers": (1,), "heads": 1}
    syntax = SyntaxRecipe.model_validate({"variants": variants})
    first, second = place_variants(model_recipe(), syntax)["source"]
    assert [variant.kind.__name__ for variant in first] == ["Pascal", "Dbsa"]
    assert second == []
    assert [signal.name for variant in first for signal in variant.reads] == ["parent_middle"]


# modules of a user


@pytest.fixture
def write_module(tmp_path, monkeypatch, empty_cache):
    """Make a function that writes a module of a user, which Python finds and may run."""
    monkeypatch.setenv("SYNMT_ALLOW_CODE", "1")
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, text):
        path = tmp_path / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{IMPORTS}{text}", encoding="utf-8")

    return write


IMPORTS = """
from functools import partial
from synmt.model.variant import Place, Variant
from synmt.syntax.feature_signals import feature_signal
from synmt.syntax.signals import Signal

"""


def test_a_module_in_the_working_folder_is_found(write_module, tmp_path, monkeypatch):
    write_module("lab_of_one", "class Kept(Variant):\n    pass\n")
    write_module("lab.kept", "from lab_of_one import Kept\n")
    monkeypatch.setattr("sys.path", [path for path in sys.path if path != str(tmp_path)])
    monkeypatch.chdir(tmp_path)
    assert variant_class("lab.kept").__name__ == "Kept"


@pytest.mark.parametrize("copies", [0, 2])
def test_looking_for_a_module_leaves_the_python_path_as_it_was(tmp_path, monkeypatch, copies):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*[str(tmp_path)] * copies, *sys.path])
    before = list(sys.path)
    variant_class("pascal")
    assert_refused("nowhere", variant_class, "nowhere.mine")
    assert sys.path == before


LEMMAS = """
class Lemmas(Variant):
    learns = (feature_signal("lemma", most=9),)
"""
BY_OPTION = """
class Lemmas(Variant):
    @classmethod
    def learns_for(cls, **options):
        return (feature_signal("lemma", most=9),)
"""


@pytest.mark.parametrize(("lab", "module"), [("lemma_lab", LEMMAS), ("option_lab", BY_OPTION)])
def test_a_variant_of_the_target_cannot_learn_from_lemmas(write_module, lab, module):
    write_module(f"{lab}.lemmas", module)
    small_model({"name": f"{lab}.lemmas"})
    assert_refused(
        "whose values are known for the source only",
        small_model,
        {"name": f"{lab}.lemmas", "side": "target"},
    )


REACH = """
def far(parse, word_of, reach):
    return 0


class Reach(Variant):
    def __init__(self, place, *, reach: int = 3, called: str = ""):
        super().__init__(place)

    @classmethod
    def reads_for(cls, *, reach, called):
        compute = partial(far, reach=reach)
        return (Signal(called or f"far.{reach}", needs="parents", compute=compute, pad=0),)

    def edit(self, terms, syntax):
        return terms
"""


def test_a_signal_may_depend_on_options_but_two_signals_of_one_name_are_refused(write_module):
    write_module("own.reach", REACH)
    reach = {"name": "own.reach", "heads": 1}
    small_model({**reach, "layers": [1, 2]}, {**reach, "reach": 5})
    deps_san = {"name": "deps_san", "layers": [1], "heads": 2}
    for other, name in (({**reach, "reach": 4, "called": "x"}, "x"), (deps_san, "distance")):
        assert_refused(
            f"two different signals are called '{name}'",
            small_model,
            {**reach, "called": name},
            other,
        )


WIDE = '''
class Wide(Variant):
    """Widens nothing.

    width: of nothing.
    """

    def __init__(
        self, place: Place, *, width: int, factor: float = 1.0, groups: tuple[str, ...] = ()
    ) -> None:
        super().__init__(place)
        self.width, self.groups = width, groups
'''


def test_options_of_a_module_are_checked_by_their_types(write_module):
    write_module("needy.wide", WIDE)
    wide = {"name": "needy.wide"}
    message = r"syntax\.variants\.0\.width: needy.wide needs this option, which has no default"
    assert_refused(message, placed, {**wide, "factor": 2.0})
    message = "(?s)widht: .* has no such.*Did you mean 'width'.*width: needy.wide needs"
    assert_refused(message, placed, {**wide, "widht": 3})
    assert_refused("groups: must be a valid string", placed, {**wide, "width": 3, "groups": [1]})
    [variant], _ = placed({**wide, "width": 3, "groups": ["nsubj", "obj"]})
    assert (variant.width, variant.groups) == (3, ("nsubj", "obj"))
    _, width, factor, _ = variant_keys("needy.wide")
    assert (width.default, width.meaning) == ("", "(Has no default.) Of nothing.")
    assert factor.default == "1.0"
