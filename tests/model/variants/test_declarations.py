"""What each variant declares: its defaults, its first parameters, its options, signals and
relations."""

import inspect
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from small import make_variant, random_example

from synmt.model.build import variant_class, variant_names
from synmt.model.placement import option_defaults
from synmt.model.variant import Place
from synmt.syntax.feature_signals import STORED
from synmt.syntax.relations import unknown_relations
from synmt.training.preparation import relation_warnings

CATALOGUE = variant_names()

# layers, heads, signals that it reads and learns from
OF_PAPERS = """
context               all    all  -                          -
dbsa                  4      1    -                          parent_chain,word
deps_san              1,2,3  all  distance                   -
depth_relative        all    all  depth                      -
distance_mask         1      4    distance,word              -
distance_transformer  1      4    boundaries                 -
gcn                   1      -    graph,relation             -
kinship_mask          all    all  kinship                    -
latent_graph          1      -    -                          -
latent_tree           1      -    -                          -
lisa                  1      1    -                          parent_first,word
localness             1,2,3  all  -                          -
pascal                1      all  parent_middle              -
path_relations        all    all  paths.8                    -
relative              all    all  -                          -
scene_mask            4      1    same_scene                 -
structural_depth      1      -    depth                      -
structural_positions  all    all  signed_steps               -
syntax_infused        1      -    tag,relation,case,subword  -
tag_embedding         1      -    relation                   -
tree_attention        1      1    -                          -
tree_lstm             1      -    merges                     -
tree_planting         6      1    -                          node_distance,next_word,word
tree_regularization   4      -    -                          splits
"""

# what parameters begin with, in two heads of a layer of 64 dimensions: between ± a bound, with a
# standard deviation, or all with a number
INITIAL = """
dbsa biaffine.weight bound (6 / (32 + 32) / 2) ** 0.5
dbsa biaffine.key_bias equal 0
lisa project.weight bound (6 / (64 + 64)) ** 0.5
lisa project.bias equal 0
lisa biaffine.weight bound (6 / (32 + 32)) ** 0.5
localness w_p.weight bound (6 / (32 + 32)) ** 0.5
localness u_d.weight bound (6 / (32 + 1)) ** 0.5
localness u_d.bias equal 0
context mixtures.0.context.weight bound (6 / (32 + 32)) ** 0.5
relative key bound (6 / (33 + 32)) ** 0.5
relative value bound (6 / (33 + 32)) ** 0.5
depth_relative vectors.key bound (6 / (34 + 32)) ** 0.5
graph_relations vectors.norm.weight equal 1
kinship_mask mixture equal 0
path_relations relation.weight bound (6 / (64 + 64)) ** 0.5
gcn layers.0.arcs.weight deviation 0.01
gcn layers.1.biases.weight deviation 0.01
gcn layers.0.loop_gate.bias equal 1
latent_tree root deviation 1
latent_graph root deviation 64 ** -0.5
tag_embedding table.weight deviation 10 ** -0.5
syntax_infused tables.1.weight deviation 1
structural_depth project.weight bound (6 / (64 + 64)) ** 0.5
tree_lstm cell.gates.weight bound (6 / (128 + 64)) ** 0.5
"""

UNKNOWN = [
    ("gcn", {}, "SUBJ OBJ"),
    ("graph_relations", {}, "SUBJ OBJ"),
    ("path_relations", {}, "SUBJ OBJ"),
    ("latent_graph", {"supervised": True}, "SUBJ OBJ"),
    ("syntax_infused", {}, "SUBJ OBJ"),
    ("tag_embedding", {}, "SUBJ OBJ"),
    ("tag_embedding", {"relations": ("obl",)}, "nsubj nsubj:pass SUBJ OBJ prep det"),
    ("dependency_distribution", {}, "SUBJ OBJ prep"),
    ("dependency_distribution", {"groups": "stanford"}, "SUBJ OBJ"),
    ("dependency_distribution", {"groups": (("nsubj", "obj", "det"), ("SUBJ",))}, "OBJ"),
]
WITHOUT_RELATIONS = [
    ("dependency_distribution", {"kind": "udp"}),
    ("dependency_distribution", {"groups": (("rest",), ("nsubj",))}),
    ("graph_relations", {"labelled": False}),
    ("latent_graph", {}),
    ("syntax_infused", {"features": ("tag", "case")}),
    ("tag_embedding", {"features": {"tag": 2}}),
    ("pascal", {}),
]


@pytest.mark.parametrize("line", OF_PAPERS.strip().split("\n"))
def test_its_defaults_are_those_of_its_paper(line):
    name, layers, heads, *signals = line.split()
    kind = variant_class(name)
    found = kind.default_layers
    assert (found if found == "all" else ",".join(map(str, found))) == layers
    assert str(kind.default_heads if kind.edits_attention() else "-") == heads
    options = option_defaults(kind)
    by_default = kind.reads_for(**options), kind.learns_for(**options)
    assert [",".join(signal.name for signal in part) or "-" for part in by_default] == signals


@pytest.mark.parametrize("line", INITIAL.strip().split("\n"))
def test_its_parameters_begin_as_the_paper_or_its_code_says(line):
    name, path, distribution, expression = line.split(maxsplit=3)
    torch.manual_seed(1)
    variant = make_variant(variant_class(name), Place("source", 1, 2, 64, 32))
    weight, expected = variant.get_parameter(path).detach(), eval(expression)
    if distribution == "equal":
        assert (weight == expected).all()
    elif distribution == "bound":
        assert 0.9 * expected < weight.abs().max() <= expected
    else:
        assert weight.std().item() == pytest.approx(expected, rel=0.15)


def known(name, options):
    kind = variant_class(name)
    return kind.known_relations(**{**option_defaults(kind), **options})


@pytest.mark.parametrize(("name", "options", "unknown"), UNKNOWN, ids=str)
def test_it_knows_all_relations_but_these(name, options, unknown):
    relations = ["nsubj", "nsubj:pass", "SUBJ", "OBJ", "prep", "det"]
    assert unknown_relations(relations, known(name, options)) == unknown.split()


def test_relations_that_a_variant_does_not_know_are_a_warning():
    counts = {"nsubj": 500, "SUBJ": 1200, "OBJ": 60}
    prepared = SimpleNamespace(annotations=lambda: {"trees": {"relations": {"train": counts}}})
    kinds = [variant_class(name) for name in ("gcn", "gcn", "pascal")]
    variants = [SimpleNamespace(kind=kind, options=option_defaults(kind)) for kind in kinds]
    requirements = {"source": SimpleNamespace(variants=variants)}
    assert relation_warnings(requirements, prepared, {"source": "trees"}) == [
        "gcn does not know the relations of 1,260 of 1,760 words: SUBJ (1,200) and OBJ (60)"
    ]


@pytest.mark.parametrize(("name", "options"), WITHOUT_RELATIONS, ids=str)
def test_it_reads_no_relations_or_puts_the_rest_into_a_group(name, options):
    assert known(name, options) == ()


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_file_opens_with_paper_and_equation(name):
    text = inspect.getdoc(inspect.getmodule(variant_class(name)))
    assert re.search(r"[(,]\s?(?:19|20)\d\d", text), "no year of a paper"
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
