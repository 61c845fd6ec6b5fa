"""Heat maps of one sentence: attention weights, edits of variants, probable parents."""

import math
from dataclasses import replace

import numpy as np
import pytest
import yaml
from cases import cases
from refusing import assert_refused
from small_run import LSTM, PASCAL, SIZE, TEXT, load_run
from tiny import chain_of

from synmt.analysis.attention.heads import KINDS, AttentionMap, heads_of, read_map
from synmt.analysis.attention.report import LEAST, draw_maps
from synmt.analysis.attention.statistics import measure_heads, measure_self_heads
from synmt.analysis.forward_passes import ParsedText, run_forward
from synmt.data.vocabulary import word_of
from synmt.model.heads import Head
from synmt.syntax.parse import flat_parse

SHORT = "A cat."
LATENT = {"name": "latent_tree"}


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """Make a run, and load it; the same one only once."""
    loaded = {}

    def load(*variants, model=SIZE):
        key = str((variants, model))
        if key not in loaded:
            folder = tmp_path_factory.mktemp("runs") / "run"
            loaded[key] = load_run(folder, *variants, model=model)
        return loaded[key]

    return load


@pytest.fixture(scope="module")
def translator(load):
    return load(PASCAL, {"name": "localness", "layers": [2], "heads": 1})


def read(translator, kind, what=None, *, number=1, head=None, source=TEXT[:3], target=TEXT[3:]):
    side = KINDS[kind].side
    gold = list(map(chain_of, source)) if what == "target" else []
    text = ParsedText(side, source, target if side == "target" else None, gold)
    heads = heads_of(translator.model, kind, head)
    what = what or {"cross": "cross", "parents": "parents"}.get(kind, "weights")
    return read_map(translator, heads, kind, text, content=what, number=number)


@pytest.mark.journey
def test_maps_of_weights_have_a_row_for_each_piece_and_bos_or_eos(translator):
    ends = {"source": ("▁", "</s>"), "target": ("<s>", "."), "cross": ("▁", "</s>")}
    for kind, (first, last) in ends.items():
        shown = read(translator, kind)
        assert len(shown.panels) == 8
        # variants own no heads of attention to the source
        assert next(iter(shown.panels)).variant == ("pascal" if kind == "source" else "")
        assert (shown.rows[0].startswith(first), shown.rows[-1]) == (True, last)
        assert shown.columns[:2] == (["▁The", "▁"] if kind != "target" else shown.rows)[:2]
        for panel in shown.panels.values():
            assert panel.shape == (len(shown.rows), len(shown.columns))
            np.testing.assert_allclose(panel.sum(1), 1, atol=1e-5)


@pytest.mark.journey
def test_the_map_of_the_target_is_not_cut_to_the_source(load):
    # behind the pieces of the source, the memory has the nodes of its tree
    for kind in ("target", "cross"):
        shown = read(load({"name": "tree_lstm"}), kind, source=["A dog."], target=[" ".join(TEXT)])
        for panel in shown.panels.values():
            assert panel.shape == (len(shown.rows), len(shown.columns))
    assert len(shown.rows) > len(shown.columns)


def test_factors_and_biases_are_shown_for_the_heads_that_have_them(translator):
    factor, bias = read(translator, "source", "factor"), read(translator, "source", "bias")
    assert [head.name for head in factor.panels] == ["head 1.1 (pascal)", "head 1.2 (pascal)"]
    assert [head.name for head in bias.panels] == ["head 2.1 (localness)"]
    # the density at the parent's middle, where that is a piece
    for panel in factor.panels.values():
        assert panel.max() == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-5)


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_penalties_of_alibi_are_the_bias_of_plain_heads(load, side):
    shown = read(load(model={**SIZE, "positions": "alibi"}), side, "bias")
    assert len(shown.panels) == 8
    places = np.arange(len(shown.rows))
    for head, panel in shown.panels.items():
        # m_h = 2^(-8 h / H), of 4 heads
        expected = -(2.0 ** (-2 * head.number)) * abs(places[:, None] - places)
        np.testing.assert_allclose(panel, expected, rtol=1e-6)


def test_each_map_of_labelled_distributions_is_named_by_its_relations(load):
    variant = {"name": "dependency_distribution", "heads": 16}
    shown = read(load(variant, model={**SIZE, "encoder_heads": [16, 4]}), "source", "factor")
    titles = [head.title for head in shown.panels]
    assert titles[5:8] == ["1.6 nsubj", "1.7 cc", "1.8 conj cc:preconj"]


@pytest.mark.parametrize(
    ("options", "model"),
    [
        ({}, LSTM),
        ({"normalize": "flat"}, LSTM),
        ({"sets": 1}, SIZE),
    ],
)
def test_the_map_of_annotations_has_the_weights_of_the_pieces(load, options, model):
    translator = load(LATENT | options, model=model)
    shown = read(translator, "parents", source=[SHORT])
    [(head, panel)] = shown.panels.items()
    assert head.name == "annotations (latent_tree)"
    ids = translator.source.encode(SHORT).ids
    assert shown.rows == shown.columns == translator.source.pieces(ids)
    [forward] = run_forward(translator, [SHORT], what=())
    pieces = len(shown.rows)
    np.testing.assert_allclose(panel, forward.memory.weights[0, :pieces, :pieces])
    np.testing.assert_allclose(panel.sum(1), 1, atol=1e-5)


