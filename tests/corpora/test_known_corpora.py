"""Every known corpus is built from small archives that have the names, folders and formats of the
public ones."""

import hashlib
import re
import sys

import pytest
from places import ROOT
from public_archives import (
    STARTS,
    TALKS,
    TANAKA,
    YANDEX_START,
    aspec,
    cased,
    standing_in,
)
from refusing import assert_fails
from resolving import resolved
from sentences import lines
from tiny import write_lines

from synmt.corpora.known import FILES, KNOWN_CORPORA
from synmt.recipe.corpus import ControlledRecipe

pytestmark = pytest.mark.journey

BUILT = [name for name, known in KNOWN_CORPORA.items() if known.plans]
NC11 = "data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Replace all public servers; the cache is empty, and mtdata is not installed: known corpora do
    not need it."""
    monkeypatch.setitem(sys.modules, "mtdata", None)
    with standing_in(monkeypatch, tmp_path / "cache") as server:
        yield server


def built(name, source=None, target=None):
    """Build a corpus; return its texts by file name."""
    first, second = KNOWN_CORPORA[name].languages[:2]
    corpus = resolved(source or first, target or second, name=name)
    texts = [path for files in corpus.splits().values() for path in (files.source, files.target)]
    return {path.name: path.read_text(encoding="utf-8").split("\n")[:-1] for path in texts}


def pairs_of(texts, languages):
    """List the pairs of texts that start at some place of the table and have some length."""
    found = []
    for text in texts:
        start, count = text.rstrip("*").split("+")
        start, count = int(STARTS.get(start, start)), int(count)
        sides = [lines(language, count, start) for language in languages]
        found += zip(*(map(cased, sides) if text.endswith("*") else sides), strict=True)
    return found


# the texts of each split: where they start in the table of sentences, and how many they are; of
# those that statmt.org prepares, the number is marked by a star

EXPECTED_TEXTS = """
multi30k: train 0+30, val 1+6, test_2016_flickr 2+5
tanaka-enja: train 0+6 6+6 12+6 18+6 24+6, dev 4+6
tanaka-enja-split: train 0+24 25+5, test 24+1, dev 4+6
un-ruar: train 2+36, dev 5+12, test 9+12
wat-enja: train 8+24, dev 3+6, test 7+6
aspec-jaen: train 8+16, dev 3+6, test 7+6
nc11: train COMMENTARY+30, newstest2015 2015+20, newstest2016 2016+20
wmt16-ende: train EUROPARL+28 CRAWL+26 COMMENTARY+30, newstest2015 2015+20, newstest2016 2016+20
wmt17-ende: train 0+40*, newstest2016 2016+20*, newstest2017 2017+20*
wmt17-ende-2015: train 0+40*, newstest2015 2015+20*, newstest2016 2016+20*, newstest2017 2017+20*
wmt17-enru: train CRAWL+25 COMMENTARY+27 YANDEX, newstest2016 2016+20, newstest2017 2017+20
wmt18-entr: train COMMENTARY+30*, newstest2016 2016+20*, newstest2017 2017+20*
iwslt15-enzh: train TALKS+30, valid 2+7, test 3+9
iwslt17-ende: train TALKS+32, valid 2+8, test 3+10
iwslt17-enit: train TALKS+26, valid 2+6, test 3+7
""".replace("YANDEX", " ".join(f"{YANDEX_START + part}+4" for part in range(1, 11)))
EXPECTED = {}
for row in EXPECTED_TEXTS.strip().splitlines():
    corpus, splits = row.split(": ")
    EXPECTED[corpus] = {split: texts for split, *texts in map(str.split, splits.split(", "))}
"""The texts of every split, by corpus. IWSLT14 has its own test."""


def test_every_known_corpus_has_its_expectation():
    assert set(EXPECTED) | {"iwslt14-deen"} == set(BUILT)
    assert all(set(EXPECTED[name]) == set(KNOWN_CORPORA[name].splits) for name in EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_known_corpus_is_built_from_its_public_files(name, server, tmp_path):
    unpack_aspec(tmp_path / "cache" / "corpora" / "aspec")
    texts = built(name)
    first, second = KNOWN_CORPORA[name].languages[:2]
    for split, pairs in EXPECTED[name].items():
        sides = texts.pop(f"{split}.{first}"), texts.pop(f"{split}.{second}")
        assert list(zip(*sides, strict=True)) == pairs_of(pairs, (first, second))
    assert not texts


def unpack_aspec(folder):
    for path, content in aspec().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def test_iwslt14_has_the_splits_of_fairseqs_script(server):
    texts = built("iwslt14-deen")
    talks = []
    for start, title in ((TALKS, 1), (TALKS + 30, 2)):
        # a title and a description come before each talk, and are sentences too
        told = list(zip(lines("de", 30, start), lines("en", 30, start), strict=True))
        describing = "TED Talk Subtitles and Transcript: "
        talks += [told[title], tuple(describing + text for text in told[title + 1]), *told]
    # 3 and 5 words: the ratio is above 1.5
    kept = [pair for pair in talks if pair != ("Vielen Dank.", "Thank you very much.")]
    assert len(kept) == len(talks) - 2
    valid = kept[22::23]
    del kept[22::23]
    for split, pairs in (("valid", valid), ("train", kept)):
        assert list(zip(texts[f"{split}.de"], texts[f"{split}.en"], strict=True)) == pairs
    # dev2010, dev2012 and tst2010 to tst2012; apostrophes become straight
    tests = pairs_of(["2+4", "3+5", "4+6", "5+4", "6+3"], ("de", "en"))
    assert any("’" in english for _, english in tests)
    for place, language in enumerate(("de", "en")):
        expected = [pair[place].replace("’", "'") for pair in tests]
        assert texts[f"test.{language}"] == expected


def test_both_directions_and_other_languages_share_the_files_of_a_corpus(server, tmp_path):
    built("multi30k", "en", "de")
    asked = server.requests.total()
    there, back = (resolved(*pair, name="multi30k").train for pair in DIRECTIONS)
    assert (there.source, there.target) == (back.target, back.source)
    assert server.requests.total() == asked
    assert built("multi30k", "fr", "en")["val.fr"] == lines("fr", 6, 1)
    assert server.requests.total() == asked + 3


DIRECTIONS = ("en", "de"), ("de", "en")


def test_the_files_of_a_person_win_over_the_public_ones(server, tmp_path, monkeypatch):
    own, cache = tmp_path / "data" / "nc11", tmp_path / "cache" / "corpora" / "nc11"
    for path in (own / "newstest2015.en", own / "newstest2015.de.gz", cache / "newstest2016.en"):
        write_lines(path, ["mine"])
    monkeypatch.setenv("SYNMT_DATA", str(tmp_path / "data"))
    corpus = resolved(name="nc11")
    assert corpus.valid.source == own / "newstest2015.en"
    assert corpus.valid.target == own / "newstest2015.de.gz"
    test = corpus.test["newstest2016"]
    assert [len(path.read_text().splitlines()) for path in (test.source, test.target)] == [1, 20]
    assert server.requests.keys() == {NC11, "data.statmt.org/wmt16/translation-task/test.tgz"}


# what goes wrong


def test_a_text_without_sentences_is_refused(server):
    server.files |= {f"{TANAKA}/dev.{language}": b"" for language in ("en", "ja")}
    assert_fails("the text of tanaka-enja/dev has no sentences", built, "tanaka-enja")


def test_aspec_is_asked_for_with_the_places_where_it_can_lie(server, tmp_path, monkeypatch):
    monkeypatch.setenv("SYNMT_DATA", str(tmp_path / "data"))
    places = f"{tmp_path / 'data' / 'aspec'} or {tmp_path / 'cache' / 'corpora' / 'aspec'}"
    page = "https://jipsti.jst.go.jp/aspec/"
    for said in ("ASPEC-JE/train/train-3.txt", page, "SYNMT_ASPEC", places):
        assert_fails(re.escape(said), built, "wat-enja")


@pytest.mark.parametrize("inner", ["", "ASPEC", "ASPEC/ASPEC-JE"])
def test_aspec_is_found_where_its_archive_was_unpacked(inner, server, tmp_path, monkeypatch):
    unpack_aspec(tmp_path / "given" / "ASPEC")
    monkeypatch.setenv("SYNMT_ASPEC", str(tmp_path / "given" / inner))
    texts = built("wat-enja", "ja", "en")
    assert texts["train.ja"][0] == lines("ja", 1, 8)[0]
    assert "［９．１２］" not in "".join(texts["train.ja"])


def test_a_corpus_of_words_that_older_recipes_name_says_what_to_use_instead(server, tmp_path):
    place = str(tmp_path / "cache" / "corpora" / "multi30k-words")
    for said in ("Use `corpus: {name: multi30k}` with `text: {tokenizer: spacy}`", place):
        assert_fails(re.escape(said), built, "multi30k-words")


def test_a_missing_sacremoses_is_named_before_anything_is_downloaded(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    assert_fails(r"pip install 'synmt\[tokenizers\]'", built, "iwslt14-deen")
    assert not server.requests


# the address book and the page


def test_the_sums_of_multi30k_are_those_of_the_real_files(data_folder):
    files = [file for file in FILES.values() if "/multi30k/" in file.address]
    assert len(files) == len(KNOWN_CORPORA["multi30k"].splits) * len(
        KNOWN_CORPORA["multi30k"].languages
    )
    for file in files:
        path = data_folder / "multi30k" / file.address.rpartition("/")[2]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256


def test_the_page_of_corpora_has_every_known_corpus_with_its_count_and_splits():
    text = (ROOT / "docs" / "corpora.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `(.+?)` \| (.+?) \| .+? \| ([\d,]+) \| (.+?) \|(.*?)\|$", text, flags=re.MULTILINE
    )
    built = {
        name: (
            ", ".join(known.languages),
            f"{known.counts['train']:,}",
            known.valid,
            ", ".join(known.test),
        )
        for name, known in KNOWN_CORPORA.items()
        if known.plans
    }
    controlled = ControlledRecipe().pairs
    assert {name: tuple(map(str.strip, cells)) for name, *cells in rows} == built | {
        "controlled": ("en, de", f"{controlled:,}", "valid", "test")
    }
