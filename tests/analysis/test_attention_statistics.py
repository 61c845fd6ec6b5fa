"""Statistics of attention heads: entropy, choices, agreement with parents."""

import math
from dataclasses import replace

import numpy as np
import pytest
from refusing import assert_fails
from small import MONKEY, MONKEY_WORD_OF, random_tree
from small_run import PASCAL, TEXT, load_run

from synmt.analysis.attention.heads import heads_of
from synmt.analysis.attention.statistics import (
    NO_CHOICE,
    counted_words,
    entropies,
    head_table,
    join,
    measure_cross_heads,
    measure_heads,
    measure_self_heads,
    relation_agreement,
    relation_table,
    usual_offset,
)
from synmt.analysis.forward_passes import ParsedText
from synmt.model.heads import Head
from synmt.syntax.parse import flat_parse

OWNERS = np.append(MONKEY_WORD_OF, -1)
"""▁The ▁mon key ▁eats ▁a ▁ban ana </s>; the parents are monkey, eats, itself, banana, eats."""
TWO = [Head(1, 1), Head(1, 2)]


def looking_at(parents):
    """Put all weight of every piece on the last piece of a word's parent: (1, T, T)."""
    weights = np.zeros((1, len(OWNERS), len(OWNERS)))
    for piece, word in enumerate(OWNERS):
        last = np.flatnonzero(parents[word] == OWNERS)[-1] if word >= 0 else -1
        weights[0, piece, last] = 1
    return weights


def rows_of(looks, heads=TWO[:1]):
    """Lay out the statistics of sentences; returns the rows by their names."""
    words = [len(looks.parents)]
    rows = head_table(heads, looks, words, ends="EOS").as_json()["rows"]
    return {row["name"]: row for row in rows}


def measure(weights, parse=MONKEY):
    return measure_self_heads(weights, OWNERS, parse, causal=False)


def test_a_head_with_all_weight_on_the_parent_agrees_and_has_no_entropy():
    looks = measure(looking_at(MONKEY.parents))
    head, *others = rows_of(looks).values()
    expected = {"parent": 1, "weight": 1, "bits": 0, "of max": 0, "no word": 0, "mostly at": 1}
    # The and a are one word before their parent, monkey too, banana two after it
    assert (expected | {"share": 0.75}).items() <= head.items()
    assert (len(looks.parents), len(looks.hidden)) == (4, 0)
    # the word before, the word after, and the best offset
    assert [(row["mostly at"], row["parent"]) for row in others] == [(-1, 0), (1, 0.75), (1, 0.75)]


def with_loops(weights, owners, parse, *, causal):
    """Compute the equations for one head with loops: entropy, entropy of uniform weights and weight
    on no word of each piece; choice and weight of the parent of each word."""
    pieces, words = [], []
    for piece, word in enumerate(owners):
        if word >= 0:
            row = weights[piece] / weights[piece].sum()
            bits = -sum(value * math.log2(value) for value in row if value)
            seen = piece + 1 if causal else len(owners)
            pieces.append((bits, seen, weights[piece][owners < 0].sum()))
    for word, parent in enumerate(parse.parents):
        own = [piece for piece, owner in enumerate(owners) if owner == word]
        if parent == word or not own or parent not in owners or (causal and parent > word):
            continue
        means = []
        for other in range(len(parse)):
            keys = [piece for piece, owner in enumerate(owners) if owner == other]
            means.append(sum(weights[piece, key] for piece in own for key in keys) / len(own))
        words.append((int(np.argmax(means)) - word, means[parent]))
    return np.array(pieces).reshape(-1, 3).T, np.array(words).reshape(-1, 2).T


@pytest.mark.parametrize("causal", [False, True], ids=["source", "target"])
def test_statistics_equal_a_loop_over_words(causal):
    for seed in range(15):
        random = np.random.default_rng(seed)
        parse = random_tree(int(random.integers(2, 8)), random)
        # some words have several pieces, some have none
        owners = np.repeat(np.arange(len(parse)), random.integers(0, 4, len(parse)))
        owners = np.append(-1, owners) if causal else np.append(owners, -1)
        size = len(owners)
        some = random.random((3, 1, size)) < 0.7
        weights = random.random((3, size, size)) * some + 1e-9
        weights = np.tril(weights) if causal else weights
        found = measure_self_heads(weights, owners, parse, causal=causal)
        for head in range(3):
            pieces, words = with_loops(weights[head], owners, parse, causal=causal)
            piecewise = found.entropy[head], found.visible, found.no_word[head]
            np.testing.assert_allclose(piecewise, pieces, atol=1e-9)
            np.testing.assert_allclose((found.choices[head], found.parent_weights[head]), words)


