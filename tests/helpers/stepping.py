"""Shared by the tests of decoders: the logits of a model's own steps next to those of a decoder
that replaces them."""

from __future__ import annotations

import numpy as np
import torch
from small import random_batch

from synmt.data.batch import collate_source
from synmt.speed import fast

LENGTHS = [3, 9, 1, 5, 7, 2]
GPU_LIKE = torch.device("meta")


def fast_decoder(model, precision="float32", *, recorded=False):
    """Pack the decoder of a model; without the wing, and where it has no decoder for a model, it is
    the model."""
    wing = fast("decoder")
    return (wing.fast_decoder(model, precision, recorded=recorded) if wing else None) or model


def started(model, decoder):
    """Begin to decode two sentences with a decoder of a model."""
    return decoder.start(model.remember(collate_source([np.arange(4, 12)] * 2), {})[0])


def both_steps(model, precision="float32", steps=13, **options):
    """Yield the logits of the model's step and of the fast one, while hypotheses are reordered and
    sentences leave."""
    source = collate_source([np.arange(4, 4 + length) for length in LENGTHS[:3]])
    decoder, random = fast_decoder(model, precision, **options), torch.Generator().manual_seed(1)
    with torch.inference_mode():
        memory, _ = model.remember(source, {})
        slow, fast, beams, sentences = model.start(memory), decoder.start(memory), 1, 3
        for step in range(steps):
            pieces = torch.randint(4, 40, (sentences, beams), generator=random)
            yield model.predict(slow, pieces), decoder.predict(fast, pieces)
            remaining = torch.tensor([2, 0]) if step == 5 else None
            sentences = 2 if step >= 5 else 3
            wanted = (4, 4, 2, 4, 5, 4)[step % 6]
            chosen = torch.randint(0, beams, (sentences, wanted), generator=random)
            slow.select(remaining, chosen)
            fast.select(remaining, chosen)
            beams = wanted


def run_steadily(model, decoder, check, steps=50, beams=4):
    """Check the logits of each fast step against those of the model's own; the beams stay as many.
    Return the state."""
    device = model.output_weight.device
    _, batch = random_batch(model, [5, 2])
    with torch.inference_mode():
        memory, _ = model.remember(batch.to(device).source, {})
        slow, fast = model.start(memory), decoder.start(memory)
        for step in range(steps):
            random = torch.Generator().manual_seed(step)
            pieces = torch.randint(4, 40, (2, beams if step else 1), generator=random)
            chosen = torch.randint(0, pieces.size(1), (2, beams), generator=random)
            check(decoder.predict(fast, pieces.to(device)), model.predict(slow, pieces.to(device)))
            slow.select(None, chosen.to(device))
            fast.select(None, chosen.to(device))
    return fast


def assert_equal_steps(model, steps=13):
    """Compare all logits of both."""
    for slow, quick in both_steps(model, steps=steps):
        torch.testing.assert_close(quick, slow, atol=2e-5, rtol=1e-5)


def assert_predicts_alike(model, signals=True):
    """Compare the decoder that a search uses with the model's own steps on a batch: the decoder is
    another one."""
    _, batch = random_batch(model, [4, 2])
    decoder = model.predictor()
    with torch.inference_mode():
        memory, _ = model.remember(batch.source, batch.source_signals if signals else {})
        slow, fast = model.start(memory), decoder.start(memory)
        for pieces in batch.target_input.T[:4]:
            torch.testing.assert_close(
                decoder.predict(fast, pieces[:, None]), model.predict(slow, pieces[:, None])
            )
    return decoder
