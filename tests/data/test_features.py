"""Features of words: their signals against loops, CoNLL-U, merged words, the cache, annotations,
vocabularies."""

from dataclasses import replace

import numpy as np
import pytest
from small import MONKEY, MONKEY_WORD_OF, random_pieces, random_tree
from tiny import write_lines

from synmt.data.annotate import annotate
from synmt.data.corpus import PreparedCorpus
from synmt.data.features import learn_features
from synmt.data.prepare import prepare
from synmt.errors import SynmtError
from synmt.parsing.cache import decode_parse, encode_parse
from synmt.parsing.lines import parses_of
from synmt.run_folder import Run
from synmt.syntax.conllu import format_conllu, parse_in
from synmt.syntax.feature_signals import (
    CASE,
    CASES,
    PLACES,
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
FEATURED = replace(
    MONKEY,
    tags=["DET", "NOUN", "VERB", "DET", "NOUN"],
    features={
        "lemma": ["the", "monkey", "eat", "a", "banana"],
        "fine_tag": ["DT", "NN", "VBZ", "DT", "NN"],
        "morphology": ["_", "Number=Sing", "Tense=Pres|VerbForm=Fin", "_", "Number=Sing"],
    },
)
WITH_EOS = np.append(MONKEY_WORD_OF, -1)


def slow_places(word_of):
    """Compare every piece with all pieces of its word."""
    numbers = []
    for position, word in enumerate(word_of):
        own = [other for other, owner in enumerate(word_of) if owner == word]
        if word < 0:
            numbers.append(0)
        elif len(own) == 1:
            numbers.append(1 + PLACES.index("O"))
        else:
            place = "B" if position == own[0] else "E" if position == own[-1] else "I"
            numbers.append(1 + PLACES.index(place))
    return numbers


def test_the_pieces_of_the_monkey_have_subword_tags():
    names = ["-", *PLACES]
    assert "".join(names[number] for number in SUBWORD.compute(MONKEY, WITH_EOS)) == "OBEOOBE-"


@pytest.mark.parametrize("seed", range(20))
def test_subword_tags_equal_a_loop_over_all_pieces(seed):
    random = np.random.default_rng(seed)
    parse = random_tree(int(random.integers(1, 9)), random)
    word_of = random_pieces(len(parse), random)
    assert SUBWORD.compute(parse, word_of).tolist() == slow_places(word_of.tolist())


def test_a_piece_without_a_word_inside_a_word_does_not_end_it():
    parse = random_tree(1, np.random.default_rng(0))
    assert SUBWORD.compute(parse, np.array([0, -1, 0, 0])).tolist() == [2, 0, 3, 4]


@pytest.mark.parametrize(
    ("word", "case"),
    [
        *(
            ("monkey", "lower"),
            ("Monkey", "capital"),
            ("I", "capital"),
            ("UN", "upper"),
            ("iPhone", "mixed"),
        ),
        *(
            ("McDonald", "mixed"),
            ("3.5", "none"),
            (",", "none"),
            ("3D", "capital"),
            ("straße", "lower"),
        ),
        *(("日本", "none"), ("Ñandú", "capital"), ("-ed", "lower")),
    ],
)
def test_the_case_of_a_word(word, case):
    assert case_of(word) == case


def test_pieces_have_the_tags_and_cases_of_their_words_and_eos_none():
    tags = [1 + UNIVERSAL_TAGS.index(FEATURED.tags[word]) for word in MONKEY_WORD_OF]
    assert TAG.compute(FEATURED, WITH_EOS).tolist() == [*tags, 0]
    cases = [1 + CASES.index("capital" if word == 0 else "lower") for word in MONKEY_WORD_OF]
    assert CASE.compute(FEATURED, WITH_EOS).tolist() == [*cases, 0]


def test_unknown_tags_and_no_tags_share_the_last_number():
    other = 1 + len(UNIVERSAL_TAGS)
    strange = replace(MONKEY, tags=["DT", "_", "VERB", "", "X"])
    numbers = [other, other, 1 + UNIVERSAL_TAGS.index("VERB"), other, 1 + UNIVERSAL_TAGS.index("X")]
    assert TAG.compute(strange, np.arange(5)).tolist() == numbers
    assert TAG.compute(MONKEY, np.arange(5)).tolist() == [other] * 5


def test_a_learned_feature_is_numbered_by_the_values_of_the_training_text():
    signal = with_values(feature_signal("lemma", most=3), {"lemma": ("a", "the", "eat", "monkey")})
    assert signal.compute(FEATURED, WITH_EOS).tolist() == [2, 4, 4, 3, 1, 4, 4, 0]
    assert signal.name == "lemma.3"


def test_without_values_all_words_are_unknown_and_specials_are_not():
    signal = feature_signal("morphology", most=9)
    assert signal.compute(FEATURED, WITH_EOS).tolist() == [1] * 7 + [0]
    assert with_values(signal, {"lemma": ("a",)}) == signal


def test_a_line_that_could_not_be_parsed_has_no_values():
    signal = with_values(feature_signal("lemma", most=9), {"lemma": ("_", "the")})
    assert signal.compute(MONKEY, WITH_EOS).tolist() == [1] * 7 + [0]


def test_only_case_and_what_the_parser_adds_have_to_be_stored():
    signals = [
        feature_signal(name, most=5)
        for name in ("relation", "tag", "subword", "morphology", "case", "lemma")
    ]
    assert needed_features(signals) == ("case", "lemma", "morphology")


@pytest.mark.parametrize(
    "name", ["relation", "tag", "fine_tag", "lemma", "morphology", "subword", "case"]
)
def test_a_line_without_words_has_specials_only(name):
    nothing = Parse([], np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64), [])
    assert feature_signal(name, most=5).compute(nothing, np.array([-1, -1])).tolist() == [0, 0]


