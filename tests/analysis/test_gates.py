"""Norms of gates: from pieces to words, and by part of speech."""

import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from small import MONKEY

from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.gates.norms import (
    MIN_WORDS,
    GatedSentence,
    TagRow,
    check_gates,
    check_tags,
    gate_norms,
    gated_words,
    highest_shares,
    read_gates,
    tag_rows,
    word_norms,
)
from synmt.analysis.gates.report import gate_facts, gate_table
from synmt.data.batch import collate_source
from synmt.data.vocabulary import BOS, Words
from synmt.decode.loaded_model import LoadedModel
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError
from synmt.model.build import build
from synmt.recipe.load import check_recipe
from synmt.syntax.parse import Parse, flat_parse
from synmt.syntax.reading import Reading

LINE = "The monkey eats a banana"
TAGGED = replace(MONKEY, tags=["DET", "NOUN", "VERB", "DET", "NOUN"])
# ▁The ▁mon key ▁eats ▁a ▁ban ana
SPANS = np.array([[0, 3], [3, 7], [7, 10], [10, 15], [15, 17], [17, 21], [21, 24]])
WORDS = ["der", "Affe", "isst", "eine", "Banane", "the", "monkey", "eats", "a", "banana", "sleeps"]


def gated(norms, tags, line=1):
    """Make a sentence of the words w0 w1 …"""
    words = [f"w{number}" for number in range(len(norms))]
    parse = replace(flat_parse(" ".join(words)), tags=list(tags))
    return GatedSentence(line, "", " ".join(words), parse, np.array(norms, dtype=float))


def drawn(seed, sentences=12):
    """Sample sentences of one to nine words; some words have no norm, some equal norms."""
    random = np.random.default_rng(seed)
    made = []
    for line in range(1, sentences + 1):
        words = int(random.integers(1, 10))
        norms = random.integers(1, 6, words) / 10
        norms[random.random(words) < 0.1] = np.nan
        made.append(
            gated(norms, random.choice(["DET", "NOUN", "VERB"], words, p=[0.3, 0.5, 0.2]), line)
        )
    return made


def tabulate(sentences):
    return tag_rows(gated_words(sentences), gated_words(sentences, without="PUNCT"))


def row_of(rows, tag):
    return next(row for row in rows if row.tag == tag)


def test_the_norm_is_relative_to_that_of_an_open_gate():
    gates = torch.rand(2, 3, 5, generator=torch.Generator().manual_seed(1)).double()
    norms = gate_norms(gates)
    for b in range(2):
        for t in range(3):
            length = math.sqrt(sum(float(z) ** 2 for z in gates[b, t]))
            assert norms[b, t].item() == pytest.approx(length / math.sqrt(5))
    assert gate_norms(torch.tensor([[[0.0, 0.0], [1.0, 1.0]]])).tolist() == [[0, 1]]


def test_a_word_has_the_mean_of_its_pieces():
    norms = word_norms(np.array([0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.9]), SPANS, MONKEY.spans)
    assert norms.tolist() == pytest.approx([0.1, (0.2 + 0.4) / 2, 0.5, 0.6, (0.7 + 0.9) / 2])


def test_words_without_a_piece_of_their_own_have_no_norm():
    # `monkey.` is one piece, and two words
    norms = word_norms(
        np.array([0.3, 0.5]), np.array([[0, 3], [3, 11]]), np.array([[0, 3], [4, 10], [10, 11]])
    )
    assert norms[:2].tolist() == [0.3, 0.5]
    assert np.isnan(norms[2])
    # a line without words
    assert word_norms(np.array([0.3]), np.array([[0, 1]]), np.zeros((0, 2), dtype=int)).shape == (
        0,
    )
    assert word_norms(np.zeros(0), np.zeros((0, 2), dtype=int), np.array([[0, 3]])).shape == (1,)


