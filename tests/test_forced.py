"""Forced decoding against the softmax of one target prefix after the other."""

import numpy as np
import pytest
import torch
from small import small_model

from synmt.batch import collate
from synmt.corpus import Example
from synmt.decode.forced import force
from synmt.syntax.pieces import BOS, EOS

SOURCES = [[4, 5, 6], [7, 8, 9, 10, 11], [5]]
TARGETS = [[6, 5], [9, 4, 8], []]


def examples():
    pairs = zip(SOURCES, TARGETS, strict=True)
    return [
        Example(line, np.array(one), np.array(other, dtype=np.int64), {}) for line, (one, other) in enumerate(pairs)
    ]


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_each_piece_has_the_probability_that_its_prefix_gives_it(architecture):
    model = small_model(architecture=architecture).double().eval()
    for example, forced in zip(examples(), force(model, collate(examples())), strict=True):
        expected = []
        with torch.inference_mode():
            batch = collate([example])
            memory, _ = model.remember(batch.source, {})
            prefix = [BOS]
            for piece in [*example.target.tolist(), EOS]:
                logits = model.decode(memory, torch.tensor([prefix]))[0, -1] @ model.output_weight.T
                expected.append(logits[piece].item() - logits.exp().sum().log().item())
                prefix.append(piece)
        np.testing.assert_allclose(forced.log_probabilities, expected, atol=1e-6)
        assert forced.log_probability == pytest.approx(sum(expected), abs=1e-5)


@pytest.mark.parametrize(("architecture", "heads"), [("transformer", 8), ("lstm", 1)])
def test_attention_to_the_source_sums_to_one_and_is_that_of_the_pair_alone(architecture, heads):
    model = small_model(architecture=architecture).eval()
    together = force(model, collate(examples()), attention=True)
    for example, forced in zip(examples(), together, strict=True):
        [alone] = force(model, collate([example]), attention=True)
        assert len(forced.cross) == heads
        for place, weights in forced.cross.items():
            assert weights.shape == (len(example.target) + 1, len(example.source) + 1)
            np.testing.assert_allclose(weights.sum(1), 1, atol=1e-6)
            np.testing.assert_allclose(weights, alone.cross[place], atol=1e-6)
            assert architecture != "lstm" or not weights[:, -1].any()
