"""Contrastive sets of every form, those of the controlled corpus, and how models are judged by
both."""

import gzip
import json
import math
import re
from collections import Counter
from contextlib import nullcontext
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from small_run import PASCAL, TEXT, make_run

from synmt.controlled import english
from synmt.controlled.contrast import contrastive_pairs, words_of
from synmt.controlled.corpus import ControlledExample, generate
from synmt.controlled.german import say
from synmt.controlled.lexicon import NOUNS, VERBS
from synmt.controlled.meaning import (
    Clause,
    Determiner,
    NounPhrase,
    Predicate,
    RelativeClause,
    Sentence,
    replace_part,
)
from synmt.data.vocabulary import Words
from synmt.decode.pairs import score_pairs
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError
from synmt.evaluation.contrast.report import (
    ContrastOptions,
    Decision,
    decide,
    groupings,
    judge_models,
    tabulate,
)
from synmt.evaluation.contrast.sets import Contrast, ContrastSet, read_contrasts
from synmt.syntax.conllu import format_conllu
from synmt.syntax.parse import flat_parse

pytestmark = pytest.mark.journey

NOUN = {noun.english: noun for noun in NOUNS}
VERB = {verb.name: verb for verb in VERBS}
TEXTS = {
    "source": "The dog runs.\n",
    "correct": "Der Hund rennt.\n",
    "incorrect": "Der Hund rennen.\n",
}


