"""Trees induced from attention: which heads, which sentences, and how pieces are collapsed to
words."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from small import MONKEY, MONKEY_WORD_OF, small_model
from small_run import PASCAL, TEXT, make_run

from synmt.analysis.forward_passes import ForwardPass, ParsedText, SentencePass, run_forward
from synmt.analysis.heads import Head, annotation_weights, tree_heads
from synmt.analysis.trees import induced
from synmt.analysis.trees.attachment import compare_trees
from synmt.analysis.trees.induced import collapse, induce_trees, tree_weights
from synmt.data.vocabulary import word_of
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.model.attention import Memory
from synmt.model.capture import Activations
from synmt.syntax.controls import certain_arcs
from synmt.syntax.parse import Parse, flat_parse
from synmt.syntax.signals import PARENT_CHAIN, PARENT_FIRST
from synmt.syntax.trees import maximum_spanning_tree

LINE = "The monkey eats a banana"
SPANS = np.array([[0, 3], [3, 7], [7, 10], [10, 15], [15, 17], [17, 21], [21, 24]])
"""▁The ▁mon key ▁eats ▁a ▁ban ana"""
LATENT = {"architecture": "lstm", "encoder_layers": 1, "decoder_layers": 1}


def chosen(signal, *, before=0, after=0):
    """Put most weight of each piece on the piece that a signal names, and some on BOS and EOS."""
    places = signal.compute(MONKEY, MONKEY_WORD_OF)[: len(MONKEY_WORD_OF)]
    weights = np.full((before + 7 + after, before + 7 + after), 0.1)
    inner = slice(before, before + 7)
    weights[inner, inner] = 0
    weights[before + np.arange(7), before + places.astype(int)] = 0.9
    return weights


def read_off(weights, monkeypatch, side="source", task="", spans=SPANS, **sentence):
    """Induce trees of LINE from one head with these weights: (T, T) with EOS, or BOS on the
    target."""
    captured = Activations({(side, 1): torch.as_tensor(weights, dtype=torch.float32)[None, None]})
    passed = ForwardPass([SentencePass(0, spans, spans, **sentence)], SimpleNamespace(), captured)
    monkeypatch.setattr(induced, "run_with_progress", lambda *given: iter([passed]))
    texts = ParsedText(side, [LINE], [LINE] if side == "target" else None, [MONKEY])
    return induce_trees(SimpleNamespace(task=task), [Head(1, 1)], texts)


def test_collapsing_sums_over_the_pieces_of_both_words_and_takes_the_diagonal_for_the_root():
    for seed in range(20):
        random = np.random.default_rng(seed)
        owners = np.array([-1, 0, 1, 1, 3, 3, 3, -1])
        weights = random.random((8, 8))
        expected = np.zeros((4, 4))
        for piece, other in np.ndindex(8, 8):
            word, parent = owners[piece], owners[other]
            if word >= 0 and parent >= 0 and (word != parent or piece == other):
                expected[word, parent] += weights[piece, other]
        found = collapse(weights, owners, 4)
        np.testing.assert_allclose(found, expected, atol=1e-14)
        assert not found[2].any()
        assert not found[:, 2].any()


@pytest.mark.parametrize("signal", [PARENT_FIRST, PARENT_CHAIN], ids=lambda signal: signal.name)
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_head_that_attends_to_parents_gives_the_tree(monkeypatch, signal, side):
    # the source ends in EOS, the target begins with BOS
    margin = {"after": 1} if side == "source" else {"before": 1}
    found = read_off(chosen(signal, **margin), monkeypatch, side)
    assert found.lines == [0]
    assert found.by_head[0].trees[0].tolist() == MONKEY.parents.tolist()
    assert found.by_head[0].choices[0].tolist() == MONKEY.parents.tolist()


def test_the_choices_need_not_be_a_tree(monkeypatch):
    # each word attends to the next one, the last to the first
    weights = np.zeros((8, 8))
    weights[np.arange(6), [1, 3, 3, 4, 5, 0]] = 1
    weights[6, 6] = 0.5
    found = read_off(weights, monkeypatch).by_head[0]
    assert found.choices[0].tolist() == [1, 2, 3, 4, 0]
    assert found.trees[0].tolist() == [1, 2, 3, 4, 4]
    # words without weight have no choice, but a parent
    found = read_off(np.zeros((8, 8)), monkeypatch).by_head[0]
    assert found.choices[0].tolist() == [-1] * 5
    assert compare_trees(found.choices, [MONKEY]).da.value == 0
    assert len(found.trees[0]) == 5


def test_a_sentence_that_is_too_long_is_left_out_and_counted(monkeypatch):
    found = read_off(chosen(PARENT_FIRST, after=1), monkeypatch, dropped=3)
    assert (found.lines, found.too_long, found.by_head[0].trees) == ([], 1, [])


def test_task_tags_belong_to_no_word(monkeypatch):
    spans = np.array([[0, 0], [0, 3], [3, 10], [10, 15], [15, 17], [17, 24], [24, 24]])
    weights = np.zeros((8, 8))
    weights[1:6, 1:6][np.arange(5), MONKEY.parents] = 1
    weights[0, 2] = weights[6, 1] = weights[1, 0] = 5
    found = read_off(weights, monkeypatch, task="<TR>", spans=spans)
    assert found.by_head[0].trees[0].tolist() == MONKEY.parents.tolist()


def names(model, side="source", head=None):
    return [one.name for one in tree_heads(model, side, head)]


def test_heads_that_learn_trees_are_found_after_those_of_other_variants():
    model = small_model(
        {"name": "pascal", "layers": [2], "heads": 1},
        {"name": "lisa", "layers": [2], "heads": 2},
        {"name": "tree_attention", "layers": [1]},
        {"name": "dbsa", "layers": [1], "side": "target"},
    )
    assert names(model) == ["head 1.1 (tree_attention)", "head 2.2 (lisa)", "head 2.3 (lisa)"]
    assert names(model, "target") == ["head 1.1 (dbsa)"]
    assert names(model, "target", "1.2") == ["head 1.2"]
    assert names(model, head="2.3") == ["head 2.3 (lisa)"]
    assert len(names(model, head="all")) == 8


def test_flat_annotations_are_read_and_called_flat():
    [head] = tree_heads(
        small_model({"name": "latent_tree", "normalize": "flat"}, **LATENT), "source"
    )
    assert (head.name, head.file_name) == ("flat attention (latent_tree)", "flat")


def test_annotations_without_weights_are_refused():
    memory = Memory(torch.zeros(1, 3, 1), torch.ones(1, 3))
    with pytest.raises(UsageError, match="own annotates the source without giving the weights"):
        annotation_weights(Head(variant="own"), SimpleNamespace(memory=memory))  # type: ignore[arg-type]


def test_latent_trees_are_found_in_an_lstm():
    model = small_model({"name": "latent_tree"}, **LATENT)
    assert names(model) == ["latent trees (latent_tree)"]
    assert tree_heads(model, "source")[0].file_name == "latent"
    weights = torch.rand(2, 3, 3)
    passed = SimpleNamespace(memory=Memory(torch.zeros(2, 3, 1), torch.ones(2, 3), weights=weights))
    assert torch.equal(tree_weights(tree_heads(model, "source")[0], "source", passed), weights)  # type: ignore[arg-type]


@pytest.mark.parametrize("head", ["3.1", "0.1", "2.5", "2.0", "2", "first", "1.2.3", "-1.2"])
def test_a_missing_head_is_refused(head):
    said = f"'{head}' is not a head. LAYER.HEAD: 1.1 to 1.4, 2.1 to 2.4; or `all`"
    with pytest.raises(UsageError, match=re.escape(said)):
        tree_heads(small_model(), "source", head)


def test_a_model_without_trees_is_refused_with_advice():
    named = (
        "Variants that learn them: dbsa, latent_graph, latent_tree, lisa, tree_attention, "
        "tree_planting"
    )
    said = rf"nothing in this model has learned trees of the source\. {named}.*--head LAYER\.HEAD"
    with pytest.raises(UsageError, match=said):
        tree_heads(small_model({"name": "pascal"}), "source")
    with pytest.raises(
        UsageError,
        match="You can see the trees of its target with `--side target`, or read any head",
    ):
        tree_heads(small_model({"name": "dbsa", "layers": [1], "side": "target"}), "source")
    with pytest.raises(UsageError, match="an LSTM has no attention heads"):
        tree_heads(small_model({"name": "latent_tree"}, **LATENT), "source", "1.1")
    with pytest.raises(UsageError, match="has learned trees of the source") as error:
        tree_heads(small_model(**LATENT), "source", where="runs/plain")
    assert error.value.where == "runs/plain"
    assert error.value.do.startswith("You can train a model with latent_tree (`synmt train ")
    assert "LAYER.HEAD" not in str(error.value)


def test_only_variants_for_the_side_are_suggested():
    with pytest.raises(
        UsageError,
        match=r"has learned trees of the target\. .* them: dbsa, tree_planting\. You can read "
        r"any head",
    ):
        tree_heads(small_model(), "target")
    with pytest.raises(
        UsageError,
        match="You can see the trees of its source with `--side source`, or choose a run",
    ):
        tree_heads(small_model({"name": "latent_tree"}, **LATENT), "target")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def test_every_head_of_a_run_gives_the_tree_of_its_weights(folder):
    translator = Translator.load(
        make_run(folder / "both", {"name": "dbsa", "layers": [1], "side": "target"})
    )
    sources = ["A dog sees the two cats.", "", "The boy", TEXT[0]]
    targets = ["Ein Hund sieht die Katzen.", "Ein", "  ", TEXT[3]]
    for side, lines in (("source", sources), ("target", targets)):
        texts = ParsedText(side, sources, targets, [flat_parse(line) for line in lines])
        heads = tree_heads(translator.model, side, "all")
        found = induce_trees(translator, heads, texts)
        assert found.lines == ([0, 2, 3] if side == "source" else [0, 3])
        for passed in run_forward(translator, sources, targets):
            for row, sentence in enumerate(passed.sentences):
                if sentence.index not in found.lines:
                    continue
                spans = getattr(sentence, side)
                owners = word_of(spans, texts.gold[sentence.index].spans)
                first = 0 if side == "source" else 1
                for head, one in zip(heads, found.by_head, strict=True):
                    weights = passed.captured.attention[side, head.layer][
                        row, head.number - 1
                    ].numpy()
                    part = weights[first : first + len(owners), first : first + len(owners)]
                    words = collapse(part.astype(float), owners, len(texts.gold[sentence.index]))
                    place = found.lines.index(sentence.index)
                    assert one.head == head
                    assert one.trees[place].tolist() == maximum_spanning_tree(words).tolist()
                    assert one.choices[place].tolist() == [
                        int(row.argmax()) if row.any() else -1 for row in words
                    ]


def test_trees_do_not_depend_on_other_sentences(folder):
    translator = Translator.load(make_run(folder / "lisa", {"name": "lisa"}))
    lines = [TEXT[1], TEXT[0], "The girls", TEXT[2]]
    gold = [flat_parse(line) for line in lines]
    heads = tree_heads(translator.model, "source", "all")
    together = induce_trees(translator, heads, ParsedText("source", lines, None, gold))
    for index, line in enumerate(lines):
        alone = induce_trees(translator, heads, ParsedText("source", [line], None, [gold[index]]))
        for one, other in zip(alone.by_head, together.by_head, strict=True):
            assert one.trees[0].tolist() == other.trees[index].tolist()


def test_long_and_empty_sentences_do_not_change_the_numbers_of_others(folder):
    translator = Translator.load(make_run(folder / "short", {"name": "lisa"}, max_pieces=12))
    lines = ["", "The dog", "The boy sees the girl " * 5, "A cat"]
    texts = ParsedText("source", lines, None, [flat_parse(line) for line in lines])
    found = induce_trees(translator, tree_heads(translator.model, "source"), texts)
    assert (found.lines, found.too_long) == ([1, 3], 1)
    assert [len(tree) for tree in found.by_head[0].trees] == [2, 2]


def test_a_model_that_reads_trees_reads_the_given_ones(folder):
    translator = Translator.load(make_run(folder / "pascal", PASCAL, parser=False))
    gold = Parse(
        MONKEY.words,
        MONKEY.spans,
        MONKEY.parents,
        MONKEY.relations,
        ["X"] * 5,
        certain_arcs(MONKEY),
    )
    other = Parse(gold.words, gold.spans, np.array([4, 4, 4, 4, 4]), gold.relations, gold.tags)
    texts = ParsedText("source", [LINE], None, [gold], [gold])
    heads = tree_heads(translator.model, "source", "all")
    captured = [
        torch.cat(
            [
                passed.captured.attention["source", 1]
                for passed in run_forward(translator, [LINE], None, [tree])
            ]
        )
        for tree in (gold, other)
    ]
    assert not torch.allclose(captured[0], captured[1])
    assert len(induce_trees(translator, heads, texts).by_head) == len(heads)
