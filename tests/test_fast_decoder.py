"""The fast step computes what the model's own step does: at every step, for every shape, with and without oneDNN."""

from __future__ import annotations

import logging
from collections import Counter

import numpy as np
import pytest
import torch
from searching import SEARCHES, assert_same_search, members_of, sharp
from small import random_batch, small_model
from torch.utils._python_dispatch import TorchDispatchMode

from synmt.data.batch import collate_source
from synmt.decode import beam, sampling
from synmt.decode.beam import search
from synmt.decode.hypotheses import best_sums, looks
from synmt.decode.inputs import in_workers, workers
from synmt.decode.next_piece import Member
from synmt.decode.options import Sampling, SearchOptions
from synmt.errors import UsageError
from synmt.fast import packed
from synmt.fast.decoder import fast_decoder
from synmt.fast.linear import linear
from synmt.fast.packed import PackedLinear, reduce_layers, usable_precision
from synmt.fast.quantized import multiplies_int8

LENGTHS = [3, 9, 1, 5, 7, 2]
INT8 = pytest.param(
    "int8", marks=pytest.mark.skipif(not multiplies_int8(), reason="this processor has no instructions for int8")
)
GPU_LIKE = torch.device("meta")


def both_steps(model, precision="float32", steps=13, **options):
    """Yield the logits of the model's step and of the fast one, while hypotheses are reordered and sentences leave."""
    source = collate_source([np.arange(4, 4 + length) for length in LENGTHS[:3]])
    decoder, random = fast_decoder(model, precision, **options), torch.Generator().manual_seed(1)
    with torch.inference_mode():
        memory, _ = model.remember(source, {})
        slow, fast, beams, sentences = model.start(memory), decoder.start(memory), 1, 3
        for step in range(steps):
            pieces = torch.randint(4, 40, (sentences, beams), generator=random)
            yield linear(model.step(slow, pieces), model.output_weight), decoder.step(fast, pieces)
            remaining = torch.tensor([2, 0]) if step == 5 else None
            sentences = 2 if step >= 5 else 3
            wanted = (4, 4, 2, 4, 5, 4)[step % 6]
            chosen = torch.randint(0, beams, (sentences, wanted), generator=random)
            slow.select(remaining, chosen)
            fast.select(remaining, chosen)
            beams = wanted


def run_steadily(model, decoder, check, steps=50, beams=4):
    """Check the logits of each fast step against those of the model's own; the beams stay as many. Return the state."""
    device = model.output_weight.device
    _, batch = random_batch(model, [5, 2])
    with torch.inference_mode():
        memory, _ = model.remember(batch.to(device).source, {})
        slow, fast = model.start(memory), decoder.start(memory)
        for step in range(steps):
            pieces = torch.randint(4, 40, (2, beams if step else 1), generator=torch.Generator().manual_seed(step))
            chosen = torch.randint(0, pieces.size(1), (2, beams), generator=torch.Generator().manual_seed(step))
            logits = model.step(slow, pieces.to(device)) @ model.output_weight.T
            check(decoder.step(fast, pieces.to(device)), logits)
            slow.select(None, chosen.to(device))
            fast.select(None, chosen.to(device))
    return fast