def test_features_are_columns_of_conllu():
    text = format_conllu(FEATURED, TEXT, 1)
    assert text.splitlines()[4].split("\t")[:6] == [
        "3",
        "eats",
        "eat",
        "VERB",
        "VBZ",
        "Tense=Pres|VerbForm=Fin",
    ]
    assert parse_in(text, TEXT, where="test") == FEATURED
    assert "\tmonkey\t_\t_\t_\t_\t3\t" in format_conllu(MONKEY, TEXT, 1)


def test_a_column_without_values_is_no_feature():
    plain = replace(FEATURED, features={"lemma": FEATURED.features["lemma"]})
    assert parse_in(format_conllu(plain, TEXT, 1), TEXT, where="test").features.keys() == {"lemma"}
    assert not parse_in(format_conllu(MONKEY, TEXT, 1), TEXT, where="test").features


def test_a_multi_word_token_has_the_features_of_its_leading_word():
    rows = [
        ("1-2", "zum", "_", "_", "_", "_", "_", "_", "_", "_"),
        ("1", "zu", "zu", "ADP", "APPR", "_", "3", "case", "_", "_"),
        ("2", "dem", "der", "DET", "ART", "Case=Dat", "3", "det", "_", "_"),
        ("3", "Zoo", "Zoo", "NOUN", "NN", "Case=Dat", "0", "root", "_", "_"),
    ]
    parse = parse_in("\n".join("\t".join(row) for row in rows) + "\n", "zum Zoo", where="test")
    assert parse.features == {
        "lemma": ["zu", "Zoo"],
        "fine_tag": ["APPR", "NN"],
        "morphology": ["_", "Case=Dat"],
    }


def test_stanza_s_words_give_features_and_later_sentences_follow():
    def sentence(start, *words):
        made = [
            _Word(
                head=0 if not number else 1,
                deprel="dep",
                upos="X",
                lemma=word.lower(),
                xpos="T",
                feats=None,
            )
            for number, word in enumerate(words)
        ]
        ends = np.cumsum([len(word) + 1 for word in words]) - 1 + start
        tokens = [
            _Word(start_char=end - len(word), end_char=end, words=[None])
            for word, end in zip(words, ends, strict=True)
        ]
        return _Word(words=made, tokens=tokens)

    line = "Go on . Stop"
    [(parse, failure)] = parses_of(
        [line], [sentence(0, "Go", "on", "."), sentence(8, "Stop")], None, FEATURES
    )
    assert failure == ""
    assert parse.features == {
        "lemma": ["go", "on", ".", "stop"],
        "fine_tag": ["T"] * 4,
        "morphology": ["_"] * 4,
    }


