"""Captions, everyday sentences, the documents of the United Nations, and scientific abstracts."""

from __future__ import annotations

from synmt.corpora.cleaning import first, without_dates
from synmt.corpora.download import RemoteFile
from synmt.corpora.plan import KnownCorpus, Plan
from synmt.corpora.sources import Entry, Licensed, Text, Texts

_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
_TANAKA = "https://raw.githubusercontent.com/odashi/small_parallel_enja/master"
_NATIONS = "https://www.un.org/dgacm/sites/www.un.org.dgacm/files/files/UNCORPUS"
_UN_PARTS = tuple(RemoteFile(f"{_NATIONS}/UNv1.0.6way.tar.gz.{part:02}") for part in range(4))

_MULTI30K_SUMS = {
    "train.en": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.de": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.fr": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.en": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.de": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.fr": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    "test_2016_flickr.en": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.de": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.fr": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
}


def _captions(split: str) -> Plan:
    texts = {
        language: Text((RemoteFile(f"{_MULTI30K}/{name}.gz", sha256=_MULTI30K_SUMS[name]),))
        for language in ("en", "de", "fr")
        for name in [f"{split}.{language}"]
    }
    return Plan((split,), (Texts(texts),))


def _everyday(name: str) -> Texts:
    return Texts({language: Text((RemoteFile(f"{_TANAKA}/{name.format(language)}"),)) for language in ("en", "ja")})


def _abstracts(numbers: int, *, keep: int = 0) -> tuple[Plan, ...]:
    """Plan ASPEC; its training text has a similarity before the fields of the others."""
    train = tuple(
        Licensed("aspec", f"ASPEC-JE/train/train-{number}.txt", {"ja": 3, "en": 4}) for number in range(1, numbers + 1)
    )
    dev, test = (Licensed("aspec", f"ASPEC-JE/{split}/{split}.txt", {"ja": 2, "en": 3}) for split in ("dev", "test"))
    return (
        Plan(("train",), train, (*([first(keep)] if keep else []), without_dates)),
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
        "small_parallel_enja, from the Tanaka corpus, which its owner cut into words and lower-cased",
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
            Plan(("train",), (Texts({language: Text(_UN_PARTS, (f"6way/UNv1.0.6way.{language}",)) for language in ("ru", "ar")}),)),
            Plan(("dev",), (Entry("UN-un_dev-1-ara-rus"),)),
            Plan(("test",), (Entry("UN-un_test-1-ara-rus"),)),
        ),
        valid="dev",
        paper="Tran & Bisk (2018)",
        counts={"train": 11_100_000, "dev": 4_000, "test": 4_000},
        remarks={"train": "the paper rounds what its filters leave of 11,365,709 pairs"},
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