def test_two_sentences_counted_by_hand_and_equal_norms_share_the_highest_place():
    assert highest_shares(np.array([0.1, 0.4, 0.4])).tolist() == [0, 0.5, 0.5]
    first = gated([0.1, 0.3, 0.9], ["DET", "NOUN", "VERB"], line=1)
    table = tabulate([first, gated([0.2, 0.6, 0.4, 0.6], ["DET", "NOUN", "VERB", "NOUN"], line=2)])
    noun, verb, det = (row_of(table, tag) for tag in ("NOUN", "VERB", "DET"))
    assert (noun.words, noun.share) == (3, 3 / 7)
    assert noun.norm == pytest.approx(0.5)
    assert noun.deviation == pytest.approx(math.sqrt((0.2**2 + 0.1**2 + 0.1**2) / 3))
    assert (noun.highest, verb.highest, det.highest) == (0.5, 0.5, 0)
    assert noun.expected == pytest.approx((1 / 3 + 2 / 4) / 2)
    assert verb.ratio == pytest.approx(0.5 / ((1 / 3 + 1 / 4) / 2))
    assert [row.tag for row in table] == ["VERB", "NOUN", "DET"]


@pytest.mark.parametrize("seed", range(6))
def test_the_table_equals_one_counted_word_by_word(seed):
    sentences = drawn(seed)
    table = tabulate(sentences)
    tagged = [zip(one.tags, one.norms.tolist(), strict=True) for one in sentences]
    kept = [
        words
        for one in tagged
        if (words := [(tag, norm) for tag, norm in one if not math.isnan(norm)])
    ]
    for row in table:
        highest = chance = 0.0
        for words in kept:
            first = [tag for tag, norm in words if norm == max(n for _, n in words)]
            highest += first.count(row.tag) / len(first)
            chance += [tag for tag, _ in words].count(row.tag) / len(words)
        assert row.highest == pytest.approx(highest / len(kept))
        assert row.expected == pytest.approx(chance / len(kept))
        assert row.ratio == pytest.approx(highest / chance)
        own = [norm for words in kept for tag, norm in words if tag == row.tag]
        assert (row.words, row.norm) == (len(own), pytest.approx(sum(own) / len(own)))
        # no tag is PUNCT
        assert row.unpunctuated == pytest.approx(row.ratio)
    assert sum(row.highest for row in table) == pytest.approx(1)
    assert sum(row.expected for row in table) == pytest.approx(1)
    assert sum(row.share for row in table) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(4))
def test_equal_gates_give_chance(seed):
    alike = [replace(one, norms=np.full(len(one.norms), 0.25)) for one in drawn(seed)]
    for row in tabulate(alike):
        assert row.ratio == pytest.approx(1)
        assert row.interval is None or row.interval == (pytest.approx(1), pytest.approx(1))


def test_a_tag_with_few_words_is_last_and_has_no_interval():
    sentences = [gated([0.1, 0.2], ["NOUN", "VERB"], line) for line in range(1, MIN_WORDS + 1)]
    table = tabulate([*sentences, gated([0.9, 0.1], ["INTJ", "NOUN"], MIN_WORDS + 1)])
    assert [row.tag for row in table] == ["VERB", "NOUN", "INTJ"]
    assert [row.few for row in table] == [False, False, True]
    assert table[2].ratio == 2
    assert table[2].interval is None
    low, high = table[0].interval
    assert low <= table[0].ratio <= high


def test_the_table_has_a_row_for_each_tag():
    # the verb is the highest in ten sentences of two words, the interjection in one sentence of one
    # word
    sentences = [gated([0.1, 0.2], ["NOUN", "VERB"], line) for line in range(1, MIN_WORDS + 1)]
    rows = tabulate([*sentences, gated([0.25], ["INTJ"], MIN_WORDS + 1)])
    verb, noun, interjection = gate_table(rows, ["a note"]).as_json()["rows"]
    assert verb == {
        "tag": "VERB",
        "words": 10,
        "share": pytest.approx(10 / 21),
        "norm": pytest.approx(0.2),
        "highest": pytest.approx(10 / 11),
        "expected": pytest.approx(5 / 11),
        "ratio": pytest.approx(2),
        "interval": pytest.approx([2, 2]),
        "unpunctuated": pytest.approx(2),
    }
    assert (noun["ratio"], noun["interval"], noun["unpunctuated"]) == (0, None, 0)
    assert interjection["tag"] == "INTJ"
    assert "INTJ *  " in str(gate_table(rows, []))


