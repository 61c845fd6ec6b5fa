"""Groups of sentences for more systems than two, and for several seeds of a system."""

import numpy as np
import pytest

from synmt.analysis.groups.labels import by_label
from synmt.analysis.groups.report import GroupReport
from synmt.analysis.groups.scores import SentenceScores, tabulate
from synmt.evaluation.bootstrap import resamples
from synmt.evaluation.metrics import make_metric, score
from synmt.evaluation.seeds import FEW_SEEDS, compare_on_resamples, seeded_bootstrap
from synmt.evaluation.significance import paired_bootstrap

METRIC = make_metric("bleu")
WORDS = ["der", "die", "das", "Affe", "Frau", "isst", "sieht", "Banane", "Mann"]


def some_systems(seeds, sentences=24):
    """Translate random references with random errors: for each system, a score of each seed."""
    random = np.random.default_rng(7)
    references = [random.choice(WORDS, size=7).tolist() for _ in range(sentences)]

    def translate(share):
        wrong = random.random((sentences, 7)) < share
        return [
            " ".join(str(random.choice(WORDS)) if no else word for word, no in zip(line, bad, strict=True))
            for line, bad in zip(references, wrong, strict=True)
        ]

    shares = np.linspace(0.5, 0.1, len(seeds))
    texts = [" ".join(line) for line in references]
    return [
        [SentenceScores(score(METRIC, translate(share), texts), np.zeros(sentences, bool)) for _ in range(count)]
        for share, count in zip(shares, seeds, strict=True)
    ]


def halves(sentences=24, few=0):
    values = ["a"] * (12 - few) + ["b"] * (12 + few)
    return by_label("half", values, np.ones(sentences, dtype=np.int64))


def test_systems_of_one_seed_are_compared_as_in_pairs():
    base, *others = ([one.score.statistics for one in seeds] for seeds in some_systems([1, 1, 1]))
    found = compare_on_resamples([base, *others], METRIC.aggregate)
    assert found == [paired_bootstrap(base[0], other[0], METRIC.aggregate) for other in others]


def test_seeds_are_resampled_with_the_sentences():
    systems = [[one.score.statistics for one in seeds] for seeds in some_systems([2, 3])]
    [times] = resamples(24, samples=50)
    on_resamples = [
        [
            [METRIC.aggregate(sum(n * row for n, row in zip(chosen, one, strict=True))) for one in seeds]
            for chosen in times
        ]
        for seeds in systems
    ]
    means = [np.mean([METRIC.aggregate(one.sum(0)) for one in seeds]) for seeds in systems]
    base, other = map(np.array, on_resamples)
    [found] = compare_on_resamples(systems, METRIC.aggregate, samples=50)
    assert found == seeded_bootstrap(base, other, means[1] - means[0])


@pytest.mark.parametrize("counts", [(3, 1, 2), (1, 1, 1)])
def test_a_group_of_several_systems_has_means_deviations_and_gains(counts):
    systems = some_systems(counts)
    row = tabulate(halves(), systems).rows[1]
    for seeds, result in zip(systems, row.results, strict=True):
        alone = [METRIC.aggregate(one.score.statistics[12:].sum(0)) for one in seeds]
        assert result.seeds == alone
        assert result.score == pytest.approx(sum(alone) / len(alone))
        assert result.deviation == pytest.approx(np.std(alone, ddof=1) if len(alone) > 1 else 0)
    base, *others = row.results
    assert base.gain is None
    for one in others:
        assert one.gain.score == one.score - base.score == pytest.approx(one.gain.comparison.difference)


def test_p_values_are_corrected_for_all_comparisons_of_the_table():
    found = tabulate(halves(few=4), some_systems([1, 2, 1, 1]))
    # the first group is too small for an interval: three systems in the second and in all sentences
    assert (found.rows[0].few, found.comparisons) == (True, 6)
    gains = [one.gain for row in (*found.rows, found.total) for one in row.results[1:]]
    tested = sorted((one for one in gains if one.comparison), key=lambda one: one.comparison.p_value)
    highest = 0.0
    for rank, one in enumerate(tested):
        highest = max(highest, min(1, (6 - rank) * one.comparison.p_value))
        assert one.holm_p == pytest.approx(highest)
    assert [one.holm_p for one in gains if not one.comparison] == [None] * 3


def test_a_large_table_has_enough_resamples_for_its_correction(monkeypatch):
    systems = some_systems([1] * 5)
    assert tabulate(halves(), systems).resamples == 1000
    monkeypatch.setattr("synmt.analysis.groups.scores._RESAMPLES_EACH", 100)
    found = tabulate(halves(), systems)
    # four differences in each of two halves and in all sentences
    assert found.resamples == 1200
    assert found.total.results[4].gain.holm_p == pytest.approx(12 / 1201)


def test_the_order_of_the_other_systems_does_not_matter():
    base, other, third = some_systems([2, 1, 3])
    one, two = (tabulate(halves(), order).total for order in ([base, other, third], [base, third, other]))
    assert one.results[1:] == two.results[:0:-1]


