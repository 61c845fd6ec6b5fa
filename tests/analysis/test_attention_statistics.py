"""Statistics of attention heads (entropy, choices, agreement with parents), and heat maps of a
sentence."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from pages import luminance
from small import MONKEY, MONKEY_WORD_OF, random_tree, small_model
from small_run import LSTM, PASCAL, SIZE, TEXT, make_run

from synmt.analysis.attention.figures import (
    COLOURS,
    LEAST_BIAS,
    check_legible,
    draw_maps,
    limits,
    spell,
)
from synmt.analysis.attention.heads import AttentionMap, heads_of, read_map, side_of
from synmt.analysis.attention.statistics import (
    NO_CHOICE,
    best_head,
    counted_words,
    entropies,
    head_table,
    join,
    measure_cross_heads,
    measure_heads,
    measure_self_heads,
    position_owners,
    relation_agreement,
    relation_table,
    usual_offset,
    word_level_weights,
)
from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.heads import Head
from synmt.data.vocabulary import word_of
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError
from synmt.syntax.parse import flat_parse

OWNERS = np.append(MONKEY_WORD_OF, -1)
"""▁The ▁mon key ▁eats ▁a ▁ban ana </s>; the parents are monkey, eats, itself, banana, eats."""


def looking_at(parents, owners=OWNERS):
    """Let every piece give all weight to the last piece of a word's parent: (1, T, T)."""
    weights = np.zeros((1, len(owners), len(owners)))
    for piece, word in enumerate(owners):
        weights[0, piece, np.flatnonzero(owners == parents[word])[-1] if word >= 0 else -1] = 1
    return weights


def tabulate(*looks, heads=1):
    """Lay out the statistics of sentences; returns the rows of the heads, and those of the
    baselines by their names."""
    named = [Head(1, number + 1) for number in range(heads)]
    words = [len(one.parents) for one in looks]
    rows = head_table(named, join(looks, trees=any(words)), words, ends="EOS").as_json()["rows"]
    return rows[:heads], {row["name"]: row for row in rows[heads:]}


def measure(weights, parse=MONKEY):
    """Measure heads on the source."""
    return measure_self_heads(weights, OWNERS, parse, causal=False)


def test_a_head_with_all_weight_on_the_parent_agrees_and_has_no_entropy():
    looks = measure(looking_at(MONKEY.parents))
    [row], baselines = tabulate(looks)
    assert (row["parent"], row["weight"], row["bits"], row["of max"], row["no word"]) == (
        1,
        1,
        0,
        0,
        0,
    )
    # of five words the root does not count; The and a are one before their parent, banana two after
    # it
    assert (len(looks.parents), len(looks.hidden)) == (4, 0)
    assert (row["mostly at"], row["share"]) == (1, 0.75)
    assert {name: (one["mostly at"], one["parent"]) for name, one in baselines.items()} == {
        "previous word": (-1, 0),
        "next word": (1, 0.75),
        "best offset": (1, 0.75),
    }


def test_uniform_weights_have_the_maximum_entropy():
    [row], _ = tabulate(measure(np.full((1, 8, 8), 1 / 8)))
    assert row["bits"] == pytest.approx(3)
    assert row["of max"] == pytest.approx(1)
    assert row["no word"] == pytest.approx(1 / 8)
    # the parents of The and a have two of the eight pieces, those of monkey and banana one
    assert row["weight"] == pytest.approx((2 + 1 + 2 + 1) / 4 / 8)


def test_on_the_target_a_piece_sees_bos_and_the_pieces_before_it():
    owners = np.append(-1, MONKEY_WORD_OF)
    weights = np.tril(np.ones((8, 8)))
    weights = (weights / weights.sum(1, keepdims=True))[None]
    looks = measure_self_heads(weights, owners, MONKEY, causal=True)
    assert looks.visible.tolist() == [2, 3, 4, 5, 6, 7, 8]
    assert looks.entropy[0] == pytest.approx([math.log2(count) for count in range(2, 9)])
    # only banana has its parent to the left, two words before it: one of the seven and eight
    # visible pieces
    assert (len(looks.parents), len(looks.hidden)) == (1, 3)
    [row], _ = tabulate(looks)
    assert row["weight"] == pytest.approx((1 / 7 + 1 / 8) / 2)
    assert row["of max"] == pytest.approx(1)