def write_set(folder, *, pack=False, **texts):
    folder.mkdir(parents=True)
    for name, text in zip(
        ("src.en", "correct.de", "incorrect.de"), (TEXTS | texts).values(), strict=True
    ):
        if pack:
            (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def write(path, text):
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


LINGEVAL = [
    {
        "source": "The dog runs.",
        "reference": "Der Hund rennt.",
        "origin": "newstest2009.1",
        "errors": [
            {
                "type": "subj_verb_agreement",
                "contrastive": "Der Hund rennen.",
                "distance": 1,
                "frequency": 286,
            },
            {
                "type": "np_agreement",
                "contrastive": "Das Hund rennt.",
                "distance": 17,
                "frequency": 0,
            },
            {"type": "polarity", "contrastive": "Der Hund rennt nicht."},
        ],
    },
    {"source": "Nothing\nto say.", "reference": "Nichts.", "errors": []},
]
CONTRAPRO = [
    {
        "src segment": "It is red.",
        "ref segment": "Er ist rot.",
        "src pronoun": "It",
        "ref pronoun": "er",
        "ante distance": 5,
        "intrasegmental": False,
        "errors": [{"contrastive": "Sie ist rot."}, {"contrastive": "Es ist rot."}],
    }
]


@pytest.fixture(scope="module")
def examples():
    return generate(train=0, valid=0, test=400)["test"]


@pytest.fixture
def few(examples, monkeypatch):
    """Let the controlled corpus be smaller; the list may be changed."""
    chosen = list(examples)
    monkeypatch.setattr("synmt.controlled.corpus.generate", lambda **_: {"test": chosen})
    return chosen


@pytest.mark.parametrize("pack", [False, True])
def test_a_folder_is_read_line_by_line_and_named_by_its_phenomenon(tmp_path, pack):
    folder = write_set(
        tmp_path / "agreement", source="a\nb\n", correct="c\nd\n", incorrect="e\nf\n", pack=pack
    )
    found = read_contrasts([str(folder)])
    assert found.sources == ["a", "b"]
    assert [(one.source, one.correct, one.incorrect) for one in found.contrasts] == [
        (0, "c", ("e",)),
        (1, "d", ("f",)),
    ]
    assert found.contrasts[1].groups == {"phenomenon": "agreement"}
    assert found.contrasts[1].where.endswith("line 2")
    assert found.languages == ("en", "de")


def test_several_sets_are_grouped_by_set(tmp_path, few):
    names = [str(write_set(tmp_path / name)) for name in ("one", "two")]
    found = read_contrasts([*names, "controlled"])
    assert found.sources[:2] == ["The dog runs."] * 2
    assert [one.source for one in found.contrasts][:3] == [0, 1, 2]
    for one in found.contrasts[2:]:
        assert one.where == f"controlled: sentence {one.source - 1}"
    assert Counter(one.groups["set"] for one in found.contrasts)[names[1]] == 1
    assert found.languages == ("en", "de")
    assert found.trees is None


def test_a_table_groups_by_its_other_columns(tmp_path):
    header = "source\tkind\tincorrect\tcorrect\tdistance\tphenomenon"
    path = write(tmp_path / "set.tsv", f"{header}\nA\tx\tC\tB\t3\tcase\r\nD\t\tF\tE\t16\tcase\n")
    first, second = read_contrasts([str(path)]).contrasts
    assert (first.correct, first.incorrect) == ("B", ("C",))
    assert first.groups == {"phenomenon": "case", "kind": "x", "distance": "3"}
    assert second.groups == {"phenomenon": "case", "distance": ">15"}
    assert list(first.groups) == ["phenomenon", "kind", "distance"]
    assert second.where.endswith("set.tsv: line 3")


def test_each_error_of_lingeval_is_a_contrast(tmp_path):
    found = read_contrasts([str(write(tmp_path / "lingeval97.json", LINGEVAL))])
    assert found.sources == ["The dog runs.", "Nothing to say."]
    wrong = ["Der Hund rennen.", "Das Hund rennt.", "Der Hund rennt nicht."]
    assert [one.incorrect for one in found.contrasts] == [(text,) for text in wrong]
    assert [one.groups for one in found.contrasts] == [
        {"phenomenon": "subj_verb_agreement", "distance": "1", "frequency": "100 to 999"},
        {"phenomenon": "np_agreement", "distance": ">15", "frequency": "0"},
        {"phenomenon": "polarity"},
    ]


def test_all_errors_of_contrapro_are_one_contrast(tmp_path):
    [found] = read_contrasts([str(write(tmp_path / "contrapro.json", CONTRAPRO))]).contrasts
    assert found.incorrect == ("Sie ist rot.", "Es ist rot.")
    assert found.groups == {
        "phenomenon": "it:er",
        "antecedent distance": ">3",
        "antecedent in the sentence": "no",
    }


def test_pairs_that_differ_in_white_space_only_are_left_out_and_named(tmp_path):
    folder = write_set(
        tmp_path / "set", source="a\nb\nc\n", correct="x\ny\nz\n", incorrect="v\n y \nz\n"
    )
    found = read_contrasts([str(folder)])
    assert [one.correct for one in found.contrasts] == ["x"]
    assert found.identical == [f"{folder / 'incorrect.de'}: line {number}" for number in (2, 3)]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"correct": "a\nb\n"}, r"correct.de: 2 lines, but .*src.en has 1"),
        ({"source": " \n"}, r"incorrect.de: line 1: the source has no text"),
        ({"incorrect": "Der Hund rennt.\n"}, "translation are the same in every pair"),
        ({}, r"must have one text src.LANGUAGE, and has src.en, src.fr"),
    ],
)
def test_a_broken_folder_is_refused(tmp_path, texts, message):
    folder = write_set(tmp_path / "set", **texts)
    if not texts:
        write(folder / "src.fr", "x\n")
    with pytest.raises(SynmtError, match=message):
        read_contrasts([str(folder)])


