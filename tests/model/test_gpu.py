"""On a GPU, models compute what they compute on a CPU. Only `make gpu` runs this file."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from recording import assert_recorded_as_computed, losses_and_gradients
from searching import SEARCHES, assert_same_search, members_of, sharp
from small import batch_for, random_batch, random_example, small_model
from small_run import LSTM, PASCAL, TEXT, make_run
from stepping import LENGTHS, run_steadily
from variant_cases import CASES, RECORDED, made, without_dropout

pytest.importorskip("synmt.fast")

from synmt.decode.beam import search
from synmt.decode.next_piece import Member
from synmt.decode.options import SearchOptions
from synmt.decode.translator import Translator
from synmt.fast.decoder import fast_decoder
from synmt.fast.graphs import RecordedState
from synmt.model.device import choose_device, fixed_order
from synmt.training.loss import Objective

if not torch.cuda.is_available():
    pytest.skip("there is no GPU, or this is not `make gpu`", allow_module_level=True)

GPU = choose_device("cuda")


@pytest.mark.parametrize("recipe", CASES)
def test_losses_and_gradients_of_every_variant_equal_those_on_the_cpu(recipe):
    model = without_dropout(recipe)
    _, batch = random_batch(model, LENGTHS)
    losses, gradients = losses_and_gradients(model, batch)
    on_gpu, gradients_on_gpu = losses_and_gradients(model.to(GPU), batch.to(GPU))
    torch.testing.assert_close(on_gpu, losses, rtol=2e-3, atol=1e-4)
    torch.testing.assert_close(gradients_on_gpu, gradients, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("recipe", CASES)
def test_in_a_fixed_order_the_gradients_of_every_variant_are_the_same_bit_for_bit(recipe):
    model = made(recipe, dropout=0.1).train().to(GPU)
    batch = random_batch(model, LENGTHS)[1].to(GPU)
    with fixed_order(GPU, wanted=True):
        first, again = (losses_and_gradients(model, batch) for _ in range(2))
    torch.testing.assert_close(again, first, rtol=0, atol=0)


@pytest.mark.parametrize("recipe", RECORDED)
def test_recorded_passes_of_every_variant_equal_the_models_own(recipe):
    assert_recorded_as_computed(without_dropout(recipe).to(GPU))


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("recipe", CASES)
def test_a_training_step_of_every_variant_never_waits_for_the_gpu(recipe):
    model = made(recipe, dropout=0.1).train().to(GPU)
    batch = random_batch(model, LENGTHS)[1].to(GPU)
    losses_and_gradients(model, batch)
    try:
        torch.cuda.set_sync_debug_mode("error")
        sum(Objective(model, label_smoothing=0.1)(batch).values()).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("recipe", CASES)
def test_half_precision_is_near(recipe):
    model = without_dropout(recipe).to(GPU)
    batch = random_batch(model, LENGTHS)[1].to(GPU)
    losses, _ = losses_and_gradients(model, batch)
    near, _ = losses_and_gradients(model, batch, "bf16")
    torch.testing.assert_close(near["loss"], losses["loss"], rtol=0.02, atol=0.0, check_dtype=False)


@pytest.mark.parametrize("positions", ["sinusoid", "rotary", "alibi"])
@pytest.mark.parametrize("options", SEARCHES)
def test_a_recorded_search_finds_what_is_found_on_the_cpu(options, positions):
    model = sharp(positions=positions)
    batch = batch_for(
        model, [random_example(words, np.random.default_rng(words)) for words in LENGTHS * 4]
    )
    limits = torch.tensor([9, 14, 4, 12, 60, 6] * 4)
    expected = search(members_of(batch, model), SearchOptions(**options), limits=limits)
    member = Member(model.to(GPU), batch.to(GPU).source, {}, fast_decoder(model, recorded=True))
    found = search([member], SearchOptions(**options), limits=limits)
    assert not RecordedState.failed
    assert_same_search(found, expected, tolerance=1e-3)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_recorded_steps_are_replayed(precision):
    def near(again, logits):
        assert (again - logits).abs().max() < (
            1e-4 if precision == "float32" else 0.05 * logits.abs().max()
        )

    model = small_model().eval().to(GPU)
    state = run_steadily(model, fast_decoder(model, precision, recorded=True), near)
    assert state.graph is not None
    assert not RecordedState.failed


LATENT = {"name": "latent_tree"}
# as pretrained ones are: six layers, width 512
BASE = {"size": "base", "positions": "vaswani", "feed_forward": "swish", "output_bias": True}


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize(
    ("variant", "model"),
    [
        *[((), {}), ((PASCAL,), {}), (({"name": "relative", "side": "target"},), {})],
        *[((LATENT,), {"model": LSTM}), ((PASCAL,), {"model": BASE})],
    ],
)
def test_a_run_translates_as_on_the_cpu(variant, model, precision, tmp_path):
    run = make_run(tmp_path / "run", *variant, **model)
    on_cpu, on_gpu = (
        Translator.load(run, device=device, precision=precision) for device in ("cpu", "cuda")
    )
    expected, found = (list(translator.translate(TEXT)) for translator in (on_cpu, on_gpu))
    scores = [one.best.score for one in found]
    assert scores == pytest.approx(
        [one.best.score for one in expected], abs=1e-3 if precision == "float32" else 0.3
    )
    if precision == "float32":
        assert [one.text for one in found] == [one.text for one in expected]
