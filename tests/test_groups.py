"""Groups of sentences are scored from kept statistics, whatever they are made by."""

from itertools import pairwise

import numpy as np
import pytest

from synmt.analysis.groups import trees
from synmt.analysis.groups.buckets import PAPERS, by_length, count_units
from synmt.analysis.groups.grouping import Grouping
from synmt.analysis.groups.labels import by_label
from synmt.analysis.groups.scores import FEW_SENTENCES, collect, tabulate
from synmt.analysis.groups.trees import by_depth, by_distance, by_relation, without_rare
from synmt.data.vocabulary_training import train_vocabulary
from synmt.evaluation.metrics import make_metric, score, score_system
from synmt.evaluation.significance import paired_bootstrap
from synmt.files.reading import read_lines
from synmt.recipe.data import VocabularyRecipe
from synmt.syntax.parse import Parse
from synmt.syntax.trees import random_tree

REFERENCES = ["Der Affe isst eine Banane.", "Er schläft.", "Die Frauen sehen den Mann im Park.", "Ja."]
HYPOTHESES = ["Der Affe isst eine  Banane.", "Er schlief.", "Die Frauen sieht den Mann im Park.", "Ja."]
BASELINE = ["Der Affe isst Banane.", "Er schläft.", "Die Frauen sieht der Mann im Park.", "Nein."]
SOURCE = ["The monkey eats a banana.", "He sleeps.", "The women see the man in the park.", "Yes."]
LENGTHS = count_units(SOURCE, "words")


def evidence(lines, references=REFERENCES, metric="bleu", **options):
    return collect(score(make_metric(metric), lines, references), lines, references, **options)


def table(grouping, metric="bleu"):
    return tabulate(grouping, [[evidence(lines, metric=metric)] for lines in (BASELINE, HYPOTHESES)])


def labelled(name, values):
    return by_label(name, values, np.ones(len(values), dtype=np.int64))


def members(grouping):
    """Say which group each sentence of a partition has."""
    assert (grouping.members.sum(0) == 1).all()
    return grouping.members.argmax(0).tolist()


def tree(parents, relations):
    spans = np.array([(n, n + 1) for n in range(len(parents))], dtype=np.int64).reshape(-1, 2)
    return Parse(["w"] * len(parents), spans, np.array(parents, dtype=np.int64), relations)


def random_parses(seed, sentences=40):
    random = np.random.default_rng(seed)
    names = np.array(["nsubj", "nsubj:pass", "obj", "punct", "acl:relcl"])
    sizes = random.integers(0, 12, size=sentences)
    return [tree(random_tree(int(size), random), random.choice(names, size).tolist()) for size in sizes]


def test_each_group_scores_as_a_separate_corpus():
    rows = table(by_length(LENGTHS, edges=(2, 5))).rows
    chosen = [[1, 3], [0], [2]]
    assert [row.count for row in rows] == [2, 1, 1]
    for row, group in zip(rows, chosen, strict=True):
        alone = score_system([HYPOTHESES[n] for n in group], [REFERENCES[n] for n in group])["bleu"]
        assert row.system.score == alone.value
        base = score_system([BASELINE[n] for n in group], [REFERENCES[n] for n in group])["bleu"]
        assert row.gain.score == alone.value - base.value


@pytest.mark.parametrize("metric", ["bleu", "bleu1", "chrf", "ter", "ribes"])
def test_all_groups_together_are_the_corpus(metric):
    found = table(labelled("parity", ["even", "odd"] * 2), metric=metric)
    assert found.total.system.score == score_system(HYPOTHESES, REFERENCES, [metric])[metric].value
    assert (found.total.count, found.total.share) == (4, 1.0)
    assert sum(row.share for row in found.rows) == 1


@pytest.mark.parametrize("seed", range(5))
def test_the_statistics_of_a_partition_sum_to_those_of_the_corpus(seed):
    random, parses = np.random.default_rng(seed), random_parses(seed)
    statistics = random.integers(0, 9, size=(len(parses), 5))
    lengths = random.integers(0, 60, size=len(parses))
    partitions = [
        by_length(lengths, edges=PAPERS["deps-san"].edges),
        by_depth(parses),
        *by_distance(parses),
        labelled("any", [str(one) for one in random.integers(4, size=len(parses))]),
    ]
    for grouping in partitions:
        assert not grouping.overlapping
        assert (grouping.members @ statistics).sum(0).tolist() == statistics.sum(0).tolist()
        assert grouping.members.shape == (len(grouping.names), len(parses))


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_is_the_one_of_the_groups_sentences_alone(seed):
    random = np.random.default_rng(seed)
    words = np.array(["der", "die", "das", "Affe", "Frau", "isst", "sieht", "Banane", "Mann"])
    references, *systems = ([" ".join(random.choice(words, size=6)) for _ in range(30)] for _ in range(3))
    groups = random.permutation([0, 1] * 15)
    found = tabulate(labelled("half", groups.astype(str).tolist()), [[evidence(one, references)] for one in systems])
    metric = make_metric("bleu")
    for number, row in enumerate(found.rows):
        chosen = np.flatnonzero(groups == number).tolist()
        right = [references[n] for n in chosen]
        one, other = (score(metric, [lines[n] for n in chosen], right) for lines in systems)
        assert row.comparison == paired_bootstrap(one.statistics, other.statistics, metric.aggregate)
        assert row.comparison.difference == pytest.approx(row.gain.score)
        assert row.comparison.low <= row.comparison.high


