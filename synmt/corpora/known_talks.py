"""The TED talks of IWSLT 2014, 2015 and 2017."""

from __future__ import annotations

from synmt.corpora.cleaning import MosesLengths, straight_apostrophes, unescaped
from synmt.corpora.plan import KnownCorpus, Plan, texts_in

_LDD = "Liu & Sima'an (2022)"
_DEPS_SAN = "Peng et al. (2022)"

# the addresses of wit3.fbk.eu are gone; these hold the same archives
_IWSLT14 = "http://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz"
_IWSLT15 = (
    "https://drive.usercontent.google.com/download?id=1Mz-iiRxRqbCVbsYfKZQ6yuAxHNzYTMnI&export=download&confirm=t"
)
_IWSLT17_GERMAN = "https://raw.githubusercontent.com/hlt-mt/WIT3/master/archive/2017-01-trnted/texts/en/de/en-de.tgz"
_IWSLT17_MULTILINGUAL = (
    "https://huggingface.co/datasets/IWSLT/iwslt2017/resolve/main/data/2017-01-trnmted/texts/DeEnItNlRo/DeEnItNlRo/"
    "DeEnItNlRo-DeEnItNlRo.zip"
)


def _talks(archive: str, folder: str, campaign: str, pair: str, outer: str = "") -> tuple[Plan, ...]:
    """Plan the training text, dev2010 as validation and tst2010 as test."""
    languages = pair.replace("-", " ")
    train = texts_in(archive, f"{folder}/train.tags.{pair}.{{}}", languages, form="tags", outer=outer)
    valid, test = (
        texts_in(archive, f"{folder}/{campaign}.TED.{name}.{pair}.{{}}.xml", languages, form="sgm", outer=outer)
        for name in ("dev2010", "tst2010")
    )
    return Plan(("train",), (train,), (unescaped,)), Plan(("valid",), (valid,)), Plan(("test",), (test,))


_TESTS_14 = tuple(
    texts_in(_IWSLT14, f"de-en/IWSLT14.{name}.de-en.{{}}.xml", "de en", form="sgm")
    for name in ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
)

TALKS: dict[str, KnownCorpus] = {
    "iwslt14-deen": KnownCorpus(
        ("de", "en"),
        "IWSLT 2014 with the splits of fairseq's prepare-iwslt14.sh: sentences, titles and descriptions of 1 to 175 "
        "words, at most 1.5 times as many on one side as on the other; every 23rd is valid; test is dev2010, dev2012 "
        "and tst2010 to tst2012; raw text",
        (
            Plan(
                ("train", "valid"),
                (texts_in(_IWSLT14, "de-en/train.tags.de-en.{}", "de en", form="titles"),),
                (unescaped, MosesLengths(175, ratio=1.5)),
                every=23,
            ),
            Plan(
                ("test",),
                _TESTS_14,
                (straight_apostrophes,),
            ),
        ),
        paper=f"fairseq's script and {_DEPS_SAN}",
        counts={"train": 160_239, "valid": 7_283, "test": 6_750},
    ),
    "iwslt15-enzh": KnownCorpus(
        ("en", "zh"),
        "the talks of IWSLT 2015, with dev2010 and tst2010",
        _talks(_IWSLT15, "en-zh", "IWSLT15", "en-zh", outer="2015-01/texts/en/zh/en-zh.tgz"),
        paper=_LDD,
        counts={"train": 107_860, "valid": 802, "test": 1_408},
        remarks=dict.fromkeys(
            ("train", "valid", "test"), "the paper does not say which sentences of the campaign it left out"
        ),
    ),
    "iwslt17-ende": KnownCorpus(
        ("en", "de"),
        "the talks of IWSLT 2017, with dev2010 and tst2010",
        _talks(_IWSLT17_GERMAN, "en-de", "IWSLT17", "en-de"),
        paper=_LDD,
        counts={"train": 206_112, "valid": 888, "test": 1_568},
    ),
    "iwslt17-enit": KnownCorpus(
        ("en", "it"),
        "the talks of the multilingual task of IWSLT 2017, with dev2010 and tst2010",
        _talks(_IWSLT17_MULTILINGUAL, "DeEnItNlRo-DeEnItNlRo", "IWSLT17", "en-it"),
        paper=_LDD,
        counts={"train": 231_619, "valid": 929, "test": 1_566},
    ),
}