def test_a_missing_set_is_refused(tmp_path):
    with pytest.raises(SynmtError, match="has no contrastive set"):
        read_contrasts([str(tmp_path)])
    with pytest.raises(UsageError, match=r"no such contrastive set.*or the word controlled"):
        read_contrasts([str(tmp_path / "nowhere")])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("set.tsv", "source\tcorrect\nA\tB\n", "the header has no column incorrect"),
        ("set.tsv", "source\tcorrect\tincorrect\tcorrect\n", "two columns are named 'correct'"),
        (
            "set.tsv",
            "source\tcorrect\tincorrect\nA\tB\n",
            r"set.tsv: line 2: 2 cells, but the first row names 3",
        ),
        ("set.json", "{", "not JSON"),
        ("set.json", {"source": "A"}, "not a list of entries"),
        ("set.json", "[" * 100_000, "not JSON"),
        ("set.json", [], "set.json: the contrastive set is empty"),
        ("set.tsv", "source\tcorrect\tincorrect\n", "set.tsv: the contrastive set is empty"),
        (
            "set.json",
            [{**LINGEVAL[0], "source": "\ud83d"}],
            r"entry 1: the text 'source' has half of a surrogate pair",
        ),
        (
            "set.json",
            [{**LINGEVAL[0], "reference": "a\udfff"}],
            r"the text 'reference' has half of a surrogate pair",
        ),
        ("set.json", [LINGEVAL[0], {"source": "A"}], r"entry 2: the list 'errors' is missing"),
        ("set.json", [{"source": "A", "errors": []}], r"entry 1: the text 'reference' is missing"),
        (
            "set.json",
            [{**CONTRAPRO[0], "errors": [{}]}],
            r"entry 1: the text 'contrastive' is missing",
        ),
    ],
)
def test_a_broken_file_is_refused_with_its_place(tmp_path, name, text, message):
    with pytest.raises(SynmtError, match=message):
        read_contrasts([str(write(tmp_path / name, text))])


# the controlled corpus


@pytest.fixture(scope="module")
def pairs(examples):
    return list(contrastive_pairs(examples))


def of(pairs, phenomenon):
    return [pair for pair in pairs if pair.phenomenon == phenomenon]


def split_at(pair):
    """Split a pair into the text before the wrong word, the right and the wrong word, and the text
    after it."""
    right, wrong = words_of(pair.example.target), words_of(pair.incorrect)
    assert right[: pair.word] == wrong[: pair.word]
    missing = len(wrong) < len(right)
    assert right[pair.word + 1 :] == wrong[pair.word + (not missing) :]
    return (
        right[: pair.word],
        right[pair.word],
        "" if missing else wrong[pair.word],
        right[pair.word + 1 :],
    )


def test_exactly_one_word_differs_or_is_missing(pairs):
    for pair in pairs:
        _, right, wrong, _ = split_at(pair)
        assert right != wrong
        assert (wrong == "") == (pair.groups.get("particle") == "missing")
        # punctuation is the same, except that a full stop replaces a comma before it
        between = [
            re.sub(r"\w+", "", text).replace(" ", "")
            for text in (pair.example.target, pair.incorrect)
        ]
        assert between[0] == between[1] or (wrong == "" and between[0] == "," + between[1])


def phrases_in(part):
    """List the noun phrases in a part of a meaning."""
    held = part if isinstance(part, tuple) else [getattr(part, one.name) for one in fields(part)]
    found = [
        each
        for one in held
        if isinstance(one, tuple) or is_dataclass(one)
        for each in phrases_in(one)
    ]
    return [part, *found] if isinstance(part, NounPhrase) else found


def test_no_pair_of_case_is_right_german_of_the_sentence_or_of_it_in_other_numbers(pairs):
    for pair in of(pairs, "case"):
        meaning = pair.example.meaning
        assert say(meaning) == pair.example.target != pair.incorrect
        for phrase in phrases_in(meaning):
            other = replace_part(meaning, phrase, replace(phrase, plural=not phrase.plural))
            assert phrase.determiner == "a" or say(other) != pair.incorrect


def phrase(noun, determiner: Determiner = "the", *, plural=False, modifiers=()):
    return NounPhrase(NOUN[noun], plural, determiner, modifiers=modifiers)


def example_of(subject, tense, verb, *, what=None, to=None, opening=""):
    meaning = Sentence(Clause(subject, tense, (Predicate(VERB[verb], what, to),)), opening)
    source, parse = english.text_and_parse(english.tree(meaning))
    return ControlledExample(meaning, source, say(meaning), parse, "case", 0, "seen", frozenset())