def test_the_table_compares_entropy_with_that_of_uniform_weights():
    looks = measure(np.full((1, 8, 8), 1 / 8))
    # a step that predicts a piece does not see it
    for predicts, visible in ((False, 8), (True, 7)):
        [row, *_] = rows_of(looks, [Head(1, 1, predicts=predicts)]).values()
        assert row["of max"] == pytest.approx(3 / math.log2(visible))


def test_rows_of_zeros_have_neither_entropy_nor_choice_and_other_sums_do_not_matter():
    rows = np.random.default_rng(2).random((4, 6))
    np.testing.assert_allclose(entropies(rows), entropies(rows * 0.1))
    weights = looking_at(MONKEY.parents)
    weights[0, 0] = 0
    looks = measure(weights)
    assert np.isnan(looks.entropy[0]).tolist() == [True] + [False] * 6
    assert looks.choices[0].tolist() == [NO_CHOICE, 1, 1, -2]
    assert rows_of(looks)["head 1.1"]["bits"] == 0


def test_punctuation_roots_and_words_without_a_visible_parent_do_not_count():
    parse = replace(MONKEY, relations=["det", "nsubj", "root", "punct", "obj"])
    assert counted_words(parse, OWNERS, causal=False)[0].tolist() == [0, 1, 4]
    # without the pieces of eats, monkey and banana have no visible parent
    places, hidden = counted_words(MONKEY, np.where(OWNERS == 2, -1, OWNERS), causal=False)
    assert (places.tolist(), hidden.tolist()) == ([0, 3], [1, 4])
    # on the target, only banana has its parent to the left
    places, hidden = counted_words(MONKEY, OWNERS, causal=True)
    assert (places.tolist(), hidden.tolist()) == ([4], [0, 1, 3])


def test_relations_name_their_best_offset_and_their_best_head():
    looks = measure(np.concatenate([looking_at([4, 4, 4, 4, 2]), looking_at(MONKEY.parents)]))
    assert relation_table(TWO, looks).rows == [
        ["det", 2, 1, 1, "head 1.2", 1],
        ["nsubj", 1, 1, 1, "head 1.2", 1],
        ["obj", 1, -2, 1, "head 1.1", 1],
    ]
    expected = {"head 1.1": 0.5, "head 1.2": 1}
    assert relation_agreement(TWO, looks)["det"] == expected


def test_the_usual_offset_is_the_most_frequent_and_among_equals_the_shortest():
    assert usual_offset(np.array([1, -2, -2, 3])) == (-2, 0.5)
    assert usual_offset(np.array([5, 5, -1, -1])) == (-1, 0.5)


def test_attention_to_the_source_has_no_parents():
    found = rows_of(measure_cross_heads(np.full((2, 3, 4), 0.25), pieces=3), TWO)
    expected = {"bits": 2, "of max": 1, "no word": 0.25}
    assert found == {f"head 1.{n}": {"name": f"head 1.{n}", **expected} for n in (1, 2)}
    # an LSTM does not attend to EOS; a single piece has no maximum entropy
    alone = rows_of(measure_cross_heads(np.ones((1, 3, 1)), pieces=1))
    assert alone == {"head 1.1": {"name": "head 1.1", "bits": 0, "no word": 0}}


def test_a_text_without_sentences_is_an_error():
    assert_fails("there are no sentences to measure", join, [])


@pytest.mark.journey
@pytest.mark.parametrize("kind", ["source", "target", "cross"])
def test_statistics_of_a_sentence_do_not_depend_on_its_batch(tmp_path, kind):
    translator = load_run(tmp_path / "run", PASCAL)
    heads, side = heads_of(translator.model, kind), "source" if kind == "source" else "target"

    def looks(sources, targets):
        trees = list(map(flat_parse, sources))
        gold = trees if side == "source" else list(map(flat_parse, targets))
        text = ParsedText(side, sources, targets, gold, trees)
        return measure_heads(translator, heads, kind, text)

    texts = [*TEXT[:3], ""], [*TEXT[3:], "Ja."]
    together, left_out = looks(*texts)
    assert (list(together), left_out) == ([0, 1, 2], {"too_long": 0, "empty": 1})
    for index, one in together.items():
        [alone] = looks(*([text[index]] for text in texts))[0].values()
        assert len(one.choices) == 8
        for name in ("entropy", "parent_weights", "parents", "visible", "no_word"):
            np.testing.assert_allclose(getattr(one, name), getattr(alone, name), atol=1e-4)