def test_the_table_of_a_large_test_set_fits_on_80_columns():
    row = TagRow("PROPN", 234_567, 0.345, 0.678, 0.123, 1.0, 0.345, (12.52, 17.12), 12.34)
    lines = str(gate_table([row, replace(row, words=9)], [])).splitlines()
    assert max(map(len, lines[:3])) <= 80
    assert "12.52 to 17.12" in lines[1]


def test_the_second_ratio_leaves_punctuation_out():
    sentences = [
        gated([0.1, 0.3, 0.9], ["DET", "NOUN", "PUNCT"]),
        gated([0.2, 0.6, 0.4], ["DET", "PUNCT", "VERB"], 2),
    ]
    sentences.append(gated([0.7], ["PUNCT"], 3))
    table = tabulate(sentences)
    assert {row.tag: row.unpunctuated for row in table} == {
        "NOUN": 2,
        "VERB": 2,
        "DET": 0,
        "PUNCT": None,
    }
    assert row_of(table, "PUNCT").ratio == pytest.approx(3 / (1 / 3 + 1 / 3 + 1))
    assert tabulate([gated([0.1], ["PUNCT"])])[0].unpunctuated is None


def test_a_tag_that_is_never_the_highest_has_no_interval():
    table = tabulate([gated([0.1, 0.2], ["NOUN", "VERB"], line) for line in range(MIN_WORDS)])
    assert (row_of(table, "NOUN").ratio, row_of(table, "NOUN").interval) == (0, None)


def test_words_without_a_norm_do_not_count_and_empty_lines_alone_are_an_error():
    [row] = tabulate([gated([0.1, np.nan], ["NOUN", "PUNCT"]), gated([np.nan], ["X"], line=2)])
    assert (row.tag, row.words, row.highest) == ("NOUN", 1, 1)
    with pytest.raises(SynmtError, match="all lines are empty"):
        tabulate([gated([], [])])


def test_the_json_has_every_word():
    sentences = [gated([0.25], ["VERB"], line=1), gated([0.5, np.nan], ["NOUN", "PUNCT"], line=2)]
    found = gate_facts(gated_words(sentences), tabulate(sentences), sentences)
    assert (found["sentences"], found["words"], found["words_without_pieces"]) == (2, 2, 1)
    assert found["norm"]["mean"] == 0.375
    assert found["deviations"] == {"NOUN": 0, "VERB": 0}
    assert [line["line"] for line in found["lines"]] == [1, 2]
    assert found["lines"][1]["words"] == [
        {"word": "w0", "tag": "NOUN", "norm": 0.5},
        {"word": "w1", "tag": "PUNCT", "norm": None},
    ]


def test_words_without_a_tag_are_unknown_and_a_parser_without_tags_is_refused():
    assert GatedSentence(1, "", LINE, MONKEY, np.zeros(5)).tags == ["_"] * 5
    check_tags([flat_parse("a"), TAGGED], "Stanza")
    with pytest.raises(UsageError, match="Stanza: the parser gives no parts of speech"):
        check_tags([flat_parse(LINE), MONKEY], "Stanza")


