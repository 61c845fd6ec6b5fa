"""Translations with other trees: the trees, their UAS, and the outcomes."""

from dataclasses import replace

import numpy as np
import pytest
from small import MONKEY as WITHOUT_STOP
from small_run import PASCAL, TEXT, make_run
from test_attachment import with_full_stop
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
from synmt.errors import UsageError
from synmt.evaluation.metrics import make_metric, score, score_system
from synmt.evaluation.outputs import Outputs
from synmt.syntax.controls import Control, certain_arcs
from synmt.syntax.parse import Arcs, Parse, flat_parse
from synmt.syntax.reading import Reading

pytestmark = pytest.mark.journey

MONKEY = "The monkey eats a banana."
TREE = with_full_stop(WITHOUT_STOP)
LINES = [MONKEY, "", "A dog sees the cats.", " \t"]
GERMAN = [TEXT[3], "", "Ein Hund sieht die Katzen.", ""]
OUTPUTS = Outputs("reader", "test", LINES, GERMAN, GERMAN)


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    made = make_run(tmp_path_factory.mktemp("runs") / "reader", PASCAL)
    return Translator.load(made, device="cpu", beam_size=2)


def parses():
    return [chain_of(line) if line.strip() else flat_parse(line) for line in LINES]


def texts(translator):
    return [one.text for one in translator.translate(LINES, parses())]


def outcomes_of(translator, shares, seed=1):
    own = find_model_trees(translator, LINES, parses())
    made = make_conditions(own, shares, seed=seed)
    return {
        one.condition.name: one
        for one in measure(translator, own, made, make_metric("chrf"), OUTPUTS)
    }


def test_attachment_counts_words_that_keep_their_parent():
    # the parent of banana is monkey instead of eats
    assert attachment_score(
        [TREE], [replace(TREE, parents=np.array([1, 2, 2, 4, 1, 2]))]
    ) == pytest.approx(5 / 6)
    # monkey becomes the root: eats and monkey have different parents
    assert attachment_score(
        [TREE], [replace(TREE, parents=np.array([1, 1, 1, 4, 2, 2]))]
    ) == pytest.approx(4 / 6)
    assert attachment_score([TREE, TREE], [TREE, flat_parse(MONKEY)]) == pytest.approx(6 / 12)
    assert attachment_score([], []) == attachment_score([flat_parse("")], [flat_parse("")]) == 1


def test_words_of_another_parser_are_matched_by_position():
    # "banana." is one word here, so banana, the full stop, and the parent of a do not match
    other = Parse(
        ["The", "monkey", "eats", "a", "banana."],
        np.array([*TREE.spans[:4].tolist(), (18, 25)]),
        np.array([1, 2, 2, 4, 2]),
        ["det", "nsubj", "root", "det", "obj"],
    )
    assert attachment_score([TREE], [other]) == pytest.approx(3 / 6)


@pytest.mark.parametrize("recipe", [{}, {"kind": "random", "seed": 5}, {"rewire": 0.5, "seed": 2}])
def test_with_its_own_trees_a_model_translates_as_usual(translator, recipe):
    reader = translator.with_control(Control(**recipe))
    own = next(iter(outcomes_of(reader, ()).values()))
    assert own.condition.name == {"random": "own (random)"}.get(
        recipe.get("kind", ""), "own (50 % rewired)" if recipe else "own"
    )
    assert own.translations == texts(reader)
    assert (own.uas, own.changed, own.against_own) == (1, 0, None)
    assert own.score == score_system(own.translations, GERMAN, ("chrf",))["chrf"].value


@pytest.fixture(scope="module", params=[1, 2])
def seed_and_outcomes(request, translator):
    return request.param, outcomes_of(translator, (0.0, 0.5, 1.0), request.param)


@pytest.mark.parametrize(
    ("name", "control"),
    [
        ("50 % rewired", {"rewire": 0.5}),
        ("100 % rewired", {"rewire": 1.0}),
        *((kind, {"kind": kind}) for kind in ("random", "left", "right", "shuffled")),
    ],
)
def test_other_trees_are_those_that_a_recipe_with_this_control_reads(
    translator, seed_and_outcomes, name, control
):
    seed, found = seed_and_outcomes
    assert found[name].translations == texts(translator.with_control(Control(**control, seed=seed)))
    expected = score_system(found[name].translations, GERMAN, ("chrf",))["chrf"].value
    assert found[name].score == pytest.approx(expected)
    assert found[name].against_own.difference == pytest.approx(expected - found["own"].score)
    changed = [
        one != other
        for one, other in zip(found[name].translations, found["own"].translations, strict=True)
    ]
    assert found[name].changed == pytest.approx(np.mean(changed))


