"""Captions, everyday sentences, the documents of the United Nations, and scientific abstracts."""

from __future__ import annotations

from synmt.corpora.cleaning import first_pairs, without_dates
from synmt.corpora.plan import KnownCorpus, Plan, texts_at, texts_in
from synmt.corpora.sources import FromOwners, ParallelText

_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
_TANAKA = "https://raw.githubusercontent.com/odashi/small_parallel_enja/master"
_NATIONS = tuple(
    f"https://www.un.org/dgacm/sites/www.un.org.dgacm/files/files/UNCORPUS/UNv1.0.6way.tar.gz.{part:02}"
    for part in range(4)
)

_NATIONS_SETS = "https://drive.google.com/uc?export=download&id=13GI1F1hvwpMUGBSa0QC6ov4eE57GC_Zx"


def _captions(split: str) -> Plan:
    return Plan((split,), (texts_at(f"{_MULTI30K}/{split}.{{}}.gz", "en de fr"),))


def _everyday(name: str) -> ParallelText:
    return texts_at(f"{_TANAKA}/{name}", "en ja")


def _abstracts(numbers: int, *, keep: int = 0) -> tuple[Plan, ...]:
    """Plan ASPEC; its training text has a similarity before the fields of the others."""
    train = tuple(
        FromOwners("aspec", f"ASPEC-JE/train/train-{number}.txt", {"ja": 3, "en": 4})
        for number in range(1, numbers + 1)
    )
    dev, test = (FromOwners("aspec", f"ASPEC-JE/{split}/{split}.txt", {"ja": 2, "en": 3}) for split in ("dev", "test"))
    return (
        Plan(("train",), train, (*([first_pairs(keep)] if keep else []), without_dates)),
        Plan(("dev",), (dev,), (without_dates,)),
        Plan(("test",), (test,)),
    )


_ASK_FOR_ASPEC = (
    "ASPEC has a licence: ask for it at https://jipsti.jst.go.jp/aspec/, and unpack the archive without changing it"
)

OTHERS: dict[str, KnownCorpus] = {
    "multi30k": KnownCorpus(
        ("en", "de", "fr"),
        "Multi30k, task 1, raw text",
        tuple(map(_captions, ("train", "val", "test_2016_flickr"))),
        valid="val",
        test=("test_2016_flickr",),
        paper="Elliott et al. (2016)",
        counts={"train": 29_000, "val": 1_014, "test_2016_flickr": 1_000},
    ),
    "tanaka-enja": KnownCorpus(
        ("en", "ja"),
        "small_parallel_enja, from the Tanaka corpus, which its owner tokenized and lower-cased",
        (
            Plan(("train",), tuple(_everyday(f"train.{{}}.{part:03}") for part in range(5))),
            Plan(("dev",), (_everyday("dev.{}"),)),
        ),
        valid="dev",
        test=(),
        paper="its README",
        counts={"train": 50_000, "dev": 500},
    ),
    "un-ruar": KnownCorpus(
        ("ru", "ar"),
        "the part of the United Nations Parallel Corpus v1.0 that exists in all six languages, and its official "
        "development and test sets",
        (
            Plan(("train",), (texts_in(_NATIONS, "6way/UNv1.0.6way.{}", "ru ar"),)),
            Plan(("dev",), (texts_in(_NATIONS_SETS, "testsets/devset/UNv1.0.devset.{}", "ru ar"),)),
            Plan(("test",), (texts_in(_NATIONS_SETS, "testsets/testset/UNv1.0.testset.{}", "ru ar"),)),
        ),
        valid="dev",
        paper="Tran & Bisk (2018)",
        counts={"train": 11_100_000, "dev": 4_000, "test": 4_000},
        remarks={"train": "the paper rounds the number and does not name the part; this one has 11,365,709 pairs"},
    ),
    "wat-enja": KnownCorpus(
        ("en", "ja"),
        "ASPEC as used at WAT 2018, raw text",
        _abstracts(3),
        valid="dev",
        paper="Bugliarello & Okazaki (2020)",
        counts={"train": 3_008_500, "dev": 1_790, "test": 1_812},
        ask=_ASK_FOR_ASPEC,
    ),
    "aspec-jaen": KnownCorpus(
        ("ja", "en"),
        "the first 1,500,000 training pairs of ASPEC, its dev and test, raw text",
        _abstracts(2, keep=1_500_000),
        valid="dev",
        paper="Deguchi et al. (2019)",
        counts={"train": 1_500_000, "dev": 1_790, "test": 1_812},
        ask=_ASK_FOR_ASPEC,
    ),
}