def translator(*variants, max_pieces=512, **model):
    """Make a small system of words, from German to English."""
    sizes = {
        "architecture": "lstm",
        "size": "tiny",
        "model_dim": 8,
        "embedding_dim": 6,
        "initial_range": 1.0,
    }
    recipe = check_recipe(
        {
            "name": "small",
            "source": "de",
            "target": "en",
            "corpus": {"name": "controlled"},
            "vocabulary": {"kind": "word"},
            "model": model or sizes,
            "syntax": {"variants": list(variants)},
            "decoding": {"batch_size": 2},
            "filters": {"max_pieces": max_pieces},
        },
        where="test",
    )
    vocabulary = Words(WORDS)
    torch.manual_seed(5)
    pieces = {"source_pieces": len(vocabulary), "target_pieces": len(vocabulary)}
    model = build(recipe.model, recipe.syntax, **pieces)
    reading = Reading(model.reads("source"))
    return Translator(
        [LoadedModel(model.eval(), recipe, vocabulary, vocabulary, torch.device("cpu"), reading)]
    )


def text_of(sources, targets):
    parses = [replace(flat_parse(line), tags=["NOUN"] * len(line.split())) for line in targets]
    return ParsedText("target", sources, targets, parses)


def norms_step_by_step(system, source, target):
    """Compute the gates of a sentence step by step, from the states of the decoder."""
    model = system.model
    ids = torch.tensor(system.target.encode_ids(target))
    memory, _ = model.remember(collate_source([np.array(system.source.encode_ids(source))]), {})
    state, fed, norms = model.start(memory), BOS, []
    weight, bias = model.decoder.gate.project.weight, model.decoder.gate.project.bias
    for piece in ids.tolist():
        model.step(state, torch.tensor([[fed]]))
        h = state.recurrence.layers[-1][0][0]  # (D,)
        z = 1 / (1 + torch.exp(-(weight @ h + bias)))  # (D,)
        norms.append(math.sqrt(float((z**2).mean())))
        fed = piece
    return norms


@torch.no_grad()
@pytest.mark.parametrize("attention", ["shared", "separate"])
def test_each_word_has_the_gate_of_the_step_that_predicts_it(attention):
    system = translator({"name": "latent_tree", "attention": attention})
    check_gates(system, "runs/sa")
    sources = ["der Affe isst eine Banane", "der Affe", "", "isst"]
    targets = ["the monkey eats a banana", "sleeps", "a banana", "monkey eats"]
    found, too_long = read_gates(system, text_of(sources, targets))
    assert ([one.line for one in found], too_long) == ([1, 2, 4], 0)
    for one in found:
        assert (one.source, one.target) == (sources[one.line - 1], targets[one.line - 1])
        assert one.norms.tolist() == pytest.approx(
            norms_step_by_step(system, one.source, one.target), abs=1e-6
        )
        assert len(set(one.norms.round(6))) == len(one.norms)


def test_a_pair_that_is_too_long_is_left_out_and_counted(monkeypatch):
    system = translator({"name": "latent_tree"}, max_pieces=4)
    sources = ["der Affe isst eine", "der Affe isst eine Banane", "der Affe", "", "isst"]
    targets = ["the monkey eats a", "the monkey", "the monkey eats a banana", "a banana", "eats"]
    done = []
    monkeypatch.setattr("synmt.reporting.progress._display", lambda *job: nullcontext(done.append))
    found, too_long = read_gates(system, text_of(sources, targets))
    assert ([one.line for one in found], too_long) == ([1, 5], 2)
    assert not any(np.isnan(one.norms).any() for one in found)
    assert sum(done) == 4


@pytest.mark.parametrize(
    ("variants", "model"),
    [([], {}), ([{"name": "latent_tree", "sets": 1}], {}), ([], {"size": "tiny"})],
)
def test_an_lstm_with_one_set_and_a_transformer_have_no_gates(variants, model):
    with pytest.raises(UsageError, match=r"runs/one: this model has no gates.*latent_tree"):
        check_gates(translator(*variants, **model), "runs/one")


def test_a_pair_whose_target_has_no_words_is_left_out():
    nothing = Parse([], np.zeros((0, 2), int), np.zeros(0, int), [])
    text = ParsedText("target", ["der Affe"], [""], [nothing])
    assert read_gates(translator({"name": "latent_tree"}), text) == ([], 0)
