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
import yaml
from cases import cases
from meanings import meaning_of
from refusing import assert_fails, assert_refused
from small_run import PASCAL, TEXT, load_run, make_run

from synmt.controlled import english
from synmt.controlled.contrast import contrastive_pairs, words_of
from synmt.controlled.corpus import ControlledExample, generate
from synmt.controlled.german import say
from synmt.controlled.meaning import NounPhrase, replace_part
from synmt.decode.pairs import score_pairs
from synmt.decode.translator import Translator
from synmt.evaluation.contrast.report import (
    ContrastOptions,
    accuracy_table,
    compared,
    decide,
    groupings,
    judge_models,
)
from synmt.evaluation.contrast.sets import Contrast, ContrastSet, read_contrasts
from synmt.syntax.parse import flat_parse

pytestmark = pytest.mark.journey

TEXTS = {
    "src.en": "The dog runs.\n",
    "correct.de": "Der Hund rennt.\n",
    "incorrect.de": "Der Hund rennen.\n",
}


def write_set(folder, *texts, pack=False):
    folder.mkdir(parents=True)
    for name, text in zip(TEXTS, texts or TEXTS.values(), strict=True):
        path = folder / (f"{name}.gz" if pack else name)
        path.write_bytes(gzip.compress(text.encode()) if pack else text.encode())
    return folder


LINGEVAL, CONTRAPRO = yaml.safe_load_all("""
- source: The dog runs.
  reference: Der Hund rennt.
  origin: newstest2009.1
  errors:
  - {type: subj_verb_agreement, contrastive: Der Hund rennen., distance: 1, frequency: 286}
  - {type: np_agreement, contrastive: Das Hund rennt., distance: 17, frequency: 0}
  - {type: polarity, contrastive: Der Hund rennt nicht.}
- {source: "Nothing\\nto say.", reference: Nichts., errors: []}
---
- src segment: It is red.
  ref segment: Er ist rot.
  src pronoun: It
  ref pronoun: er
  ante distance: 5
  intrasegmental: false
  errors: [{contrastive: Sie ist rot.}, {contrastive: Es ist rot.}]
""")


def write(path, text):
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


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
    folder = write_set(tmp_path / "agreement", "a\nb\n", "c\nd\n", "e\nf\n", pack=pack)
    found = read_contrasts([str(folder)])
    assert found.sources == ["a", "b"]
    expected = [(0, "c", ("e",)), (1, "d", ("f",))]
    assert [(one.source, one.correct, one.incorrect) for one in found.contrasts] == expected
    assert found.contrasts[1].groups == {"phenomenon": "agreement"}
    assert found.contrasts[1].where.endswith("line 2")


def test_several_sets_are_grouped_by_set(tmp_path, few):
    del few[40:]
    names = [str(write_set(tmp_path / name)) for name in ("one", "two")]
    found = read_contrasts([*names, "controlled"])
    assert found.sources[:2] == ["The dog runs."] * 2
    assert [one.source for one in found.contrasts][:3] == [0, 1, 2]
    last = found.contrasts[-1]
    assert last.where == f"controlled: sentence {last.source - 1}"
    assert Counter(one.groups["set"] for one in found.contrasts)[names[1]] == 1
    assert found.trees is None


def test_a_table_groups_by_its_other_columns(tmp_path):
    header = "source\tkind\tincorrect\tcorrect\tdistance\tphenomenon"
    path = write(tmp_path / "set.tsv", f"{header}\nA\tx\tC\tB\t3\tcase\r\nD\t\tF\tE\t16\tcase\n")
    first, second = read_contrasts([str(path)]).contrasts
    assert (first.correct, first.incorrect) == ("B", ("C",))
    assert [*first.groups.items()] == [("phenomenon", "case"), ("kind", "x"), ("distance", "3")]
    assert second.groups == {"phenomenon": "case", "distance": ">15"}
    assert second.where.endswith("set.tsv: line 3")


def test_each_error_of_lingeval_is_a_contrast(tmp_path):
    found = read_contrasts([str(write(tmp_path / "lingeval97.json", LINGEVAL))])
    assert found.sources == ["The dog runs.", "Nothing to say."]
    expected = yaml.safe_load("""
    Der Hund rennen.: {phenomenon: subj_verb_agreement, distance: '1', frequency: 100 to 999}
    Das Hund rennt.: {phenomenon: np_agreement, distance: '>15', frequency: '0'}
    Der Hund rennt nicht.: {phenomenon: polarity}
    """)
    assert {one.incorrect: one.groups for one in found.contrasts} == {
        (text,): groups for text, groups in expected.items()
    }


