"""Words: cut and joined by each tokenizer, on text that is hard to cut."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from refusing import assert_fails, assert_refused
from small import small_recipe
from tiny import write_lines

from synmt.arrays import SIDES
from synmt.corpora.corpus import Corpus
from synmt.data.vocabulary_training import train_vocabulary
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.data import ParserRecipe, TextRecipe
from synmt.syntax.parse import WORD
from synmt.tokenization import corpus as words_corpus
from synmt.tokenization import tokenizers
from synmt.tokenization.corpus import make_tokenizers, tokenize_corpus
from synmt.tokenization.word_tokenizer import (
    Truecaser,
    WordTokenizer,
    identities,
    learn_truecase,
    load_tokenizers,
)
from synmt.training.pipeline import prepare

HARD = [
    'He said, "Don\'t stop!" (twice).',
    "AT&T &amp; Co. &quot;quoted&quot; <b>bold</b> | [1]",
    "It costs 3,000.5 dollars, or $5.",
    "See http://www.a-b.org/x?y=1&z=2 now.",
    "Emoji 😀👍🏽 and 👨‍👩‍👧 family",
    "English mit Deutsch и русский 今日は 日本語",
    "",
    "   ",
    "...",
    "?!",
    "well-known e-mail - and a dash — here",
    "Tabs\tand\u00a0nbsp \u2028 and \x07",
    "@user #tag :-) ▁",
    "A" * 1200,
]
LANGUAGES = {"mecab": "ja", "jieba": "zh", "char": "zh"}


PACKAGES = {"mecab": "MeCab", "moses": "sacremoses", "char": "re"}


def word_tokenizer(tokenizer, language=None, **options):
    pytest.importorskip(PACKAGES.get(tokenizer, tokenizer))
    recipe = TextRecipe(tokenizer=tokenizer, **options)
    return WordTokenizer(recipe, language or LANGUAGES.get(tokenizer, "en"), ParserRecipe())


@pytest.mark.journey
@pytest.mark.parametrize("tokenizer", ["moses", "spacy", "mecab", "jieba", "char"])
def test_words_have_one_space_between_two_and_lose_no_character(tokenizer):
    one = word_tokenizer(tokenizer)
    for line, words in zip(HARD, one.tokenize_lines(HARD), strict=True):
        assert words == " ".join(WORD.findall(words))
        letters = "".join(words.split()).replace("▁", "")
        assert letters == "".join(WORD.findall(line)).replace("▁", "")
        assert one.join(words) == " ".join(one.join(words).split())


CUT = """
moses en | It isn't "3,000.5" (U.S.). | It isn 't " 3,000.5 " ( U.S. ) .
moses de | „Gut“, sagte er am 3. Mai. | „ Gut “ , sagte er am 3. Mai .
moses fr | L'auto n'est-elle pas là, d'accord. | L' auto n' est-elle pas là , d' accord .
moses ru | Он сказал: «Да!» | Он сказал : « Да ! »
moses ar | مرحبا، كيف حالك؟ | مرحبا ، كيف حالك ؟
moses en | “Curly” don’t ‘quote’ it. | “ Curly ” don ’ t ‘ quote ’ it .
spacy en | He can't see a well-known T-shirt; it's gone. |
spacy de | Ein Mann (z. B. Karl) lacht. | Ein Mann ( z. B. Karl ) lacht .
spacy it | L'uomo dell'altro è lì. | L' uomo dell' altro è lì .
spacy zh | 我爱北京。 | 我 爱 北 京 。
mecab ja | 私はPythonが好きだ。 | 私 は Python が 好き だ 。
jieba zh | 我来到北京清华大学。 | 我 来到 北京 清华大学 。
char zh | 我爱 GDP。 | 我 爱 ▁ G D P 。
"""


@pytest.mark.journey
@pytest.mark.parametrize("case", CUT.strip().splitlines())
def test_a_line_is_tokenized_as_its_tokenizer_does_and_given_back(case):
    how, line, words = map(str.strip, case.split("|"))
    one = word_tokenizer(*how.split())
    assert words in ("", one.tokenize(line))
    assert one.join(one.tokenize(line)) == line


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_the_spaces_between_characters_come_back_out_of_every_vocabulary(kind):
    lines = ["the cat sat", "a hat that sat"] * 5
    small = {"kind": kind, "size": 17, "byte_fallback": False}
    recipe = small_recipe(text={"tokenizer": "char"}, vocabulary=small)
    one = make_tokenizers(recipe)["target"]
    words = one.tokenize_lines(lines)
    vocabulary = train_vocabulary(words, recipe.vocabulary)
    found = [one.join(vocabulary.decode(vocabulary.encode_ids(line))) for line in words]
    assert found == lines


def test_a_run_that_was_cut_with_another_space_is_cut_so_again(tmp_path):
    recipe = small_recipe(text={"tokenizer": "char"}, vocabulary={"kind": "bpe"})
    known = identities(make_tokenizers(recipe))
    assert load_tokenizers(recipe, tmp_path, known)["source"].tokenize("a b") == "a ␣ b"
    del known["source"]["space"]
    assert load_tokenizers(recipe, tmp_path, known)["source"].tokenize("a b") == "a ▁ b"


@pytest.mark.journey
def test_what_the_words_do_not_tell_is_a_guess():
    moses = word_tokenizer("moses")
    assert moses.join(moses.tokenize("See http://a.b/c.")) == "See http: / / a.b / c."
    assert word_tokenizer("spacy").join("wait - what") == "wait-what"
    jieba = word_tokenizer("jieba")
    assert jieba.join("Hello world , GDP 3,000.5 元") == "Hello world, GDP 3,000.5元"
    assert word_tokenizer("mecab").join("") == word_tokenizer("char").join("") == ""


def test_the_faster_tests_of_letters_are_those_of_sacremoses():
    original = pytest.importorskip("sacremoses").MosesTokenizer("en")
    faster = word_tokenizer("moses").splitter._loaded
    for text in ("U.S", "e.g", "3.5", "ж.", "a", "aB", "", "日", "ß", "..."):
        assert bool(faster.isanyalpha(text)) == original.isanyalpha(text)
        assert faster.islower(text) == original.islower(text)
    for line in (*HARD, "Mr. Smith of the U.S. army, i.e. No. 5 vs. 3.5 p.m. today. vgl. X."):
        assert faster.tokenize(line, escape=False) == original.tokenize(line, escape=False)


def test_moses_escapes_and_splits_hyphens_if_the_recipe_says_so():
    one = word_tokenizer("moses", escape=True, split_hyphens=True)
    line = 'A well-known "R&D" [1] | it\'s <b>.'
    words = "A well @-@ known &quot; R &amp; D &quot; &#91; 1 &#93; &#124; it &apos;s &lt; b &gt; ."
    assert one.tokenize(line) == words
    assert one.join(words) == 'A well-known "R & D" [1] | it\'s < b >.'
    # without escape, text that looks escaped stays what it is
    assert word_tokenizer("moses").join("a &quot; b") == "a &quot; b"


def test_the_case_of_the_first_word_is_that_of_other_places(tmp_path):
    pytest.importorskip("sacremoses")
    text = ["Today the US and the dog", "I see Peter and us", "Now the dog barks . The dog"]
    learn_truecase(text, tmp_path / "model")
    caser = Truecaser(tmp_path / "model")
    lines = ["The dog . Peter", '" The dog', "PETER and US", "Unknown the THE"]
    expected = ["the dog . Peter", '" the dog', "Peter and US", "Unknown the the"]
    assert caser.truecase_lines(lines) == expected
    # sacremoses would cut the tags off
    assert [line.lower() for line in caser.truecase_lines(["<b> A", "| A"])] == ["<b> a", "| a"]
    capitals = caser.capitalize(["the", "dog", ".", "(", "peter"], "en")
    assert " ".join(capitals) == "The dog . ( Peter"


@pytest.mark.parametrize(
    ("language", "capitals"), [("tr", "İlk . Işık"), ("az", "İlk . Işık"), ("en", "Ilk . Işık")]
)
def test_the_first_letter_has_the_capital_of_its_language(tmp_path, language, capitals):
    model = tmp_path / "model"
    model.write_text("ilk (1/1)\nışık (1/1)\n", encoding="utf-8")
    one = replace(word_tokenizer("moses", language, truecase=True), truecaser=Truecaser(model))
    assert one.join("ilk . ışık") == capitals.replace(" .", ".")


def test_lower_case_needs_no_tokenizer():
    one = WordTokenizer(TextRecipe(lowercase=True), "en", ParserRecipe())
    assert (one.tokenize("A  Dog\t."), one.join("a  dog\t.")) == ("a  dog\t.", "a  dog\t.")
    assert WordTokenizer(TextRecipe(), "en", ParserRecipe()).tokenize_lines(HARD) == HARD


REFUSED = r"""
- {text: {tokenizer: mosses}, said: "text\\.tokenizer: .*'moses'.*not 'mosses'"}
- {text: {tokeniser: moses}, said: "no key 'text.tokeniser'.*Did you mean 'text.tokenizer'"}
- {text: {truecase: true}, said: "`truecase` and `already_cut` need a tokenizer"}
- {text: {already_cut: true}, said: "already_cut` need a tokenizer"}
- text: {tokenizer: char, truecase: true, lowercase: true}
  said: either `truecase` or `lowercase`
