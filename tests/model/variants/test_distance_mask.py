"""GATE's heads against a loop over softmax weights that are masked and divided by distances."""

from dataclasses import replace

import pytest
import torch
from attending import PLACE, assert_attends, drawn, random_trees

from synmt.model.variants.distance_mask import DistanceMask


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(("heads", "reach"), [(2, (1, 2)), (2, (3,)), (4, (2, 7))])
def test_it_equals_weights_masked_divided_and_rescaled(heads, reach, own):
    share = heads // len(reach)

    def sees(pair):
        near = pair.distance <= reach[pair.head // share] and (own or pair.distance > 0)
        return near and min(pair.words) >= 0

    def score(pair):
        keys = [replace(pair, j=j) for j in range(len(pair.word_of))]
        # a row without a key attends to itself
        if sees(pair) if any(map(sees, keys)) else pair.i == pair.j:
            return torch.log(torch.exp(pair.plain) / max(pair.distance, 1))
        return torch.tensor(-torch.inf)

    variant = drawn(DistanceMask, replace(PLACE, heads=heads), reach=reach, own=own)
    assert_attends(variant, random_trees(reach[-1], words=(1, 4, 6, 2)), score)
