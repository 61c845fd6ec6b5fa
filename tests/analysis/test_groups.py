"""Groups of sentences are scored from kept statistics, whatever they are made by, for any number of
systems."""

from itertools import pairwise

import numpy as np
import pytest
from scored import METRIC, halves, labelled, random_parses, score_system, some_systems, tree

from synmt.analysis.groups import trees
from synmt.analysis.groups.grouping import PAPERS, by_length, count_units
from synmt.analysis.groups.results import (
    collect,
    results_table,
    tabulate,
)
from synmt.analysis.groups.trees import (
    DEPTH,
    MEAN_DISTANCE,
    by_measure,
    by_relation,
    without_rare,
)
from synmt.data.vocabulary_training import train_vocabulary
from synmt.evaluation.bootstrap import resamples
from synmt.evaluation.metrics import make_metric, score
from synmt.evaluation.significance import (
    FEW_SEEDS,
    compare_on_resamples,
    holm,
    paired_bootstrap,
    seeded_bootstrap,
)
from synmt.recipe.data import VocabularyRecipe

REFERENCES = [
    "Der Affe isst eine Banane.",
    "Er schläft.",
    "Die Frauen sehen den Mann im Park.",
    "Ja.",
]
HYPOTHESES = [
    "Der Affe isst eine  Banane.",
    "Er schlief.",
    "Die Frauen sieht den Mann im Park.",
    "Ja.",
]
BASELINE = ["Der Affe isst Banane.", "Er schläft.", "Die Frauen sieht der Mann im Park.", "Nein."]
SOURCE = ["The monkey eats a banana.", "He sleeps.", "The women see the man in the park.", "Yes."]
LENGTHS = count_units(SOURCE, "words")


def evidence(lines, references=REFERENCES, metric="bleu", **options):
    return collect(score(make_metric(metric), lines, references), lines, references, **options)


def table(grouping, metric="bleu"):
    texts = {"plain": BASELINE, "pascal": HYPOTHESES}
    return tabulate(
        grouping, {name: [evidence(lines, metric=metric)] for name, lines in texts.items()}
    )


def of(row, measure="score", system="pascal"):
    return row.systems[system][measure]


def test_each_group_scores_as_a_separate_corpus():
    found = table(by_length(LENGTHS, edges=(2, 5)))
    # lengths 5, 2, 8 and 1 of 16 words
    sizes = [(row.sentences, row.text_share) for row in [*found.rows, found.total]]
    assert sizes == [(2, 3 / 16), (1, 5 / 16), (1, 8 / 16), (4, 1)]
    for row, group in zip(found.rows, [[1, 3], [0], [2]], strict=True):
        texts = ([lines[n] for n in group] for lines in (REFERENCES, HYPOTHESES, BASELINE))
        references, *systems = texts
        alone, base = (score_system(lines, references)["bleu"].value for lines in systems)
        assert (of(row).value, of(row).difference) == (alone, alone - base)
    # no text at all
    found = tabulate(by_length(np.zeros(4, dtype=np.int64)), {"plain": [evidence(HYPOTHESES)]})
    assert [row.text_share for row in (found.rows[0], found.total)] == [0, 0]


def test_the_interval_is_the_one_of_the_groups_sentences_alone():
    systems = some_systems([1, 1])
    for row, chosen in zip(
        tabulate(halves(few=1), systems).rows, (slice(11), slice(11, None)), strict=True
    ):
        one, other = (seed.score.statistics[chosen] for [seed] in systems.values())
        compared = of(row, system="s1").comparison
        assert compared == paired_bootstrap(one, other, METRIC.aggregate)
        assert compared.difference == pytest.approx(of(row, system="s1").difference)


def test_seeds_are_resampled_with_the_sentences():
    systems = [[one.score.statistics for one in seeds] for seeds in some_systems([2, 3]).values()]
    [times] = resamples(24, samples=50)
    base, other = (
        np.array([[METRIC.aggregate(chosen @ one) for one in seeds] for chosen in times])
        for seeds in systems
    )
    means = [np.mean([METRIC.aggregate(one.sum(0)) for one in seeds]) for seeds in systems]
    [found] = compare_on_resamples(systems, METRIC.aggregate, samples=50)
    assert found == seeded_bootstrap(base, other, means[1] - means[0])


@pytest.mark.parametrize("counts", [(3, 1, 2), (1, 1, 1)])
def test_a_group_of_several_systems_has_means_deviations_and_differences(counts):
    systems = some_systems(counts)
    results = [one["score"] for one in tabulate(halves(), systems).rows[1].systems.values()]
    for seeds, result in zip(systems.values(), results, strict=True):
        alone = [METRIC.aggregate(one.score.statistics[12:].sum(0)) for one in seeds]
        assert result.seeds == alone
        spread = np.std(alone, ddof=1) if len(alone) > 1 else 0
        assert (result.value, result.deviation) == pytest.approx((np.mean(alone), spread))
    base, *others = results
    assert (base.difference, base.comparison) == (None, None)
    for one in others:
        assert one.difference == one.value - base.value == pytest.approx(one.comparison.difference)


