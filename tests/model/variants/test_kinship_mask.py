"""Mixtures of masks against a loop over the kin of each word."""

import pytest
import torch
from attending import assert_attends, drawn, random_trees
from walks import in_mask

from synmt.model.variants.kinship_mask import MEMBERS, KinshipMask

MASKS = ("all",), ("all", "self", "parent", "children", "siblings"), tuple(MEMBERS)[::-1]


@pytest.mark.parametrize("masks", MASKS, ids=str)
def test_it_equals_loops_over_the_kin_of_each_word(masks):
    variant = drawn(KinshipMask, masks=masks)

    def score(pair):
        shares = variant.mixture[pair.head].softmax(0)
        mixed = [
            share
            for share, name in zip(shares, masks, strict=True)
            if in_mask(name, pair.parse.parents, *pair.words)
        ]
        return pair.plain + torch.log(sum(mixed))

    assert_attends(variant, random_trees(len(masks), words=(1, 4, 7)), score)