def assert_equal_steps(model, steps=13):
    for slow, fast in both_steps(model, steps=steps):
        torch.testing.assert_close(fast, slow, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("embeddings", ["shared", "tied", "separate"])
def test_the_fast_step_computes_what_the_models_step_does(norm, embeddings):
    assert_equal_steps(small_model(norm=norm, embeddings=embeddings).eval(), steps=8)


@pytest.mark.parametrize("shape", [{"decoder_layers": 1}, {"heads": 2, "feedforward_dim": 24}, {"decoder_layers": 3}])
def test_the_fast_step_has_the_shape_of_the_model(shape):
    assert_equal_steps(small_model(**shape).eval())


def test_without_the_operators_of_onednn_the_fast_step_is_written_out(monkeypatch):
    monkeypatch.setattr(packed, "can_pack", lambda dtype: False)
    assert_equal_steps(small_model().eval())


def test_the_fast_step_goes_beyond_the_table_of_positions():
    model = small_model().eval()
    model.target_embedding.positions = model.target_embedding.positions[:4]
    assert_equal_steps(model)


@pytest.mark.parametrize("positions", ["sinusoid", "rotary", "alibi"])
def test_places_that_nobody_sees_any_more_are_forgotten(positions):
    model = small_model(positions=positions).eval()
    assert_equal_steps(model, steps=60)
    decoder = fast_decoder(model)
    with torch.inference_mode():
        memory, _ = model.remember(collate_source([np.arange(4, 12)] * 2), {})
        state = decoder.start(memory)
        for beams in [1] + [4] * 59:
            decoder.step(state, torch.full((2, beams), 7))
            # all continue from the first one
            state.select(None, torch.zeros(2, 4, dtype=torch.long))
    assert state.length == 60
    assert 60 <= state.seen.size(2) <= 128 < 1 + 4 * 59


@pytest.mark.parametrize("precision", ["bf16", INT8])
def test_lower_precisions_are_near(precision):
    for slow, fast in both_steps(small_model().eval(), precision):
        assert 0 < (slow - fast).abs().max() < 0.05 * slow.abs().max()


def test_the_penalties_of_alibi_keep_their_digits_in_bf16():
    model = small_model(positions="alibi").eval()
    decoder = fast_decoder(model)
    with torch.inference_mode():
        memory, _ = model.remember(collate_source([np.arange(4, 12)]), {})
        state = decoder.start(memory)
        # as after 200 pieces
        state.seen, state.steps, state.position = torch.zeros(1, 1, 200), torch.arange(200)[None], 199
        exact = decoder._layers[0]._seen(state)
    scores = torch.randn(exact.shape, generator=torch.Generator().manual_seed(1)).bfloat16()
    rounded = (scores + exact.bfloat16()).float().softmax(-1)
    assert ((scores.float() + exact).softmax(-1) - rounded).abs().sum(-1).max() < 0.01


def test_only_a_plain_decoder_of_a_transformer_has_a_fast_step():
    assert fast_decoder(small_model({"name": "pascal"}).eval()) is not None
    assert fast_decoder(small_model({"name": "relative", "side": "target"}).eval()) is None
    assert fast_decoder(small_model(architecture="lstm").eval()) is None


@pytest.mark.parametrize("options", SEARCHES)
def test_a_search_finds_the_same_with_the_fast_step_and_if_it_rarely_looks(options, monkeypatch):
    model = sharp()
    _, batch = random_batch(model, LENGTHS)
    limits = torch.tensor([9, 14, 4, 12, 20, 6])
    slow = search(members_of(batch, model), SearchOptions(**options), limits=limits)
    member = Member(model, batch.source, {}, fast_decoder(model))
    for _ in range(2):
        found = search([member], SearchOptions(**options), limits=limits)
        assert_same_search(found, slow)
        # the second time, sentences that are done stay until the next look, as on a GPU
        monkeypatch.setattr(beam, "looks", lambda device: looks(GPU_LIKE))
        monkeypatch.setattr(sampling, "looks", lambda device: looks(GPU_LIKE))


class _Counting(TorchDispatchMode):
    """Counts the operators that wait for a device."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket._qualified_op_name
        if name in ("aten::_local_scalar_dense", "aten::item", "aten::nonzero", "aten::masked_select"):
            self.counts[name] += 1
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", [{"beam_size": 4}, {"sampling": Sampling(top_k=5)}])
def test_on_a_gpu_a_search_waits_for_the_device_once_in_eight_steps(kind, monkeypatch):
    for module in (beam, sampling):
        monkeypatch.setattr(module, "looks", lambda device: looks(GPU_LIKE))
    model = small_model().eval()
    with torch.no_grad():
        # it never ends before the limit
        model.output_weight[3] = -model.output_weight.mean(0) * 100
    _, batch = random_batch(model, LENGTHS)
    steps = 16
    limits = torch.full((len(LENGTHS),), steps)
    with _Counting() as counting:
        search([Member(model, batch.source, {}, fast_decoder(model))], SearchOptions(**kind), limits=limits)
    waits = counting.counts.total()
    assert set(counting.counts) <= {"aten::_local_scalar_dense", "aten::item"}
    assert 1 <= waits <= steps // 8 + 1


@pytest.mark.parametrize("kind", [{"beam_size": 4}, {"sampling": Sampling(top_k=5)}])
def test_no_step_of_a_search_copies_numbers_to_the_device(kind, monkeypatch):
    _, batch = random_batch(model := small_model().eval(), LENGTHS)
    member, calls = Member(model, batch.source, {}, fast_decoder(model)), []
    monkeypatch.setattr(
        torch, "tensor", lambda *args, made=torch.tensor, **options: calls.append(1) or made(*args, **options)
    )
    for steps in (4, 12):
        search([member], SearchOptions(**kind), limits=torch.full((len(LENGTHS),), steps))
        calls.append(0)
    before, after = "".join(map(str, calls)).split("0")[:2]
    assert before == after


def test_sentences_that_are_done_leave_in_groups_of_four():
    look = looks(torch.device("cpu"))
    leaving, remaining = look(torch.tensor([False, True] * 6))
    # who remains keeps its place if it can; the last ones take the free places
    assert (leaving.tolist(), remaining.tolist()) == ([5, 7, 9, 11], [0, 1, 2, 3, 4, 8, 6, 10])
    leaving, remaining = look(torch.tensor([True, False, True, True]))
    assert (leaving.tolist(), remaining.tolist()) == ([0, 2, 3], [1])
    assert look(torch.tensor([False] * 3))[1] is None
    assert look(torch.tensor([True] * 3))[1].tolist() == []


@pytest.mark.parametrize("size", [5, 64, 320, 331, 1000])
def test_the_best_sums_are_those_of_topk(size):
    random = torch.Generator().manual_seed(size)
    values, base = torch.randn(3, 4, size, generator=random), torch.randn(3, 4, generator=random)
    values[0, :, 1:], base[1, 2] = -torch.inf, -torch.inf
    for count in (1, 4):
        found, beams, pieces = best_sums(values, base, count)
        sums = (values + base[..., None]).flatten(1)
        assert torch.equal(found, sums.topk(count).values)
        assert torch.equal(sums.gather(1, size * beams + pieces), found)


def test_results_of_workers_have_the_order_of_their_items_and_threads_stay():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert workers(torch.device("cpu")) == 3
        assert workers(torch.device("cuda")) == 1
        used = in_workers(lambda item: (item, torch.get_num_threads()), range(9), 3)
        assert used == [(item, 1) for item in range(9)]
        with pytest.raises(ZeroDivisionError):
            in_workers(lambda item: 1 / item, [1, 0], 2)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("precision", ["bf16", INT8])
def test_reduced_layers_are_near_and_leave_variants_alone(precision):
    model, exact = (small_model({"name": "lisa"}).eval() for _ in range(2))
    kept = [type(layer) for variant in model.variants["source"] for layer in variant.modules()]
    reduce_layers(model, precision)
    assert [type(layer) for variant in model.variants["source"] for layer in variant.modules()] == kept
    _, batch = random_batch(model, LENGTHS)
    with torch.inference_mode():
        states, other = (one.remember(batch.source, batch.source_signals)[0].states for one in (model, exact))
    assert states.dtype == torch.float32
    assert 0 < (states - other).abs().max() < 0.05 * other.abs().max()


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_a_processor_without_instructions_computes_in_float32_and_says_so(precision, monkeypatch, caplog):
    monkeypatch.setattr(packed, "multiplies", lambda precision: False)
    monkeypatch.setattr(packed, "multiplies_int8", lambda: False)
    with caplog.at_level(logging.WARNING, "synmt"):
        assert usable_precision(precision, torch.device("cpu")) == "float32"
    assert f"this processor has no instructions for {precision}, so" in caplog.text


def test_on_a_gpu_bf16_is_computed_and_int8_is_not(caplog):
    assert usable_precision("bf16", torch.device("cuda")) == "bf16"
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "synmt"):
        assert usable_precision("int8", torch.device("cuda")) == "float32"
    assert "int8 is for CPUs, so everything is computed in float32" in caplog.text


def test_a_precision_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match=r"unknown precision 'int4'\. Precisions: float32, bf16, int8"):
        usable_precision("int4", torch.device("cpu"))


def test_a_packed_layer_adds_what_belongs_to_it():
    x, weight, bias, residual = torch.randn(5, 6), torch.randn(7, 6), torch.randn(7), torch.randn(5, 7)
    layer = PackedLinear(weight, bias)
    expected = x @ weight.T + bias
    torch.testing.assert_close(layer(x), expected)
    torch.testing.assert_close(layer.relu(x), expected.relu())
    torch.testing.assert_close(layer.added_to(residual, x), expected + residual)
