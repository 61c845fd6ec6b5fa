"""Keys and values are stored, selected and copied like rows of a tensor, and attended as the
equation says."""

from __future__ import annotations

import math

import pytest
import torch
from small import small_model
from stepping import started

pytest.importorskip("synmt.fast")

from synmt.fast import decoder as fast
from synmt.fast.keys_values import KeysValues, MultipliedKeysValues

HEADS, WIDTH = 3, 12
KINDS = [
    (KeysValues, torch.float32, 1e-5),
    (MultipliedKeysValues, torch.float32, 1e-5),
    (MultipliedKeysValues, torch.bfloat16, 0.03),
]


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def written_out(query, keys_values, mask):
    """softmax(q kᵀ / √d + M) v."""
    q = query.double().unflatten(-1, (HEADS, -1))  # (B, T, H, d)
    k, v = keys_values.double().unflatten(-1, (2, HEADS, -1)).unbind(2)  # (B, S, H, d)
    scores = torch.einsum("bthd,bshd->bhts", q, k) / math.sqrt(WIDTH / HEADS) + mask.double()
    return torch.einsum("bhts,bshd->bthd", scores.softmax(-1), v).reshape(-1, WIDTH)


def masks(*shape, seed=0):
    mask = torch.zeros(shape).masked_fill(draw(*shape, seed=seed) > 0.5, -math.inf)
    mask[..., 0] = 0.0
    return mask


def compare(stored, keys_values, mask, tolerance):
    """Attend to what is stored and to the same keys and values as the equation says."""
    query = draw(len(keys_values), 2, WIDTH)
    found = stored.attend(query, stored.bias(mask)).double()
    torch.testing.assert_close(found, written_out(query, keys_values, mask), atol=tolerance, rtol=0)


@pytest.mark.parametrize(("kind", "dtype", "tolerance"), KINDS)
def test_a_target_grows_shrinks_and_forgets(kind, dtype, tolerance):
    slow = torch.zeros(4, 0, 2 * WIDTH)
    stored = kind.empty(4, HEADS, 16, WIDTH, dtype, slow)

    def fill(count):
        nonlocal slow
        rows, begin = slow.shape[:2]
        new = draw(rows, count, 2 * WIDTH, seed=begin)
        stored.fill(slice(begin, begin + count), new)
        slow = torch.cat((slow, new), 1)
        for queries in (1, 2):
            compare(stored, slow, masks(rows, 1, queries, begin + count), tolerance)

    assert stored.places == 16
    fill(1)
    fill(3)
    # the last sentence moves to the place of the first one, which has left
    sentences = torch.tensor([3, 1, 2])
    stored.select(sentences, torch.tensor([0]))
    slow = slow[sentences]
    fill(1)
    places = torch.tensor([[0, 2], [1, 3], [0, 1]])
    stored = stored.copied(places, 40)
    slow = torch.stack([row[chosen] for row, chosen in zip(slow, places, strict=True)])
    assert stored.places == 40
    fill(2)


@pytest.mark.parametrize("fast_bf16", [True, False])
def test_bf16_is_stored_where_the_processor_multiplies_it(fast_bf16, monkeypatch):
    monkeypatch.setattr(fast, "multiplies", lambda precision: fast_bf16)
    model = small_model().eval()
    for precision in ("bf16", "float32"):
        stored = started(model, fast.fast_decoder(model, precision)).source[0].stored
        assert (stored.dtype == torch.bfloat16) == (fast_bf16 and precision == "bf16")