def with_loops(weights, owners, parse, *, causal):
    """Compute the equations for one head with loops."""
    bits, chosen = [], []
    for piece, word in enumerate(owners):
        if word >= 0:
            row = weights[piece] / weights[piece].sum()
            bits.append(-sum(value * math.log2(value) for value in row if value))
    for word, parent in enumerate(parse.parents):
        own = [piece for piece, owner in enumerate(owners) if owner == word]
        if parent == word or not own or parent not in owners or (causal and parent > word):
            continue
        means = []
        for other in range(len(parse)):
            keys = [piece for piece, owner in enumerate(owners) if owner == other]
            means.append(sum(weights[piece, key] for piece in own for key in keys) / len(own))
        chosen.append((int(np.argmax(means)) - word, means[parent]))
    return bits, chosen


@pytest.mark.parametrize("causal", [False, True], ids=["source", "target"])
def test_vectorised_statistics_equal_a_loop_over_words(causal):
    for seed in range(15):
        random = np.random.default_rng(seed)
        parse = random_tree(int(random.integers(2, 8)), random)
        # some words have several pieces, some have none
        owners = np.repeat(np.arange(len(parse)), random.integers(0, 4, len(parse)))
        owners = np.append(-1, owners) if causal else np.append(owners, -1)
        weights = (
            random.random((3, len(owners), len(owners)))
            * (random.random((3, 1, len(owners))) < 0.7)
            + 1e-9
        )
        weights = np.tril(weights) if causal else weights
        found = measure_self_heads(weights, owners, parse, causal=causal)
        for head in range(3):
            bits, chosen = with_loops(weights[head], owners, parse, causal=causal)
            np.testing.assert_allclose(found.entropy[head], bits, atol=1e-9)
            assert found.choices[head].tolist() == [step for step, _ in chosen]
            np.testing.assert_allclose(
                found.parent_weights[head], [weight for _, weight in chosen], atol=1e-12
            )


def test_merging_pieces_into_words_keeps_the_sum_of_each_row():
    random = np.random.default_rng(1)
    weights = random.dirichlet(np.ones(7), (2, 7))
    words = word_level_weights(weights, MONKEY_WORD_OF, 5)
    np.testing.assert_allclose(words.sum(-1), 1)
    np.testing.assert_allclose(words[0, 1, 4], weights[0, 1:3, 5:7].sum() / 2)


def test_rows_of_zeros_have_neither_entropy_nor_choice_and_other_sums_do_not_matter():
    rows = np.random.default_rng(2).random((4, 6))
    np.testing.assert_allclose(entropies(rows), entropies(rows * 0.1))
    weights = looking_at(MONKEY.parents)
    weights[0, 0] = 0
    looks = measure(weights)
    assert np.isnan(looks.entropy[0]).tolist() == [True] + [False] * 6
    assert looks.choices[0].tolist() == [NO_CHOICE, 1, 1, -2]
    [row], _ = tabulate(looks)
    assert (row["bits"], row["parent"]) == (0, 0.75)
    [nothing], _ = tabulate(measure(np.zeros((1, 8, 8))))
    assert nothing["parent"] == 0
    assert {"bits", "of max", "share"}.isdisjoint(nothing)


def test_punctuation_and_roots_do_not_count():
    parse = replace(MONKEY, relations=["det", "nsubj", "root", "punct", "obj"])
    assert counted_words(parse, OWNERS, causal=False)[0].tolist() == [0, 1, 4]
    tagged = replace(MONKEY, tags=["DET", "NOUN", "VERB", "DET", "PUNCT"])
    assert counted_words(tagged, OWNERS, causal=False)[0].tolist() == [0, 1, 3]
    # without the pieces of eats, monkey and banana have no visible parent
    places, hidden = counted_words(MONKEY, np.where(OWNERS == 2, -1, OWNERS), causal=False)
    assert (places.tolist(), hidden.tolist()) == ([0, 3], [1, 4])


