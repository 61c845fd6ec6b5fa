"""The corpora that a recipe can name, and where to get them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class KnownCorpus:
    """A corpus with a name: its files are `<split>.<language>`, plain or with `.gz`.

    languages: any two of them are a pair, in both directions.
    origin: what the splits are and where they come from, for error messages.
    valid, test: the file names of these splits; the other one is `train`.
    address: the URL of the folder of files; empty if they must be assembled by hand.
    sums: SHA-256 of each file at the address.
    """

    languages: tuple[str, ...]
    origin: str
    valid: str = "valid"
    test: tuple[str, ...] = ("test",)
    address: str = ""
    sums: Mapping[str, str] = field(default_factory=dict)


_MULTI30K_SUMS = {
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
}


_BY_HAND = """
multi30k-words  | en de fr | val          | test_2016_flickr
    multi30k cut into words with a blank between two (spaCy's tokenizer in the paper):
    https://github.com/multi30k/dataset, data/task1/raw
tanaka-enja     | en ja    | dev          |
    small_parallel_enja (50,000 / 500 sentences), https://github.com/odashi/small_parallel_enja; train consists of
    five files per language, to be concatenated in order
nc11            | en de    | newstest2015 | newstest2016
    News Commentary v11, newstest2015 and newstest2016 (238,843 / 2,169 / 2,999 sentences) from
    https://www.statmt.org/wmt16/translation-task.html
wmt16-ende      | en de    | newstest2015 | newstest2016
    the parallel training data of WMT16, newstest2015 and newstest2016 (4,500,962 / 2,169 / 2,999 sentences) from
    https://www.statmt.org/wmt16/translation-task.html
wmt16-words     | en de    | newstest2015 | newstest2016
    the files of wmt16-ende cut into words with a blank between two (tokenizer.perl of Moses), from
    https://www.statmt.org/wmt16/translation-task.html
wmt17-ende      | en de    | newstest2016 | newstest2017
    the preprocessed data of WMT17 (5,852,458 / 2,999 / 3,004 sentences) from
    http://data.statmt.org/wmt17/translation-task/preprocessed/
wmt17-ende-2015 | en de    | newstest2015 | newstest2016 newstest2017
    wmt17-ende with newstest2015 as validation text and two test sets (5,852,458 / 2,169 / 2,999 / 3,004 sentences),
    all cut into words with a blank between two, from http://data.statmt.org/wmt17/translation-task/preprocessed/
wmt17-enru      | en ru    | newstest2016 | newstest2017
    the parallel training data of WMT17 (2.1 million pairs in the paper), newstest2016 and newstest2017 (2,998 /
    3,001 sentences), cut into words with a blank between two (tokenizer.perl of Moses), from
    https://www.statmt.org/wmt17/translation-task.html
wmt18-entr      | en tr    | newstest2016 | newstest2017
    the preprocessed data of WMT18 (207,373 / 3,000 / 3,007 sentences) from
    http://data.statmt.org/wmt18/translation-task/preprocessed/
wat-enja        | en ja    | dev          | test
    ASPEC as used at WAT 2018 (3,008,500 / 1,790 / 1,812 sentences), on request from https://jipsti.jst.go.jp/aspec/
aspec-jaen      | ja en    | dev          | test
    the first 1,500,000 training pairs of ASPEC, its dev and test (1,790 / 1,812 sentences), Japanese cut into words
    by KyTea and English by tokenizer.perl of Moses; on request from https://jipsti.jst.go.jp/aspec/
un-ruar         | ru ar    | dev          | test
    the United Nations Parallel Corpus v1.0 (11.1 million pairs in the paper) and its official development and test
    sets (4,000 / 4,000 sentences), cut into words with a blank between two, from
    https://conferences.unite.un.org/uncorpus
iwslt14-deen    | de en    | valid        | test
    IWSLT 2014 as fairseq's examples/translation/prepare-iwslt14.sh leaves it in iwslt14.tokenized.de-en/tmp:
    lower-cased words before BPE, every 23rd pair of train is valid, test is dev2010, dev2012 and tst2010 to tst2012
    (6,750 sentences)
iwslt17-ende    | en de    | valid        | test
    the talks of IWSLT 2017 (206,112 / 888 / 1,568 sentences) without their XML, cut into words with a blank between
    two (spaCy's tokenizer in the paper), from https://wit3.fbk.eu/
iwslt17-enit    | en it    | valid        | test
    the talks of IWSLT 2017 (231,619 / 929 / 1,566 sentences) without their XML, cut into words with a blank between
    two (spaCy's tokenizer in the paper), from https://wit3.fbk.eu/
iwslt15-enzh    | en zh    | valid        | test
    the talks of IWSLT 2015 (107,860 / 802 / 1,408 sentences) without their XML, cut into words with a blank between
    two (spaCy's tokenizer in the paper), from https://wit3.fbk.eu/
"""
"""Corpora without an address: name, languages, valid and test files; below them, the origin."""


def _assembled_by_hand() -> Iterator[tuple[str, KnownCorpus]]:
    for entry in re.split(r"\n(?=\S)", _BY_HAND.strip()):
        head, *origin = entry.split("\n")
        name, languages, valid, test = (cell.strip() for cell in head.split("|"))
        joined = " ".join(line.strip() for line in origin)
        yield name, KnownCorpus(tuple(languages.split()), joined, valid, tuple(test.split()))


KNOWN_CORPORA: dict[str, KnownCorpus] = {
    "controlled": KnownCorpus(("en", "de"), "generated by synmt"),
    "multi30k": KnownCorpus(
        ("en", "de", "fr"),
        "Multi30k, task 1, raw text (29,000 / 1,014 / 1,000 captions)",
        "val",
        ("test_2016_flickr",),
        address="https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw",
        sums=_MULTI30K_SUMS,
    ),
    **dict(_assembled_by_hand()),
}