def test_p_values_are_corrected_for_all_comparisons_of_the_table():
    found = tabulate(halves(few=4), some_systems([1, 2, 1, 1]))
    # the first group is too small for an interval: three systems in the second and in all sentences
    assert (found.rows[0].few, found.comparisons("score"), found.samples) == (True, 6, 1000)
    rows = (*found.rows, found.total)
    results = [of(row, system=name) for row in rows for name in ("s1", "s2", "s3")]
    tested = [one for one in results if one.comparison]
    corrected = holm([one.comparison.p_value for one in tested])
    assert [one.holm_p for one in tested] == pytest.approx(corrected)
    assert [one.holm_p for one in results if not one.comparison] == [None] * 3


def test_a_large_table_has_enough_resamples_for_its_correction(monkeypatch):
    monkeypatch.setattr("synmt.analysis.groups.results.SAMPLES_EACH", 100)
    found = tabulate(halves(), some_systems([1] * 5))
    # four differences in each of two halves and in all sentences
    assert found.samples == 1200
    assert of(found.total, system="s4").holm_p == pytest.approx(12 / 1201)


def test_an_empty_group_has_no_score():
    found = table(by_length(LENGTHS, edges=PAPERS["pascal"].edges))
    row = found.rows[-1]
    assert (row.sentences, row.share, row.few, row.systems) == (0, 0, False, {})
    assert results_table(found, "").rows[-2] == [">50", 0, 0.0, 0.0, None, None, None]
    # trees without relations have no groups
    found = tabulate(by_relation([tree([0], ["root"])] * 4), {"plain": [evidence(HYPOTHESES)]})
    assert (found.rows, found.total.sentences) == ([], 4)


def test_accuracy_is_the_share_of_exact_translations_whatever_the_spacing():
    # by line: exact but for a space, wrong, wrong, exact; the baseline has only the second right
    found = table(labelled("kind", ["a", "a", "b", "b"]))
    assert [of(row, "accuracy").value for row in found.rows] == [0.5, 0.5]
    assert [of(row, "accuracy", "plain").value for row in found.rows] == [0.5, 0.0]
    assert of(found.total, "accuracy").difference == 0.25
    assert evidence(["JA."], ["Ja."], lowercase=True).exact.tolist() == [True]


def test_lengths_count_words_characters_or_pieces():
    vocabulary = train_vocabulary(SOURCE, VocabularyRecipe(size=300))
    assert LENGTHS.tolist() == [5, 2, 8, 1]
    assert count_units(["彼は走る。", " はい "], "characters").tolist() == [5, 2]
    pieces = count_units([*SOURCE, ""], "pieces", vocabulary).tolist()
    assert pieces == [len(vocabulary.encode(line).ids) for line in SOURCE] + [0]


def test_depths_and_distances_have_the_buckets_given():
    parses = random_parses(1)
    found = by_measure(DEPTH, parses, edges=(0, 2))
    assert found.names == ["0", "1-2", ">2"]
    values = np.array([trees.depth(parse) for parse in parses])
    assert found.members.argmax(0).tolist() == ((values > 0) + 1 * (values > 2)).tolist()
    found = by_measure(MEAN_DISTANCE, parses, side="target", edges=(1.5, 3))
    values = np.array([trees.mean_distance(parse) for parse in parses])
    assert found.members.argmax(0).tolist() == ((values > 1.5) + 1 * (values > 3)).tolist()
    assert found.by == "reference mean distance to the parent"


@pytest.mark.parametrize("seed", range(5))
def test_the_sentences_of_a_relation_are_those_in_which_it_is_found(seed):
    parses = random_parses(seed)
    grouping = by_relation(parses)
    for name, chosen in zip(grouping.names, grouping.members, strict=True):
        found = [
            any(r == name or r.startswith(f"{name}:") for r in parse.relations) for parse in parses
        ]
        assert chosen.tolist() == found
    counts = grouping.members.sum(1).tolist()
    assert all(one >= other for one, other in pairwise(counts))


def test_rare_relations_are_left_out_and_named_unless_all_are_rare(caplog):
    caplog.set_level("INFO", logger="synmt")
    parses = [tree([0, 0], ["root", "obj"])] * 3 + [tree([0, 0], ["root", "iobj"])]
    grouping = without_rare(by_relation(parses), fewest=2)
    assert (grouping.names, grouping.members.tolist()) == (["obj"], [[True] * 3 + [False]])
    assert without_rare(by_relation(parses), fewest=5).names == ["obj", "iobj"]
    assert caplog.messages == ["relations in fewer than 2 sentences are left out: iobj"]


def test_the_table_of_several_systems_has_a_line_for_each_group_and_system():
    tabulated = tabulate(halves(few=4), some_systems([3, 3, 1]))
    found = results_table(tabulated, "BLEU by half")
    titles = "system; exact match; BLEU; ±; difference; 95 % interval; p (Holm)"
    assert "; ".join(column.title for column in found.columns[4:]) == titles
    assert [(row[0].mark, row[4]) for row in found.rows[:3]] == [("*", f"s{n}") for n in range(3)]
    last, shown = of(tabulated.total, system="s2"), found.rows[-1]
    assert shown[6:9] == [last.value, None, last.difference]
    assert (shown[9].low, shown[9].high) == (last.comparison.low, last.comparison.high)
    assert (shown[10], found.rows[1][9:]) == (last.holm_p, [None, None])
    few = [FEW_SEEDS, "*: fewer than 10 sentences, too few for an interval"]
    assert found.explanations()[-2:] == few
