"""Activations captured while a model runs over a text."""

import pytest
from refusing import assert_refused
from small_run import LSTM, TEXT, load_run, make_run

from synmt.analysis.forward_passes import run_forward
from synmt.decode.translator import Translator
from synmt.model.capture import self_attention

SOURCES = [TEXT[0], "", "A dog", " \u2028", TEXT[1], TEXT[2]]
TARGETS = [TEXT[3], "Ein Hund", "", "Ein Hund", TEXT[4], TEXT[5]]


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    return load_run(tmp_path_factory.mktemp("runs") / "plain", max_pieces=12)


@pytest.fixture(scope="module")
def lstm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "sa"
    return load_run(folder, {"name": "latent_tree"}, model=LSTM)


def test_pairs_with_a_source_come_longest_first_cut_to_the_maximum_length(transformer):
    found = [
        one for passed in run_forward(transformer, SOURCES, TARGETS) for one in passed.sentences
    ]
    lengths = [len(one.source) for one in found]
    assert lengths == sorted(lengths, reverse=True)
    assert sorted(one.index for one in found) == [0, 2, 4, 5]
    for one in found:
        source = transformer.source.encode(SOURCES[one.index]).spans.tolist()
        target = transformer.target.encode(TARGETS[one.index]).spans.tolist()
        assert (one.source.tolist(), one.target.tolist()) == (source[:12], target[:12])
        assert one.dropped == len(source[12:]) + len(target[12:])
    assert 0 < sum(one.dropped > 0 for one in found) < 4
    # capturing has ended
    assert not any(layer._forward_hooks for layer in self_attention(transformer.model, "target"))


def test_without_targets_only_the_source_is_read(transformer, lstm):
    for one in run_forward(transformer, SOURCES):
        assert {side for side, _ in one.captured.attention} == {"source"}
        assert not any(len(sentence.target) for sentence in one.sentences)
    assert all(one.captured.gates is None for one in run_forward(lstm, SOURCES))


def test_an_ensemble_is_refused(tmp_path):
    run = make_run(tmp_path / "twice", parser=False)
    assert_refused(
        r"one model.*an ensemble of 2\. Load each run separately",
        next,
        run_forward(Translator.load(run, run), SOURCES),
    )