def test_a_small_group_is_marked_and_has_no_interval():
    values = ["a"] * FEW_SENTENCES + ["b"] * (FEW_SENTENCES - 1) + ["c"] * (FEW_SENTENCES + 1)
    lines = ["Ja.", "Nein."] * (len(values) // 2)
    found = tabulate(labelled("size", values), [[evidence(lines[::-1], lines)], [evidence(lines, lines)]])
    assert [row.few for row in found.rows] == [False, True, False]
    assert [row.comparison is None for row in found.rows] == [False, True, False]
    assert found.rows[1].gain is not None


def test_groups_may_overlap_or_leave_sentences_out():
    chosen = np.array([[True, True, False, False], [False, True, True, False]])
    grouping = Grouping("kind", "", ["a", "b"], chosen, LENGTHS)
    found = table(grouping)
    assert grouping.overlapping
    assert [row.count for row in found.rows] == [2, 2]
    alone = score_system([HYPOTHESES[n] for n in (1, 2)], [REFERENCES[n] for n in (1, 2)])["bleu"]
    assert found.rows[1].system.score == alone.value
    assert found.total.count == 4


def test_the_share_of_text_counts_what_the_grouping_counts():
    # lengths 5, 2, 8 and 1 of 16 words
    found = table(by_length(LENGTHS, edges=(2, 5)))
    assert [row.text_share for row in found.rows] == [3 / 16, 5 / 16, 8 / 16]
    assert found.total.text_share == 1
    # no text at all
    found = tabulate(by_length(np.zeros(4, dtype=np.int64)), [[evidence(HYPOTHESES)]])
    assert [row.text_share for row in (found.rows[0], found.total)] == [0, 0]


def test_an_empty_group_has_no_score():
    found = table(by_length(LENGTHS, edges=PAPERS["pascal"].edges))
    row = found.rows[-1]
    assert (row.count, row.share, row.system, row.baseline, row.gain) == (0, 0, None, None, None)
    assert (row.few, row.comparison) == (False, None)
    assert found.to_json()["rows"][-1]["system"] is None


def test_accuracy_is_the_share_of_exact_translations_whatever_the_spacing():
    # by line: exact but for a space, wrong, wrong, exact; the baseline has only the second right
    found = table(labelled("kind", ["a", "a", "b", "b"]))
    assert [row.system.accuracy for row in found.rows] == [0.5, 0.5]
    assert [row.baseline.accuracy for row in found.rows] == [0.5, 0.0]
    assert found.total.gain.accuracy == 0.25
    assert evidence(["JA."], ["Ja."], lowercase=True).exact.tolist() == [True]


def test_sentences_that_are_left_out_leave_their_statistics_out():
    part = evidence(HYPOTHESES).select(np.array([True, False, True, False]))
    alone = evidence([HYPOTHESES[0], HYPOTHESES[2]], [REFERENCES[0], REFERENCES[2]])
    assert part.score.value == alone.score.value
    assert part.exact.tolist() == alone.exact.tolist()


def test_lengths_count_words_characters_or_pieces():
    vocabulary = train_vocabulary(SOURCE, VocabularyRecipe(size=300))
    assert LENGTHS.tolist() == [5, 2, 8, 1]
    assert count_units(["彼は走る。", " はい "], "characters").tolist() == [5, 2]
    pieces = count_units([*SOURCE, ""], "pieces", vocabulary).tolist()
    assert pieces == [len(vocabulary.encode(line).ids) for line in SOURCE] + [0]


def test_the_side_and_the_unit_are_named():
    grouping = by_length(LENGTHS, side="target", unit="pieces", edges=PAPERS["ldd"].edges)
    assert (grouping.by, grouping.unit, grouping.counted) == ("reference length", "pieces", "pieces")
    assert grouping.names == ["1-10", "11-20", "21-30", "31-40", "41-50", ">50"]


def test_depths_and_distances_have_the_buckets_given():
    parses = random_parses(1)
    grouping = by_depth(parses, edges=(0, 2))
    assert grouping.names == ["0", "1-2", ">2"]
    assert members(grouping) == [0 if trees.depth(p) == 0 else 1 if trees.depth(p) <= 2 else 2 for p in parses]
    mean, longest = by_distance(parses, side="target", edges=(1.5, 3))
    assert mean.names == ["≤1.5", ">1.5 to 3", ">3"]
    for measure, found in ((trees.mean_distance, mean), (trees.longest_distance, longest)):
        values = [measure(parse) for parse in parses]
        assert members(found) == [0 if value <= 1.5 else 1 if value <= 3 else 2 for value in values]
    assert longest.by == "reference longest distance to the parent"


def test_a_relation_has_the_sentences_of_its_subtypes_and_the_most_frequent_comes_first():
    parses = [
        tree([0, 0, 0], ["root", "nsubj", "nsubj"]),
        tree([0, 0], ["root", "nsubj:pass"]),
        tree([0, 0], ["root", "obj"]),
        tree([0], ["root"]),
        tree([], []),
    ]
    grouping = by_relation(parses)
    assert grouping.names == ["nsubj", "nsubj:pass", "obj"]
    assert grouping.members.astype(int).tolist() == [[1, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0]]
    assert grouping.sizes.tolist() == [3, 2, 2, 1, 0]


@pytest.mark.parametrize("seed", range(5))
def test_the_sentences_of_a_relation_are_those_in_which_it_is_found(seed):
    parses = random_parses(seed)
    grouping = by_relation(parses)
    for name, chosen in zip(grouping.names, grouping.members, strict=True):
        found = [any(r == name or r.startswith(f"{name}:") for r in parse.relations) for parse in parses]
        assert chosen.tolist() == found
    counts = grouping.members.sum(1).tolist()
    assert all(one >= other for one, other in pairwise(counts))


def test_rare_relations_are_left_out_and_named_unless_all_are_rare(caplog):
    caplog.set_level("INFO", logger="synmt")
    parses = [tree([0, 0], ["root", "obj"])] * 3 + [tree([0, 0], ["root", "iobj"])]
    grouping = without_rare(by_relation(parses), fewest=2)
    assert (grouping.names, caplog.messages) == (["obj"], ["relations in fewer than 2 sentences are left out: iobj"])
    assert grouping.members.tolist() == [[True, True, True, False]]
    assert without_rare(by_relation(parses), fewest=5).names == ["obj", "iobj"]
    assert len(caplog.messages) == 1


def test_trees_without_relations_have_no_groups():
    found = tabulate(by_relation([tree([0], ["root"])] * 4), [[evidence(HYPOTHESES)]])
    assert (found.rows, found.total.count) == ([], 4)


def test_json_has_the_interval_and_both_shares():
    values = table(by_length(LENGTHS, edges=(2,))).to_json()
    assert (values["by"], values["unit"], values["text_in"]) == ("source length", "words", "words")
    assert values["overlapping"] is False
    expected = {"group": "1-2", "sentences": 2, "share": 0.5, "text_share": 3 / 16, "comparison": None}
    scores = {"system": 0, "baseline": 0, "difference": 0, "systems": 0}
    assert values["rows"][0] | scores == expected | scores
    lines = ["Ja."] * FEW_SENTENCES
    found = tabulate(labelled("a", ["a"] * FEW_SENTENCES), [[evidence(lines, lines)]] * 2).to_json()
    assert found["all"]["comparison"] == {"difference": 0.0, "low": 0.0, "high": 0.0, "p_value": 1.0}


def test_the_gains_of_pascal_grow_with_length(nc11):
    names = ("src.tok", "truth", "transformer.preds", "transformer_pascal.preds")
    source, truth, transformer, pascal = (list(read_lines(nc11(name))) for name in names)
    found = tabulate(
        by_length(count_units(source, "words")), [[evidence(transformer, truth)], [evidence(pascal, truth)]]
    )
    # the paper's scores
    assert [round(result.score, 1) for result in (found.total.baseline, found.total.system)] == [25.0, 25.9]
    assert found.total.comparison.p_value < 0.01
    assert [row.count for row in found.rows] == [476, 1133, 792, 402, 138, 58]
    gains = [round(row.gain.score, 1) for row in found.rows]
    assert gains == [-1.0, 1.0, 0.2, 2.0, 1.4, 2.8]
    assert np.polyfit(range(6), gains, 1)[0] > 0.3
    # where the intervals leave out zero
    assert [row.comparison.low > 0 for row in found.rows] == [False, True, False, True, False, True]
