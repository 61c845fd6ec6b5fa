"""Forced decoding against the softmax of one target prefix after the other, from pieces and from
raw text."""

import math

import numpy as np
import pytest
import torch
from small import small_model
from small_run import LSTM, PASCAL, TEXT, make_run

from synmt.data.batch import collate
from synmt.data.corpus import Example
from synmt.data.tasks import tagged
from synmt.data.vocabulary import BOS, EOS
from synmt.decode.forced import force, force_targets
from synmt.decode.pairs import PairScore, Totals, score_alternatives, score_pairs
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError
from synmt.syntax.parse import flat_parse

pytestmark = pytest.mark.journey

SOURCES = [[4, 5, 6], [7, 8, 9, 10, 11], [5]]
TARGETS = [[6, 5], [9, 4, 8], []]


def examples():
    targets = [np.array(target, dtype=np.int64) for target in TARGETS]
    return [
        Example(line, np.array(source), targets[line], {}) for line, source in enumerate(SOURCES)
    ]


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_each_piece_has_the_probability_that_its_prefix_gives_it(architecture):
    model = small_model(architecture=architecture).double().eval()
    for example, forced in zip(examples(), force(model, collate(examples())), strict=True):
        expected = []
        with torch.inference_mode():
            batch = collate([example])
            memory, _ = model.remember(batch.source, {})
            prefix = [BOS]
            for piece in [*example.target.tolist(), EOS]:
                logits = model.decode(memory, torch.tensor([prefix]))[0, -1] @ model.output_weight.T
                expected.append(logits[piece].item() - logits.exp().sum().log().item())
                prefix.append(piece)
        np.testing.assert_allclose(forced.log_probabilities, expected, atol=1e-6)
        assert forced.log_probability == pytest.approx(sum(expected), abs=1e-5)


@pytest.mark.parametrize(("architecture", "heads"), [("transformer", 8), ("lstm", 1)])
def test_attention_to_the_source_sums_to_one_and_is_that_of_the_pair_alone(architecture, heads):
    model = small_model(architecture=architecture).eval()
    together = force(model, collate(examples()), attention=True)
    for example, forced in zip(examples(), together, strict=True):
        [alone] = force(model, collate([example]), attention=True)
        assert len(forced.cross) == heads
        for place, weights in forced.cross.items():
            assert weights.shape == (len(example.target) + 1, len(example.source) + 1)
            np.testing.assert_allclose(weights.sum(1), 1, atol=1e-6)
            np.testing.assert_allclose(weights, alone.cross[place], atol=1e-6)
            assert architecture != "lstm" or not weights[:, -1].any()


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_several_targets_of_a_source_get_the_scores_that_each_gets_alone(architecture):
    model = small_model(architecture=architecture).eval()
    batch = collate(examples())
    with torch.inference_mode():
        memory, _ = model.remember(batch.source, {})
    rows, ids = (
        [1, 0, 1, 2],
        [np.array(one, dtype=np.int32) for one in ([9, 4, 8], [6, 5], [7], [])],
    )
    for row, target, found in zip(rows, ids, force_targets(model, memory, rows, ids), strict=True):
        [alone] = force(model, collate([Example(0, np.array(SOURCES[row]), target, {})]))
        np.testing.assert_allclose(found, alone.log_probabilities, atol=1e-5)


