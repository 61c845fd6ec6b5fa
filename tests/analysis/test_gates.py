"""Norms of gates: from pieces to words, and by part of speech, with the figure and the page."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from each import of_seeds
from pages import HOSTILE, Reader
from refusing import assert_fails, assert_refused
from small import MONKEY, MONKEY_SPANS
from small_run import LSTM, TEXT, load_run

from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.gates.norms import (
    GatedSentence,
    check_gates,
    read_gates,
    tag_table,
)
from synmt.analysis.gates.report import gate_facts, words_as_html
from synmt.data.batch import collate_source
from synmt.data.vocabulary import BOS
from synmt.decode.explanation import word_norms
from synmt.syntax.parse import Parse, flat_parse


def gated(words, line=1):
    """Make a sentence of words such as `eats/VERB:0.3`; those without a number have no norm."""
    names, tags, norms = (
        zip(*re.findall(r"(\S+)/(\w+):?(\S*)", words), strict=True) if words else [()] * 3
    )
    parse = replace(flat_parse(" ".join(names)), tags=list(tags))
    values = np.array([float(norm or "nan") for norm in norms])
    return GatedSentence(line, "a source", " ".join(names), parse, values)


def rows_of(*sentences):
    return tag_table(sentences).as_json()["rows"]


MANY = [gated("er/PRON:0.1 schläft/VERB:0.2", line) for line in range(1, 11)]
FEW = gated("oh/INTJ:0.25 ./PUNCT", 11)


def test_a_word_has_the_mean_of_its_pieces_and_one_without_a_piece_has_no_norm():
    norms = word_norms(np.arange(7.0), MONKEY_SPANS, MONKEY.spans)
    assert norms.tolist() == [0, (1 + 2) / 2, 3, 4, (5 + 6) / 2]
    # `monkey.` is one piece, and two words
    words = np.array([[0, 3], [4, 10], [10, 11]])
    norms = word_norms(np.array([0.3, 0.5]), np.array([[0, 3], [3, 11]]), words)
    np.testing.assert_equal(norms, [0.3, 0.5, np.nan])


def drawn(random):
    """Sample sentences of one to nine words; some words have no norm, some equal norms."""
    made = []
    for line in range(1, 13):
        tags = random.choice(["DET", "NOUN", "VERB", "PUNCT"], int(random.integers(1, 10)))
        norms = [f"0.{random.integers(1, 6)}" if random.random() > 0.1 else "" for _ in tags]
        words = [f"w/{tag}:{norm}" for tag, norm in zip(tags, norms, strict=True)]
        made.append(gated(" ".join(words), line))
    return made


@pytest.mark.parametrize("without", ["", "PUNCT"], ids=["all words", "without punctuation"])
@of_seeds(6)
def test_the_table_equals_one_counted_word_by_word(random, without):
    sentences = drawn(random)
    pairs = [zip(one.tags, one.norms.tolist(), strict=True) for one in sentences]
    real = [[p for p in one if not math.isnan(p[1]) and p[0] != without] for one in pairs]
    real = [words for words in real if words]
    rows = rows_of(*sentences)
    for row in rows:
        highest = chance = 0.0
        for words in real:
            first = [tag for tag, norm in words if norm == max(n for _, n in words)]
            highest += first.count(row["tag"]) / len(first)
            chance += [tag for tag, _ in words].count(row["tag"]) / len(words)
        if without:
            expected = highest / chance if row["tag"] != without else None
            assert row["unpunctuated"] == pytest.approx(expected)
            continue
        own = [norm for words in real for tag, norm in words if tag == row["tag"]]
        names = ("words", "share", "norm", "deviation", "highest", "expected", "ratio")
        found = tuple(row[name] for name in names)
        share, size = len(own) / sum(map(len, real)), len(real)
        expected = len(own), share, np.mean(own), np.std(own), highest / size, chance / size
        assert found == pytest.approx((*expected, highest / chance))
    ratios = [row["ratio"] for row in rows]
    assert ratios == sorted(ratios, reverse=True)


def test_the_ratio_of_a_tag_has_an_interval():
    verb, interjection, pronoun = rows_of(*MANY, FEW)
    assert verb["interval"] == pytest.approx([2, 2])
    assert [one["tag"] for one in (verb, interjection, pronoun)] == ["VERB", "INTJ", "PRON"]
    assert (pronoun["ratio"], pronoun["interval"]) == (0, [0, 0])


def test_the_json_has_every_word_and_empty_lines_alone_are_an_error():
    found = gate_facts([*MANY, FEW])
    assert (found["sentences"], found["words"]) == (11, 21)
    assert found["norm"] == pytest.approx((10 * 0.3 + 0.25) / 21)
    last = found["lines"][-1]
    assert (last["line"], last["words"], last["tags"]) == (11, ["oh", "."], ["INTJ", "PUNCT"])
    assert last["norms"] == [0.25, None]
    assert GatedSentence(1, "", "", MONKEY, np.zeros(5)).tags == ["_"] * 5
    assert_fails("all lines are empty", tag_table, [gated("")])


def norms_step_by_step(system, source, target):
    """Compute the gates of a sentence step by step, from the states of the decoder."""
    model, gate = system.model, system.model.decoder.gate.project
    memory, _ = model.remember(collate_source([np.array(system.source.encode_ids(source))]), {})
    state, norms = model.start(memory), []
    for fed in [BOS, *system.target.encode_ids(target)][:-1]:
        model.step(state, torch.tensor([[fed]]))
        h = state.recurrence.layers[-1][0][0]  # (D,)
        z = 1 / (1 + torch.exp(-(gate.weight @ h + gate.bias)))  # (D,)
        norms.append(math.sqrt(float((z**2).mean())))
    return np.array(norms)


@torch.no_grad()
@pytest.mark.parametrize("attention", ["shared", "separate"])
def test_each_word_has_the_gate_of_the_step_that_predicts_it(tmp_path, reported, attention):
    variant = {"name": "latent_tree", "attention": attention}
    system = load_run(tmp_path / "run", variant, model=LSTM, max_pieces=40)
    check_gates(system, "runs/sa")
    sources = ["Ein Hund", TEXT[3], "", TEXT[4], " ".join(TEXT), "Der Affe"]
    targets = [" ".join(TEXT), TEXT[0], "a banana", TEXT[1], "A dog", ""]
    text = ParsedText("target", sources, targets, list(map(flat_parse, targets)))
    found, left_out = read_gates(system, text)
    assert [one.line for one in found] == [2, 4]
    assert left_out == {"too_long": 2, "empty": 2}
    assert sum(reported[-1][3:]) == 5
    for one in found:
        assert (one.source, one.target) == (sources[one.line - 1], targets[one.line - 1])
        norms = norms_step_by_step(system, one.source, one.target)
        spans = system.target.encode(one.target).spans
        np.testing.assert_allclose(one.norms, word_norms(norms, spans, one.parse.spans), atol=1e-6)


@pytest.mark.parametrize("variants", [(), ({"name": "latent_tree", "sets": 1},)])
def test_an_lstm_with_one_set_has_no_gates(tmp_path, variants):
    system = load_run(tmp_path / "run", *variants, model=LSTM)
    assert_refused(
        r"runs/one: this model has no gates.*latent_tree", check_gates, system, "runs/one"
    )


def test_the_page_shows_the_norm_of_each_word_of_the_first_sentences():
    first = gated("der/DET:0.25 Affe/NOUN:0.75 isst/VERB:0.5 ./PUNCT", line=2)
    page = words_as_html([gated("oh/X"), first, *MANY], "en", "de", shown=3)
    assert re.findall(r"/ ([\d.]+)%", page)[:5] == ["0.0", "0.0", "50.0", "25.0", "0.0"]
    assert '<small dir="ltr" lang="en">NOUN 0.750</small>' in page
    assert re.findall(r"line (\d+)<", page) == ["1", "2", "1"]


@pytest.mark.parametrize(
    "target", ["Er  schläft .", " Hut, der", "猴子吃香蕉", "القرد يأكل 12 موزة", HOSTILE]
)
def test_text_on_the_page_is_unchanged_and_stays_text(target):
    # words of two characters, with any character between them, and hostile tags
    spans = np.array([[start, start + 2] for start in range(1, len(target) - 2, 3)])
    words, count = [target[a:b] for a, b in spans], len(spans)
    parse = Parse(words, spans, np.zeros(count, int), ["dep"] * count, ['"><i>'] * count)
    sentence = GatedSentence(1, target, target, parse, np.linspace(0.1, 0.9, count))
    read = Reader(words_as_html([sentence], 'e"n><b>', "de"))
    assert {"script", "b", "i"}.isdisjoint(read.tags)
    assert read.text["p", "source"] == read.text["p", "target"] == [target]
    # Latin tags do not change the direction of a line
    shown = [(found.get("class"), found.get("dir")) for _, found in read.attributes]
    assert {("source", "auto"), ("target", "auto"), (None, "ltr")} <= set(shown)
