"""Probable parents in the annotations of the source: heat maps and statistics of latent trees and
flat attention."""

import math

import numpy as np
import pytest
import torch
from enumerating import enumerated
from small_run import LSTM, PASCAL, SIZE, TEXT, make_run

from synmt.analysis.attention.figures import draw_maps
from synmt.analysis.attention.heads import heads_of, read_map
from synmt.analysis.attention.statistics import measure_heads
from synmt.analysis.forward_passes import ParsedText, run_forward
from synmt.data.vocabulary import is_punctuation, word_of
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.syntax.parse import flat_parse

SHORT = "A cat."


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    return load(tmp_path_factory, {"name": "latent_tree"}, LSTM)


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    return load(tmp_path_factory, {"name": "latent_tree", "normalize": "flat"}, LSTM)


def load(tmp_path_factory, variant, model):
    return Translator.load(
        make_run(tmp_path_factory.mktemp("runs") / "run", variant, model=model, parser=False)
    )


def read(translator, number=1, source=(SHORT, *TEXT[:2])):
    text, heads = ParsedText("source", source, None, []), heads_of(translator.model, "parents")
    return read_map(translator, heads, "parents", text, content="parents", number=number)


def panel_of(translator, **options):
    [panel] = read(translator, **options).panels.values()
    return panel


def scores_of(translator, line):
    """Score every piece as the parent of every other, and as the root, straight from the
    equation."""
    [forward] = run_forward(translator, [line], what=())
    [variant] = translator.model.variants["source"]
    states, pieces = forward.memory.states[0].double(), len(forward.sentences[0].source)
    key, query = (module.weight.double() for module in (variant.key, variant.query))
    scores, roots = torch.zeros(pieces, pieces).double(), torch.zeros(pieces).double()
    for child in range(pieces):
        for parent in range(pieces):
            scores[child, parent] = (
                (query @ states[parent]) @ (key @ states[child]) / math.sqrt(states.size(-1))
            )
        if variant.root is not None:
            roots[child] = (
                variant.root.double() @ (key @ states[child]) / math.sqrt(states.size(-1))
            )
    ids = translator.source.encode(line).ids
    return (
        scores,
        roots,
        torch.tensor([not is_punctuation(piece) for piece in translator.source.pieces(ids)]),
    )


def test_the_heat_map_of_latent_trees_equals_the_sum_over_all_trees(trees):
    shown = read(trees)
    [(head, panel)] = shown.panels.items()
    assert head.name == "latent trees (latent_tree)"
    assert shown.rows == shown.columns == trees.source.pieces(trees.source.encode(SHORT).ids)
    with torch.no_grad():
        expected, _ = enumerated(*scores_of(trees, SHORT))
    np.testing.assert_allclose(panel, expected, atol=1e-6)
    # a full stop is nobody's parent
    assert panel[:-1, -1].max() == 0 < panel[:-1, 0].min()


def test_the_heat_map_of_flat_attention_is_a_softmax_over_the_pieces(flat):
    shown = read(flat)
    [(head, panel)] = shown.panels.items()
    assert head.name == "flat attention (latent_tree)"
    with torch.no_grad():
        scores, _, allowed = scores_of(flat, SHORT)
    for row, own in zip(panel, scores.exp(), strict=True):
        np.testing.assert_allclose(row, (own * allowed / (own * allowed).sum()), atol=1e-6)


def test_statistics_equal_a_loop_over_the_heat_map_of_each_sentence_alone(trees):
    gold = [flat_parse(line) for line in (SHORT, *TEXT[:2])]
    lines = (SHORT, *TEXT[:2])
    text = ParsedText("source", lines, None, gold)
    found, _ = measure_heads(trees, heads_of(trees.model, "parents"), "parents", text)
    assert list(found) == [0, 1, 2]
    for number, (one, parse) in enumerate(zip(found.values(), gold, strict=True)):
        panel = panel_of(trees, number=number + 1, source=lines)
        bits = [-sum(p * math.log2(p) for p in row if p > 0) for row in panel.tolist()]
        np.testing.assert_allclose(one.entropy[0], bits, atol=1e-5)
        owners = word_of(trees.source.encode(lines[number]).spans, parse.spans)
        weights = []
        for word, parent in enumerate(parse.parents.tolist()):
            if word != parent and not is_punctuation(parse.words[word]):
                own = np.flatnonzero(owners == word)
                weights.append(np.mean([panel[piece, owners == parent].sum() for piece in own]))
        np.testing.assert_allclose(one.parent_weights[0], weights, atol=1e-5)
        assert one.visible.tolist() == [len(panel)] * len(panel)
        assert not one.no_word.any()


def test_a_transformer_shows_the_annotations_of_one_set(tmp_path_factory):
    translator = load(tmp_path_factory, {"name": "latent_tree", "sets": 1}, SIZE)
    panel = panel_of(translator)
    np.testing.assert_allclose(panel.sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(panel.diagonal().sum(), 1, atol=1e-6)


def test_the_figure_says_what_rows_and_columns_are(trees):
    drawn = draw_maps(read(trees), system="sa")
    words = [" ".join(text.get_text().split()) for text in drawn.texts]
    assert words == [
        "sa, latent trees (latent_tree): probable parents in the annotations of the source "
        "sentence 1, source",
        "piece",
        "probable parent; on the diagonal: the root, or the piece itself if flat",
    ]


def test_a_model_without_annotations_and_a_head_are_refused(tmp_path_factory, trees):
    with pytest.raises(
        UsageError,
        match=r"--what parents: the source of this model has no annotations .* latent_tree",
    ):
        heads_of(load(tmp_path_factory, PASCAL, SIZE).model, "parents")
    with pytest.raises(
        UsageError, match=r"--head: annotations of the source have no heads\. Leave out `--head`"
    ):
        heads_of(trees.model, "parents", "1.1")
