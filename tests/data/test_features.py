"""Features of words: their signals against loops, CoNLL-U, merged words, the cache, annotations,
vocabularies."""

import re
from dataclasses import replace

import numpy as np
import pytest
from preparing import corpus_of, prepared, write_trees
from small import MONKEY, MONKEY_WORD_OF, stanza_sentence

from synmt.data.annotate import annotate, learn_features
from synmt.data.corpus import PreparedCorpus
from synmt.parsing.lines import parses_of
from synmt.syntax.conllu import format_conllu, parse_in
from synmt.syntax.feature_signals import (
    CASE,
    SUBWORD,
    TAG,
    UNIVERSAL_TAGS,
    case_of,
    feature_signal,
    with_values,
)
from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import FEATURES, Parse
from synmt.syntax.reading import needed_features

TEXT = "The monkey eats a banana"
COLUMNS = """
The    the    DT  DET  _
monkey monkey NN  NOUN Number=Sing
eats   eat    VBZ VERB Tense=Pres|VerbForm=Fin
a      a      DT  DET  _
banana banana NN  NOUN Number=Sing
"""
_, LEMMAS, FINE, TAGS, MORPHOLOGY = np.array(COLUMNS.split()).reshape(5, 5).T.tolist()
FEATURED = replace(
    MONKEY, tags=TAGS, features={"lemma": LEMMAS, "fine_tag": FINE, "morphology": MORPHOLOGY}
)
EMPTY = np.zeros(0, dtype=np.int64)
WITH_EOS = np.append(MONKEY_WORD_OF, -1)


def test_a_piece_without_a_word_inside_a_word_does_not_end_it():
    assert SUBWORD.compute(MONKEY, np.array([0, -1, 0, 0])).tolist() == [2, 0, 3, 4]


CASES_OF_WORDS = """
    monkey lower  Monkey capital  I capital  UN upper  iPhone mixed  McDonald mixed  3.5 none
    , none  3D capital  straße lower  日本 none  Ñandú capital  -ed lower
"""


def test_the_case_of_a_word():
    words = CASES_OF_WORDS.split()
    assert [case_of(word) for word in words[::2]] == words[1::2]


def test_unknown_tags_and_no_tags_share_the_last_number():
    other, verb = 1 + len(UNIVERSAL_TAGS), 1 + UNIVERSAL_TAGS.index("VERB")
    strange = replace(MONKEY, tags=["DT", "_", "VERB", "", "XX"])
    assert TAG.compute(strange, np.arange(5)).tolist() == [other, other, verb, other, other]
    assert TAG.compute(MONKEY, np.arange(5)).tolist() == [other] * 5


def test_without_values_all_words_are_unknown_and_specials_are_not():
    signal = feature_signal("morphology", most=9)
    assert signal.compute(FEATURED, WITH_EOS).tolist() == [1] * 7 + [0]
    assert with_values(signal, {"lemma": ("a",)}) == signal


ALL = ("relation", "tag", "subword", "morphology", "case", "lemma", "fine_tag")


def test_only_case_and_what_the_parser_adds_have_to_be_stored():
    signals = [feature_signal(name, most=5) for name in ALL[:-1]]
    assert needed_features(signals) == ("case", "lemma", "morphology")


@pytest.mark.parametrize("name", ALL)
def test_a_line_without_words_has_specials_only(name):
    nothing = Parse([], EMPTY.reshape(0, 2), EMPTY, [])
    assert feature_signal(name, most=5).compute(nothing, np.array([-1, -1])).tolist() == [0, 0]


def test_features_are_columns_of_conllu():
    text = format_conllu(FEATURED, TEXT, 1)
    assert text.splitlines()[4].startswith("3\teats\teat\tVERB\tVBZ\tTense=Pres|VerbForm=Fin\t")
    assert parse_in(text, TEXT, where="test") == FEATURED
    assert "\tmonkey\t_\t_\t_\t_\t3\t" in format_conllu(MONKEY, TEXT, 1)
    # a column without values is no feature
    text = format_conllu(replace(FEATURED, features={"lemma": LEMMAS}), TEXT, 1)
    assert parse_in(text, TEXT, where="test").features.keys() == {"lemma"}


