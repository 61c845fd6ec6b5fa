"""What is explained equals what the model computes, read in another way."""

import json

import numpy as np
import pytest
from refusing import assert_refused
from small_run import LSTM, PASCAL, TEXT, make_run

from synmt.analysis.forward_passes import run_forward
from synmt.data.vocabulary import word_of
from synmt.decode.translator import Translator
from synmt.model.heads import choose_heads, head_weights
from synmt.syntax.arcs import parent_probabilities
from synmt.syntax.controls import Control
from synmt.syntax.parse import Arcs

pytestmark = pytest.mark.journey

OWN = [2, 3, 0, 3, 4, 5]


@pytest.fixture(scope="module")
def translators(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    gated = {"name": "latent_tree", "sets": 2}
    runs = {
        "pascal": make_run(folder / "pascal", PASCAL),
        "tagged": make_run(folder / "tagged", tasks={"parsing": "dependencies"}),
        "gated": make_run(folder / "gated", gated, parser=False, model=LSTM),
    }
    options = {"device": "cpu", "parse_cache": False, "beam_size": 3, "n_best": 2}
    loaded = {name: Translator.load(run, **options) for name, run in runs.items()}
    loaded["left"] = loaded["pascal"].with_control(Control("left"))
    loaded["ensemble"] = Translator.load(runs["pascal"], runs["pascal"], **options)
    return loaded


def test_attention_of_words_is_that_of_their_pieces(translators):
    translator = translators["pascal"]
    found = translator.explain(TEXT[0])
    [usual] = translator.translate([TEXT[0]])
    assert found.translation == usual
    tree = found.tree
    [passed] = run_forward(translator, [TEXT[0]], [usual.text], [tree])
    owners = word_of(passed.sentences[0].source, tree.spans).tolist()
    weights = {head.name: head.weights for head in found.heads}
    places = [np.flatnonzero(np.array(owners) == word).tolist() for word in range(len(tree))]
    for head in choose_heads(translator.model, "source"):
        pieces = head_weights(head, "source", passed.captured, passed.memory)[0]
        for word, rows in enumerate(places):
            for other, columns in enumerate(places):
                expected = np.mean([float(pieces[row, columns].sum()) for row in rows])
                assert weights[head.name][word, other] == pytest.approx(expected, abs=1e-5)
    shares = [head.to_parents for head in found.heads]
    assert shares == sorted(shares, reverse=True)
    for head in found.heads:
        right = [
            max((weight, -place) for place, weight in enumerate(row) if place != word)[1] == -parent
            for word, (row, parent) in enumerate(zip(head.weights, tree.parents, strict=True))
            if parent != word
        ]
        assert head.to_parents == pytest.approx(np.mean(right))


def test_a_tree_of_ones_own_is_what_the_model_reads(translators):
    translator = translators["pascal"]
    own = translator.explain(TEXT[0])
    other = translator.explain(TEXT[0], OWN)
    assert [word["head"] for word in other.to_json()["words"]] == OWN
    assert other.tree.relations[2] == "root"
    [given] = translator.translate([TEXT[0]], [other.tree])
    assert given.best.score == pytest.approx(other.translation.best.score, abs=1e-5)
    assert given.best.score != pytest.approx(own.translation.best.score, abs=1e-5)
    # the parser says how probable it is
    sums = parent_probabilities(own.tree.arcs, other.tree.parents)
    np.testing.assert_allclose(other.probabilities, sums)
    assert other.probabilities[0] == own.probabilities[0] > 0.9
    left = translator.explain(TEXT[0], Control("left"))
    assert left.tree.parents.tolist() == [1, 2, 3, 4, 5, 5]


def test_probabilities_of_a_parent_are_summed_over_relations():
    words, parents, relations = np.array([0, 0, 1, 1]), np.array([1, 1, 1, 0]), np.arange(4)
    chances = np.array([0.5, 0.25, 0.75, 0.25], dtype=np.float32)
    arcs = Arcs(words, parents, relations, chances, ("a", "b", "c", "d"))
    assert parent_probabilities(arcs, np.array([1, 1])).tolist() == [0.75, 0.75]
    assert parent_probabilities(arcs, np.array([0, 0])).tolist() == [0.0, 0.25]


@pytest.mark.parametrize("heads", [[1], [0] * 6, [2, 1, 0, 3, 3, 3], [9, 0, 2, 2, 2, 2], [0, 0]])
def test_what_is_no_tree_of_the_sentence_is_refused(heads, translators):
    assert_refused(
        r"heads: not a tree of this sentence. 6 numbers",
        translators["pascal"].explain,
        TEXT[0],
        heads,
    )


def test_gates_and_induced_trees_are_there_where_a_model_has_them(translators):
    found = translators["gated"].explain(TEXT[0]).to_json()
    assert len(found["gates"]) == len(found["target_words"])
    assert all(0 <= gate <= 1 for gate in found["gates"] if gate is not None)
    [induced] = found["induced"]
    assert induced["name"] == "annotations (latent_tree)"
    assert induced["heads"].count(0) == 1
    assert (found["reads"], found["attention"]) == ("", [])


def test_tags_before_and_after_a_line_belong_to_no_word(translators):
    translator = translators["tagged"]
    found = translator.explain(TEXT[0])
    owners = [word for _, word in found.pieces]
    before = translator.source.encode(f"{translator.task} ").ids
    inside = translator.source.encode(TEXT[0]).ids
    assert owners.count(-1) == len(owners) - len(inside)
    assert set(owners[: len(before)]) == {-1}
    assert owners[-1] == -1


def test_a_control_and_an_ensemble_are_named_as_what_they_are(translators):
    found = translators["left"].explain(TEXT[0], OWN)
    assert found.reads == "left"
    assert found.tree.parents.tolist() == [1, 2, 3, 4, 5, 5]
    found = translators["ensemble"].explain(TEXT[0]).to_json()
    assert found["reads"] == "trees"
    assert (found["attention"], len(found["words"]), len(found["translations"])) == ([], 6, 2)


@pytest.mark.parametrize("name", ["pascal", "gated", "ensemble"])
@pytest.mark.parametrize("line", ["", "  ", "\u2028", "word", "שלום 🙈", TEXT[1]])
def test_every_line_can_be_explained(name, line, translators):
    found = translators[name].explain(line)
    json.dumps(found.to_json(), allow_nan=False)
    assert ("<svg" in found._repr_html_()) == (found.tree is not None)