BOY = phrase("boy")
FOUND = RelativeClause(Clause(None, "past", (Predicate(VERB["call"], phrase("girl")),)))
WRITTEN_BY_HAND = [
    (example_of(BOY, "past", "help", what=phrase("girl")), {"Der Junge half das Mädchen.": 0}),
    # the article farther from the verb
    (
        example_of(
            BOY, "present", "give", what=phrase("book"), to=phrase("woman", "my"), opening="then"
        ),
        {"Dann gibt der Junge meiner Frau dem Buch.": 4},
    ),
    (
        example_of(BOY, "must", "see", what=phrase("dog", "a")),
        {"Der Junge muss einem Hund sehen.": 1},
    ),
    # "den Jungen" would be one boy, "den Lehrer" one teacher, and after a dative verb "den Jungen"
    # all the boys; of "a" there is no plural
    (example_of(phrase("girl"), "past", "see", what=phrase("boy", plural=True)), {}),
    (example_of(phrase("girl"), "past", "see", what=phrase("teacher", "this", plural=True)), {}),
    (example_of(phrase("girl"), "past", "help", what=BOY), {}),
    (
        example_of(phrase("girl"), "past", "help", what=phrase("boy", "a")),
        {"Das Mädchen half einen Jungen.": 0},
    ),
    (
        example_of(phrase("girl"), "past", "help", what=phrase("boy", plural=True)),
        {"Das Mädchen half die Jungen.": 0},
    ),
    (example_of(phrase("girl"), "past", "help", what=phrase("cat", "two", plural=True)), {}),
    # a particle that is a word, one that is none, and one that a relative clause keeps far from its
    # verb
    (
        example_of(BOY, "past", "turn off", what=phrase("lamp", "two", plural=True)),
        {"Der Junge schaltete zwei Lampen.": 2, "Der Junge schaltete zwei Lampen …": 2},
    ),
    (example_of(BOY, "must", "turn off", what=phrase("lamp", "two", plural=True)), {}),
    (
        example_of(BOY, "past", "arrive", opening="sometimes"),
        {"Manchmal kam der Junge.": 2, "Manchmal kam der Junge …": 2},
    ),
    (
        example_of(
            BOY, "past", "call", what=phrase("child", "two", plural=True, modifiers=(FOUND,))
        ),
        {
            "Der Junge rief zwei Kinder, die dem Mädchen anriefen, an.": 1,
            "Der Junge rief zwei Kinder, die das Mädchen anriefen.": 6,
            "Der Junge rief zwei Kinder, die das Mädchen anriefen, …": 6,
        },
    ),
]


@pytest.mark.parametrize(
    ("example", "expected"), WRITTEN_BY_HAND, ids=lambda value: getattr(value, "target", None)
)
def test_pairs_of_sentences_written_by_hand(example, expected):
    found = {}
    for pair in contrastive_pairs([example]):
        distance = pair.groups.get("case distance", pair.groups.get("particle distance"))
        another = pair.groups.get("particle") == "another"
        text = re.sub(r"\w+\.$", "…", pair.incorrect) if another else pair.incorrect
        found |= {} if distance is None else {text: distance}
    assert found == expected


def test_the_controlled_set_has_gold_trees_and_groups_for_each_phenomenon(few, examples):
    found = read_contrasts(["controlled"])
    assert found.trees is not None
    assert len(found.trees) == len(found.sources) == len(examples)
    for source, parse in zip(found.sources, found.trees, strict=True):
        assert [source[start:end] for start, end in parse.spans.tolist()] == parse.words
    groups = groupings(found.contrasts)
    assert groups["phenomenon"] == ["agreement", "case", "particle"]
    assert groups["case distance"] == ["0", "1", "2", "3 to 5", "6 to 10", ">10"]
    assert all(one.correct == examples[one.source].target for one in found.contrasts)


# judging


def some_set():
    sources = [TEXT[0], TEXT[1], TEXT[0]]
    contrasts = [
        Contrast(0, TEXT[3], (TEXT[4], TEXT[5]), {"phenomenon": "b"}, "one"),
        Contrast(1, TEXT[4], (TEXT[3],), {"phenomenon": "a"}, "two"),
        Contrast(2, TEXT[5], (TEXT[3],), {"phenomenon": "a"}, "three"),
        Contrast(1, "Ein Hund", ("Ein Affe",), {"phenomenon": "a"}, "four"),
    ]
    return ContrastSet(sources, contrasts)