def test_without_a_parser_the_model_reads_flat_trees(translator, seed_and_outcomes):
    expected = [one.text for one in translator.translate(LINES, map(flat_parse, LINES))]
    assert seed_and_outcomes[1]["flat"].translations == expected


def test_the_model_translates_differently_under_some_trees(seed_and_outcomes):
    assert any(one.changed for one in seed_and_outcomes[1].values())


@pytest.mark.parametrize("seed", range(5))
def test_a_larger_share_keeps_fewer_parents(seed):
    own = ModelTrees(
        [MONKEY] * 50, [TREE] * 50, [bytes([number]) for number in range(50)], [TREE] * 50
    )
    shares = [0.0, 0.1, 0.5, 0.9, 1.0]
    rewired = [one for one in make_conditions(own, shares, seed=seed) if one.kind == "rewired"]
    assert [one.share for one in rewired] == shares[1:]
    kept = [attachment_score(own.trees, one.trees) for one in rewired]
    assert kept == sorted(kept, reverse=True)
    # at the end only the root keeps its parent, and words without an alternative
    assert 1 / 6 <= kept[-1] < 0.4


def test_if_own_trees_have_probabilities_other_trees_have_certain_arcs():
    # the parent of each word has the probability 0.75, the first word 0.25
    arcs = Arcs(
        np.repeat(np.arange(6), 2),
        np.array([parent for word in range(6) for parent in (TREE.parents[word], 0)]),
        np.zeros(12, dtype=np.int64),
        np.tile(np.array([0.75, 0.25], dtype=np.float32), 6),
        ("dep",),
    )
    tree = replace(TREE, arcs=arcs)
    own = ModelTrees([MONKEY], [tree], [b"x"], [tree])
    made = {
        one.name: one
        for one in make_conditions(own, [0.0, 0.5], seed=1, others=[("other", [own.trees[0]])])
    }
    assert own.trees[0].arcs == arcs
    assert made["own, but certain"].trees[0].arcs == certain_arcs(TREE)
    assert made["own, but certain"].share == 0
    for name in ("own, but certain", "50 % rewired", "random", "left", "right", "shuffled", "flat"):
        [tree] = made[name].trees
        assert tree.arcs is not None
        assert tree.arcs.probabilities.tolist() == [1] * len(tree)
        assert tree.arcs.parents.tolist() == tree.parents.tolist()
    assert made["other"].trees[0].arcs == arcs
    # a model that does not read them is not said to
    names = [
        one.name for one in make_conditions(replace(own, reads_arcs=False), [0.0, 0.5], seed=1)
    ]
    assert names[0] == "50 % rewired"


def test_a_metric_reads_the_raw_source_and_a_model_its_words(translator, monkeypatch):
    sources = []

    def scored(metric, hypotheses, references, source):
        sources.append(source)
        return score(metric, hypotheses, references)

    monkeypatch.setattr("synmt.analysis.robustness.conditions.score", scored)
    own = find_model_trees(translator, LINES, parses())
    assert not own.reads_arcs
    raw = replace(OUTPUTS, source=[line.upper() for line in LINES])
    list(measure(translator, own, make_conditions(own, [0.5], seed=1), make_metric("chrf"), raw))
    assert len(sources) > 1
    assert sources == [raw.source] * len(sources)


@pytest.mark.parametrize("text", ["", "a", "0.1,,0.2", "-0.1", "1.5", "nan", "0;1"])
def test_invalid_shares_are_refused(text):
    with pytest.raises(UsageError, match="is not a list of shares"):
        parse_shares(text)


def test_shares_are_sorted_without_duplicates():
    assert parse_shares("1, 0,0.50,0.5") == [0, 0.5, 1]


@pytest.mark.parametrize(
    ("variants", "parser", "message"),
    [([], True, "reads no trees"), ([PASCAL], False, "does not say which parser")],
)
def test_a_model_without_trees_of_a_parser_is_refused(tmp_path, variants, parser, message):
    translator = Translator.load(make_run(tmp_path / "run", *variants, parser=parser), device="cpu")
    with pytest.raises(UsageError, match=message):
        check_translator(translator, "here")


def test_a_model_of_brackets_is_refused(translator, monkeypatch):
    monkeypatch.setattr(type(translator), "reading", Reading(constituents=True))
    with pytest.raises(UsageError, match="the model reads brackets, and other trees have none"):
        check_translator(translator, "here", has_trees=True)
