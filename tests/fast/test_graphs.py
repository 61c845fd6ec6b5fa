"""A step of the fast decoder can be recorded and replayed: it computes from memory that stays in
place.

Here there is no GPU: `Recording` stands in for a CUDA graph.
"""

from __future__ import annotations

import logging
from functools import partial
from unittest.mock import Mock

import pytest
import torch
from recording import Recording
from searching import SEARCHES, assert_same_search, members_of, sharp
from small import random_batch, small_model
from stepping import GPU_LIKE, LENGTHS, both_steps, run_steadily

pytest.importorskip("synmt.fast")

from synmt.decode import beam
from synmt.decode.beam import search
from synmt.decode.next_piece import Member, looks
from synmt.decode.options import SearchOptions
from synmt.fast import decoder as fast
from synmt.fast import graphs, packed
from synmt.fast.decoder import fast_decoder
from synmt.fast.graphs import RecordedState
from synmt.model import positions as position_tables
from synmt.model.positions import rotations
from synmt.model.seq2seq import sinusoids


@pytest.fixture(autouse=True)
def recordings(monkeypatch):
    monkeypatch.setattr(fast, "_records", lambda device: not RecordedState.failed)
    monkeypatch.setattr(graphs, "Graph", Recording)
    monkeypatch.setattr(fast, "MultipliedKeysValues", fast.KeysValues)
    monkeypatch.setattr(Recording, "made", [], raising=False)
    return Recording.made


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "pre"},
        {"positions": "rotary"},
        {"positions": "alibi"},
        {"positions": "rotary", "norm": "pre"},
    ],
)
@pytest.mark.parametrize("is_packed", [True, False])
def test_recorded_steps_compute_what_the_models_step_does(
    options, is_packed, recordings, monkeypatch
):
    if not is_packed:
        monkeypatch.setattr(packed, "can_pack", lambda dtype: False)
    for slow, recorded in both_steps(small_model(**options).eval(), steps=30, recorded=True):
        torch.testing.assert_close(recorded, slow, atol=2e-5, rtol=1e-5)
    assert recordings


def test_recorded_steps_in_bf16_are_near(recordings):
    for slow, recorded in both_steps(small_model().eval(), "bf16", steps=30, recorded=True):
        assert 0 < (slow - recorded).abs().max() < 0.05 * slow.abs().max()
    assert recordings


@pytest.mark.parametrize("positions", ["sinusoid", "rotary", "alibi"])
def test_a_step_is_recorded_once_while_nothing_changes(positions, recordings):
    model = small_model({"name": "relative", "side": "target"}, positions=positions).eval()
    if positions == "sinusoid":
        # it has to grow before a step is recorded
        model.target_embedding.positions = model.target_embedding.positions[:4]
    steps, beams = 50, 4
    equal = partial(torch.testing.assert_close, atol=2e-5, rtol=1e-5)
    state = run_steadily(model, fast_decoder(model, recorded=True), equal, steps, beams)
    # with one beam and in 32, 64, 128 and 256 places; the first step of each is not recorded
    assert [len(recordings), sum(1 + one.replays for one in recordings)] == [4, steps - 5]
    assert state.length == steps
    assert state.filled == 1 + beams * (steps - 1)


@pytest.mark.parametrize("positions", ["sinusoid", "rotary"])
def test_tables_of_positions_never_grow_while_a_step_is_recorded(
    positions, recordings, monkeypatch
):
    in_recording = []

    def watched(grow):
        return lambda *shape: in_recording.append(Recording.active) or grow(*shape)

    monkeypatch.setattr(position_tables, "rotations", watched(rotations))
    model = small_model(positions=positions).eval()
    model.target_embedding.waves = watched(sinusoids) if positions == "sinusoid" else None
    for rows in range(33, 73, 4):
        decoder = fast_decoder(model, recorded=True)
        decoder._positions = sinusoids(rows, 16)
        for layer in decoder._layers if positions == "rotary" else ():
            layer.rotary.angles = rotations(rows, 4)
        run_steadily(model, decoder, lambda *both: None, steps=12, beams=5)
    assert recordings
    assert in_recording
    assert not any(in_recording)


@pytest.mark.parametrize("options", SEARCHES)
def test_a_search_finds_the_same_with_recorded_steps(options, recordings, monkeypatch):
    monkeypatch.setattr(beam, "looks", lambda device: looks(GPU_LIKE))
    model, options = sharp(), SearchOptions(**options)
    _, batch = random_batch(model, LENGTHS)
    limits = torch.tensor([9, 24, 4, 12, 30, 6])
    member = Member(model, batch.source, {}, fast_decoder(model, recorded=True))
    slow = search(members_of(batch, model), options, limits=limits)
    assert_same_search(search([member], options, limits=limits), slow)
    assert any(one.replays > 1 for one in recordings)


def test_steps_that_cannot_be_recorded_run_as_they_are_and_a_warning_says_so_once(
    monkeypatch, caplog
):
    monkeypatch.setattr(graphs, "Graph", Mock(side_effect=RuntimeError("not while capturing")))
    monkeypatch.setattr(RecordedState, "failed", False)
    with caplog.at_level(logging.WARNING, "synmt"):
        for _ in range(2):
            for slow, fast_logits in both_steps(small_model().eval(), recorded=True):
                torch.testing.assert_close(fast_logits, slow, atol=2e-5, rtol=1e-5)
    [record] = caplog.records
    assert "as CUDA graphs, so translation is slower: not while capturing" in record.message