def report(seeds, names):
    tables = [tabulate(halves(few=4), some_systems(seeds))]
    return GroupReport(tables, list(zip(names, seeds, strict=True)), "test", (), "")


def test_the_table_of_several_systems_has_a_line_for_each_group_and_system():
    made = report([3, 3, 1], ["plain", "pascal", "ldd"])
    heading, _, table, signature, *legend = made.to_text()
    assert heading == "pascal (3 seeds), ldd against plain (3 seeds) on the test set"
    assert table.columns[3:] == ["system", "BLEU", "±", "difference", "95 % interval", "p (Holm)", "exact match"]
    assert [row[:4] for row in table.rows[:3]] == [["a *", "8", "33.3%", name] for name in ("plain", "pascal", "ldd")]
    assert [row[:4] for row in table.shown()[:2]] == [["a *", "8", "33.3%", "plain"], ["", "", "", "pascal"]]
    last = made.tables[0].total.results[2]
    assert table.rows[-1][4:6] == [f"{last.score:.2f}", ""]
    assert table.rows[-1][6:9] == [f"{last.gain.score:+.2f}", last.gain.comparison.interval, f"{last.gain.holm_p:.3f}"]
    assert table.rows[1][7:9] == ["-", "-"]
    assert signature.startswith("\nBLEU|")
    assert legend == [
        "share: share of the sentences",
        "scores: means over the seeds of a system; ±: their standard deviation",
        "difference from plain; interval: bootstrap of the group's sentences and of seeds (Koehn, 2004), 1,000 "
        "resamples, seed 12345",
        FEW_SEEDS,
        "p: two-sided, of the same resamples, corrected for the 4 comparisons of the table (Holm, 1979); intervals "
        "are not corrected",
        "*: fewer than 10 sentences, too few for an interval",
    ]


def test_one_system_with_seeds_has_scores_and_deviations_only():
    made = report([3], ["plain"])
    heading, _, table, *legend = made.to_text()
    assert heading == "plain (3 seeds) on the test set"
    assert table.columns[3:] == ["system", "BLEU", "±", "exact match"]
    assert not any("difference" in line for line in legend)


def test_json_has_every_seed_and_the_old_names_for_two_systems():
    made = report([2, 2], ["plain", "pascal"]).to_json()
    assert made["systems"] == [{"system": "plain", "seeds": 2}, {"system": "pascal", "seeds": 2}]
    row = made["tables"][0]["rows"][1]
    assert row["system"]["score"] == row["systems"][1]["score"] == np.mean(row["systems"][1]["seeds"])
    assert row["comparison"] == row["systems"][1]["gain"]["comparison"]
    assert row["systems"][0]["gain"] is None
    several = report([1, 1, 1], ["plain", "pascal", "ldd"]).to_json()
    assert (several["system"], several["baseline"]) == ("pascal, ldd", "plain")
    assert "comparison" not in several["tables"][0]["rows"][1]


@pytest.mark.journey
def test_the_figure_has_a_line_for_each_system_bands_over_seeds_and_intervals():
    from synmt.analysis.groups.buckets import by_length
    from synmt.analysis.groups.plot import draw_groups

    lengths = np.array([5] * 4 + [15] * 20)
    names = ["plain", "pascal", "ldd"]
    table = tabulate(by_length(lengths), some_systems([3, 3, 1]))
    scores, differences, shares = draw_groups([table], names).axes
    for index, line in enumerate(scores.get_lines()):
        assert line.get_ydata() == pytest.approx([row.results[index].score for row in table.rows])
    # two systems have several seeds
    assert len(scores.collections) == 2
    [band] = scores.collections[0].get_paths()
    first = table.rows[0].results[0]
    ends = sorted({round(y, 6) for x, y in band.vertices if x == 0})
    assert ends == pytest.approx([first.score - first.deviation, first.score + first.deviation], abs=1e-5)
    assert [text.get_text() for text in scores.get_legend().get_texts()] == names
    # the small group has marks without intervals
    assert len(differences.collections) == 2
    assert differences.get_ylabel() == "Δ BLEU (points)\nfrom plain\n95 % interval\nhollow: fewer than 10 sentences"
    assert scores.get_ylabel() == "BLEU (points)\nband: standard deviation of seeds"
    assert [bar.get_height() for bar in shares.patches] == pytest.approx([100 / 6, 500 / 6])


@pytest.mark.journey
def test_labels_of_several_systems_are_not_joined_by_lines():
    from synmt.analysis.groups.plot import draw_groups

    scores, _, _ = draw_groups([tabulate(halves(), some_systems([1, 2, 1]))], ["a", "b", "c"]).axes
    places = [line.get_xdata()[0] for line in scores.get_lines()[:3]]
    assert all(line.get_linestyle() == "None" for line in scores.get_lines()[:3])
    assert places == pytest.approx([-0.14, 0, 0.14])
