"""Scores equal sacreBLEU's; a bootstrap resample is only another sum of statistics."""

import numpy as np
import pytest
import sacrebleu
from refusing import assert_fails, assert_refused
from sacrebleu.significance import PairedTest
from scored import score_system

from synmt.evaluation.metrics import (
    METRICS,
    MetricOptions,
    make_metric,
    read_aligned,
)
from synmt.evaluation.significance import bootstrap_scores, compare_on_resamples
from synmt.evaluation.spaces import warn_of_unspaced
from synmt.files.reading import read_lines

COUNTED_HERE = [name for name in METRICS if name not in ("comet", "beer")]

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


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("tokenize", ["13a", "none", "intl", "zh", "char"])
def test_bleu_equals_sacrebleu(tokenize, lowercase):
    expected = sacrebleu.corpus_bleu(
        HYPOTHESES, [REFERENCES], tokenize=tokenize, lowercase=lowercase, force=True
    )
    found = score_system(HYPOTHESES, REFERENCES, ["bleu"], tokenize=tokenize, lowercase=lowercase)[
        "bleu"
    ]
    assert found.value == expected.score


@pytest.mark.parametrize("order", [1, 2, 3])
def test_bleu_of_a_lower_order_equals_sacrebleu_and_says_so(order):
    own, name = sacrebleu.BLEU(max_ngram_order=order, force=True), f"bleu{order}"
    found = score_system(HYPOTHESES, REFERENCES, [name])[name]
    assert found.value == own.corpus_score(HYPOTHESES, [REFERENCES]).score
    assert found.metric.title == f"BLEU-{order}"
    assert found.signature == f"{own.get_signature()}".replace("|v", f"|order:{order}|v")


@pytest.mark.parametrize(
    "hypotheses", [HYPOTHESES, ["no word of it"] * 5, ["die Kinder"] * 5, [""] * 5]
)
def test_details_of_bleu_are_those_that_sacrebleu_prints(hypotheses):
    own = sacrebleu.corpus_bleu(hypotheses, [REFERENCES], force=True)
    details = score_system(hypotheses, REFERENCES)["bleu"].details
    expected = [*own.precisions, own.bp, own.sys_len / own.ref_len]
    names = [*(f"precision_{n}" for n in (1, 2, 3, 4)), "brevity_penalty", "length_ratio"]
    assert details == dict(zip(names, expected, strict=True))


def test_a_segment_s_own_bleu_is_sacrebleus_sentence_bleu():
    metric = make_metric("bleu")
    found = metric.segment_scores(metric.statistics(HYPOTHESES, REFERENCES))
    expected = [
        sacrebleu.sentence_bleu(one, [other]).score
        for one, other in zip(HYPOTHESES, REFERENCES, strict=True)
    ]
    assert found.tolist() == expected
    # a word of one that is right: there are no pairs to find
    assert metric.segment_scores(
        metric.statistics(["Ja!", "Ja"], ["Ja!", "Ja"])
    ).tolist() == pytest.approx([100, 100])


def test_chrf_and_ter_equal_sacrebleu():
    expected = {
        "chrf": sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]),
        "chrf++": sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2),
        "ter": sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]),
    }
    found = score_system(HYPOTHESES, REFERENCES, list(expected))
    assert [one.value for one in found.values()] == [one.score for one in expected.values()]


def test_a_signature_is_that_of_sacrebleu():
    own = sacrebleu.BLEU(lowercase=True, tokenize="intl")
    own.corpus_score(["a"], [["a"]])
    metric = make_metric("bleu", MetricOptions("intl", lowercase=True))
    assert metric.signature == str(own.get_signature())
    assert "case:lc" in metric.signature
    titles = ["BLEU", "BLEU-1", "BLEU-2", "BLEU-3", "chrF2", "chrF2++", "TER", "RIBES"]
    assert [make_metric(name).title for name in COUNTED_HERE] == titles
    assert [name for name in COUNTED_HERE if not make_metric(name).higher_is_better] == ["ter"]
    assert len({make_metric(name).signature for name in COUNTED_HERE}) == len(COUNTED_HERE)


def test_sacrebleus_p_value_follows_from_the_same_resamples(nc11):
    names = "truth", "transformer.preds", "transformer_pascal.preds"
    truth, *systems = (list(read_lines(nc11(name)))[:300] for name in names)
    metric = make_metric("bleu")
    first, second = (metric.statistics(system, truth) for system in systems)
    named = list(zip(("base", "system"), systems, strict=True))
    _, results = PairedTest(named, {"BLEU": sacrebleu.BLEU()}, [truth], "bs", 1000)()
    folded = np.abs(np.diff(bootstrap_scores([first, second], metric.aggregate))[:, 0])
    [found] = compare_on_resamples([[first], [second]], metric.aggregate)
    theirs = results["BLEU"][1].p_value
    exceeding = np.count_nonzero(folded - folded.mean() > abs(found.difference))
    assert (exceeding + 1) / 1001 == pytest.approx(theirs)
    assert theirs <= found.p_value


def test_names_of_metrics_may_be_in_upper_case_and_unknown_names_get_the_nearest():
    assert make_metric(" chrF++").title == "chrF2++"
    assert_refused(r"no metric 'blue'.*bleu, bleu1, .*Did you mean 'bleu'", make_metric, "blue")
    assert_refused(
        r"no tokenization 'ja-mekab'.*Did you mean 'ja-mecab'",
        make_metric,
        "bleu",
        MetricOptions("ja-mekab"),
    )


def test_a_tokenisation_without_its_packages_says_how_to_install_them(monkeypatch):
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    assert_fails(r"pip install 'sacrebleu\[ja\]'", make_metric, "bleu", MetricOptions("ja-mecab"))


def test_a_tokenisation_that_needs_a_download_obeys_offline(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    monkeypatch.setattr("synmt.evaluation.sacrebleu.SACREBLEU_DIR", str(tmp_path))
    assert_fails("SYNMT_OFFLINE forbids", make_metric, "bleu", MetricOptions("flores200"))


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "empty").write_text("")
    assert_fails(
        r"one or more, not .*empty': 0", read_aligned, [tmp_path / "empty", tmp_path / "empty"]
    )


UNSPACED = """
猿がバナナを一本食べています。
我昨天在北京看见了一只猴子。
เด็กผู้ชายเห็นสุนัข
"""
SPACED = """
원숭이가 바나나를 먹고 있습니다.
猿 が バナナ を 食べ る 。
我 爱 机器 翻译
เด็ก ผู้ชาย เห็น สุนัข
The word 猫 means cat.
"""


def test_texts_that_need_another_tokenization_are_named(caplog):
    for texts, warned in ((UNSPACED, True), (SPACED, False)):
        for line in texts.split("\n")[1:-1]:
            caplog.clear()
            warn_of_unspaced("the text", [line], ["bleu"], "13a")
            message = "no spaces between words; BLEU needs the tokenization"
            assert (message in caplog.text) == warned, line
    for lines, warned in ((99, False), (100, True)):
        caplog.clear()
        score_system(["Ja ."] * lines, ["Ja."] * lines)
        assert ("looks tokenized: BLEU needs the tokenization `none`" in caplog.text) == warned
    caplog.clear()
    score_system(["我昨天在北京看见了 ."] * 100, ["我昨天在北京看见了 ."] * 100, tokenize="zh")
    assert not caplog.messages
