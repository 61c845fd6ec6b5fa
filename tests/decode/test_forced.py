"""Forced decoding against the softmax of one target prefix after the other, from pieces and from
raw text."""

import math

import numpy as np
import pytest
import torch
from refusing import assert_fails, assert_refused
from small import small_model
from small_run import LSTM, TEXT, make_run

from synmt.data.batch import collate
from synmt.data.corpus import Example
from synmt.data.task_corpus import tagged
from synmt.data.vocabulary import BOS, EOS
from synmt.decode.forced import force
from synmt.decode.pairs import PairScore, Totals, score_alternatives, score_pairs
from synmt.decode.translator import Translator

pytestmark = pytest.mark.journey

SOURCES = [[4, 5, 6], [7, 8, 9, 10, 11], [5]]
TARGETS = [np.array(target, dtype=np.int32) for target in ([6, 5], [9, 4, 8], [])]
EXAMPLES = [Example(n, np.array(SOURCES[n]), TARGETS[n], {}) for n in range(3)]
SYSTEMS = {
    "transformer": small_model().double().eval(),
    "lstm": small_model(architecture="lstm").double().eval(),
    "annotated": small_model({"name": "latent_tree"}, architecture="lstm").double().eval(),
}


@torch.inference_mode()
def encode(model, source):
    batch = collate([Example(0, np.array(source), np.zeros(0, int), {})])
    return model.remember(batch.source, {})[0]


def slowly(model, source, target):
    """Compute log P of each piece and of EOS from the softmax after each prefix."""
    found, prefix, memory = [], [BOS], encode(model, source)
    with torch.inference_mode():
        for piece in [*target, EOS]:
            states = model.decode(memory, torch.tensor([prefix]), model.syntax("target", {}))
            found.append((states[0, -1] @ model.output_weight.T).log_softmax(-1)[piece].item())
            prefix.append(piece)
    return found


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_piece_has_the_probability_of_its_prefix_and_attention_is_that_of_the_pair(system):
    model = SYSTEMS[system]
    batch = collate(EXAMPLES)
    memory, _ = model.remember(batch.source, {})
    together = force(model, memory, TARGETS, attention=True)
    for example, forced in zip(EXAMPLES, together, strict=True):
        expected = slowly(model, example.source, example.target.tolist())
        np.testing.assert_allclose(forced.log_probabilities, expected, atol=1e-6)
        [alone] = force(model, encode(model, example.source), [example.target], attention=True)
        pieces = len(example.source)
        cross = forced.cross[:, : pieces + 1]
        np.testing.assert_allclose(cross.sum(1), 1, atol=1e-6)
        np.testing.assert_allclose(cross, alone.cross, atol=1e-6)
        assert system == "transformer" or not cross[:, pieces].any()


LINES = [TEXT[0], "", "A dog", " \u2028", TEXT[1], TEXT[2]]
TRANSLATIONS = [TEXT[3], "Ein Hund", "", "Ein Hund", "Ein 🙈 Hund", TEXT[5]]


RUNS = {
    "transformer": lambda place: make_run(place, parser=False),
    "lstm": lambda place: make_run(place, {"name": "latent_tree"}, parser=False, model=LSTM),
    "tasks": lambda place: make_run(place, parser=False, tasks={"parsing": "dependencies"}),
    "learns": lambda place: make_run(
        place, {"name": "dbsa", "side": "target", "layers": [1]}, parser=False
    ),
}


@pytest.fixture(scope="module", params=RUNS)
def run(request, tmp_path_factory):
    # a new folder each time: a process that takes tests over from another may come here twice
    return RUNS[request.param](tmp_path_factory.mktemp("runs") / request.param)


def slow_pair(translator, source, target):
    ids = translator.source.encode(tagged(source, translator.task)).ids
    return slowly(translator.model, ids, translator.target.encode_ids(target))


