"""Comparison of two systems by sentence: the sentences, the marked words, the pictures and the
page."""

from base64 import b64decode
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import sacrebleu
from each import of_seeds
from small_run import PASCAL, TEXT, make_run
from tiny import chain_of

from synmt.analysis.compare.report import (
    make_cards,
    quantiles_table,
    sentences_table,
    systems_table,
)
from synmt.analysis.compare.sentences import (
    bracketed,
    classify_all,
    classify_words,
    rank_differences,
    ranking_metric,
    stretches,
    word_spans,
)
from synmt.analysis.compare.words import SentenceWords, WordDetails, word_attention
from synmt.decode.translator import Translator
from synmt.evaluation.metrics import MetricOptions, make_metric, score
from synmt.evaluation.outputs import Outputs
from synmt.reporting.values import plain

REFERENCE = [
    "Der Affe isst eine Banane.",
    "Ein Hund sieht zwei Katzen.",
    "Der Junge liest.",
    "Ja.",
    "Nein.",
]
A = ["Der Affe isst.", "Ein Hund sieht zwei Katzen.", "Das liest.", "Ja.", "Nein."]
B = ["Der Affe isst eine Banane.", "Der Hund hört zwei Katzen.", "Der Junge liest.", "Ja.", "Nie."]


C = REFERENCE


def compare(systems, metric="bleu", top=20):
    outputs = [Outputs(name, "test", [], REFERENCE, lines) for name, lines in systems.items()]
    chosen, ranking = make_metric(metric), ranking_metric(metric, MetricOptions())
    scores, ranks = (
        [score(by, lines, REFERENCE) for lines in systems.values()] for by in (chosen, ranking)
    )
    return rank_differences(outputs, scores, ranks, top=top)


def compared(a=A, b=B, **options):
    return compare({"first": a, "second": b}, **options)


def test_more_systems_are_compared_with_the_first_and_sentences_ranked_by_mean_gain():
    found, pair = compare({"x": A, "y": B, "z": C}, top=4), compared()
    first, second, third = found.systems
    assert (first.difference, second.difference) == (None, pair.systems[1].difference)
    # C is right wherever A is wrong
    counts = [row[-3:] for row in systems_table(found).rows]
    assert counts == [[None] * 3, [2, 1, 2], [2, 3, 0]]
    p_values = [second.difference.p_value, third.difference.p_value]
    assert min(second.holm_p, third.holm_p) == pytest.approx(2 * min(p_values))
    for one in found.sentences:
        lines = (system[one.line - 1] for system in (A, B, C))
        a, *others = (sacrebleu.sentence_chrf(line, [one.reference]).score for line in lines)
        assert one.gain == pytest.approx(sum(others) / 2 - a)
    assert found.sentences[0].gain > found.sentences[1].gain > 0
    assert found.sentences[2].line == 5


def test_a_word_of_the_first_translation_is_marked_if_no_other_has_it():
    lines = ["der alte Hund schläft", "der Hund schlief", "ein alte Hund schläft"]
    shown = [
        bracketed(line, kinds)
        for line, kinds in zip(lines, classify_all(lines, "der Hund schlief"), strict=True)
    ]
    assert shown == ["der alte Hund schläft", "der Hund [schlief]", "[ein] alte Hund schläft"]
    assert bracketed(lines[0], classify_all([*lines[:2]], "")[0]) == "der [alte] Hund [schläft]"


def test_tables_and_page_have_every_system():
    found = compare({"x": A, "y": B, "z": C}, top=4)
    assert [row[0] for row in systems_table(found).rows] == ["A: x", "B: y", "C: z"]
    best = [row[0] for row in quantiles_table(found).rows if row[-1] == pytest.approx(100)]
    assert best == ["x", "y", "z"]
    words = {}
    for one in found.sentences:
        weights = tuple(np.ones((len(word_spans(line)), 1)) for line in one.translations)
        words[one.line] = SentenceWords(None, word_spans("x"), weights)
    table = sentences_table(found, lambda: make_cards(found, WordDetails(words)))
    assert plain(table.rows[3][4]) == "Der Junge liest."
    page = table.on_page().html
    assert page.count("<article") == len(found.sentences)
    assert page.count("aligned</dt>") == 3 * len(found.sentences)


