"""Trees induced from attention: which heads, which sentences, and how pieces are collapsed to
words."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from refusing import assert_refused
from small import MONKEY, MONKEY_SPANS, MONKEY_WORD_OF, small_model
from small_run import PASCAL, TEXT, load_run

from synmt.analysis import forward_passes
from synmt.analysis.forward_passes import ForwardPass, ParsedText, SentencePass, run_forward
from synmt.analysis.trees.induced import induce_trees
from synmt.data.vocabulary import word_of
from synmt.model.attention import Memory
from synmt.model.capture import Activations
from synmt.model.heads import Head, head_weights, tree_heads
from synmt.syntax.parse import flat_parse
from synmt.syntax.trees import collapse, maximum_spanning_tree

LINE = "The monkey eats a banana"
TAGGED = np.array([[0, 0], *MONKEY_SPANS.tolist(), [24, 24]])
LATENT = {"architecture": "lstm", "encoder_layers": 1, "decoder_layers": 1}
TREE = {"name": "latent_tree"}
DBSA = {"name": "dbsa", "layers": [1], "side": "target"}


def induce(weights, monkeypatch, task="", spans=MONKEY_SPANS):
    """Induce the tree of LINE from one head with these weights, (T, T) with EOS; returns it and the
    choices."""
    captured = Activations(
        {("source", 1): torch.as_tensor(weights, dtype=torch.float32)[None, None]}
    )
    passed = ForwardPass([SentencePass(0, spans, spans)], SimpleNamespace(), captured)
    monkeypatch.setattr(forward_passes, "run_forward", lambda *_, **__: iter([passed]))
    text = ParsedText("source", [LINE], None, [MONKEY])
    found, left_out = induce_trees(SimpleNamespace(task=task), [Head(1, 1)], text)
    assert left_out == {"too_long": 0, "empty": 0}
    return [one.tolist() for one in found[0][0]]


def test_collapsing_sums_over_the_pieces_of_both_words_and_takes_the_diagonal_for_the_root():
    owners = np.array([-1, 0, 1, 1, 3, 3, 3, -1])
    for seed in range(20):
        weights = np.random.default_rng(seed).random((8, 8))
        expected = np.zeros((4, 4))
        for piece, other in np.ndindex(8, 8):
            word, parent = owners[piece], owners[other]
            if word >= 0 and parent >= 0 and (word != parent or piece == other):
                expected[word, parent] += weights[piece, other]
        np.testing.assert_allclose(collapse(weights, owners, 4), expected, atol=1e-14)


def test_a_head_that_attends_to_parents_gives_the_tree_and_tags_of_tasks_belong_to_no_word(
    monkeypatch,
):
    owners = np.array([-1, *MONKEY_WORD_OF, -1])
    weights = np.full((len(owners) + 1, len(owners) + 1), 0.1)
    for piece, word in enumerate(owners):
        if word >= 0:
            [parent, *_] = np.flatnonzero(owners == MONKEY.parents[word])
            weights[piece, parent] = 9
        else:
            weights[piece] = weights[:, piece] = 99
    assert induce(weights, monkeypatch, "<TR>", TAGGED) == [MONKEY.parents.tolist()] * 2


def test_the_choices_need_not_be_a_tree(monkeypatch):
    # each word attends to the next one, the last to the first
    weights = np.zeros((8, 8))
    weights[np.arange(6), [1, 3, 3, 4, 5, 0]] = 1
    weights[6, 6] = 0.5
    assert induce(weights, monkeypatch) == [[1, 2, 3, 4, 4], [1, 2, 3, 4, 0]]
    # words without weight have no choice, but a parent
    tree, choices = induce(np.zeros((8, 8)), monkeypatch)
    assert choices == [-1] * 5
    assert len(tree) == 5


def names(model, side="source", head=None):
    return [one.name for one in tree_heads(model, side, head)]


def test_heads_that_learn_trees_are_found_after_those_of_other_variants():
    model = small_model(
        {"name": "pascal", "layers": [2], "heads": 1},
        {"name": "lisa", "layers": [2], "heads": 2},
        {"name": "tree_attention", "layers": [1]},
        DBSA,
    )
    assert names(model) == ["head 1.1 (tree_attention)", "head 2.2 (lisa)", "head 2.3 (lisa)"]
    assert names(model, "target") == ["head 1.1 (dbsa)"]
    assert names(model, "target", "1.2") == ["head 1.2"]
    assert names(model, head="2.3") == ["head 2.3 (lisa)"]
    assert len(names(model, head="all")) == 8


def test_annotations_of_an_lstm_are_read():
    [head] = tree_heads(small_model(TREE, **LATENT), "source")
    assert head.name == "annotations (latent_tree)"
    weights = torch.rand(2, 3, 3)
    memory = Memory(torch.zeros(2, 3, 1), torch.ones(2, 3), weights=weights)
    assert torch.equal(head_weights(head, "source", Activations(), memory), weights)
    bare = replace(memory, weights=None)
    assert_refused(
        r"latent_tree annotates .* without giving the weights",
        head_weights,
        head,
        "source",
        Activations(),
        bare,
    )


@pytest.mark.parametrize("head", ["3.1", "0.1", "2.5", "2.0", "2", "first", "-1.2"])
def test_what_is_no_head_is_refused(head):
    assert_refused(
        f"--head {head}: the model has no such attention head",
        tree_heads,
        small_model(),
        "source",
        head,
    )


@pytest.mark.parametrize(
    ("variants", "model", "side", "head", "words"),
    [
        ([PASCAL], {}, "source", None, "here: .* learned trees of the source"),
        ([TREE], LATENT, "target", None, "learned trees of the target"),
        ([], LATENT, "source", None, "learned trees of the source.*`--head LAYER.HEAD`"),
        ([TREE], LATENT, "source", "1.1", "no such attention head.* an LSTM has no heads"),
    ],
)
def test_a_model_without_such_trees_is_refused_with_advice(variants, model, side, head, words):
    assert_refused(words, tree_heads, small_model(*variants, **model), side, head, where="here")


@pytest.mark.parametrize("side", ["source", "target"])
def test_every_head_of_a_run_gives_the_tree_of_its_weights(tmp_path, side):
    translator = load_run(tmp_path / "run", DBSA, max_pieces=40)
    sources = ["A dog sees the two cats.", "", "The boy", TEXT[0], " ".join(TEXT)]
    targets = ["Ein Hund sieht die Katzen.", "Ein", "  ", TEXT[3], "Ein"]
    gold = list(map(flat_parse, sources if side == "source" else targets))
    heads = tree_heads(translator.model, side, "all")
    found, left_out = induce_trees(translator, heads, ParsedText(side, sources, targets, gold))
    assert list(found) == ([0, 2, 3] if side == "source" else [0, 3])
    assert left_out == {"too_long": 1, "empty": 4 - len(found)}
    for index, of_heads in found.items():
        [passed] = run_forward(translator, [sources[index]], [targets[index]])
        owners = word_of(getattr(passed.sentences[0], side), gold[index].spans)
        # without EOS or BOS
        inner = slice(len(owners)) if side == "source" else slice(1, len(owners) + 1)
        for head, (tree, choices) in zip(heads, of_heads, strict=True):
            weights = head_weights(head, side, passed.captured, passed.memory)[0, inner, inner]
            weights = weights.double().numpy()
            words = collapse(weights, owners, len(gold[index]))
            assert tree.tolist() == maximum_spanning_tree(words).tolist()
            assert choices.tolist() == [int(row.argmax()) if row.any() else -1 for row in words]