- {evaluation: {"on": tokens}, said: "`evaluation.on: tokens` needs `evaluation.tokenize: none`"}
"""


@pytest.mark.parametrize("case", yaml.safe_load(REFUSED), ids=str)
def test_a_recipe_with_words_that_do_not_fit_is_refused(case):
    sections = {name: section for name, section in case.items() if name != "said"}
    assert_refused(case["said"], small_recipe, **sections)


def test_the_target_is_cut_like_the_source_unless_it_has_its_own_section():
    for own, cut in (({}, "char"), ({"target_text": {"lowercase": True}}, "none")):
        recipe = small_recipe(text={"tokenizer": "char"}, **own)
        assert [recipe.text_of(side).tokenizer for side in SIDES] == ["char", cut]


@pytest.mark.parametrize(
    "case", ["moses sacremoses", "spacy spacy", "spacy sacremoses", "mecab MeCab", "kytea Mykytea"]
)
def test_a_missing_package_is_named_with_the_way_to_install_it(case, monkeypatch):
    tokenizer, module = case.split()
    monkeypatch.setitem(sys.modules, module, None)
    one = WordTokenizer(TextRecipe(tokenizer=tokenizer), "en", ParserRecipe())
    message = rf"'{tokenizer}' for 'en' cannot be loaded \(.*pip install 'synmt\[tokenizers\]'"
    assert_fails(message, one.splitter.check)


def test_true_case_names_the_package_that_it_needs(monkeypatch):
    pytest.importorskip("sacremoses")
    one = word_tokenizer("char", truecase=True)
    one.splitter.check()
    missing = Mock(side_effect=PackageNotFoundError("sacremoses"))
    monkeypatch.setattr(tokenizers, "version", missing)
    assert_fails(r"cannot be loaded \(.*sacremoses", one.splitter.check)


def corpus(folder, lines=7):
    files = {}
    for split, count in (("train", lines), ("valid", 2), ("test", 2)):
        english = (f"The cat or the dog no.{n} isn't here." for n in range(count))
        source = write_lines(folder / f"{split}.en", english)
        german = (f"Der Hund Nr.{n} ist hier nicht." for n in range(count))
        files[split] = SplitFiles(source=source, target=write_lines(folder / f"{split}.de", german))
    return Corpus("c", "en", "de", files["train"], files["valid"], {"test": files["test"]})


def train_of(corpus):
    """Read the source of the training text."""
    return corpus.train.source.read_text(encoding="utf-8")


def cut(corpus, folder, **sections):
    return tokenize_corpus(corpus, make_tokenizers(small_recipe(**sections)), folder)


def test_a_corpus_without_a_tokenizer_stays_the_same_files(tmp_path):
    raw = corpus(tmp_path)
    found, tokenizers = cut(raw, tmp_path / "words")
    assert (found, (tmp_path / "words").exists()) == (raw, False)
    assert not tokenizers["source"].recipe.changes


def test_sides_of_different_length_are_reported_before_they_are_cut(tmp_path):
    source = write_lines(tmp_path / "text" / "a.en", ["One.", "Two."])
    short = write_lines(tmp_path / "text" / "short.de", ["Eins."])
    values = {"source": str(source), "target": str(short)}
    recipe = small_recipe(corpus={"train": values, "valid": values}, text={"tokenizer": "char"})
    assert_fails(
        r"text/a\.en has 2 lines, .*text/short\.de has 1",
        list,
        prepare(recipe, data=tmp_path / "data"),
    )
    assert not (tmp_path / "data").exists()


def test_the_corpus_of_words_is_cut_once_and_continued_after_an_interruption(
    tmp_path, monkeypatch, reported
):
    pytest.importorskip("sacremoses")
    monkeypatch.setattr(words_corpus, "_SHARD_LINES", 2)
    monkeypatch.setattr(words_corpus, "process_count", lambda shards: 1)
    raw = corpus(tmp_path)
    moses = {"text": {"tokenizer": "moses", "truecase": True}, "target_text": {}}
    whole, _ = cut(raw, tmp_path / "whole", **moses)
    assert reported[0] == ["tokenize train.en", 7, "lines", 2, 2, 2, 1]
    reported.clear()
    assert train_of(whole).splitlines()[6] == "the cat or the dog no.6 isn 't here ."
    assert (whole.train.target, whole.test) == (raw.train.target, raw.test)
    # again: nothing is done; another text or another option is cut into other files
    assert cut(raw, tmp_path / "whole", **moses)[0] == whole
    assert reported == []
    other, _ = cut(raw, tmp_path / "whole", text={"tokenizer": "moses"})
    assert other.train.source != whole.train.source

    original, calls = words_corpus._tokenize_shard, []

    def killed(work, shard):
        calls.append(int(shard[0].name))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(work, shard)

    monkeypatch.setattr(words_corpus, "_tokenize_shard", killed)
    with pytest.raises(KeyboardInterrupt):
        cut(raw, tmp_path / "killed", **moses)
    again, _ = cut(raw, tmp_path / "killed", **moses)
    assert calls[:5] == [0, 1, 2, 2, 3]
    assert train_of(again) == train_of(whole)
    assert not list((tmp_path / "killed").rglob("*.parts"))


@pytest.mark.journey
def test_a_second_process_waits_for_the_words_and_does_not_cut_them_again(tmp_path, monkeypatch):
    raw, char = corpus(tmp_path), {"text": {"tokenizer": "char"}}
    expected, _ = cut(raw, tmp_path / "first", **char)
    calls, original, begun = [], words_corpus._tokenize_shard, threading.Event()

    def slow(work, shard):
        calls.append(shard[0])
        begun.set()
        time.sleep(0.2)
        return original(work, shard)

    monkeypatch.setattr(words_corpus, "_tokenize_shard", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cut, raw, tmp_path / "words", **char)
        assert begun.wait(20)
        second, _ = cut(raw, tmp_path / "words", **char)
        assert first.result()[0] == second
    assert train_of(second) == train_of(expected)
    assert len(calls) == len(set(calls))


def test_the_model_of_case_appears_when_it_is_complete_and_everybody_may_read_it(
    tmp_path, monkeypatch
):
    sacremoses = pytest.importorskip("sacremoses")
    model, usual = tmp_path / "made" / "model", tmp_path / "usual"
    learn_truecase(["the Dog barks ."], model)
    usual.touch()
    assert model.stat().st_mode == usual.stat().st_mode

    def killed(self, lines, save_to):
        Path(save_to).write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(sacremoses.MosesTruecaser, "train", killed)
    with pytest.raises(KeyboardInterrupt):
        learn_truecase(["the Dog barks ."], tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_corpus_that_its_owners_have_cut_stays_and_only_its_case_is_learned(tmp_path):
    pytest.importorskip("sacremoses")
    raw = corpus(tmp_path)
    given = {"tokenizer": "moses", "truecase": True, "already_cut": True}
    found, tokenizers = cut(raw, tmp_path / "words", text=given)
    assert found == raw
    assert tokenizers["source"].tokenize("The dog barks.") == "the dog barks ."


@pytest.mark.journey
def test_several_processes_make_the_same_words(tmp_path, monkeypatch):
    monkeypatch.setattr(words_corpus, "_SHARD_LINES", 50)
    many, found = corpus(tmp_path, lines=200), []
    for processes in (1, 2):
        monkeypatch.setattr(words_corpus, "process_count", lambda shards: processes)
        made, _ = cut(many, tmp_path / f"{processes}", text={"tokenizer": "moses"}, target_text={})
        found.append(train_of(made))
    assert found[0] == found[1]