def test_a_contrast_is_decided_by_the_scores_of_its_pairs(tmp_path, monkeypatch):
    translator, given = Translator.load(make_run(tmp_path / "plain", parser=False)), some_set()
    monkeypatch.setattr(
        "synmt.reporting.progress._display", lambda *job: nullcontext(advanced.append)
    )
    advanced = []
    for contrast, decision in zip(given.contrasts, decide(translator, given), strict=True):
        texts = [contrast.correct, *contrast.incorrect]
        right, *wrong = score_pairs(
            translator, [given.sources[contrast.source]] * len(texts), texts
        )
        assert decision.log_probability == pytest.approx(right.log_probability, abs=1e-3)
        assert decision.pieces == right.pieces
        expected = [one.log_probability for one in wrong]
        assert [value for value, _ in decision.incorrect] == pytest.approx(expected, abs=1e-3)
        assert decision.won == all(right.log_probability > one.log_probability for one in wrong)
        assert not decision.truncated
    # two sources, one of them in two contrasts
    assert sum(advanced) == 2


def test_a_run_that_changes_its_text_decides_between_the_texts_that_it_reads(tmp_path):
    folder = make_run(tmp_path / "lower", parser=False, text={"lowercase": True}).folder
    options = ContrastOptions(models=[folder], contrast=[str(write_set(tmp_path / "set"))])
    [decision] = judge_models(options).facts["pairs"][0]["models"]
    pairs = score_pairs(
        Translator.load(folder), ["the dog runs."] * 2, ["der hund rennt.", "der hund rennen."]
    )
    right, wrong = [one.log_probability for one in pairs]
    assert decision["log_probability"] == pytest.approx(right, abs=1e-3)
    assert decision["incorrect"][0]["log_probability"] == pytest.approx(wrong, abs=1e-3)


def test_gold_trees_are_placed_in_the_words_that_a_run_reads(few, examples, tmp_path):
    pytest.importorskip("sacremoses")
    # a tokenizer moves all words after a comma
    few[:] = [one for one in examples if "," in one.source][:8]
    folder = make_run(tmp_path / "words", PASCAL, parser=False, text={"tokenizer": "moses"}).folder
    trees = write(
        tmp_path / "t.conllu", "".join(format_conllu(one.parse, one.source, 1) for one in few)
    )
    found = []
    for path in (None, trees):
        pairs = judge_models(
            ContrastOptions(models=[folder], contrast=["controlled"], parses=path)
        ).facts["pairs"]
        found.append([one["models"][0]["log_probability"] for one in pairs])
    assert found[0] == pytest.approx(found[1], abs=1e-3)


def test_given_trees_are_aligned_with_their_sources(tmp_path):
    translator, given = Translator.load(make_run(tmp_path / "pascal", PASCAL)), some_set()
    flat = [flat_parse(source) for source in given.sources]
    own, parsed, other = (
        decide(translator, given, *trees)[1].log_probability
        for trees in ((), (translator.parser.parse(given.sources),), (flat,))
    )
    assert parsed == pytest.approx(own, abs=1e-4)
    assert abs(other - own) > 1e-4


def test_decisions_with_unknown_pieces_are_marked(tmp_path):
    translator = Translator.load(make_run(tmp_path / "words", parser=False))
    translator.target = Words(["Ein", "Hund", "läuft"])
    pairs = [("Ein Hund", "Ein Hund läuft"), ("Ein Hund", "Ein Affe")]
    given = ContrastSet(["A dog"], [Contrast(0, right, (wrong,), {}, "") for right, wrong in pairs])
    assert [one.unknown for one in decide(translator, given)] == [False, True]