def test_all_errors_of_contrapro_are_one_contrast(tmp_path):
    [found] = read_contrasts([str(write(tmp_path / "contrapro.json", CONTRAPRO))]).contrasts
    assert found.incorrect == ("Sie ist rot.", "Es ist rot.")
    assert found.groups == {
        "phenomenon": "it:er",
        "antecedent distance": ">3",
        "antecedent in the sentence": "no",
    }


def test_pairs_that_differ_in_white_space_only_are_left_out_and_named(tmp_path, caplog):
    folder = write_set(tmp_path / "set", "a\nb\nc\n", "x\ny\nz\n", "v\n y \nz\n")
    found = read_contrasts([str(folder)])
    assert [one.correct for one in found.contrasts] == ["x"]
    assert f"are the same: {folder / 'incorrect.de'}: line 2, " in caplog.text


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("correct.de", "a\nb\n", r"equally many lines, .*src.en': 1, .*correct.de': 2"),
        ("incorrect.de", "Der Hund rennt.\n", "there are no contrasts of different translations"),
        ("src.fr", "x\n", r"must have one text each of src, correct and incorrect"),
    ],
)
def test_a_broken_folder_is_refused(tmp_path, name, text, message):
    write(write_set(tmp_path / "set") / name, text)
    assert_fails(message, read_contrasts, [str(tmp_path / "set")])


BROKEN = r"""
tsv  | source\tcorrect\nA\tB\n | the header has no column incorrect
tsv  | source\tcorrect\tincorrect\tcorrect\n | 4 cells, but the first row names 3 different columns
tsv  | source\tcorrect\tincorrect\nA\tB\n | set.tsv: line 2: 2 cells, but the first row names 3
tsv  | source\tcorrect\tincorrect\n | set.tsv: there are no contrasts
json | [] | set.json: there are no contrasts
json | { | set.json: broken, or of another format
json | {"source": "A"} | entry 1: broken
json | [{"source": "A", "reference": "B", "errors": []}, {}] | entry 2: broken
json | [{"source": "\ud83d", "reference": "B", "errors": []}] | entry 1: broken
json | [{"src segment": "A", "ref segment": "B", "errors": [{}]}] | entry 1: broken
"""


def test_a_missing_set_is_refused(tmp_path):
    assert_fails("has no contrastive set", read_contrasts, [str(tmp_path)])
    assert_refused(
        r"no such contrastive set.*or the word controlled",
        read_contrasts,
        [str(tmp_path / "nowhere")],
    )


@pytest.mark.parametrize(
    ("kind", "text", "message"), [*cases(BROKEN, "|"), ("json", "[" * 100_000, "set.json: broken")]
)
def test_a_broken_file_is_refused_with_its_place(tmp_path, kind, text, message):
    text = text.replace(r"\t", "\t").replace(r"\n", "\n")
    path = write(tmp_path / f"set.{kind}", text)
    assert_fails(re.escape(message), read_contrasts, [str(path)])


# the controlled corpus


@pytest.fixture(scope="module")
def pairs(examples):
    return list(contrastive_pairs(examples))


def of(pairs, phenomenon):
    return [pair for pair in pairs if pair.phenomenon == phenomenon]


def test_exactly_one_word_differs_or_is_missing(pairs):
    for pair in pairs:
        right, wrong = words_of(pair.example.target), words_of(pair.incorrect)
        missing, place = pair.groups.get("particle") == "missing", pair.word
        assert len(right) - len(wrong) == missing
        assert right[:place] == wrong[:place]
        assert right[place + 1 :] == wrong[place + 1 - missing :]
        assert missing or right[place] != wrong[place]
        # punctuation is the same, except that a full stop replaces a comma before it
        before, after = (
            re.sub(r"[\w ]", "", text) for text in (pair.example.target, pair.incorrect)
        )
        assert before == after or (missing and before == "," + after)


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


def example_of(text):
    meaning = meaning_of(text)
    source, parse = english.text_and_parse(english.tree(meaning))
    return ControlledExample(meaning, source, say(meaning), parse, "case", 0, "seen")


