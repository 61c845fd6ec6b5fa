"""The fast step computes what the model's own step does: at every step, for every shape, with and
without oneDNN."""

from __future__ import annotations

import logging
from collections import Counter
from unittest.mock import Mock

import pytest
import torch
from refusing import assert_refused
from searching import SEARCHES, assert_same_search, members_of, sharp
from small import random_batch, shaken, small_model
from stepping import GPU_LIKE, LENGTHS, assert_equal_steps, both_steps, started
from torch.utils._python_dispatch import TorchDispatchMode

pytest.importorskip("synmt.fast")

from synmt.decode import beam
from synmt.decode.beam import search
from synmt.decode.next_piece import Member, looks
from synmt.decode.options import Sampling, SearchOptions
from synmt.fast import packed
from synmt.fast.decoder import fast_decoder
from synmt.fast.packed import reduce_layers, usable_precision
from synmt.fast.quantized import multiplies_int8

INT8 = pytest.param(
    "int8",
    marks=pytest.mark.skipif(
        not multiplies_int8(), reason="this processor has no instructions for int8"
    ),
)


@pytest.mark.parametrize(
    "options",
    [
        *({"norm": "pre", "embeddings": kind} for kind in ("shared", "tied", "separate")),
        {"decoder_layers": 1},
        {"heads": 2, "feedforward_dim": 24},
        {"decoder_layers": 3},
    ],
)
def test_the_fast_step_computes_what_the_models_step_does(options):
    assert_equal_steps(small_model(**options).eval(), steps=8)


RELATIVE = {"name": "relative", "side": "target", "reach": 3}


@pytest.mark.parametrize("options", [{}, {"shared": True}, {"values": False}, {"layers": [2]}])
def test_relative_positions_have_a_fast_step(options):
    model = small_model({**RELATIVE, **options}).eval()
    assert fast_decoder(model)
    assert_equal_steps(model, steps=40)


@pytest.mark.parametrize(("name", "value"), [("can_pack", lambda dtype: False), ("_SMALL", 0)])
def test_the_fast_step_is_the_same_without_the_operators_of_onednn_or_always_with_them(
    monkeypatch, name, value
):
    monkeypatch.setattr(packed, name, value)
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
        state = started(model, decoder)
        for beams in [1] + [4] * 59:
            decoder.predict(state, torch.full((2, beams), 7))
            # all continue from the first one
            state.select(None, torch.zeros(2, 4, dtype=torch.long))
    assert state.length == 60 <= state.seen.size(2) <= 128


@pytest.mark.parametrize("precision", ["bf16", INT8])
@pytest.mark.parametrize("wide", [0, 1000])
def test_lower_precisions_are_near(precision, wide, monkeypatch):
    monkeypatch.setattr(packed, "_WIDE", wide)
    for slow, fast in both_steps(small_model().eval(), precision):
        assert 0 < (slow - fast).abs().max() < 0.05 * slow.abs().max()


def test_the_penalties_of_alibi_keep_their_digits_in_bf16():
    model = small_model(positions="alibi").eval()
    decoder = fast_decoder(model)
    with torch.inference_mode():
        state = started(model, decoder)
        # as after 200 pieces
        state.seen, state.steps, state.position = (
            torch.zeros(1, 1, 200),
            torch.arange(200)[None],
            199,
        )
        exact = decoder._layers[0]._bias(state, Mock(bias=lambda mask: mask))
    scores = torch.randn(exact.shape, generator=torch.Generator().manual_seed(1)).bfloat16()
    rounded = (scores + exact.bfloat16()).float().softmax(-1)
    assert ((scores.float() + exact).softmax(-1) - rounded).abs().sum(-1).max() < 0.01


def test_only_a_plain_decoder_of_a_transformer_has_a_fast_step():
    assert fast_decoder(small_model({"name": "pascal"}).eval()) is not None
    for options in ({"heads": 1}, {"warm": 5}):
        assert fast_decoder(small_model({**RELATIVE, **options}).eval()) is None
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


WAITS = {f"aten::{name}" for name in ("_local_scalar_dense", "item", "nonzero", "masked_select")}


@pytest.mark.parametrize("kind", [{"beam_size": 4}, {"sampling": Sampling(top_k=5)}])
def test_on_a_gpu_a_search_waits_once_in_eight_steps_and_copies_nothing_there(kind, monkeypatch):
    monkeypatch.setattr(beam, "looks", lambda device: looks(GPU_LIKE))
    made = Mock(side_effect=torch.tensor)
    monkeypatch.setattr(torch, "tensor", made)
    model = small_model().eval()
    with torch.no_grad():
        # it never ends before the limit
        model.output_weight[3] = -model.output_weight.mean(0) * 100
    _, batch = random_batch(model, LENGTHS)
    member, copies = Member(model, batch.source, {}, fast_decoder(model)), []
    for steps in (8, 16):
        made.reset_mock()
        with _Counting() as counting:
            search([member], SearchOptions(**kind), limits=torch.full((len(LENGTHS),), steps))
        copies.append(made.call_count)
        assert set(counting.counts) <= {"aten::_local_scalar_dense", "aten::item"}
        assert 1 <= counting.counts.total() <= steps // 8 + 1
    # numbers of the whole search only
    assert copies[0] == copies[1]


class _Counting(TorchDispatchMode):
    """Counts the operators that wait for a device."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket._qualified_op_name
        if name in WAITS:
            self.counts[name] += 1
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("precision", ["bf16", INT8])
def test_reduced_layers_are_near_and_leave_variants_alone(precision):
    def kinds():
        return [type(part) for variant in model.variants["source"] for part in variant.modules()]

    model, exact = (small_model({"name": "lisa"}).eval() for _ in range(2))
    kept = kinds()
    reduce_layers(model, precision)
    assert kinds() == kept
    _, batch = random_batch(model, LENGTHS)
    with torch.inference_mode():
        states, other = (
            one.remember(batch.source, batch.source_signals)[0].states for one in (model, exact)
        )
    assert states.dtype == torch.float32
    assert 0 < (states - other).abs().max() < 0.05 * other.abs().max()


@pytest.mark.parametrize(
    ("precision", "device", "message"),
    [
        ("bf16", "cpu", "this processor has no instructions for bf16, so"),
        ("int8", "cpu", "this processor has no instructions for int8, so"),
        ("int8", "cuda", "int8 is for CPUs, so everything is computed in float32"),
        ("bf16", "cuda", ""),
    ],
)
def test_without_instructions_everything_is_computed_in_float32_which_is_said(
    precision, device, message, monkeypatch, caplog
):
    monkeypatch.setattr(packed, "multiplies", lambda precision: False)
    monkeypatch.setattr(packed, "multiplies_int8", lambda: False)
    with caplog.at_level(logging.WARNING, "synmt"):
        usable = usable_precision(precision, torch.device(device))
    assert usable == ("float32" if message else "bf16")
    assert message in caplog.text
    assert bool(message) == bool(caplog.text)


def test_a_precision_that_does_not_exist_is_refused():
    assert_refused(
        r"'int4'\. Precisions: float32, bf16, int8", usable_precision, "int4", torch.device("cpu")
    )


def test_it_goes_beyond_the_table_of_angles_and_is_near_in_bf16():
    model = shaken(positions="rotary", norm="pre", norm_kind="rms", feed_forward="swiglu")
    for layer in model.decoder:
        layer.self_attention.rotary.angles = layer.self_attention.rotary.angles[:, :4]
    assert_equal_steps(model)
    for slow, fast in both_steps(model, "bf16"):
        assert (slow - fast).abs().max() < 0.08 * slow.abs().max()