def drawn(seed, *, count=60):
    """Draw contrasts of 30 sources in three groups, and what three models say."""
    random = np.random.default_rng(seed)
    contrasts = [
        Contrast(int(random.integers(30)), "x", ("y",), {"phenomenon": str(random.integers(3))}, "")
        for _ in range(count)
    ]
    values = random.integers(-3, 0, size=(3, count, 2)).tolist()
    models = [[Decision(right, 2, ((wrong, 3),)) for right, wrong in rows] for rows in values]
    return contrasts, models


@pytest.mark.parametrize("seed", range(5))
def test_accuracies_intervals_and_p_values_are_those_of_the_formulas(seed):
    contrasts, models = drawn(seed)
    for row in [row for rows in tabulate(contrasts, models).values() for row in rows]:
        members = [
            n for n, one in enumerate(contrasts) if row.group in ("all", one.groups["phenomenon"])
        ]
        wins = [
            [decisions[n].log_probability > decisions[n].incorrect[0][0] for n in members]
            for decisions in models
        ]
        assert row.pairs == len(members)
        for won, decisions, result in zip(wins, models, row.results, strict=True):
            assert result.won == sum(won)
            assert result.ties == sum(
                decisions[n].log_probability == decisions[n].incorrect[0][0] for n in members
            )
            assert result.accuracy == pytest.approx(sum(won) / len(won))
            assert result.low <= result.accuracy <= result.high
        for won, comparison in zip(wins[1:], row.comparisons, strict=True):
            gained = sum(one and not first for first, one in zip(wins[0], won, strict=True))
            lost = sum(first and not one for first, one in zip(wins[0], won, strict=True))
            assert comparison.difference == pytest.approx((gained - lost) / len(members))
            assert comparison.low <= comparison.difference <= comparison.high
            assert comparison.p_value == pytest.approx(mcnemar(gained, lost))


def mcnemar(gained, lost):
    """Add up the splits of the pairs that differ which are no likelier than the one that is
    there."""
    both = gained + lost
    tail = sum(math.comb(both, k) for k in range(min(gained, lost) + 1)) / 2**both
    return min(1.0, 2 * tail)


def test_the_interval_of_a_difference_is_that_of_resampled_sources():
    contrasts, models = drawn(3)
    wins = np.array([[one.won for one in decisions] for decisions in models[:2]], dtype=float)
    places = sorted({one.source for one in contrasts})
    members = [[n for n, one in enumerate(contrasts) if one.source == place] for place in places]
    random, found = np.random.default_rng(1), []
    for _ in range(4000):
        chosen = [
            n for place in random.integers(len(places), size=len(places)) for n in members[place]
        ]
        found.append(wins[1, chosen].mean() - wins[0, chosen].mean())
    [comparison] = tabulate(contrasts, models[:2], samples=4000)[None][0].comparisons
    assert [comparison.low, comparison.high] == pytest.approx(
        np.quantile(found, [0.025, 0.975]).tolist(), abs=0.02
    )


def test_a_group_that_is_in_no_resample_has_the_widest_interval():
    contrasts, models = drawn(1, count=3)
    contrasts = [replace(one, source=n, groups={"kind": str(n)}) for n, one in enumerate(contrasts)]
    rows = tabulate(contrasts, models[:2], samples=1)["kind"]
    ends = [(row.comparisons[0].low, row.comparisons[0].high) for row in rows]
    # three draws from three sources, two of which come twice or not at all
    assert (-1.0, 1.0) in ends
    assert not np.isnan(ends).any()


def test_groups_are_sorted_by_number_and_too_many_have_no_table():
    values = [">15", "2", "10", "100 to 999", "b", "1,000 to 9,999", "a", "15"]
    contrasts = [
        Contrast(n, "x", ("y",), {"distance": value, "id": str(n)}, "")
        for n, value in enumerate(values)
    ]
    assert groupings(contrasts)["distance"] == [
        "2",
        "10",
        "15",
        ">15",
        "100 to 999",
        "1,000 to 9,999",
        "a",
        "b",
    ]
    many = [Contrast(n, "x", ("y",), {"id": str(n)}, "") for n in range(41)]
    assert list(tabulate(many, [[Decision(-1.0, 1, ((-2.0, 1),))] * 41])) == [None]