WRITTEN_BY_HAND = """
past (the boy) (help (the girl)) => Der Junge half das Mädchen. 0
then present (the boy) (give (to my woman) (the book)) => \
Dann gibt der Junge meiner Frau dem Buch. 4
must (the boy) (see (a dog)) => Der Junge muss einem Hund sehen. 1
past (the girl) (see (the boys)) =>
past (the girl) (see (this teachers)) =>
past (the girl) (help (the boy)) =>
past (the girl) (help (a boy)) => Das Mädchen half einen Jungen. 0
past (the girl) (help (the boys)) => Das Mädchen half die Jungen. 0
past (the girl) (help (two cats)) =>
past (the boy) (turn off (two lamps)) => Der Junge schaltete zwei Lampen. 2; \
Der Junge schaltete zwei Lampen … 2
must (the boy) (turn off (two lamps)) =>
sometimes past (the boy) (arrive) => Manchmal kam der Junge. 2; Manchmal kam der Junge … 2
past (the boy) (call (two children (past (call (the girl))))) => \
Der Junge rief zwei Kinder, die dem Mädchen anriefen, an. 1; \
Der Junge rief zwei Kinder, die das Mädchen anriefen. 6; \
Der Junge rief zwei Kinder, die das Mädchen anriefen, … 6
"""


@pytest.mark.parametrize(("meaning", "expected"), cases(WRITTEN_BY_HAND))
def test_pairs_of_sentences_written_by_hand(meaning, expected):
    found = set()
    for pair in contrastive_pairs([example_of(meaning)]):
        distance = pair.groups.get("case distance", pair.groups.get("particle distance"))
        another = pair.groups.get("particle") == "another"
        text = re.sub(r"\w+\.$", "…", pair.incorrect) if another else pair.incorrect
        found |= set() if distance is None else {f"{text} {distance}"}
    assert found == {*filter(None, map(str.strip, expected.split(";")))}


def test_the_controlled_set_has_gold_trees_and_groups_for_each_phenomenon(few, examples):
    found = read_contrasts(["controlled"])
    for source, parse in zip(found.sources, found.trees, strict=True):
        assert [source[start:end] for start, end in parse.spans.tolist()] == parse.words
    groups = groupings(found.contrasts)
    assert groups["phenomenon"] == ["agreement", "case", "particle"]
    assert groups["case distance"] == ["0", "1", "2", "3 to 5", "6 to 10", ">10"]
    assert all(one.correct == examples[one.source].target for one in found.contrasts)


# judging


def some_set():
    sources, rows = [TEXT[0], TEXT[1], TEXT[0]], [(0, "345", "b"), (1, "43", "a"), (2, "53", "a")]
    contrasts = []
    for source, texts, group in rows:
        correct, *incorrect = (TEXT[int(one)] for one in texts)
        contrasts.append(Contrast(source, correct, (*incorrect,), {"phenomenon": group}, ""))
    contrasts.append(Contrast(1, "Ein Hund", ("Ein Affe",), {"phenomenon": "a"}, "four"))
    return ContrastSet(sources, contrasts)


def test_a_contrast_is_decided_by_the_scores_of_its_pairs(tmp_path, monkeypatch):
    translator, given = load_run(tmp_path / "plain", parser=False), some_set()
    advanced = []
    monkeypatch.setattr(
        "synmt.reporting.progress._display", lambda *job: nullcontext(advanced.append)
    )
    for contrast, decision in zip(given.contrasts, decide(translator, given), strict=True):
        texts = [contrast.correct, *contrast.incorrect]
        pairs = list(score_pairs(translator, [given.sources[contrast.source]] * len(texts), texts))
        right, *wrong = [one.log_probability for one in pairs]
        assert decision.log_probability == pytest.approx(right, abs=1e-3)
        assert [value for value, _ in decision.incorrect] == pytest.approx(wrong, abs=1e-3)
        assert decision.pieces == pairs[0].pieces
        assert decision.won == (right > max(wrong))
        assert not decision.truncated
    # two sources, one of them in two contrasts
    assert sum(advanced) == 2


def test_a_run_that_changes_its_text_decides_between_the_texts_that_it_reads(tmp_path):
    folder = make_run(tmp_path / "lower", parser=False, text={"lowercase": True}).folder
    options = ContrastOptions(models=[folder], contrast=[str(write_set(tmp_path / "set"))])
    [decision] = judge_models(options).facts["pairs"][0]["models"]
    found = [decision["log_probability"], *(value for value, _ in decision["incorrect"])]
    texts = ["der hund rennt.", "der hund rennen."]
    pairs = score_pairs(Translator.load(folder), ["the dog runs."] * 2, texts)
    assert found == pytest.approx([one.log_probability for one in pairs], abs=1e-3)