def test_relations_name_their_best_offset_and_their_best_head():
    looks = join(
        [measure(np.concatenate([looking_at(MONKEY.parents), looking_at([4, 4, 4, 4, 2])]))]
    )
    table = relation_table([Head(1, 1), Head(1, 2)], looks)
    assert table.rows == [
        ["det", 2, 1, 1, "1.1", 1],
        ["nsubj", 1, 1, 1, "1.1", 1],
        ["obj", 1, -2, 1, "1.1", 1],
    ]
    assert [relation_agreement(looks, row[0]) for row in table.rows] == [[1, 0.5], [1, 0], [1, 1]]
    assert best_head(looks) == 0


def test_the_usual_offset_is_the_most_frequent_and_among_equals_the_shortest():
    assert usual_offset(np.array([1, -2, -2, 3])) == (-2, 0.5)
    assert usual_offset(np.array([5, 5, -1, -1])) == (-1, 0.5)


def test_intervals_contain_the_share_and_shrink_with_more_sentences():
    random = np.random.default_rng(3)

    def width(sentences):
        [row], _ = tabulate(
            *(measure(random.dirichlet(np.ones(8), (1, 8))) for _ in range(sentences))
        )
        low, high = row["95 % interval"]
        assert low <= row["parent"] <= high
        return high - low

    assert width(160) < width(10)


def test_attention_to_the_source_has_no_parents():
    rows, baselines = tabulate(measure_cross_heads(np.full((2, 3, 4), 0.25), pieces=3), heads=2)
    expected = {"bits": 2, "of max": 1, "no word": 0.25}
    assert (rows, baselines) == (
        [{"name": f"head 1.{number}", **expected} for number in (1, 2)],
        {},
    )
    # an LSTM does not attend to EOS; a single piece has no maximum entropy
    [alone], _ = tabulate(measure_cross_heads(np.ones((1, 3, 1)), pieces=1))
    assert alone == {"name": "head 1.1", "bits": 0, "no word": 0}


def test_the_best_head_without_words_has_the_lowest_entropy():
    sharp = np.stack([np.full((3, 4), 0.25), np.eye(3, 4)])
    assert best_head(join([measure_cross_heads(sharp, pieces=3)], trees=False)) == 1


def test_a_text_without_words_that_count_is_an_error():
    with pytest.raises(SynmtError, match="there are no sentences to measure"):
        join([])
    root = replace(MONKEY, parents=np.arange(5))
    with pytest.raises(SynmtError, match="no word has a visible parent"):
        join([measure(looking_at(MONKEY.parents), root)])


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "pascal"
    return Translator.load(
        make_run(folder, PASCAL, {"name": "localness", "layers": [2], "heads": 1})
    )


@pytest.mark.journey
@pytest.mark.parametrize("place", ["source", "target", "cross"])
def test_statistics_of_a_sentence_do_not_depend_on_its_batch(translator, place):
    sources, targets = [*TEXT[:3], ""], [*TEXT[3:], "Ja."]
    lines = sources if place == "source" else targets
    gold = [flat_parse(line) for line in lines]

    def looks(chosen):
        some = [gold[index] for index in chosen]
        read = [flat_parse(sources[index]) for index in chosen]
        side = "source" if place == "source" else "target"
        texts = ParsedText(
            side, [sources[i] for i in chosen], [targets[i] for i in chosen], some, read
        )
        return measure_heads(translator, heads_of(translator.model, place), place, texts)

    together, too_long = looks(range(4))
    assert (list(together), too_long) == ([0, 1, 2], 0)
    for index, one in together.items():
        [alone] = looks([index])[0].values()
        assert len(one.choices) == 8
        np.testing.assert_allclose(one.entropy, alone.entropy, atol=1e-4)
        np.testing.assert_allclose(one.parent_weights, alone.parent_weights, atol=1e-5)
        assert one.parents.tolist() == alone.parents.tolist()
        assert one.visible.tolist() == alone.visible.tolist()
        np.testing.assert_allclose(one.no_word, alone.no_word, atol=1e-5)