def test_several_targets_read_the_annotations_of_their_source():
    model = small_model({"name": "latent_tree"}, architecture="lstm").eval()
    batch = collate(examples())
    expected = [forced.log_probabilities for forced in force(model, batch)]
    with torch.inference_mode():
        memory, _ = model.remember(batch.source, {})
    assert memory.annotations is not None
    found = force_targets(
        model, memory, [2, 1, 0], [example.target for example in examples()][::-1]
    )
    for one, other in zip(found, expected[::-1], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


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


def slowly(translator, source, target):
    """Compute log P of each piece and of EOS from the softmax after each prefix."""
    model = translator.model
    ids = translator.source.encode(tagged(source, translator.task)).ids
    found, prefix = [], [BOS]
    with torch.inference_mode():
        batch = collate([Example(0, ids, ids[:0], {})])
        memory, _ = model.remember(batch.source, {})
        for piece in [*translator.target.encode_ids(target), EOS]:
            states = model.decode(memory, torch.tensor([prefix]), model.syntax("target", {}))
            found.append((states[0, -1] @ model.output_weight.T).log_softmax(-1)[piece].item())
            prefix.append(piece)
    return found


def test_pairs_come_out_in_order_with_the_probabilities_of_their_pieces(run):
    translator = Translator.load(run)
    scores = list(score_pairs(translator, LINES, TRANSLATIONS))
    assert [score.line for score in scores] == [1, 2, 3, 4, 5, 6]
    assert [(score.source, score.target) for score in scores] == list(
        zip(LINES, TRANSLATIONS, strict=True)
    )
    for index in (0, 2, 4, 5):
        expected = slowly(translator, LINES[index], TRANSLATIONS[index])
        np.testing.assert_allclose(scores[index].log_probabilities, expected, atol=1e-4)
        assert scores[index].pieces == len(expected)
        assert scores[index].log_probability == pytest.approx(sum(expected), abs=1e-3)
        assert scores[index].perplexity == pytest.approx(
            math.exp(-sum(expected) / len(expected)), rel=1e-3
        )


def test_an_empty_target_is_eos_and_a_source_without_text_is_not_scored(run):
    scores = list(score_pairs(Translator.load(run), LINES, TRANSLATIONS))
    [end] = scores[2].tokens
    assert (end.text, end.start, end.end) == ("", 0, 0)
    for score in (scores[1], scores[3]):
        assert (score.log_probability, score.perplexity, score.tokens) == (None, None, [])


def test_the_tokens_of_a_target_spell_it(run):
    for score in score_pairs(Translator.load(run), LINES, TRANSLATIONS):
        if score.pieces:
            assert "".join(token.text for token in score.tokens) == score.target
            assert all(
                score.target[token.start : token.end] == token.text for token in score.tokens
            )
            assert sum(token.log_probability for token in score.tokens) == pytest.approx(
                score.log_probability
            )


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_a_pair_gets_the_same_score_in_every_batch(run, batch_size):
    expected = list(score_pairs(Translator.load(run), LINES, TRANSLATIONS))
    found = score_pairs(Translator.load(run, batch_size=batch_size), LINES, TRANSLATIONS)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.log_probabilities, other.log_probabilities, atol=1e-4)


def test_alternatives_get_the_scores_that_they_get_as_pairs(run):
    translator = Translator.load(run)
    targets = [TEXT[3], "", TEXT[4], TEXT[3]]
    [several, none] = score_alternatives(translator, [(TEXT[0], targets), (TEXT[1], [])])
    assert none == []
    for one, other in zip(several, score_pairs(translator, [TEXT[0]] * 4, targets), strict=True):
        assert one.line == 1
        np.testing.assert_allclose(one.log_probabilities, other.log_probabilities, atol=1e-4)


def test_a_pair_that_is_too_long_is_scored_in_part(tmp_path):
    translator = Translator.load(make_run(tmp_path / "short", parser=False, max_pieces=6))
    for score in score_pairs(translator, ["A dog", TEXT[1]], [TEXT[4], "Ein Hund"]):
        pieces = [len(translator.source.encode_ids(text)) for text in (score.source, score.target)]
        assert [score.source_dropped, score.target_dropped] == [
            max(0, count - 6) for count in pieces
        ]
    [cut, _] = score_pairs(translator, ["A dog", TEXT[1]], [TEXT[4], "Ein Hund"])
    # the beginning, without an end
    np.testing.assert_allclose(
        cut.log_probabilities, slowly(translator, "A dog", TEXT[4])[:6], atol=1e-4
    )
    assert TEXT[4].startswith("".join(token.text for token in cut.tokens))


def test_windows_are_scored_before_more_is_read(tmp_path):
    translator = Translator.load(make_run(tmp_path / "plain", parser=False), batch_size=1)
    read = []

    def lines():
        for number in range(10 * translator.window):
            read.append(number)
            yield "A dog"

    first = next(score_pairs(translator, lines(), iter(lambda: "Ein Hund", None)))
    assert first.line == 1
    assert len(read) == translator.window


