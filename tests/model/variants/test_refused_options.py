"""What a recipe may not say about each variant of a paper, and the message that refuses it."""

import re

import pytest
from refusing import assert_refused
from small import small_model

from synmt.model.build import variant_class, variant_names
from synmt.recipe.yaml_text import parse_yaml_value

# below each variant its options, and words of the message
REFUSED = """
pascal
  variance: 0 -> variance: must be greater than 0, not 0
  ignore: 1.5 -> ignore: must be less than or equal to 1, not 1.5
  heads: 5 -> 5 heads of layer 1, but 4 of them are free
  varience: 2 -> Did you mean 'variance'?
  layer: 1 -> Did you mean 'layers'?
  combine: divide -> 'multiply' or 'add'
lisa
  heads: 5 -> 5 heads of layer 1, but 4 of them are free
  slope: 0.1 -> slope:
deps_san
  layers: [1], variance: 0 -> variance: must be greater than 0, not 0
  layers: [1], resample: 1.5 -> resample: must be less than or equal to 1, not 1.5
  layers: [1], resample: -0.1 -> resample: must be greater than or equal to 0, not -0.1
  fill: -1, layers: [1] -> fill: must be greater than or equal to 0, not -1
  layers: [1], window: -1 -> window: must be greater than or equal to 0, not -1
  combine: divide, layers: [1] -> 'multiply', 'add' or 'weights'
  layers: [1], windw: 6 -> Did you mean 'window'?
distance_mask
  reach: [0] -> reach: must be greater than 0, not [0]
  reach: [1, 2, 3] -> 3 reaches for 4 heads of layer 1
  reach: [] -> 0 reaches for 4 heads of layer 1
  own: 'yes' -> own: must be a valid boolean
kinship_mask
  masks: [self, parent] -> lacks `all`, so that rows could have no key
  masks: [all, parent, parent] -> names a mask twice
  masks: [] -> lacks `all`
  masks: [all, uncle] -> masks: must be 'all', 'self'
depth_relative
  reach: 0 -> reach: must be greater than 0, not 0
  values: 'no' -> values: must be a valid boolean
graph_relations
  labelled: 1 -> labelled: must be a valid boolean
  labels: false -> Did you mean 'labelled'?
path_relations
  longest: 0 -> longest: must be greater than or equal to 1, not 0
  longest: 9 -> longest: must be less than or equal to 8, not 9
  dropout: 1 -> dropout: must be less than 1
structural_positions
  reach: 0 -> reach: must be greater than 0, not 0
  values: 'no' -> values: must be a valid boolean
scene_mask
   -> this model has layers 1 to
structural_depth
  heads: 2 -> owns no heads
  layers: [2] -> acts once, not in every layer
context
  kind: wide -> 'global', 'deep' or 'deep_global'
dbsa
   -> this model has layers 1 to
  heads: 5, layers: [1] -> 5 heads of layer 1, but 4 of them are free
  gain: 2, layers: [1] -> gain:
localness
  layers: [1], size: 0 -> size: must be greater than or equal to 0.1, not 0
  layers: [1], size: -3 -> size: must be greater than or equal to 0.1, not -3
  layers: [1], window: head -> 'fixed', 'layer' or 'query'
  layers: [1], sise: 10 -> Did you mean 'size'
relative
  reach: 0 -> reach: must be greater than 0, not 0
  shared: true, values: false -> no table to share
  reach: 2.5 -> reach: must be
  range: 4 -> range:
tag_embedding
  size: 0 -> syntax.variants.0.size: must be greater than 0, not 0
  size: 17 -> 1 to 16
  size: 2.5 -> size: must be a valid integer
  layers: [2] -> acts once, not in every layer
  layers: all -> acts once, not in every layer
  heads: 2 -> owns no heads
  relations: [nsubj, obj, nsubj] -> relation 'nsubj' is listed twice
  relations: nsubj -> relations: must be a valid
  sise: 3 -> Did you mean 'size'?
dependency_distribution
   -> has 16 groups, one for each head, but owns 4 heads of layer 1
  kind: uldd -> Use 16 heads (`heads: 16`) of a layer with as many or more (`model.encoder_heads: [1
  groups: [[nsubj], [obj]] -> has 2 groups, one for each head, but owns 4 heads of layer 1
  groups: [[nsubj], [obj]], heads: 1 -> or name 1 groups
  groups: [] -> `groups` is empty
  groups: [[nsubj], []], heads: 2 -> group 2 names no relation
  groups: [[nsubj], [obj, nsubj]], heads: 2 -> relation 'nsubj' is in groups 1 and 2
  groups: universall -> groups: must be 'universal' or 'stanford'
  groups: [[nsubj, 3]] -> syntax.variants.0.groups: must be
  kind: lld -> 'ldd', 'lda', 'ldp', 'udp', 'udd', 'uldd' or 'uudd'
  splitt: true -> Did you mean 'split'?
latent_tree
  sets: 1000000000000000000000000000000 -> sets:
  layers: [1, 2] -> once
gcn
  depth: 0 -> depth: must be greater than 0, not 0
  depth: 1000000000 -> depth: must be less than or equal to 1000, not 1000000000
  edge_dropout: 1 -> edge_dropout: must be less than 1, not 1
  residual: 1 -> residual: must be a valid boolean
  layers: [2] -> acts once, not in every layer
latent_graph
  loss_weight: 2 -> latent_graph has no auxiliary loss. Leave out
  loss_steps: [3, 2], supervised: true -> the first step comes after the last one
  supervised: 'yes' -> supervised: must be a valid boolean
  layers: [2] -> acts once, not in every layer
tree_planting
   -> has `layers` [6]; this model has layers 1 to 2
  heads: 5, layers: [1] -> tree_planting needs 5 heads of layer 1
  layers: [1], weight: 0.5 -> weight:
"""
LSTMS = ("latent_tree", "latent_graph")


def cases():
    name = ""
    for line in REFUSED.strip().splitlines():
        options, _, message = line.partition(" -> ")
        if message:
            yield name, options.strip(), message
        else:
            name = line


def assert_invalid(message, name, **options):
    model = {"architecture": "lstm"} if name in LSTMS else {}
    assert_refused(re.escape(message), small_model, {"name": name, **options}, **model)


@pytest.mark.parametrize(("name", "options", "message"), list(cases()))
def test_a_recipe_that_a_variant_cannot_follow_is_refused(name, options, message):
    assert_invalid(message, name, **parse_yaml_value(f"{{{options}}}"))


@pytest.mark.parametrize("name", variant_names())
def test_sides_and_layers_that_a_variant_or_model_does_not_have_are_refused(name):
    kind = variant_class(name)
    if "target" not in kind.sides:
        message = f"{name} cannot be used on the target side"
        assert_invalid(message, name, side="target", layers=[1])
    assert_invalid("has `layers` [3]", name, layers=[3])
