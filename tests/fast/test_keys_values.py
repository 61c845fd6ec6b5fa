"""Keys and values are stored, selected and copied like rows of a tensor, and attended as the
equation says."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from small import small_model

pytest.importorskip("synmt.fast")

from synmt.data.batch import collate_source
from synmt.fast import decoder as fast
from synmt.fast.layers import KeysValues
from synmt.fast.reduced_keys_values import ReducedKeysValues

HEADS, WIDTH = 3, 12
KINDS = [(KeysValues, 1e-5), (ReducedKeysValues, 0.03)]


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def written_out(query, keys_values, mask):
    """softmax(q kᵀ / √d + M) v, for one query of one head after the other."""
    output, size = torch.zeros(query.shape, dtype=torch.float64), WIDTH // HEADS
    for sentence, row in enumerate(keys_values.double()):
        for head in range(HEADS):
            here = slice(head * size, (head + 1) * size)
            k, v = row[:, here], row[:, WIDTH:][:, here]
            for number, q in enumerate(query[sentence, :, here].double()):
                scores = (
                    torch.stack([q @ one for one in k]) / math.sqrt(size)
                    + mask[sentence, 0, number].double()
                )
                output[sentence, number, here] = scores.softmax(0) @ v
    return output.flatten(0, 1)


def masks(*shape, seed=0):
    mask = torch.zeros(shape).masked_fill(draw(*shape, seed=seed) > 0.5, -math.inf)
    mask[..., 0] = 0.0
    return mask


@pytest.mark.parametrize(("kind", "tolerance"), KINDS)
def test_a_source_is_attended_as_the_equation_says(kind, tolerance):
    keys_values = draw(4, 5, 2 * WIDTH, seed=1)
    compare(kind.of(keys_values, HEADS), keys_values, masks(4, 1, 1, 5), tolerance)


def compare(stored, keys_values, mask, tolerance, seed=0):
    """Attend to what is stored and to the same keys and values as the equation says."""
    count = len(keys_values)
    query = draw(count, 2, WIDTH, seed=seed)
    expected = written_out(query, keys_values, mask.expand(count, 1, 2, -1))
    found = stored.attend(query, mask).double()
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize(("kind", "tolerance"), KINDS)
def test_a_target_grows_shrinks_and_forgets(kind, tolerance):
    stored = kind.empty(4, 6, WIDTH, HEADS, torch.device("cpu"))
    assert stored.places == 6
    slow = torch.zeros(4, 0, 2 * WIDTH)

    def fill(count, seed):
        nonlocal slow
        new = draw(len(slow), count, 2 * WIDTH, seed=seed)
        stored.fill(slice(slow.size(1), slow.size(1) + count), new)
        slow = torch.cat((slow, new), 1)

    def check(seed):
        mask = masks(len(slow), 1, 2, slow.size(1), seed=seed)
        compare(stored, slow, mask, tolerance, seed)

    fill(1, 1)
    check(2)
    fill(3, 3)
    check(4)
    # the last sentence moves to the place of the first one, which has left
    sentences = torch.tensor([3, 1, 2])
    stored.select(sentences, torch.tensor([0]))
    slow = slow[sentences]
    check(5)
    places = torch.tensor([[0, 2], [1, 3], [0, 1]])
    stored = stored.copied(places, 40)
    slow = torch.stack([row[chosen] for row, chosen in zip(slow, places, strict=True)])
    assert stored.places == 40
    fill(2, 6)
    check(7)


@pytest.mark.parametrize("fast_bf16", [True, False])
def test_bf16_is_stored_where_the_processor_multiplies_it(fast_bf16, monkeypatch):
    monkeypatch.setattr(fast, "multiplies", lambda precision: fast_bf16)
    model = small_model().eval()
    for precision in ("bf16", "float32"):
        decoder = fast.fast_decoder(model, precision)
        memory, _ = model.remember(collate_source([np.arange(4, 8)]), {})
        reduced = fast_bf16 and precision == "bf16"
        assert type(decoder.start(memory).source[0]) is (
            ReducedKeysValues if reduced else KeysValues
        )
