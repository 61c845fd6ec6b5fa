"""Groups of sentences are scored from kept statistics, whatever they are made by, for any number of
systems."""

from itertools import pairwise

import numpy as np
import pytest
from notation import tree
from scored import METRIC, halves, labelled, random_parses, score_system, some_systems

from synmt.analysis.groups import trees
from synmt.analysis.groups.grouping import PAPERS, by_length, count_units
from synmt.analysis.groups.results import collect, tabulate
from synmt.analysis.groups.trees import (
    DEPTH,
    MEAN_DISTANCE,
    by_measure,
    by_relation,
)
from synmt.data.vocabulary_training import train_vocabulary
from synmt.evaluation.bootstrap import resamples
from synmt.evaluation.metrics import make_metric, score
from synmt.evaluation.significance import (
    FEW_SEEDS,
    compare_on_resamples,
    holm,
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


def rows_of(table, system):
    """List the rows of a system by column; the last one is of all sentences."""
    return [row for row in table.as_json()["rows"] if row["system"] == system]


def test_each_group_scores_as_a_separate_corpus():
    found = table(by_length(LENGTHS, edges=(2, 5)))
    # lengths 5, 2, 8 and 1 of 16 words
    rows = rows_of(found, "pascal")
    sizes = [(row["sentences"], row["text_share"]) for row in rows]
    assert sizes == [(2, 3 / 16), (1, 5 / 16), (1, 8 / 16), (4, 1)]
    for row, group in zip(rows, [[1, 3], [0], [2], [0, 1, 2, 3]], strict=True):
        texts = ([lines[n] for n in group] for lines in (REFERENCES, HYPOTHESES, BASELINE))
        references, *systems = texts
        alone, base = (score_system(lines, references)["bleu"].value for lines in systems)
        assert (row["value"], row["difference"]) == (alone, alone - base)
    # no text at all
    found = tabulate(by_length(np.zeros(4, dtype=np.int64)), {"plain": [evidence(HYPOTHESES)]})
    assert [row["text_share"] for row in rows_of(found, "plain")] == [0, 0]


def test_the_interval_is_the_one_of_the_groups_sentences_alone():
    systems = some_systems([1, 1])
    *rows, _ = rows_of(tabulate(halves(few=1), systems), "s1")
    for row, chosen in zip(rows, (slice(11), slice(11, None)), strict=True):
        one, other = (seed.score.statistics[chosen] for [seed] in systems.values())
        [compared] = compare_on_resamples([[one], [other]], METRIC.aggregate)
        assert row["interval"] == [compared.low, compared.high]
        assert row["difference"] == pytest.approx(compared.difference)


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
    found = tabulate(halves(), systems)
    base, *others = [rows_of(found, name)[1] for name in systems]
    for seeds, row in zip(systems.values(), (base, *others), strict=True):
        alone = [METRIC.aggregate(one.score.statistics[12:].sum(0)) for one in seeds]
        spread = np.std(alone, ddof=1) if len(alone) > 1 else None
        assert (row["value"], row.get("deviation")) == pytest.approx((np.mean(alone), spread))
    assert (base["difference"], base["interval"], base["holm_p"]) == (None, None, None)
    assert [row["difference"] for row in others] == [row["value"] - base["value"] for row in others]


def test_p_values_are_corrected_for_all_comparisons_of_the_table():
    systems = some_systems([1, 2, 1, 1])
    found = tabulate(halves(few=4), systems)
    # the first group is too small for an interval: three systems in the second and in all sentences
    assert "corrected for 6 comparisons" in " ".join(found.explanations())
    p_values, corrected = [], []
    for chosen, place in ((slice(8, None), 1), (slice(None), 2)):
        parts = [[one.score.statistics[chosen] for one in seeds] for seeds in systems.values()]
        compared = compare_on_resamples(parts, METRIC.aggregate)
        p_values += [one.p_value for one in compared]
        corrected += [rows_of(found, name)[place]["holm_p"] for name in ("s1", "s2", "s3")]
    assert corrected == pytest.approx(holm(p_values))
    few = [rows_of(found, name)[0] for name in ("s1", "s2", "s3")]
    assert [(row["interval"], row["holm_p"]) for row in few] == [(None, None)] * 3
    assert all(row["difference"] for row in few)


def test_a_large_table_has_enough_resamples_for_its_correction(monkeypatch):
    monkeypatch.setattr("synmt.analysis.groups.results.SAMPLES_EACH", 100)
    found = tabulate(halves(), some_systems([1] * 5))
    # four differences in each of two halves and in all sentences
    assert "1,200 resamples" in " ".join(found.explanations())
    assert rows_of(found, "s4")[-1]["holm_p"] == pytest.approx(12 / 1201)


def test_an_empty_group_has_no_score():
    *_, row, _ = rows_of(table(by_length(LENGTHS, edges=PAPERS["pascal"].edges)), "pascal")
    assert list(row.values()) == [">50", 0, 0.0, 0.0, "pascal", None, None, None]
    # trees without relations have no groups
    found = tabulate(by_relation([tree([0], ["root"])] * 4), {"plain": [evidence(HYPOTHESES)]})
    assert [row["group"] for row in rows_of(found, "plain")] == ["all"]


def test_exact_matches_are_counted_whatever_the_spacing():
    # by line: exact but for a space, wrong, wrong, exact; the baseline has only the second right
    found = table(labelled("kind", ["a", "a", "b", "b"]))
    assert [row["exact match"] for row in rows_of(found, "pascal")] == [0.5, 0.5, 0.5]
    assert [row["exact match"] for row in rows_of(found, "plain")] == [0.5, 0.0, 0.25]
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
    assert found.by == "target mean distance to the parent"


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


def test_the_table_has_a_row_for_each_group_and_system_and_only_columns_with_values():
    found = tabulate(halves(few=4), some_systems([3, 3, 1]))
    titles = "system; exact match; BLEU; ±; difference; 95 % interval; p (Holm)"
    assert "; ".join(column.title for column in found.columns[4:]) == titles
    assert [row[4] for row in found.rows[:3]] == ["s0", "s1", "s2"]
    assert FEW_SEEDS in " ".join(found.explanations())
    alone = tabulate(halves(), some_systems([1]))
    assert [column.title for column in alone.columns[4:]] == ["system", "exact match", "BLEU"]