class _Word:
    def __init__(self, **values):
        self.__dict__.update(values)


def test_a_word_without_a_piece_loses_its_features():
    # "eats" shares its only piece with "monkey"
    spans = np.array([[0, 3], [3, 15], [15, 17], [17, 24]])
    merged, owners = merge_unowned(FEATURED, spans, np.array([0, 1, 3, 4]))
    assert merged.features["lemma"] == ["the", "monkey", "a", "banana"]
    assert owners.tolist() == [0, 1, 2, 3]


def test_the_cache_keeps_features_and_reads_trees_stored_without():
    stored = encode_parse(FEATURED, TEXT)
    assert decode_parse(stored, TEXT) == FEATURED
    assert decode_parse(encode_parse(MONKEY, TEXT), TEXT).features == {}
    assert FEATURED != MONKEY


@pytest.fixture(scope="module")
def annotated(tmp_path_factory):
    """Annotate three lines, twice the monkey, with what three columns say of their words and with
    their case."""
    from small import small_recipe

    from synmt.corpora.resolve import resolve

    folder = tmp_path_factory.mktemp("featured")
    texts = [TEXT, TEXT, "monkeys"]
    bare = Parse(["monkeys"], np.array([[0, 7]]), np.zeros(1, dtype=np.int64), ["root"], ["NOUN"])
    trees = [FEATURED, FEATURED, bare]
    for split in ("train", "valid", "test"):
        for language in ("en", "de"):
            write_lines(folder / f"{split}.{language}", texts)
        blocks = "".join(
            format_conllu(tree, text, n)
            for n, (tree, text) in enumerate(zip(trees, texts, strict=True), 1)
        )
        (folder / f"{split}.conllu").write_text(blocks)
    recipe = small_recipe(corpus={"folder": str(folder)}, vocabulary={"kind": "word", "size": 50})
    corpus = resolve(recipe.corpus, "en", "de")
    prepare(recipe, corpus, folder / "prepared")
    parses = {split: folder / f"{split}.conllu" for split in ("train", "valid")}
    featured = {"parser": "test", "features": ["case", *FEATURES]}
    annotate(folder / "prepared", corpus, parses, parser=featured)
    annotate(folder / "prepared", corpus, parses, parser={"parser": "plain"})
    return PreparedCorpus.open(folder / "prepared")


def annotation(prepared, parser):
    [name] = [
        name
        for name, facts in prepared.annotations().items()
        if facts["parser"]["parser"] == parser
    ]
    return name


def test_an_annotation_stores_the_features_that_it_is_asked_for(annotated):
    rows = annotated.split("train", {"source": annotation(annotated, "test")}).rows([0, 1, 2])
    parse = rows[1].trees["source"].parse
    assert parse.features == {**FEATURED.features, "case": ["capital", *["lower"] * 4]}
    last = rows[2].trees["source"].parse.features
    assert last == {"case": ["lower"], **{name: ["_"] for name in FEATURES}}
    assert (
        CASE.compute(parse, np.arange(5)).tolist() == CASE.compute(FEATURED, np.arange(5)).tolist()
    )
    plain = annotated.split("train", {"source": annotation(annotated, "plain")}).rows([0])
    assert plain[0].trees["source"].parse.features == {}


def test_vocabularies_have_what_occurs_twice_in_training_most_frequent_first(annotated):
    values = learn_features(annotated, annotation(annotated, "test"))
    # a line without lemmas counts as `_`, once
    assert values == {
        "lemma": ("a", "banana", "eat", "monkey", "the"),
        "fine_tag": ("DT", "NN", "VBZ"),
        "morphology": ("_", "Number=Sing", "Tense=Pres|VerbForm=Fin"),
    }
    assert learn_features(annotated, annotation(annotated, "plain")) == {}


def test_vocabularies_are_stored_in_a_run(tmp_path):
    values = {"lemma": ("_", "straße", "a\tb")}
    Run(tmp_path).write_features(values)
    assert Run(tmp_path).features() == values
    assert Run(tmp_path / "other").features() == {}
    (tmp_path / "features.json").write_text("[1]")
    with pytest.raises(SynmtError, match="features\\.json: broken: "):
        Run(tmp_path).features()
