"""What a recipe may not say about each variant of a paper, and the message that refuses it."""

import pytest
from small import small_model

from synmt.errors import UsageError

REFUSED = {
    "pascal": [
        ({"variance": 0}, "variance: must be more than 0, not 0"),
        ({"ignore": 1.5}, "ignore: must be 1 or less, not 1.5"),
        ({"side": "target"}, "pascal cannot be used on the target side. side: source"),
        ({"heads": 5}, "5 heads of layer 1, but 4 of 4 are free"),
        ({"layers": [3]}, "no layer 3"),
        ({"varience": 2}, "Did you mean 'variance'?"),
        ({"layer": 1}, "Did you mean 'layers'?"),
        ({"combine": "divide"}, "'multiply' or 'add'"),
        (
            {"shape": "parent_only", "variance": 4},
            "pascal of shape parent_only has no Gaussian. Leave out `variance`",
        ),
    ],
    "lisa": [
        ({"side": "target"}, "lisa cannot be used on the target side. side: source"),
        ({"heads": 5}, "5 heads of layer 1, but 4 of 4 are free"),
        ({"slope": 0.1}, "no option 'slope'"),
    ],
    "deps_san": [
        ({"layers": [1], "variance": 0}, "variance: must be more than 0, not 0"),
        ({"layers": [1], "resample": 1.5}, "resample: must be 1 or less, not 1.5"),
        ({"layers": [1], "resample": -0.1}, "resample: must be 0 or more, not -0.1"),
        (
            {"layers": [1], "fill": 3},
            "deps_san replaces no distance by `fill`. Set `resample`, or leave out `fill`",
        ),
        ({"layers": [1], "fill": -1}, "fill: must be 0 or more, not -1"),
        ({"layers": [1], "window": -1}, "window: must be 0 or more, not -1"),
        (
            {"layers": [1], "side": "target"},
            "deps_san cannot be used on the target side. side: source",
        ),
        ({"layers": [1], "combine": "divide"}, "'multiply', 'add' or 'weights'"),
        ({"layers": [1], "windw": 6}, "Did you mean 'window'?"),
        ({"layers": [3]}, "no layer 3"),
    ],
    "distance_mask": [
        (
            {"reach": [2, 10**30]},
            "reach: an option is at most 1048576, not [2, 1000000000000000000000000000000]",
        ),
        ({"reach": [0]}, "reach: must be more than 0, not [0]"),
        ({"reach": [1, 2, 3]}, "3 reaches for 4 heads of layer 1"),
        ({"reach": []}, "0 reaches for 4 heads of layer 1"),
        ({"side": "target"}, "distance_mask cannot be used on the target side. side: source"),
        ({"own": "yes"}, "own: must be true or false"),
    ],
    "kinship_mask": [
        ({"masks": ["self", "parent"]}, "lacks `all`, so that rows could have no key"),
        ({"masks": ["all", "parent", "parent"]}, "names a mask twice"),
        ({"masks": []}, "lacks `all`"),
        ({"masks": ["all", "uncle"]}, "masks: must be 'all', 'self'"),
        ({"side": "target"}, "kinship_mask cannot be used on the target side. side: source"),
    ],
    "depth_relative": [
        ({"reach": 0}, "reach: must be more than 0, not 0"),
        ({"values": "no"}, "values: must be true or false"),
        ({"side": "target"}, "depth_relative cannot be used on the target side. side: source"),
    ],
    "graph_relations": [
        ({"labelled": 1}, "labelled: must be true or false"),
        ({"labels": False}, "Did you mean 'labelled'?"),
        ({"side": "target"}, "graph_relations cannot be used on the target side. side: source"),
    ],
    "path_relations": [
        ({"longest": 0}, "longest: must be 1 or more, not 0"),
        ({"longest": 9}, "longest: must be 8 or less, not 9"),
        ({"dropout": 1}, "dropout: must be less than 1"),
        ({"side": "target"}, "path_relations cannot be used on the target side. side: source"),
    ],
    "structural_positions": [
        ({"reach": 0}, "reach: must be more than 0, not 0"),
        ({"values": "no"}, "values: must be true or false"),
        (
            {"side": "target"},
            "structural_positions cannot be used on the target side. side: source",
        ),
    ],
    "scene_mask": [
        ({}, "there is no layer 4"),
        (
            {"layers": [1], "side": "target"},
            "scene_mask cannot be used on the target side. side: source",
        ),
    ],
    "structural_depth": [
        ({"heads": 2}, "owns no heads"),
        ({"layers": [2]}, "acts once, not in every layer"),
        ({"side": "target"}, "structural_depth cannot be used on the target side. side: source"),
    ],
    "context": [
        ({"side": "target"}, "side: source"),
        ({"kind": "wide"}, "'global', 'deep' or 'deep_global'"),
        ({"layers": [3]}, "no layer 3"),
    ],
    "dbsa": [
        ({}, "no layer 4"),
        ({"layers": [1], "heads": 5}, "5 heads of layer 1, but 4 of 4 are free"),
        ({"layers": [1], "gain": 2}, "no option 'gain'"),
    ],
    "localness": [
        ({"layers": [1], "size": 0}, "size: must be 0.1 or more, not 0"),
        ({"layers": [1], "size": -3}, "size: must be 0.1 or more, not -3"),
        (
            {"layers": [1], "size": 5},
            "localness predicts the window `query`. Leave out `size`, or set `window: fixed`",
        ),
        ({"layers": [1], "window": "head"}, "'fixed', 'layer' or 'query'"),
        ({"layers": [1], "side": "target"}, "cannot be used on the target side. side: source"),
        ({"layers": [1], "sise": 10}, "Did you mean 'size'"),
        ({"layers": [3]}, "no layer 3"),
    ],
    "relative": [
        ({"reach": 0}, "reach: must be more than 0, not 0"),
        ({"values": False, "shared": True}, "no table to share"),
        ({"reach": 2.5}, "reach: "),
        (
            {"reach": 2**62},
            "syntax.variants.0.reach: an option is at most 1048576, not 4611686018427387904",
        ),
        ({"range": 4}, "no option 'range'"),
    ],
    "tag_embedding": [
        ({"size": 0}, "syntax.variants.0.size: must be more than 0, not 0"),
        ({"size": 17}, "1 to 16"),
        ({"size": 2.5}, "size: must be a whole number"),
        ({"size": 4, "features": {"tag": 3}}, "`size` of tag_embedding is for the relation alone"),
        ({"layers": [2]}, "acts once, not in every layer. layers: [1]"),
        ({"layers": "all"}, "acts once, not in every layer. layers: [1]"),
        ({"side": "target"}, "side: source"),
        ({"heads": 2}, "owns no heads"),
        ({"relations": ["nsubj", "obj", "nsubj"]}, "relation 'nsubj' is listed twice"),
        ({"relations": "nsubj"}, "relations: must be a list such as [a, b]"),
        ({"sise": 3}, "Did you mean 'size'?"),
    ],
    "dependency_distribution": [
        ({}, "has 16 groups, one for each head, but owns 4 heads of layer 1"),
        (
            {"kind": "uldd"},
            "Use 16 heads (`heads: 16`) of a layer with as many or more (`model.encoder_heads: "
            "[16, …]`)",
        ),
        (
            {"groups": [["nsubj"], ["obj"]]},
            "has 2 groups, one for each head, but owns 4 heads of layer 1",
        ),
        ({"groups": [["nsubj"], ["obj"]], "heads": 1}, "or name 1 groups"),
        ({"groups": []}, "`groups` is empty"),
        ({"groups": [["nsubj"], []], "heads": 2}, "group 2 names no relation"),
        (
            {"groups": [["nsubj"], ["obj", "nsubj"]], "heads": 2},
            "relation 'nsubj' is in groups 1 and 2",
        ),
        ({"groups": "universall"}, "groups: must be 'universal' or 'stanford'"),
        ({"groups": [["nsubj", 3]]}, "syntax.variants.0.groups: "),
        (
            {"kind": "udp", "groups": "stanford"},
            "kind udp sums over all relations. Leave out `groups`",
        ),
        ({"kind": "udp", "softmax": True}, "is for kind lda; udp has one anyway"),
        ({"kind": "lld"}, "'ldd', 'lda', 'ldp', 'udp', 'udd', 'uldd' or 'uudd'"),
        ({"kind": "udp", "side": "target"}, "side: source"),
        ({"splitt": True}, "Did you mean 'split'?"),
    ],
    "latent_tree": [
        ({"sets": 10**30}, "sets: must be a smaller number, not 1000"),
        ({"sets": 1, "attention": "separate"}, "one set"),
        # a second layer would undo the first
        ({"layers": [1, 2]}, "once"),
        ({"side": "target"}, "cannot be used on the target side. side: source"),
    ],
    "gcn": [
        ({"depth": 0}, "depth: must be more than 0, not 0"),
        ({"depth": 10**9}, "depth: must be 1000 or less, not 1000000000"),
        ({"edge_dropout": 1}, "edge_dropout: must be less than 1, not 1"),
        ({"residual": 1}, "residual: must be true or false"),
        ({"layers": [2]}, "acts once, not in every layer. layers: [1]"),
        ({"side": "target"}, "cannot be used on the target side. side: source"),
    ],
    "latent_graph": [
        ({"loss_weight": 2}, "latent_graph has no auxiliary loss. Leave out `loss_weight`"),
        (
            {"supervised": True, "loss_steps": [3, 2]},
            "`loss_steps` are the first and the last step",
        ),
        ({"supervised": "yes"}, "supervised: must be true or false"),
        ({"layers": [2]}, "acts once, not in every layer. layers: [1]"),
        ({"side": "target"}, "cannot be used on the target side. side: source"),
    ],
    "tree_planting": [
        ({}, "there is no layer 6. This model has layers 1 to 2"),
        ({"layers": [1], "heads": 5}, "tree_planting needs 5 heads of layer 1"),
        ({"layers": [1], "weight": 0.5}, "has no option 'weight'"),
    ],
    "tree_attention": [({"side": "target"}, "cannot be used on the target side. side: source")],
}
CASES = [(name, options, message) for name, cases in REFUSED.items() for options, message in cases]


@pytest.mark.parametrize(("name", "options", "message"), CASES, ids=str)
def test_a_recipe_that_a_variant_cannot_follow_is_refused(name, options, message):
    model = {"architecture": "lstm"} if name in ("latent_tree", "latent_graph") else {}
    with pytest.raises(UsageError) as error:
        small_model({"name": name, **options}, **model)
    assert message in str(error.value)
