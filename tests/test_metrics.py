"""Scores equal sacreBLEU's; a bootstrap resample is only another sum of statistics."""

from __future__ import annotations

import numpy as np
import pytest
import sacrebleu

from synmt.errors import SynmtError, UsageError
from synmt.files import read_lines
from synmt.metrics import (
    METRICS,
    MetricOptions,
    bootstrap_differences,
    looks_tokenized,
    make_metric,
    paired_bootstrap,
    read_aligned,
    score,
    score_system,
)

REFERENCES = [
    "Der Affe isst eine reife Banane .",
    "Die Kinder, die neben dem Mann stehen, bestellen Eis.",
    "",
    "Ja!",
    "Er fängt morgen mit der Arbeit an.",
]
HYPOTHESES = [
    "Der Affe isst eine Banane .",
    "die Kinder die neben dem Mann steht, bestellt ein Eis .",
    "Nichts.",
    "",
    "Er fängt mit der Arbeit morgen an.",
]


def mean(totals):
    return float(totals[0] / totals[1])


def with_counts(values):
    return np.stack([np.asarray(values, dtype=float), np.ones(len(values))], axis=1)


@pytest.fixture(scope="module")
def nc11(data_folder):
    folder = data_folder / "pascal-outputs" / "nc11en2de"
    if not folder.is_dir():
        pytest.skip(f"needs {folder}")
    names = ("truth", "transformer.preds", "transformer_pascal.preds")
    return [list(read_lines(folder / f"{name}.test.gz")) for name in names]


def test_bleu_of_a_sentence_counted_by_hand():
    # words 5/6, pairs 3/5, triples 2/4, quadruples 1/3, equal length: (1/12) ** (1/4)
    found = score_system(["The monkey eats a banana today"], ["The monkey eats a ripe banana"])["bleu"]
    assert found.statistics.tolist() == [[6, 6, 5, 3, 2, 1, 6, 5, 4, 3]]
    assert found.value == pytest.approx(100 * (1 / 12) ** 0.25)


def test_ter_of_a_sentence_counted_by_hand():
    # one substitution in five words
    assert score_system(["the monkey eats a nut"], ["the monkey eats a banana"], ["ter"])["ter"].value == 20


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("tokenize", ["13a", "none", "intl", "zh", "char"])
def test_bleu_equals_sacrebleu(tokenize, lowercase):
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize=tokenize, lowercase=lowercase, force=True)
    found = score_system(HYPOTHESES, REFERENCES, ["bleu"], tokenize=tokenize, lowercase=lowercase)["bleu"]
    assert found.value == expected.score


def test_chrf_and_ter_equal_sacrebleu():
    found = score_system(HYPOTHESES, REFERENCES, ["chrf", "ter"])
    assert found["chrf"].value == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert found["ter"].value == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score


def test_a_signature_is_that_of_sacrebleu():
    own = sacrebleu.BLEU(lowercase=True, tokenize="intl")
    own.corpus_score(["a"], [["a"]])
    metric = make_metric("bleu", MetricOptions("intl", lowercase=True))
    assert metric.signature == str(own.get_signature())
    assert "case:lc" in metric.signature
    assert [make_metric(name).title for name in METRICS] == ["BLEU", "chrF2", "TER"]
    assert [make_metric(name).higher_is_better for name in METRICS] == [True, True, False]


@pytest.mark.parametrize("name", METRICS)
def test_statistics_of_parts_sum_to_the_score_of_the_whole(name):
    metric = make_metric(name)
    whole = score(metric, HYPOTHESES, REFERENCES)
    first = metric.statistics(HYPOTHESES[:2], REFERENCES[:2]).sum(0)
    rest = metric.statistics(HYPOTHESES[2:], REFERENCES[2:]).sum(0)
    assert metric.aggregate(first + rest) == whole.value


def test_the_figures_of_the_pascal_paper_come_out(nc11):
    truth, transformer, pascal = nc11
    base, system = (score_system(lines, truth)["bleu"] for lines in (transformer, pascal))
    assert (round(base.value, 1), round(system.value, 1)) == (25.0, 25.9)
    found = paired_bootstrap(base.statistics, system.statistics, base.metric.aggregate)
    assert found.p_value < 0.01
    assert 0 < found.low < found.difference < found.high


@pytest.mark.parametrize("lines", [40, 300])
def test_sacrebleus_p_value_follows_from_the_same_resamples(nc11, lines):
    from sacrebleu.significance import PairedTest

    truth, *systems = (text[:lines] for text in nc11)
    metric = make_metric("bleu")
    first, second = (metric.statistics(system, truth) for system in systems)
    named = [("base", systems[0]), ("system", systems[1])]
    _, results = PairedTest(named, {"BLEU": sacrebleu.BLEU()}, [truth], "bs", 1000)()
    differences = bootstrap_differences(first, second, metric.aggregate, samples=1000, seed=12345)
    found = paired_bootstrap(first, second, metric.aggregate)
    folded = np.abs(differences)
    exceeding = np.count_nonzero(folded - folded.mean() > abs(found.difference))
    theirs = results["BLEU"][1].p_value
    assert (exceeding + 1) / 1001 == pytest.approx(theirs)
    assert theirs <= found.p_value


