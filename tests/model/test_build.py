"""How a recipe becomes a model: which layers and heads a variant gets, and what is refused."""

import json
import sys

import pytest
import torch
from small import model_recipe, small_model

from synmt.errors import UsageError
from synmt.model.build import place_variants, variant_class, variant_names
from synmt.model.variant_keys import variant_keys
from synmt.model.variants.pascal import Pascal
from synmt.recipe.schema import SyntaxRecipe


def place(*variants, side="source"):
    """Place variants in a model of two layers with four heads, and build those of one side."""
    syntax = SyntaxRecipe.model_validate_json(json.dumps({"variants": variants}))
    return [
        [variant.build() for variant in layer]
        for layer in place_variants(model_recipe(), syntax)[side]
    ]


def pascal(**options):
    return {"name": "pascal", **options}


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    """Give a function that writes a module of a user, which Python finds and may run."""
    monkeypatch.setenv("SYNMT_ALLOW_CODE", "1")
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, text):
        path = tmp_path / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    return write


def test_no_variant_makes_a_plain_model():
    assert place() == [[], []]
    assert small_model().variants == {"source": (), "target": ()}


def test_layers_count_from_one_and_all_means_every_free_head():
    first, second = place(pascal(layers=[2]))
    assert first == []
    assert [(v.place.side, v.place.layer, v.place.heads, v.place.head_dim) for v in second] == [
        ("source", 2, 4, 4)
    ]


def test_each_variant_takes_the_first_heads_that_are_free():
    first, second = place(
        pascal(layers=[1, 2], heads=1), pascal(layers=[1], heads=2), pascal(layers=[1])
    )
    assert [variant.place.heads for variant in first] == [1, 2, 1]
    assert [variant.place.heads for variant in second] == [1]


def test_sides_are_kept_apart():
    assert place(pascal(), side="target") == [[], []]


def test_the_weight_of_the_loss_is_the_recipes():
    ((variant,), _) = place({"name": "dbsa", "layers": [1], "loss_weight": 0.5})
    assert variant.loss_weight == 0.5


def test_options_reach_the_variant():
    ((variant,), _) = place(pascal(variance=2.5, ignore=0.25))
    assert isinstance(variant, Pascal)
    assert (float(variant.variance), variant.ignore) == (2.5, 0.25)


def test_a_name_is_a_file_and_the_class_has_the_same_name():
    assert "pascal" in variant_names()
    assert variant_class("pascal") is variant_class("synmt.model.variants.pascal") is Pascal


@pytest.mark.parametrize(
    ("variants", "said"),
    [
        ([pascal(heads=5)], "pascal needs 5 heads of layer 1, but 4 of 4 are free"),
        ([pascal(heads=0)], "pascal needs 0 heads of layer 1, but 4 of 4 are free"),
        (
            [pascal(heads=3), pascal(heads=2)],
            "syntax.variants.1: pascal needs 2 heads of layer 1, but 1 of 4 is free",
        ),
        (
            [pascal(), pascal()],
            "syntax.variants.1: pascal needs all heads of layer 1, but 0 of 4 are free",
        ),
        ([pascal(layers=[3])], "there is no layer 3. This model has layers 1 to 2"),
        ([pascal(layers=[0])], "there is no layer 0. This model has layers 1 to 2"),
        ([{"name": "pascla"}], "there is no variant 'pascla'. Variants: "),
        ([{"name": "pascla"}], "Did you mean 'pascal'?"),
        ([{"name": "json.decoder"}], "json.decoder has no variant 'Decoder'"),
        ([{"name": "nowhere.mine"}], "there is no variant 'nowhere.mine'"),
        ([pascal(varience=2)], "has no option 'varience'. Options of pascal: "),
        ([pascal(ignore="often")], "syntax.variants.0.ignore: "),
        ([pascal(ignore=True)], "syntax.variants.0.ignore: "),
    ],
)
def test_what_cannot_be_placed_is_refused(variants, said):
    with pytest.raises(UsageError) as raised:
        place(*variants)
    assert said in str(raised.value)


def test_every_misfit_is_reported_at_once():
    with pytest.raises(UsageError) as raised:
        place(pascal(layers=[3]), pascal(varience=2, heads=9), {"name": "pascla"})
    assert [f"syntax.variants.{index}" in str(raised.value) for index in range(3)] == [True] * 3
    assert raised.value.exit_code == 2


def test_the_same_seed_gives_the_same_weights():
    one, other, third = small_model(seed=1), small_model(seed=1), small_model(seed=2)
    pairs = list(zip(one.parameters(), other.parameters(), third.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert not all(torch.equal(a, c) for a, _, c in pairs)


def test_a_module_in_the_working_folder_is_found(tmp_path, monkeypatch):
    (tmp_path / "lab_of_one.py").write_text(
        '"""x"""\nfrom synmt.model.variant import Variant\n\n\nclass Kept(Variant):\n    pass\n',
        encoding="utf-8",
    )
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "kept.py").write_text("from lab_of_one import Kept\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNMT_ALLOW_CODE", "1")
    assert variant_class("lab.kept").__name__ == "Kept"


def test_looking_for_a_module_leaves_the_python_path_as_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path, str(tmp_path)])
    before = list(sys.path)
    variant_class("pascal")
    with pytest.raises(UsageError):
        variant_class("nowhere.mine")
    assert sys.path == before
    monkeypatch.setattr("sys.path", without := [path for path in before if path != str(tmp_path)])
    variant_class("pascal")
    assert str(tmp_path) not in sys.path
    assert sys.path == without