ZUM = """\
1-2 zum _ _ _ _ _ _ _ _
1 zu zu ADP APPR _ 3 case _ _
2 dem der DET ART Case=Dat 3 det _ _
3 Zoo Zoo NOUN NN Case=Dat 0 root _ _
""".replace(" ", "\t")


def test_a_multi_word_token_has_the_features_of_its_leading_word():
    features = parse_in(ZUM, "zum Zoo", where="test").features
    found = [features[name] for name in ("lemma", "fine_tag", "morphology")]
    assert found == [["zu", "Zoo"], ["APPR", "NN"], ["_", "Case=Dat"]]


def test_stanza_s_words_give_features_and_later_sentences_follow():
    def sentence(start, text):
        places = [match.span() for match in re.finditer(r"\S+", text)]
        tokens = [(start + first, start + end, 1) for first, end in places]
        made = stanza_sentence([(0, "root"), *[(1, "dep")] * (len(tokens) - 1)], tokens)
        for word, own in zip(made.words, text.split(), strict=True):
            word.lemma, word.xpos, word.feats = own.lower(), "T", None
        return made

    sentences = [sentence(0, "Go on ."), sentence(8, "Stop")]
    [(parse, failure)] = parses_of(["Go on . Stop"], sentences, None, FEATURES)
    assert failure == ""
    expected = [["go", "on", ".", "stop"], ["T"] * 4, ["_"] * 4]
    assert parse.features == dict(zip(("lemma", "fine_tag", "morphology"), expected, strict=True))


def test_a_word_without_a_piece_loses_its_features():
    # "eats" shares its only piece with "monkey"
    spans = np.array([[0, 3], [3, 15], [15, 17], [17, 24]])
    merged, owners = merge_unowned(FEATURED, spans, np.array([0, 1, 3, 4]))
    assert merged.features["lemma"] == ["the", "monkey", "a", "banana"]
    assert owners.tolist() == list(range(4))


@pytest.fixture(scope="module")
def annotated(tmp_path_factory):
    """Annotate three lines, twice the monkey, with what three columns say of their words and with
    their case."""
    folder = tmp_path_factory.mktemp("featured")
    texts = [TEXT, TEXT, "monkeys"]
    bare = Parse(["monkeys"], np.array([[0, 7]]), np.array([0]), ["root"], ["NOUN"])
    corpus = corpus_of(folder / "text", *[[(text, text) for text in texts]] * 2)
    trees = write_trees(folder / "trees.conllu", texts, [FEATURED, FEATURED, bare])
    parses = {"train": trees, "valid": trees}
    prepared(folder, corpus, vocabulary={"kind": "word", "size": 50})
    for parser in ({"parser": "test", "features": ["case", *FEATURES]}, {"parser": "plain"}):
        annotate(folder / "prepared", corpus, parses, parser=parser)
    return PreparedCorpus.open(folder / "prepared")


def annotation(data, parser):
    parsers = {facts["parser"]["parser"]: name for name, facts in data.annotations().items()}
    return parsers[parser]


def test_an_annotation_stores_the_features_that_it_is_asked_for(annotated):
    def read(parser):
        rows = annotated.split("train", {"source": annotation(annotated, parser)}).rows([1, 2])
        return [row.trees["source"].parse for row in rows]

    parse, last = read("test")
    assert parse.features == {**FEATURED.features, "case": ["capital", *["lower"] * 4]}
    assert last.features == {"case": ["lower"], **{name: ["_"] for name in FEATURES}}
    cases = (CASE.compute(tree, np.arange(5)).tolist() for tree in (parse, FEATURED))
    assert next(cases) == next(cases)
    assert read("plain")[0].features == {}


def test_vocabularies_have_what_occurs_twice_in_training_most_frequent_first(annotated):
    values = learn_features(annotated, annotation(annotated, "test"))
    # a line without lemmas counts as `_`, once
    assert values == {
        "lemma": ("a", "banana", "eat", "monkey", "the"),
        "fine_tag": ("DT", "NN", "VBZ"),
        "morphology": ("_", "Number=Sing", "Tense=Pres|VerbForm=Fin"),
    }
    assert learn_features(annotated, annotation(annotated, "plain")) == {}