def test_task_tags_are_not_words():
    spans = np.array([[0, 0], [0, 3], [3, 10], [10, 15], [15, 17], [17, 24], [24, 24]])
    texts = ParsedText("source", ["The monkey eats a banana"], None, [MONKEY])
    owners = position_owners(
        SimpleNamespace(task="<TR>"), texts, SimpleNamespace(index=0, source=spans)
    )  # type: ignore[arg-type]
    assert owners.tolist() == [-1, 0, 1, 2, 3, 4, -1, -1]


def names(model, place, head=None):
    return [one.name for one in heads_of(model, place, head)]


def test_heads_have_the_names_of_their_variants():
    model = small_model(PASCAL, {"name": "dbsa", "layers": [2], "heads": 1, "side": "target"})
    assert names(model, "source")[:3] == ["head 1.1 (pascal)", "head 1.2 (pascal)", "head 1.3"]
    assert names(model, "target", "2.1") == ["head 2.1 (dbsa)"]
    assert names(model, "cross", "2.1") == ["head 2.1"]
    assert len(names(model, "source", "all")) == 8
    with pytest.raises(UsageError, match=r"'2.9' is not a head. LAYER.HEAD: 1.1 to 1.4"):
        names(model, "source", "2.9")


def test_an_lstm_has_one_attention():
    model = small_model(architecture="lstm", encoder_layers=1, decoder_layers=1)
    assert names(model, "cross") == ["attention"]
    with pytest.raises(UsageError, match="without heads"):
        names(model, "cross", "1.1")


def read(translator, place, what, number=1, head=None, source=TEXT[:3], target=TEXT[3:]):
    text = ParsedText(side_of(place), source, None if place == "source" else target, [])
    heads = heads_of(translator.model, place, head)
    return read_map(translator, heads, place, text, content=what, number=number)


@pytest.mark.journey
def test_maps_of_weights_have_a_row_for_each_piece_and_bos_or_eos(translator):
    for place in ("source", "target", "cross"):
        shown = read(translator, place, "cross" if place == "cross" else "weights")
        assert len(shown.panels) == 8
        for panel in shown.panels.values():
            assert panel.shape == (len(shown.rows), len(shown.columns))
            np.testing.assert_allclose(panel.sum(1), 1, atol=1e-5)
        assert shown.rows[0 if place == "target" else -1] == (
            "<s>" if place == "target" else "</s>"
        )
        text = "".join(shown.columns).removesuffix("</s>").removeprefix("<s>")
        assert text.startswith("▁The" if place != "target" else "▁")


@pytest.mark.journey
def test_the_map_of_the_target_is_not_cut_to_the_source(tmp_path):
    # behind the pieces of the source, the memory has the nodes of its tree
    translator = Translator.load(make_run(tmp_path / "run", {"name": "tree_lstm"}))
    for place in ("target", "cross"):
        what = "cross" if place == "cross" else "weights"
        shown = read(translator, place, what, source=["A dog."], target=[" ".join(TEXT[3:])])
        assert all(
            panel.shape == (len(shown.rows), len(shown.columns)) for panel in shown.panels.values()
        )
    assert len(shown.rows) > len(shown.columns)


