"""Translations with other trees: the trees, their UAS, and the outcomes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from full_stop import with_full_stop
from notation import arcs_in
from refusing import assert_refused
from scored import score_system
from small_run import PASCAL, TEXT, make_run
from tiny import chain_of

from synmt.analysis.robustness.conditions import (
    ModelTrees,
    attachment_score,
    check_translator,
    find_model_trees,
    make_conditions,
    measure,
    parse_shares,
)
from synmt.decode.translator import Translator
from synmt.evaluation.metrics import make_metric, score
from synmt.evaluation.outputs import Outputs
from synmt.syntax.controls import Control, certain_arcs
from synmt.syntax.parse import flat_parse
from synmt.syntax.reading import Reading

pytestmark = pytest.mark.journey

MONKEY = "The monkey eats a banana."
TREE = with_full_stop()
LINES = [MONKEY, "", "A dog sees the cats.", " \t"]
GERMAN = [TEXT[3], "", "Ein Hund sieht die Katzen.", ""]
OUTPUTS = Outputs("reader", "test", LINES, GERMAN, GERMAN)
PARSES = [chain_of(line) if line.strip() else flat_parse(line) for line in LINES]


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    made = make_run(tmp_path_factory.mktemp("runs") / "reader", PASCAL)
    return Translator.load(made, device="cpu", beam_size=2)


def texts(translator, parses=PARSES):
    return [one.text for one in translator.translate(LINES, parses)]


def outcomes_of(translator, shares, seed=1, outputs=OUTPUTS):
    own = find_model_trees(translator, LINES, PARSES)
    made = make_conditions(own, shares, seed=seed)
    outcomes = measure(translator, own, made, make_metric("chrf"), outputs)
    return {one.name: one for one in outcomes}


def test_attachment_counts_words_that_keep_their_parent():
    # the parent of banana is monkey instead of eats
    other = replace(TREE, parents=np.array([1, 2, 2, 4, 1, 2]))
    assert attachment_score([TREE, TREE], [other, TREE]) == pytest.approx(11 / 12)
    assert attachment_score([], []) == attachment_score([flat_parse("")], [flat_parse("")]) == 1
    # words are matched by position: "banana." is one word here, so banana, the full stop, and the
    # parent of a do not match
    other = replace(flat_parse(MONKEY), parents=TREE.parents[:5])
    assert attachment_score([TREE], [other]) == pytest.approx(3 / 6)


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        ({}, "own"),
        ({"kind": "random", "seed": 5}, "own (random)"),
        ({"rewire": 0.5, "seed": 2}, "own (50 % rewired)"),
        ({"kind": "left", "seed": 7}, "own (left)"),
    ],
)
def test_with_its_own_trees_a_model_translates_as_usual(translator, recipe, name):
    reader = translator.with_control(Control(**recipe))
    own, *others = outcomes_of(reader, ()).values()
    assert own.name == name
    assert own.translations == texts(reader)
    assert (own.uas, own.changed, own.against_own) == (1, 0, None)
    assert own.score == score_system(own.translations, GERMAN, ("chrf",))["chrf"].value
    # the trees of the recipe's control are the original trees
    assert ("left" in [one.name for one in others]) == (name != "own (left)")


@pytest.mark.parametrize("seed", [1, 2])
def test_other_trees_are_those_that_a_recipe_with_this_control_reads(translator, seed):
    controls = {"50 % rewired": {"rewire": 0.5}, "100 % rewired": {"rewire": 1.0}}
    controls |= {kind: {"kind": kind} for kind in ("random", "left", "right", "shuffled")}
    found = outcomes_of(translator, (0.0, 0.5, 1.0), seed)
    assert list(found) == ["own", *controls, "flat"]
    expected = {"flat": texts(translator, map(flat_parse, LINES))}
    for name, one in controls.items():
        expected[name] = texts(translator.with_control(Control(**one, seed=seed)))
    own = found.pop("own")
    assert any(one.changed for one in found.values())
    for name, one in found.items():
        assert one.translations == expected[name]
        scored = score_system(one.translations, GERMAN, ("chrf",))["chrf"].value
        difference = scored - own.score
        assert (one.score, one.against_own.difference) == pytest.approx((scored, difference))
        pairs = zip(one.translations, own.translations, strict=True)
        assert one.changed == np.mean([text != other for text, other in pairs])


def test_if_own_trees_have_probabilities_other_trees_have_certain_arcs():
    # the parent of each word has the probability 0.75, the first word 0.25
    arcs = ", ".join(f"{w}>{p} dep 0.75, {w}>0 dep 0.25" for w, p in enumerate(TREE.parents))
    tree = replace(TREE, arcs=arcs_in(arcs))
    own = ModelTrees([MONKEY], [tree], [b"x"], [tree])
    made = make_conditions(own, [0.0, 0.5], seed=1)
    [first], [certain], *others = made.values()
    assert list(made)[1:3] == ["own, but certain", "50 % rewired"]
    assert first.arcs == tree.arcs
    assert certain.arcs == certain_arcs(TREE)
    assert len(others) == 1 + 4 + 1
    for [found] in others:
        assert found.arcs.probabilities.tolist() == [1] * len(found)
        assert found.arcs.parents.tolist() == found.parents.tolist()
    # without the probabilities there is nothing to make certain
    made = make_conditions(replace(own, reads_arcs=False), [0.0, 0.5], seed=1)
    assert list(made)[1] == "50 % rewired"


def test_a_metric_reads_the_raw_source_and_a_model_its_words(translator, monkeypatch):
    sources = []

    def scored(metric, hypotheses, references, source):
        sources.append(source)
        return score(metric, hypotheses, references)

    monkeypatch.setattr("synmt.analysis.robustness.conditions.score", scored)
    raw = replace(OUTPUTS, source=[line.upper() for line in LINES])
    found = outcomes_of(translator, [], outputs=raw)
    assert sources == [raw.source] * len(found)


def test_shares_are_sorted_without_duplicates_and_others_are_refused():
    assert parse_shares("1, 0,0.50,0.5") == [0, 0.5, 1]
    for text in ("", "a", "0.1,,0.2", "-0.1", "1.5", "nan", "0;1"):
        assert_refused(r"--shares: .* is not a list of shares", parse_shares, text)


@pytest.mark.parametrize(
    ("variants", "parser", "reading", "words"),
    [
        ([], True, Reading(), "run: the model reads no dependency trees"),
        ([PASCAL], False, None, "does not say which parser .* with `--parses FILE.conllu`"),
        ([PASCAL], True, Reading(constituents=True), "run: the model reads no dependency trees"),
    ],
)
def test_a_model_without_trees_of_a_parser_is_refused(
    tmp_path, monkeypatch, variants, parser, reading, words
):
    translator = Translator.load(make_run(tmp_path / "run", *variants, parser=parser), device="cpu")
    if reading:
        monkeypatch.setattr(type(translator), "reading", reading)
    assert_refused(words, check_translator, translator, Path("run"))
