"""The corpora of the news translation tasks: News Commentary, WMT16, WMT17 and WMT18.

Layouts and order are those of the scripts that the authors of PASCAL released (experiments/*/prepare_data.sh).
"""

from __future__ import annotations

from synmt.corpora.plan import KnownCorpus, Plan, texts_at, texts_in
from synmt.corpora.sources import Columns, FromSacrebleu, PackedText, Texts

_PASCAL = "Bugliarello & Okazaki (2020)"
_SA_NMT = "Tran & Bisk (2018)"
_TASK = "http://data.statmt.org/wmt{}/translation-task/{}"
_PREPROCESSED = "statmt's preprocessed text: its owners normalized punctuation, tokenized and true-cased it"

_TASK_13 = "http://www.statmt.org/wmt13/training-parallel-{}.tgz"
_EUROPARL_7 = texts_in(_TASK_13.format("europarl-v7"), "training/europarl-v7.de-en.{}", "de en")
_COMMENTARY_11 = texts_in(
    _TASK.format(16, "training-parallel-nc-v11.tgz"),
    "training-parallel-nc-v11/news-commentary-v11.de-en.{}",
    "de en",
)
_COMMENTARY_12 = texts_in(
    _TASK.format(17, "training-parallel-nc-v12.tgz"), "training/news-commentary-v12.ru-en.{}", "ru en"
)
_YANDEX = tuple(
    Columns(
        PackedText(
            ("https://github.com/mashashma/WMT2022-data/archive/refs/heads/main.zip",),
            (f"WMT2022-data-main/en-ru/en-ru.1m_{part}.tsv",),
        ),
        {"en": 0, "ru": 1},
    )
    for part in range(1, 11)
)
_CASED_17 = texts_at(_TASK.format(17, "preprocessed/de-en/corpus.tc.{}.gz"), "de en")
_CASED_18 = Columns(PackedText((_TASK.format(18, "preprocessed/tr-en/corpus.gz"),)), {"tr": 0, "en": 1})


def _crawl(other: str) -> Texts:
    return texts_in(_TASK_13.format("commoncrawl"), f"commoncrawl.{other}-en.{{}}", f"{other} en")


def _newstest(year: int, direction: str) -> Plan:
    """Plan the test set of a year, as sacreBLEU knows it: raw text."""
    return Plan((f"newstest{year}",), (FromSacrebleu(f"wmt{year - 2000}", direction),))


def _cased(task: int, pair: str, year: int) -> Plan:
    """Plan the test set of a year from the preprocessed text of a task."""
    archive = _TASK.format(task, f"preprocessed/{pair}/dev.tgz")
    return Plan((f"newstest{year}",), (texts_in(archive, f"newstest{year}.tc.{{}}", pair.replace("-", " ")),))


_AFTER_80_WORDS = "the paper counts what its filter of 80 words leaves"

NEWS: dict[str, KnownCorpus] = {
    "nc11": KnownCorpus(
        ("en", "de"),
        "News Commentary v11 of WMT16, newstest2015 and newstest2016",
        (Plan(("train",), (_COMMENTARY_11,)), _newstest(2015, "en-de"), _newstest(2016, "en-de")),
        valid="newstest2015",
        test=("newstest2016",),
        paper=_PASCAL,
        counts={"train": 238_843, "newstest2015": 2_169, "newstest2016": 2_999},
        remarks={"train": _AFTER_80_WORDS},
    ),
    "wmt16-ende": KnownCorpus(
        ("en", "de"),
        "the parallel training data of WMT16 (Europarl v7, Common Crawl, News Commentary v11), newstest2015 and "
        "newstest2016",
        (
            Plan(("train",), (_EUROPARL_7, _crawl("de"), _COMMENTARY_11)),
            _newstest(2015, "en-de"),
            _newstest(2016, "en-de"),
        ),
        valid="newstest2015",
        test=("newstest2016",),
        paper=_PASCAL,
        counts={"train": 4_500_962, "newstest2015": 2_169, "newstest2016": 2_999},
        remarks={"train": _AFTER_80_WORDS},
    ),
    "wmt17-ende": KnownCorpus(
        ("en", "de"),
        f"the training data of WMT17, newstest2016 and newstest2017, {_PREPROCESSED}",
        (Plan(("train",), (_CASED_17,)), _cased(18, "de-en", 2016), _cased(18, "de-en", 2017)),
        valid="newstest2016",
        test=("newstest2017",),
        paper=_PASCAL,
        counts={"train": 5_852_458, "newstest2016": 2_999, "newstest2017": 3_004},
    ),
    "wmt17-ende-2015": KnownCorpus(
        ("en", "de"),
        f"wmt17-ende with newstest2015 as validation text and two test sets, {_PREPROCESSED}",
        (
            Plan(("train",), (_CASED_17,)),
            _cased(17, "de-en", 2015),
            _cased(18, "de-en", 2016),
            _cased(18, "de-en", 2017),
        ),
        valid="newstest2015",
        test=("newstest2016", "newstest2017"),
        paper=_SA_NMT,
        counts={"train": 5_900_000, "newstest2015": 2_169, "newstest2016": 2_999, "newstest2017": 3_004},
        remarks={"train": "the paper rounds the number"},
    ),
    "wmt17-enru": KnownCorpus(
        ("en", "ru"),
        "Common Crawl, News Commentary v12 and Yandex' corpus, the parallel training data of WMT17 without Wikipedia's "
        "titles and the UN corpus; newstest2016 and newstest2017",
        (
            Plan(("train",), (_crawl("ru"), _COMMENTARY_12, *_YANDEX)),
            _newstest(2016, "en-ru"),
            _newstest(2017, "en-ru"),
        ),
        valid="newstest2016",
        test=("newstest2017",),
        paper=_SA_NMT,
        counts={"train": 2_100_000, "newstest2016": 2_998, "newstest2017": 3_001},
        remarks={
            "train": "the paper rounds the number and does not name its texts; these three have 2.1 million pairs"
        },
    ),
    "wmt18-entr": KnownCorpus(
        ("en", "tr"),
        f"the training data of WMT18, newstest2016 and newstest2017, {_PREPROCESSED}",
        (Plan(("train",), (_CASED_18,)), _cased(18, "tr-en", 2016), _cased(18, "tr-en", 2017)),
        valid="newstest2016",
        test=("newstest2017",),
        paper=_PASCAL,
        counts={"train": 207_373, "newstest2016": 3_000, "newstest2017": 3_007},
    ),
}