def test_factors_and_biases_are_shown_for_the_heads_that_have_them(translator):
    factor, bias = read(translator, "source", "factor"), read(translator, "source", "bias")
    assert [head.name for head in factor.panels] == ["head 1.1 (pascal)", "head 1.2 (pascal)"]
    assert [head.name for head in bias.panels] == ["head 2.1 (localness)"]
    # the density at the parent's middle, where that is a piece
    highest = [panel.max() for panel in factor.panels.values()]
    assert highest == pytest.approx([1 / math.sqrt(2 * math.pi)] * 2, rel=1e-5)


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_penalties_of_alibi_are_the_bias_of_plain_heads(tmp_path, side):
    translator = Translator.load(make_run(tmp_path / "alibi", model={**SIZE, "positions": "alibi"}))
    shown = read(translator, side, "bias")
    assert len(shown.panels) == 8
    places = np.arange(len(shown.rows))
    for head, panel in shown.panels.items():
        # m_h = 2^(-8 h / H), of 4 heads
        np.testing.assert_allclose(
            panel, -(2.0 ** (-2 * head.number)) * abs(places[:, None] - places), rtol=1e-6
        )


def test_each_map_of_labelled_distributions_sums_the_parsers_arcs_of_one_group(tmp_path):
    variant = {"name": "dependency_distribution", "heads": 16}
    translator = Translator.load(
        make_run(tmp_path / "ldd", variant, model={**SIZE, "encoder_heads": [16, 4]})
    )
    line = TEXT[1]
    shown = read(translator, "source", "factor", number=2)
    assert [head.title for head in shown.panels][5:8] == [
        "1.6 nsubj",
        "1.7 cc",
        "1.8 conj cc:preconj",
    ]
    [parse] = translator.trees([line], None)
    owners = word_of(translator.source.encode(line).spans, parse.spans)
    columns = (parse.arcs.words, parse.arcs.parents, parse.arcs.relations, parse.arcs.probabilities)
    for head, panel in shown.panels.items():
        expected = np.zeros((len(owners), len(owners)))
        for child, parent, relation, probability in zip(*columns, strict=True):
            name = parse.arcs.names[relation]
            if ("conj" if name == "cc:preconj" else name.partition(":")[0]) in head.about.split():
                expected[np.ix_(owners == child, owners == parent)] += probability
        np.testing.assert_allclose(panel[:-1, :-1], expected, atol=1e-6)
        assert (panel[-1] == 1).all()
        assert not panel[:-1, -1].any()
    _, subject = list(shown.panels.items())[5]
    dog, sees = (list(parse.words).index(word) for word in ("dog", "sees"))
    assert subject[:-1, :-1][owners == dog][:, owners == sees].min() > 0.9


def test_a_head_without_an_edit_is_refused_with_the_heads_that_have_one(translator):
    with pytest.raises(UsageError) as caught:
        read(translator, "source", "factor", head="2.1")
    assert str(caught.value) == (
        "--what factor: head 2.1 (localness) of the source has no factor to show. weights and "
        "cross: all heads; "
        "factor: 1.1 (pascal), 1.2 (pascal); bias: 2.1 (localness)."
    )
    with pytest.raises(
        UsageError,
        match=r"no head of the target has a bias to show\. .* factor: none; bias: none\.",
    ):
        read(translator, "target", "bias")


@pytest.mark.parametrize(
    ("number", "source", "said"),
    [
        (4, TEXT[:3], r"--sentence 4: the test set has no such sentence. Sentences 1 to 3"),
        (1, [" ", *TEXT[:2]], r"--sentence 1: the source or the target of this sentence is empty"),
    ],
)
def test_a_sentence_that_cannot_be_shown_is_an_error(translator, number, source, said):
    with pytest.raises(UsageError, match=said):
        read(translator, "source", "weights", number, source=source)


def test_the_heat_map_of_an_lstm_is_its_attention_to_the_source(tmp_path):
    translator = Translator.load(make_run(tmp_path / "lstm", model=LSTM))
    shown = read(translator, "cross", "cross")
    [(head, panel)] = shown.panels.items()
    assert head.name == "attention"
    np.testing.assert_allclose(panel[:, :-1].sum(1), 1, atol=1e-5)
    texts = ParsedText("target", TEXT[:3], TEXT[3:], [])
    found, _ = measure_heads(translator, [head], "cross", texts)
    assert found[0].visible[0] == len(shown.columns) - 1
    translator.max_pieces = 12
    with pytest.raises(
        UsageError, match=r"--sentence 2: this sentence has more pieces than the model takes, 12"
    ):
        read(translator, "cross", "cross", 2)
    assert measure_heads(translator, [head], "cross", texts) == ({}, 3)


