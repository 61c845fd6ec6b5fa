"""Activations captured while a model runs over a text."""

import pytest
import torch
from small_run import LSTM, PASCAL, TEXT, make_run

from synmt.analysis.forward_passes import run_forward
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.model.capture import self_attention
from synmt.syntax.parse import flat_parse

SOURCES = [TEXT[0], "", "A dog", " \u2028", TEXT[1], TEXT[2]]
TARGETS = [TEXT[3], "Ein Hund", "", "Ein Hund", TEXT[4], TEXT[5]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def transformer(folder):
    return Translator.load(make_run(folder / "plain"))


@pytest.fixture(scope="module")
def lstm(folder):
    return Translator.load(make_run(folder / "sa", {"name": "latent_tree"}, model=LSTM))


@pytest.fixture(scope="module")
def short(folder):
    return Translator.load(make_run(folder / "short", max_pieces=12))


def captured(*given):
    """Map each line to its sentence, its pass, and its row in the batch."""
    return {
        sentence.index: (sentence, one, row)
        for one in run_forward(*given)
        for row, sentence in enumerate(one.sentences)
    }


def test_pairs_whose_source_is_empty_are_left_out_and_long_ones_come_first(transformer):
    found = captured(transformer, SOURCES, TARGETS)
    lengths = [len(sentence.source) for sentence, *_ in found.values()]
    assert lengths == sorted(lengths, reverse=True)
    assert sorted(found) == [0, 2, 4, 5]


def test_spans_of_pieces_are_those_of_the_vocabulary(transformer):
    for index, (sentence, _, _) in captured(transformer, SOURCES, TARGETS).items():
        assert sentence.source.tolist() == transformer.source.encode(SOURCES[index]).spans.tolist()
        assert sentence.target.tolist() == transformer.target.encode(TARGETS[index]).spans.tolist()
        assert sentence.dropped == 0


@pytest.mark.parametrize("source", ["A dog", TEXT[1]])
@pytest.mark.parametrize("target", ["Ein Hund", TEXT[4]])
def test_pieces_beyond_the_maximum_length_are_counted_on_both_sides(short, source, target):
    # short lines have fewer than 12 pieces, long ones more
    pieces = [len(short.source.encode(source).ids), len(short.target.encode(target).ids)]
    [(sentence, _, _)] = captured(short, [source], [target]).values()
    assert [len(sentence.source), len(sentence.target)] == [min(12, count) for count in pieces]
    assert sentence.dropped == sum(max(0, count - 12) for count in pieces)
    assert (sentence.dropped > 0) == (source == TEXT[1] or target == TEXT[4])


def test_weights_of_attention_sum_to_one_and_the_target_sees_no_future(transformer):
    found = captured(transformer, SOURCES, TARGETS)
    for sentence, one, row in found.values():
        assert sorted(one.captured.attention) == [
            ("source", 1),
            ("source", 2),
            ("target", 1),
            ("target", 2),
        ]
        assert one.captured.gates is None
        for (side, _), weights in one.captured.attention.items():
            length = len(getattr(sentence, side)) + 1
            inner = weights[row, :, :length, :length]
            torch.testing.assert_close(inner.sum(-1), torch.ones(4, length))
            if side == "target":
                assert not inner.triu(1).any()


def test_without_targets_only_the_source_is_read(transformer, lstm):
    for one in run_forward(transformer, SOURCES):
        assert {side for side, _ in one.captured.attention} == {"source"}
        assert not any(len(sentence.target) for sentence in one.sentences)
    assert all(one.captured.gates is None for one in run_forward(lstm, SOURCES))


def test_activations_do_not_depend_on_other_sentences(transformer, lstm):
    for translator in (transformer, lstm):
        together = captured(translator, SOURCES, TARGETS)
        for index, (sentence, one, row) in together.items():
            [alone] = run_forward(translator, [SOURCES[index]], [TARGETS[index]])
            source, target = len(sentence.source) + 1, len(sentence.target) + 1
            close(one.memory.states[row, :source], alone.memory.states[0])
            for place, weights in one.captured.attention.items():
                length = source if place[0] == "source" else target
                close(weights[row, :, :length, :length], alone.captured.attention[place][0])
            if one.captured.gates is not None:
                close(one.captured.gates[row, :target], alone.captured.gates[0])


def close(one, other):
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_gates_and_annotation_weights_of_an_lstm_without_self_attention_are_captured(lstm):
    assert self_attention(lstm.model, "source") == self_attention(lstm.model, "target") == []
    for one in run_forward(lstm, SOURCES, TARGETS):
        longest = max(len(sentence.target) for sentence in one.sentences) + 1
        assert one.captured.gates.shape == (len(one.sentences), longest, 32)
        assert ((one.captured.gates > 0) & (one.captured.gates < 1)).all()
        for row, sentence in enumerate(one.sentences):
            words = len(sentence.source)
            close(one.memory.weights[row, :words, :words].sum(-1), torch.ones(words))
        assert one.captured.attention == {}


def test_capturing_ends_with_the_passes(transformer):
    list(run_forward(transformer, SOURCES, TARGETS))
    layers = self_attention(transformer.model, "source") + self_attention(
        transformer.model, "target"
    )
    assert len(layers) == 4
    assert not any(layer._forward_hooks for layer in layers)


def test_given_trees_are_read_where_the_model_reads_trees(folder):
    translator = Translator.load(make_run(folder / "pascal", PASCAL, parser=False))
    trees = [flat_parse(line) for line in SOURCES]
    assert sorted(captured(translator, SOURCES, None, trees)) == [0, 2, 4, 5]


def test_an_ensemble_is_refused(folder):
    run = make_run(folder / "twice", parser=False)
    with pytest.raises(UsageError, match=r"one model.*an ensemble of 2\. Load each run separately"):
        next(run_forward(Translator.load(run, run), SOURCES))