def test_a_variant_that_sets_its_signals_when_it_is_made_is_refused(write_module):
    write_module(
        "late.found",
        "from synmt.model.variant import Variant\nfrom synmt.syntax.signals import DISTANCE\n\n\n"
        "class Found(Variant):\n    def __init__(self, place):\n        super().__init__(place)\n"
        "        self.reads = (DISTANCE,)\n\n    def edit(self, terms, syntax):\n        return "
        "terms\n",
    )
    with pytest.raises(
        UsageError, match=r"^found sets `reads`, `learns` or `annotation` in __init__"
    ):
        small_model({"name": "late.found"})


def test_a_recipe_is_checked_without_making_a_variant(monkeypatch):
    def make(*args, **options):
        raise AssertionError("a variant was made")

    monkeypatch.setattr("synmt.model.variant.Variant.__init__", make)
    syntax = {
        "variants": ({"name": "pascal", "heads": 2}, {"name": "dbsa", "layers": (1,), "heads": 1})
    }
    placed = place_variants(model_recipe(), SyntaxRecipe.model_validate(syntax))
    assert [[variant.kind.__name__ for variant in layer] for layer in placed["source"]] == [
        ["Pascal", "Dbsa"],
        [],
    ]
    assert [signal.name for variant in placed["source"][0] for signal in variant.reads] == [
        "parent_middle"
    ]


def test_an_option_may_be_a_tuple(write_module):
    write_module(
        "shop.many",
        "from synmt.model.variant import Place, Variant\n\n\nclass Many(Variant):\n"
        "    def __init__(self, place: Place, *, groups: tuple[str, ...] = ()) -> None:\n"
        "        super().__init__(place)\n        self.groups = groups\n",
    )
    first, _ = place({"name": "shop.many", "groups": ["nsubj", "obj"]})
    assert first[0].groups == ("nsubj", "obj")
    with pytest.raises(UsageError, match=r"groups: must be text"):
        place({"name": "shop.many", "groups": [1]})


FAR = """
from functools import partial
import numpy as np
from synmt.model.variant import Variant
from synmt.syntax.signals import Signal


def far(parse, word_of, reach):
    return np.full((len(word_of), len(word_of)), float(reach), np.float32)


class Reach(Variant):
    def __init__(self, place, *, reach: int = 3, called: str = ""):
        super().__init__(place)

    @classmethod
    def reads_for(cls, *, reach, called):
        return (Signal(called or f"far.{reach}", needs="parents", compute=partial(far, reach=reach), pad=0),)

    def edit(self, terms, syntax):
        return terms.edit(bias=syntax.signals[self.reads[0].name][:, None])
"""


def test_a_signal_may_depend_on_options_and_stand_in_several_layers(write_module):
    write_module("own.reach", FAR)
    small_model(
        {"name": "own.reach", "layers": [1, 2], "heads": 2},
        {"name": "own.reach", "heads": 1, "reach": 5},
    )
    called = {"name": "own.reach", "called": "x", "heads": 1}
    with pytest.raises(UsageError, match="two different signals are called 'x'"):
        small_model({**called, "reach": 1}, {**called, "reach": 2})


def test_two_signals_of_one_name_are_refused(write_module):
    write_module(
        "mine.far",
        "import numpy as np\nfrom synmt.model.variant import Variant\nfrom synmt.syntax.signals "
        "import Signal\n\n\n"
        "def nine(parse, word_of):\n    return np.full((len(word_of), len(word_of)), 9)\n\n\n"
        "class Far(Variant):\n    reads = (Signal('distance', needs='parents', compute=nine, "
        "pad=0),)\n\n"
        "    def edit(self, terms, syntax):\n        return "
        "terms.edit(bias=syntax.signals['distance'][:, None])\n",
    )
    far = {"name": "mine.far", "layers": [1], "heads": 2}
    small_model(far)
    with pytest.raises(
        UsageError, match=r"two different signals are called 'distance', one of them by far"
    ):
        small_model({"name": "deps_san", "layers": [1], "heads": 2}, far)


WIDTH = """
from synmt.model.variant import Variant


class Wide(Variant):
    \"\"\"Widens nothing.

    width: of nothing.
    \"\"\"

    def __init__(self, place, *, width: int, factor: float = 1.0):
        super().__init__(place)
        self.width = width
"""


def test_an_option_without_a_default_has_to_be_set(write_module):
    write_module("needy.wide", WIDTH)
    with pytest.raises(
        UsageError,
        match=r"syntax\.variants\.0 lacks 'width', which has no default\. Add `width: …`",
    ):
        place({"name": "needy.wide", "factor": 2.0})
    with pytest.raises(
        UsageError, match=r"(?s)lacks 'width'.*no option 'widht'.*Did you mean 'width'"
    ):
        place({"name": "needy.wide", "widht": 3})
    first, _ = place({"name": "needy.wide", "width": 3})
    assert first[0].width == 3
    _, width, factor = variant_keys("needy.wide")
    assert (width.default, width.meaning, factor.default) == (
        "",
        "(Has no default.) Of nothing.",
        "1.0",
    )