def shown_map(pieces, heads, what="weights", low=0.0):
    labels = [f"▁p{number}" for number in range(pieces)]
    panels = {
        Head(1, number + 1): np.linspace(low, 1, pieces**2).reshape(pieces, pieces)
        for number in range(heads)
    }
    return AttentionMap(what, "source", 1, labels, labels, panels)


def test_the_colours_have_one_hue_and_equal_steps_of_lightness():
    assert all(colour[1:3] <= colour[3:5] <= colour[5:7] for colour in map(str.lower, COLOURS))
    lightness = [116 * np.cbrt(luminance(colour)) - 16 for colour in COLOURS]
    np.testing.assert_allclose(np.diff(lightness), -7.9, atol=0.4)


def test_the_scale_is_shared_and_cut_at_negligible_biases():
    assert limits(shown_map(3, 2)) == (0, 1)
    assert limits(shown_map(3, 1, "bias", low=-200.0)) == (LEAST_BIAS, 1)
    flat = replace(shown_map(3, 1), panels={Head(1, 1): np.zeros((3, 3))})
    assert limits(flat) == (0, 1)


def test_pieces_are_spelled_without_marks_in_languages_with_spaces():
    pieces = ["▁The", "▁mon", "key", "▁eats", ".", "▁", "</s>"]
    assert spell(pieces) == ["The", "mon", "·key", "eats", ".", "▁", "</s>"]
    assert spell(["▁猿", "は", "バナナ", "を", "食べる"]) == ["▁猿", "は", "バナナ", "を", "食べる"]
    assert spell(["▁" + "a" * 40]) == ["a" * 15 + "…"]
    assert spell(["▁line\u2028sep", "▁\x85"]) == ["line sep", " "]


def test_many_heads_limit_the_length_of_a_sentence():
    check_legible(shown_map(60, 4))
    with pytest.raises(
        UsageError, match=r"60 pieces are too many for 8 heat maps .* or one head with `--head"
    ):
        check_legible(shown_map(60, 8))
    check_legible(shown_map(90, 1))
    with pytest.raises(
        UsageError, match=r"120 pieces are too many for a heat map\. Choose a shorter sentence\."
    ):
        check_legible(shown_map(120, 1))


@pytest.mark.journey
def test_a_grid_has_labels_at_its_edges_and_one_small_head_shows_numbers():
    *panels, _ = draw_maps(shown_map(20, 3), system="system").axes
    assert [len(axes.get_yticks()) for axes in panels] == [20, 0, 0]
    assert [len(axes.get_xticks()) for axes in panels] == [20, 20, 20]
    assert [axes.get_title() for axes in panels] == ["1.1", "1.2", "1.3"]
    figure = draw_maps(shown_map(5, 16), system="system")
    figure.draw_without_rendering()
    *panels, _ = figure.axes
    assert [len(axes.get_yticks()) for axes in panels] == [5, *[0] * 7] * 2
    assert [len(axes.get_xticks()) for axes in panels] == [0] * 8 + [5] * 8
    corners = [axes.get_position() for axes in panels]
    assert [corner.x0 for corner in corners] == pytest.approx(
        [corner.x0 for corner in corners[:8]] * 2
    )
    assert all(above.y0 > below.y1 for above, below in zip(corners[:-8], corners[8:], strict=True))
    one = draw_maps(shown_map(4, 1), system="system")
    assert [text.get_text() for text in one.axes[0].texts][:2] == ["0.00", "0.07"]
    assert not draw_maps(shown_map(20, 1), system="system").axes[0].texts