def test_trees_are_given_or_parsed(tmp_path):
    translator = Translator.load(make_run(tmp_path / "pascal", PASCAL))
    parsed = list(score_pairs(translator, TEXT[:3], TEXT[3:]))
    given = list(score_pairs(translator, TEXT[:3], TEXT[3:], translator.parser.parse(TEXT[:3])))
    flat = list(score_pairs(translator, TEXT[:3], TEXT[3:], map(flat_parse, TEXT[:3])))
    for one, other, third in zip(parsed, given, flat, strict=True):
        np.testing.assert_allclose(one.log_probabilities, other.log_probabilities, atol=1e-5)
        assert abs(one.log_probability - third.log_probability) > 1e-4


@pytest.mark.parametrize(
    ("trees", "message"), [(2, "there are 2 trees, and more"), (4, "more trees than lines")]
)
def test_there_must_be_one_tree_per_pair(tmp_path, trees, message):
    translator = Translator.load(make_run(tmp_path / f"uneven{trees}", PASCAL, parser=False))
    with pytest.raises(SynmtError, match=message):
        list(score_pairs(translator, TEXT[:3], TEXT[3:], map(flat_parse, TEXT[:trees])))


@pytest.mark.parametrize(("sources", "targets"), [(2, 3), (3, 2)])
def test_there_must_be_one_target_per_source(tmp_path, sources, targets):
    translator = Translator.load(make_run(tmp_path / f"lines{sources}", parser=False))
    with pytest.raises(SynmtError, match="one has no line 3"):
        list(score_pairs(translator, TEXT[:sources], TEXT[:targets]))


def test_broken_weights_are_an_error(tmp_path):
    translator = Translator.load(make_run(tmp_path / "broken", parser=False))
    with torch.no_grad():
        translator.model.output_weight.fill_(float("nan"))
    with pytest.raises(SynmtError, match="its weights are broken"):
        list(score_pairs(translator, TEXT[:1], TEXT[3:4]))


def test_no_pairs_and_an_infinite_perplexity_are_null_in_json():
    totals = Totals()
    assert (
        totals.as_json()["perplexity_by_word"] is totals.as_json()["mean_log_probability"] is None
    )
    # 1,600 nats over one word, as Chinese has no spaces, and its end
    totals.add(PairScore(1, "a", "x" * 98, np.full(100, -16.0), np.zeros((100, 2), np.int64)))
    assert totals.perplexity("word") == math.inf
    assert totals.as_json()["perplexity_by_word"] is None
    assert totals.as_json()["perplexity_by_piece"] == pytest.approx(math.exp(16))


def test_totals_are_those_of_the_pairs_that_were_scored_in_full():
    totals = Totals()
    spans = np.zeros((3, 2), np.int64)
    totals.add(PairScore(1, "a b", "x y", np.array([-1.0, -2.0, -3.0]), spans))
    totals.add(PairScore(2, "a", "xyz", np.array([-4.0, -5.0, -3.0]), spans, unknown=1))
    totals.add(PairScore(3, "", "x"))
    totals.add(PairScore(4, "a", "x y", np.array([-9.0, -9.0, -9.0]), spans, target_dropped=1))
    assert (totals.pairs, totals.left_out, totals.unknown) == (2, 2, 1)
    assert totals.mean == -9.0
    # -18 nats over 3 + 3 pieces, (2 + 1) + (1 + 1) words, (3 + 1) + (3 + 1) characters
    for unit, count in (("piece", 6), ("word", 5), ("character", 8)):
        assert totals.units[unit] == count
        assert totals.perplexity(unit) == pytest.approx(math.exp(18 / count))


def test_an_ensemble_is_not_scored_by_its_first_model(run):
    with pytest.raises(UsageError, match=r"one model.*an ensemble of 2\. Load each run separately"):
        next(score_pairs(Translator.load(run, run), LINES, TRANSLATIONS))