def test_a_system_equals_itself():
    statistics = score_system(HYPOTHESES, REFERENCES)["bleu"].statistics
    found = paired_bootstrap(statistics, statistics, make_metric("bleu").aggregate)
    assert (found.difference, found.low, found.high, found.p_value) == (0, 0, 0, 1)


def test_two_segments_give_the_distribution_written_out():
    # differences 0 and 2: a resample has mean 0, 1, 2 with probability 1/4, 1/2, 1/4; 0 and 2 are as far as 0
    found = paired_bootstrap(with_counts([0, 0]), with_counts([0, 2]), mean, samples=20_000)
    assert (found.difference, found.low, found.high) == (1, 0, 2)
    assert found.p_value == pytest.approx(0.5, abs=0.02)


def test_exchanging_the_systems_changes_only_the_sign():
    random = np.random.default_rng(1)
    one, other = with_counts(random.normal(0, 1, 50)), with_counts(random.normal(0.2, 1, 50))
    there, back = paired_bootstrap(one, other, mean), paired_bootstrap(other, one, mean)
    assert (there.difference, there.low, there.high) == pytest.approx((-back.difference, -back.high, -back.low))
    assert there.p_value == back.p_value
    assert 0.01 < there.p_value < 1


def test_a_p_value_keeps_its_promise_where_there_is_no_difference():
    random = np.random.default_rng(7)
    trials = [
        paired_bootstrap(
            with_counts(random.normal(0, 1, 100)), with_counts(random.normal(0, 1, 100)), mean, samples=200
        )
        for _ in range(300)
    ]
    # 5 % of 300 is 15 with a deviation of 3.8
    assert 4 <= sum(trial.p_value <= 0.05 for trial in trials) <= 30


def test_resamples_drawn_in_parts_equal_those_drawn_at_once():
    # 4,000,000 counts at once: 9,000 segments are drawn in three parts
    values = np.random.default_rng(2).normal(size=9000)
    drawn = np.random.default_rng(5).choice(9000, size=(1000, 9000), replace=True)
    found = bootstrap_differences(with_counts(np.zeros(9000)), with_counts(values), mean, samples=1000, seed=5)
    np.testing.assert_allclose(found, values[drawn].mean(1), atol=1e-12)


def test_an_unknown_metric_or_tokenisation_is_named_with_the_nearest():
    with pytest.raises(UsageError, match=r"no metric 'blue'.*bleu, chrf, ter.*Did you mean 'bleu'"):
        make_metric("blue")
    with pytest.raises(UsageError, match=r"no tokenisation 'ja-mekab'.*Did you mean 'ja-mecab'"):
        make_metric("bleu", MetricOptions("ja-mekab"))


def test_a_tokenisation_without_its_packages_says_how_to_install_them(monkeypatch):
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(SynmtError, match=r"pip install 'sacrebleu\[ja\]'"):
        make_metric("bleu", MetricOptions("ja-mecab"))


def test_a_tokenisation_that_needs_a_download_obeys_offline(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    monkeypatch.setattr("synmt.sacre.SACREBLEU_DIR", str(tmp_path))
    with pytest.raises(SynmtError, match="SYNMT_OFFLINE forbids"):
        make_metric("bleu", MetricOptions("flores200"))


def test_texts_of_different_length_are_refused_with_their_numbers_of_lines(tmp_path):
    (tmp_path / "a").write_text("1\n2\n3\n")
    (tmp_path / "b").write_text("1\n2\n")
    (tmp_path / "c").write_text("1\n2\n3\n4")
    with pytest.raises(SynmtError, match=r"b: 2 lines, but .*a has 3.*\n.*c: 4 lines, but .*a has 3"):
        read_aligned([tmp_path / "a", tmp_path / "b", tmp_path / "c"])
    with pytest.raises(SynmtError, match="2 translations cannot be scored by 1 references"):
        score_system(["a", "b"], ["a"])


def test_an_empty_file_and_two_standard_inputs_are_refused(tmp_path):
    (tmp_path / "empty").write_text("")
    with pytest.raises(SynmtError, match="empty: the file is empty"):
        read_aligned([tmp_path / "empty", tmp_path / "empty"])
    with pytest.raises(UsageError, match="only once"):
        read_aligned(["-", "-"])


def test_text_cut_into_words_is_recognised():
    assert looks_tokenized(["the monkey eats .", "it sleeps."])
    assert not looks_tokenized(["the monkey eats.", "it sleeps."])