@pytest.mark.journey
@of_seeds(10)
def test_the_largest_gains_and_losses_are_shown(random):
    words = ["Affe", "Hund", "Katze", "isst"]
    a, b = ([" ".join(random.choice(words, size=3)) for _ in REFERENCE] for _ in range(2))
    ours, theirs = (
        [
            sacrebleu.sentence_chrf(line, [one]).score
            for line, one in zip(side, REFERENCE, strict=True)
        ]
        for side in (a, b)
    )
    gains = sorted(np.subtract(theirs, ours).tolist())
    found = compared(a, b, top=100)
    expected = [*(gain for gain in gains[::-1] if gain > 0), *(gain for gain in gains if gain < 0)]
    assert [one.gain for one in found.sentences] == pytest.approx(expected)
    wins, losses = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    assert systems_table(found).rows[1][-3:] == [wins, gains.count(0), losses]
    best, worst = found.sentences[:wins], found.sentences[wins:]
    few = best[: 2 - min(1, losses)] + worst[: 2 - min(1, wins)]
    assert compared(a, b, top=2).sentences == few[:2]


def test_words_are_split_at_punctuation_and_chinese_at_every_character():
    def words(line):
        return [line[start:end] for start, end in word_spans(line).tolist()]

    assert words("„Wer  isst?“ U-Bahn") == ["„", "Wer", "isst", "?", "“", "U", "-", "Bahn"]
    assert words("他吃 abc。") == ["他", "吃", "abc", "。"]
    # vowel signs belong to their letters
    assert words("हिन्दी में") == ["हिन्दी", "में"]
    assert words(" ") == words("") == []


@of_seeds(10)
def test_no_more_words_are_right_than_the_reference_has(random):
    line, reference = (random.choice(list("abc"), size=8).tolist() for _ in range(2))
    kinds = classify_words(" ".join(line), "", " ".join(reference))
    found = Counter(word for word, kind in zip(line, kinds, strict=True) if kind == "right")
    assert found == Counter(line) & Counter(reference)


@of_seeds(20)
def test_stretches_together_are_the_line(random):
    line, other, reference = (
        "".join(random.choice(list("ab ,。"), size=random.integers(0, 15))) for _ in range(3)
    )
    of_words = classify_words(line, other, reference)
    assert len(of_words) == len(word_spans(line))
    assert "".join(text for text, _ in stretches(line, of_words)) == line
    assert set(classify_words(line, line, reference)) <= {"same"}


def pictures(html):
    return [b64decode(part.split('"')[0]).decode() for part in html.split("svg+xml;base64,")[1:]]


def test_the_page_escapes_text_and_draws_tree_and_alignment():
    source, translations = "The monkey eats <b>.", ("Affe <isst> eine", "Affe & isst")
    given = {"source": source, "translations": translations, "reference": "Affe isst"}
    one = replace(compared().sentences[0], **given)
    attention = np.full((len(word_spans(translations[0])), 6), 0.1)
    words = SentenceWords(chain_of(source), word_spans(source)[:6], (attention, None))
    found = replace(compared(), sentences=[one])
    body = make_cards(found, WordDetails({one.line: words}, "a & b")).html
    assert '<dt>Source</dt><dd dir="auto">The monkey eats &lt;b&gt;.</dd>' in body
    assert '<mark class="other">&lt;</mark>isst<mark class="other">&gt; eine</mark>' in body
    assert "Trees of the source: a &amp; b." in body
    assert "The–Affe The–&lt; " in body
    [tree] = pictures(body)
    assert "<b>." in "".join(ElementTree.fromstring(tree).itertext())
    # without parser, run and source there is only text
    bare = WordDetails({one.line: replace(words, tree=None, attentions=(None, None))})
    body = make_cards(replace(found, sentences=[replace(one, source="")]), bare).html
    assert not [part for part in ("<img", "Trees", "<dt>Source</dt>", "aligned") if part in body]


def test_word_attention_does_not_depend_on_other_pairs(tmp_path):
    translator = Translator.load(make_run(tmp_path / "run", PASCAL), device="cpu")
    translator.trees = lambda lines, *rest: [chain_of(line) if line else None for line in lines]  # type: ignore
    texts = [*TEXT[:3], ""], [*TEXT[3:5], "", "Ja."]
    words = [list(map(word_spans, lines)) for lines in texts]
    found = word_attention(translator, *texts, *words)
    assert found[3] is None
    for number in range(3):
        pair = ([lines[number]] for lines in (*texts, *words))
        [alone] = word_attention(translator, *pair)
        assert found[number].shape == (len(words[1][number]), len(words[0][number]))
        np.testing.assert_allclose(found[number], alone, atol=1e-6)
        # the rest is on EOS
        assert (found[number].sum(1) <= 1 + 1e-6).all()