@pytest.mark.parametrize("batch_size", [3, 64])
def test_pairs_come_out_in_order_with_the_probabilities_of_their_pieces(run, batch_size):
    translator = Translator.load(run, batch_size=batch_size)
    scores = list(score_pairs(translator, LINES, TRANSLATIONS))
    found = [(score.line, score.source, score.target) for score in scores]
    assert found == list(zip(range(1, 7), LINES, TRANSLATIONS, strict=True))
    for index in (0, 2, 4, 5):
        score, expected = scores[index], slow_pair(translator, LINES[index], TRANSLATIONS[index])
        np.testing.assert_allclose(score.log_probabilities, expected, atol=1e-4)
        total, tokens = sum(expected), score.tokens
        assert score.log_probability == pytest.approx(total, abs=1e-3)
        assert score.perplexity == pytest.approx(math.exp(-total / len(expected)), rel=1e-3)
        assert "".join(token.text for token in tokens) == score.target
        assert all(score.target[token.start : token.end] == token.text for token in tokens)
        assert [token.log_probability for token in tokens] == score.log_probabilities.tolist()
    # an empty target is EOS
    [end] = scores[2].tokens
    assert (end.text, end.start, end.end) == ("", 0, 0)
    for score in (scores[1], scores[3]):
        assert (score.log_probability, score.perplexity, score.tokens) == (None, None, [])
    targets = [TEXT[3], "", TEXT[4], TEXT[3]]
    [several, none] = score_alternatives(translator, [(TEXT[0], targets), (TEXT[1], [])])
    assert none == []
    for score, target in zip(several, targets, strict=True):
        assert score.line == 1
        expected = slow_pair(translator, TEXT[0], target)
        np.testing.assert_allclose(score.log_probabilities, expected, atol=1e-4)


def test_a_pair_that_is_too_long_is_scored_in_part(tmp_path):
    translator = Translator.load(make_run(tmp_path / "short", parser=False, max_pieces=6))
    long, short = score_pairs(translator, ["A dog", TEXT[1]], [TEXT[4], "Ein"])
    count = len(translator.target.encode_ids(TEXT[4]))
    assert (long.source_dropped, long.target_dropped) == (0, count - 6)
    count = len(translator.source.encode_ids(TEXT[1]))
    assert (short.source_dropped, short.target_dropped) == (count - 6, 0)
    # the beginning, without an end
    expected = slow_pair(translator, "A dog", TEXT[4])[:6]
    np.testing.assert_allclose(long.log_probabilities, expected, atol=1e-4)
    assert TEXT[4].startswith("".join(token.text for token in long.tokens))


def test_pairs_that_are_not_pairs_and_broken_weights_are_refused(tmp_path):
    translator = Translator.load(make_run(tmp_path / "run", parser=False))
    for sources, targets in ((2, 3), (3, 2)):
        assert_fails("there are 2", list, score_pairs(translator, TEXT[:sources], TEXT[:targets]))
    with torch.no_grad():
        translator.model.output_weight.fill_(float("nan"))
    assert_fails("its weights are broken", list, score_pairs(translator, TEXT[:1], TEXT[3:4]))


def test_windows_are_scored_before_more_is_read(tmp_path):
    translator = Translator.load(make_run(tmp_path / "plain", parser=False), batch_size=1)
    read = []
    lines = (read.append(number) or "A dog" for number in range(10 * translator.window))
    next(score_pairs(translator, lines, iter(lambda: "Ein Hund", None)))
    assert len(read) == translator.window


def test_an_ensemble_is_not_scored_by_its_first_model(run):
    assert_refused(
        r"one model.*an ensemble of 2\. Load each run separately",
        score_pairs,
        Translator.load(run, run),
        LINES,
        TRANSLATIONS,
    )


def test_no_pairs_have_no_perplexity_and_a_large_one_is_infinite():
    totals = Totals()
    assert totals.perplexity("word") is totals.mean is None
    # 1,600 nats over one word, as Chinese has no spaces, and its end
    totals.add(PairScore(1, "a", "x" * 98, np.full(100, -16.0)))
    assert totals.perplexity("word") == math.inf
    assert totals.perplexity("piece") == pytest.approx(math.exp(16))


def test_totals_are_those_of_the_pairs_that_were_scored_in_full():
    totals = Totals()
    totals.add(PairScore(1, "a b", "x y", np.array([-1.0, -2.0, -3.0])))
    totals.add(PairScore(2, "a", "xyz", np.array([-4.0, -5.0, -3.0]), unknown=1))
    totals.add(PairScore(3, "", "x"))
    totals.add(PairScore(4, "a", "x y", np.full(3, -9.0), target_dropped=1))
    assert (totals.pairs, totals.left_out, totals.unknown, totals.mean) == (2, 2, 1, -9.0)
    # 3 + 3 pieces, (2 + 1) + (1 + 1) words, (3 + 1) + (3 + 1) characters
    assert totals.units == {"piece": 6, "word": 5, "character": 8}
    assert totals.perplexity("word") == pytest.approx(math.exp(18 / 5))