def test_given_trees_are_aligned_with_their_sources(tmp_path):
    translator, given = load_run(tmp_path / "pascal", PASCAL), some_set()
    parsed, flat = translator.parser.parse(given.sources), list(map(flat_parse, given.sources))
    own, same, other = (
        decide(translator, given, *trees)[1].log_probability for trees in ((), (parsed,), (flat,))
    )
    assert same == pytest.approx(own, abs=1e-4)
    assert abs(other - own) > 1e-4


def drawn(seed, *, count=60):
    """Draw contrasts of 30 sources in three groups, and what three models say."""
    random = np.random.default_rng(seed)
    contrasts = [
        Contrast(int(random.integers(30)), "x", ("y",), {"phenomenon": str(random.integers(3))}, "")
        for _ in range(count)
    ]
    values = random.integers(-3, 0, size=(3, count, 2)).tolist()
    models = [[compared([(right, 2), (wrong, 3)]) for right, wrong in rows] for rows in values]
    return contrasts, models


def rows_of(contrasts, models, **options):
    """List the rows of the table of phenomena as JSON has them."""
    decisions = dict(zip("abc", models, strict=False))
    groups = groupings(contrasts)["phenomenon"]
    return accuracy_table("phenomenon", groups, contrasts, decisions, **options).as_json()["rows"]


@pytest.mark.parametrize("seed", range(5))
def test_accuracies_intervals_and_p_values_are_those_of_the_formulas(seed):
    contrasts, models = drawn(seed)
    for row in rows_of(contrasts, models):
        inside = [row["group"] in ("all", one.groups["phenomenon"]) for one in contrasts]
        margins = np.array(
            [[one.log_probability - one.incorrect[0][0] for one in made] for made in models]
        )[:, inside]
        won, count, place = margins > 0, sum(inside), "abc".index(row["model"])
        own, base = won[place], won[0]
        assert (row["pairs"], row["ties"]) == (count, (margins[place] == 0).sum())
        assert row["accuracy"] == own.mean()
        assert row["95 %"][0] <= row["accuracy"] <= row["95 %"][1]
        gained, lost = int((own & ~base).sum()), int((base & ~own).sum())
        if place:
            assert row["difference"] == pytest.approx((gained - lost) / count)
            low, high = row["95 % of difference"]
            assert low <= row["difference"] <= high
            assert row["p"] == pytest.approx(mcnemar(gained, lost))


def mcnemar(gained, lost):
    """Add up the splits of the pairs that differ which are no likelier than the one that is
    there."""
    both = gained + lost
    tail = sum(math.comb(both, k) for k in range(min(gained, lost) + 1)) / 2**both
    return min(1.0, 2 * tail)


def test_the_interval_of_a_difference_is_that_of_resampled_sources():
    contrasts, models = drawn(3)
    gains = [other.won - one.won for one, other in zip(*models[:2], strict=True)]
    by_source = {one.source: [] for one in contrasts}
    for contrast, gain in zip(contrasts, gains, strict=True):
        by_source[contrast.source].append(gain)
    rows, random, found = list(by_source.values()), np.random.default_rng(1), []
    for chosen in random.integers(len(rows), size=(4000, len(rows))):
        found.append(np.concatenate([rows[place] for place in chosen]).mean())
    *_, of_all = rows_of(contrasts, models[:2], samples=4000)
    ends = np.quantile(found, [0.025, 0.975]).tolist()
    assert of_all["95 % of difference"] == pytest.approx(ends, abs=0.02)


def test_groups_are_sorted_by_number():
    values = ["15", "a", "1,000 to 9,999", "b", "100 to 999", "10", "2", ">15"]
    given = [Contrast(0, "x", ("y",), {"distance": value}, "") for value in values]
    expected = ["2", "10", "15", ">15", "100 to 999", "1,000 to 9,999", "a", "b"]
    assert groupings(given)["distance"] == expected


def test_a_grouping_of_many_groups_has_no_table(tmp_path):
    folder = make_run(tmp_path / "plain", parser=False).folder
    rows = ["source\tcorrect\tincorrect\tnumber", *(f"A dog\tEin\tHund\t{n}" for n in range(41))]
    options = ContrastOptions(
        models=[folder], contrast=[str(write(tmp_path / "a.tsv", "\n".join(rows)))]
    )
    report = judge_models(options)
    assert [row["group"] for row in report.tables[0].as_json()["rows"]] == ["all"]