def test_statistics_are_those_of_the_heat_map_of_each_sentence_alone(load):
    trees, lines = load(LATENT, model=LSTM), (SHORT, *TEXT[:2])
    gold, heads = list(map(flat_parse, lines)), heads_of(trees.model, "parents")
    found, _ = measure_heads(trees, heads, "parents", ParsedText("source", lines, None, gold))
    assert list(found) == [0, 1, 2]
    for number, one in found.items():
        [panel] = read(trees, "parents", number=number + 1, source=lines).panels.values()
        owners = word_of(trees.source.encode(lines[number]).spans, gold[number].spans)
        alone = measure_self_heads(panel[None], owners, gold[number], causal=False)
        np.testing.assert_allclose(one.parent_weights, alone.parent_weights, atol=1e-5)


def test_the_heat_map_of_an_lstm_is_its_attention_to_the_source(load):
    translator = load(model=LSTM)
    shown = read(translator, "cross")
    [(head, panel)] = shown.panels.items()
    assert head.name == "attention"
    np.testing.assert_allclose(panel[:, :-1].sum(1), 1, atol=1e-5)
    found, _ = measure_heads(
        translator, [head], "cross", ParsedText("target", TEXT[:3], TEXT[3:], [])
    )
    assert found[0].visible[0] == len(shown.columns) - 1


@pytest.mark.parametrize(("kind", "what"), [("source", "factor"), ("cross", None)])
def test_the_mean_of_a_layer_is_the_mean_of_its_heads(translator, kind, what):
    shown = read(translator, kind, what)
    heads = [panel for head, panel in shown.panels.items() if head.layer == 1]
    # two heads of four have factors, all others 1
    heads += [np.ones_like(heads[0])] * (4 - len(heads))
    [(mean, panel)] = read(translator, kind, what, head="1.mean").panels.items()
    assert mean.name == "head 1.mean"
    np.testing.assert_allclose(panel, np.mean(heads, axis=0), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "kind"), [("lisa", "source"), ("dbsa", "source"), ("dbsa", "target")]
)
def test_the_map_of_a_supervised_head_has_the_parents_that_it_learns(load, name, kind):
    translator = load({"name": name, "side": kind, "layers": [2], "heads": 1})
    line = "Tigers unbelievably eat."
    # the first word hangs on the second, the root; the third on the first
    gold = replace(chain_of(line), parents=np.array([1, 1, 0]))
    text = ParsedText(kind, [line], [line] if kind == "target" else None, [gold])
    shown = read_map(
        translator, heads_of(translator.model, kind), kind, text, content="target", number=1
    )
    [(head, panel)] = shown.panels.items()
    assert head.name == f"head 2.1 ({name})"
    words = list(np.cumsum([piece.startswith("▁") for piece in shown.rows]) - 1)
    ends = {place for place, piece in enumerate(shown.rows) if piece in ("<s>", "</s>")}
    expected = np.zeros((len(words), len(words)))
    for place, word in enumerate(words):
        first = words.index(gold.parents[word])
        if name == "dbsa" and place + 1 not in ends and words[place + 1 :][:1] == [word]:
            first = place + 1
        elif name == "dbsa" and gold.parents[word] == word:
            first = place
        expected[place, first] = place not in ends
    if kind == "target":
        expected[np.triu_indices(len(words), 1)] = np.nan
    np.testing.assert_array_equal(panel, expected)


HIDDEN = """
source => {what: factor, head: '2.1'} => --what factor: no chosen head of the source has a factor
target => {what: bias} => no chosen head of the target has a bias to show
source => {number: 4} => --sentence 4: there is no such sentence, .* 1 to 3, of at most 512 pieces
source => {source: [' ']} => --sentence 1: there is no such sentence, or it is empty or too long
source => {source: [LONG]} => --sentence 1: there is no such sentence, or it is empty or too long
source => {head: '2.9'} => --head 2.9: the model has no such attention head
source => {head: '3.mean'} => --head 3.mean: the model has no such attention head
source => {what: target} => --what target: no chosen head of the source learns from parents
parents => {} => --what parents: .* no annotations .* latent_tree or latent_graph
""".replace("LONG", TEXT[0] * 80)


@pytest.mark.parametrize(("kind", "options", "words"), cases(HIDDEN))
def test_a_map_that_cannot_be_shown_is_refused(translator, kind, options, words):
    assert_refused(words, read, translator, kind, **yaml.safe_load(options))


def shown_map(pieces, heads, what="weights", low=0.0):
    labels = [f"▁p{number}" for number in range(pieces)]
    panel = np.linspace(low, 1, pieces**2).reshape(pieces, pieces)
    panels = {Head(1, number + 1): panel for number in range(heads)}
    return AttentionMap(what, "source", 1, labels, labels, panels)


@pytest.mark.journey
@pytest.mark.parametrize(("low", "ends"), [(0.0, (0, 1)), (-200.0, (LEAST, 1))])
def test_the_scale_is_shared_and_cut_at_negligible_biases(low, ends):
    *panels, _ = draw_maps(shown_map(3, 2, "bias", low), system="system").axes
    assert [axes.images[0].get_clim() for axes in panels] == [ends] * 2
    assert [axes.get_title() for axes in panels] == ["1.1", "1.2"]


@pytest.mark.journey
@pytest.mark.parametrize(("pieces", "heads"), [(40, 16), (200, 1)])
def test_maps_of_a_long_sentence_have_a_limited_size(pieces, heads):
    assert max(draw_maps(shown_map(pieces, heads), system="system").get_size_inches()) < 32
