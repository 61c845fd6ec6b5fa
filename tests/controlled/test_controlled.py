"""The controlled corpus: its German against sentences written by hand, its trees and its splits
against their rules."""

from __future__ import annotations

import hashlib
import re
from collections import Counter

import pytest
from places import ROOT
from small import is_tree

from synmt.controlled import corpus as controlled
from synmt.controlled import english, german, lexicon
from synmt.controlled.agreement import attractors, combinations
from synmt.controlled.lexicon import ADJECTIVES, PREPOSITION
from synmt.controlled.meaning import (
    Clause,
    Determiner,
    NounPhrase,
    Predicate,
    PrepositionPhrase,
    RelativeClause,
    Sentence,
    SubordinateClause,
)
from synmt.errors import SynmtError
from synmt.syntax.conllu import read_conllu
from synmt.syntax.trees import depths

pytestmark = pytest.mark.journey

DOCS = ROOT / "docs"
NOUN = {noun.english: noun for noun in lexicon.NOUNS}
VERB = {verb.name: verb for verb in lexicon.VERBS}
NOUN_OF_FORM = {
    form: (noun, form == noun.english_plural)
    for noun in lexicon.NOUNS
    for form in (noun.english, noun.english_plural)
}
VERB_OF_FORM = {
    (form, verb.particle): verb
    for verb in lexicon.VERBS
    for form in (verb.base, verb.third, verb.past, verb.participle)
}
DETERMINERS: dict[str, Determiner] = {
    "the": "the",
    "a": "a",
    "this": "this",
    "my": "my",
    "two": "two",
}
DETERMINERS |= {"an": "a", "these": "this"}
GERMAN_MODALS = {
    "can": "kann können",
    "could": "konnte konnten",
    "must": "muss müssen",
    "will": "wird werden",
}


@pytest.fixture(scope="module")
def corpus():
    return controlled.generate()


def every(corpus):
    return [example for part in corpus.values() for example in part]


def np_(words, *modifiers, second=None):
    """Read "the old men": determiner, perhaps an adjective, noun."""
    determiner, *names, form = words.split()
    noun, plural = NOUN_OF_FORM[form]
    determiner = DETERMINERS[determiner]
    adjective = next((each for each in ADJECTIVES if [each.english] == names), None)
    return NounPhrase(noun, plural, determiner, adjective, modifiers, second)


def pp(preposition, phrase):
    return PrepositionPhrase(PREPOSITION[preposition], phrase)


def does(verb, what=None, *, to=None, place=None):
    return Predicate(VERB[verb], what, to, place)


def clause(subject, tense, *predicates, sub=None):
    return Clause(subject, tense, predicates, sub)


def relative(subject, tense, *predicates):
    return RelativeClause(clause(subject, tense, *predicates))


def subordinate(conjunction, subject, tense, *predicates, fronted=False):
    return SubordinateClause(conjunction, clause(subject, tense, *predicates), fronted=fronted)


def said(main, opening=""):
    sentence = Sentence(main, opening)
    source, _ = english.text_and_parse(english.tree(sentence))
    return f"{source} = {german.say(sentence)}"


SLEPT, SANG, TWO_DOGS = does("sleep"), does("sing"), pp("with", np_("two dogs"))
WRITTEN_BY_HAND = {
    # agreement across attractors, in each kind of verb form
    "The boy next to the girls buys the cake. = Der Junge neben den Mädchen kauft den "
    "Kuchen.": clause(
        np_("the boy", pp("next to", np_("the girls"))), "present", does("buy", np_("the cake"))
    ),
    "The boys behind the car slept. = Die Jungen hinter dem Auto schliefen.": clause(
        np_("the boys", pp("behind", np_("the car"))), "past", SLEPT
    ),
    "The man near two dogs could sing. = Der Mann bei zwei Hunden konnte singen.": clause(
        np_("the man", pp("near", np_("two dogs"))), "could", SANG
    ),
    "The women without an apple had arrived. = Die Frauen ohne einen Apfel waren "
    "angekommen.": clause(
        np_("the women", pp("without", np_("an apple"))), "pluperfect", does("arrive")
    ),
    "The cat with the birds near the doors must sleep. = Die Katze mit den Vögeln bei den Türen "
    "muss schlafen.": clause(
        np_("the cat", pp("with", np_("the birds", pp("near", np_("the doors"))))), "must", SLEPT
    ),
    # subject relatives: nominative in three genders and the plural, verb at the end
    "The dog that saw the cats slept. = Der Hund, der die Katzen sah, schlief.": clause(
        np_("the dog", relative(None, "past", does("see", np_("the cats")))), "past", SLEPT
    ),
    "The queen who called the men sang. = Die Königin, die die Männer anrief, sang.": clause(
        np_("the queen", relative(None, "past", does("call", np_("the men")))), "past", SANG
    ),
    "The child who can sing sleeps. = Das Kind, das singen kann, schläft.": clause(
        np_("the child", relative(None, "can", SANG)), "present", SLEPT
    ),
    "The boys behind the car who sang had slept. = Die Jungen hinter dem Auto, die sangen, hatten "
    "geschlafen.": clause(
        np_("the boys", pp("behind", np_("the car")), relative(None, "past", SANG)),
        "pluperfect",
        SLEPT,
    ),
    # object relatives: accusative and dative pronouns, the number from the inner subject
    "The dog that the girls saw slept. = Der Hund, den die Mädchen sahen, schlief.": clause(
        np_("the dog", relative(np_("the girls"), "past", does("see"))), "past", SLEPT
    ),
    "The cars that the neighbour had found slept. = Die Autos, die der Nachbar gefunden hatte, "
    "schliefen.": clause(
        np_("the cars", relative(np_("the neighbour"), "pluperfect", does("find"))), "past", SLEPT
    ),
    "The boy who the aunts helped sang. = Der Junge, dem die Tanten halfen, sang.": clause(
        np_("the boy", relative(np_("the aunts"), "past", does("help"))), "past", SANG
    ),
    "The sister who a bear followed sang. = Die Schwester, der ein Bär folgte, sang.": clause(
        np_("the sister", relative(np_("a bear"), "past", does("follow"))), "past", SANG
    ),
    "The men saw the girls who the boy thanked. = Die Männer sahen die Mädchen, denen der Junge "
    "dankte.": clause(
        np_("the men"),
        "past",
        does("see", np_("the girls", relative(np_("the boy"), "past", does("thank")))),
    ),
    # subordinate clauses: verb last; fronted, they turn the main clause around
    "The man slept because the girls turned on the lamp."
    " = Der Mann schlief, weil die Mädchen die Lampe einschalteten.": clause(
        np_("the man"),
        "past",
        SLEPT,
        sub=subordinate("because", np_("the girls"), "past", does("turn on", np_("the lamp"))),
    ),
    "If the bird sings, the men pick up my aunt. = Wenn der Vogel singt, holen die Männer meine "
    "Tante ab.": clause(
        np_("the men"),
        "present",
        does("pick up", np_("my aunt")),
        sub=subordinate("if", np_("the bird"), "present", SANG, fronted=True),
    ),
    "The boys knew that the queen could invite these princes."
    " = Die Jungen wussten, dass die Königin diese Prinzen einladen konnte.": clause(
        np_("the boys"),
        "past",
        does("know"),
        sub=subordinate("that", np_("the queen"), "could", does("invite", np_("these princes"))),
    ),
    "While a man who the dogs heard slept, the girl sang."
    " = Während ein Mann, den die Hunde hörten, schlief, sang das Mädchen.": clause(
        np_("the girl"),
        "past",
        SANG,
        sub=subordinate(
            "while",
            np_("a man", relative(np_("the dogs"), "past", does("hear"))),
            "past",
            SLEPT,
            fronted=True,
        ),
    ),
    # separable verbs: prefix last, glued to infinitive, participle and verb-final form
    "The teacher calls the students who sing. = Der Lehrer ruft die Studenten, die "
    "singen, an.": clause(
        np_("the teacher"),
        "present",
        does("call", np_("the students", relative(None, "present", SANG))),
    ),
    "The teachers will open a small door. = Die Lehrer werden eine kleine Tür aufmachen.": clause(
        np_("the teachers"), "will", does("open", np_("a small door"))
    ),
    "The child had turned off a red radio. = Das Kind hatte ein rotes Radio ausgeschaltet.": clause(
        np_("the child"), "pluperfect", does("turn off", np_("a red radio"))
    ),
    "The horse stood up in the garden. = Das Pferd stand im Garten auf.": clause(
        np_("the horse"), "past", does("stand up", place=pp("in", np_("the garden")))
    ),
    # case: dative verbs, two objects, weak nouns, adjectives after each kind of article
    "An old man thanks my small sister. = Ein alter Mann dankt meiner kleinen Schwester.": clause(
        np_("an old man"), "present", does("thank", np_("my small sister"))
    ),
    "The old man gave the small children a red apple."
    " = Der alte Mann gab den kleinen Kindern einen roten Apfel.": clause(
        np_("the old man"), "past", does("give", np_("a red apple"), to=np_("the small children"))
    ),
    "My old neighbour helped this young student. = Mein alter Nachbar half diesem jungen "
    "Studenten.": clause(np_("my old neighbour"), "past", does("help", np_("this young student"))),
    "Two big bears saw the young prince. = Zwei große Bären sahen den jungen Prinzen.": clause(
        np_("two big bears"), "past", does("see", np_("the young prince"))
    ),
    "These hungry girls showed two old women two new cars."
    " = Diese hungrigen Mädchen zeigten zwei alten Frauen zwei neue Autos.": clause(
        np_("these hungry girls"),
        "past",
        does("show", np_("two new cars"), to=np_("two old women")),
    ),
    "A young horse had run through an old forest. = Ein junges Pferd war durch einen alten Wald "
    "gelaufen.": clause(
        np_("a young horse"), "pluperfect", does("run", place=pp("through", np_("an old forest")))
    ),
    "My letter for a big doctor arrived. = Mein Brief für einen großen Arzt kam an.": clause(
        np_("my letter", pp("for", np_("a big doctor"))), "past", does("arrive")
    ),
    # coordination: pairs are plural, a second verb agrees with the far subject
    "The boy and the girl near the house slept. = Der Junge und das Mädchen beim Haus "
    "schliefen.": clause(
        np_("the boy", second=np_("the girl", pp("near", np_("the house")))), "past", SLEPT
    ),
    "The boy near the cows slept and closed the window."
    " = Der Junge bei den Kühen schlief und machte das Fenster zu.": clause(
        np_("the boy", pp("near", np_("the cows"))), "past", SLEPT, does("close", np_("the window"))
    ),
    "The girls can sing and answer the prince. = Die Mädchen können singen und dem Prinzen "
    "antworten.": clause(np_("the girls"), "can", SANG, does("answer", np_("the prince"))),
    "The dog slept because the aunt can sing and call the boy."
    " = Der Hund schlief, weil die Tante singen und den Jungen anrufen kann.": clause(
        np_("the dog"),
        "past",
        SLEPT,
        sub=subordinate("because", np_("the aunt"), "can", SANG, does("call", np_("the boy"))),
    ),
}


@pytest.mark.parametrize("sentences", WRITTEN_BY_HAND)
def test_a_meaning_is_said_as_a_person_would_say_it(sentences):
    assert said(WRITTEN_BY_HAND[sentences]) == sentences


QUICKSTART = [
    clause(np_("the boy", pp("next to", np_("the girls"))), "present", does("see", np_("the dog"))),
    clause(
        np_("the girls", pp("next to", np_("the boy"))), "present", does("see", np_("the dogs"))
    ),
    clause(
        np_("the teacher", pp("behind", np_("the cars"))),
        "present",
        does("hear", np_("the horses")),
    ),
    clause(
        np_("the students", pp("near", np_("the doctor"))),
        "present",
        does("visit", np_("the queen")),
    ),
    clause(
        np_("the aunt", pp("with", np_("the cats"))), "present", does("find", np_("the letter"))
    ),
    clause(
        np_("the dogs", pp("behind", np_("the window"))), "present", does("follow", np_("the man"))
    ),
    clause(
        np_("the princes", pp("without", np_("the horse"))),
        "present",
        does("call", np_("the woman")),
    ),
    clause(
        np_("the old neighbour", pp("with", np_("the birds"))),
        "past",
        does("love", np_("my sister")),
    ),
    clause(np_("the cats", pp("near", np_("the small child"))), "can", does("hear", np_("a bird"))),
    clause(
        np_("the child", pp("next to", np_("the lamps"))),
        "present",
        does("turn on", np_("the radio")),
    ),
    clause(
        np_("the women", pp("behind", np_("the house"))), "past", does("help", np_("the doctor"))
    ),
]


def test_make_quickstart_compares_translations_with_the_german_of_the_grammar(corpus):
    english_lines, german_lines = (
        (DOCS / f"quickstart.{side}").read_text("utf-8").splitlines() for side in ("en", "de")
    )
    assert [
        f"{source} = {target}" for source, target in zip(english_lines, german_lines, strict=True)
    ] == [said(meaning) for meaning in QUICKSTART]
    assert {attractors(english.tree(Sentence(meaning))) for meaning in QUICKSTART} == {1}
    assert not {example.source for example in every(corpus)} & set(english_lines)


def test_an_adverb_in_front_turns_the_main_clause_around():
    sentences = "Sometimes the girls will sing. = Manchmal werden die Mädchen singen."
    assert said(clause(np_("the girls"), "will", SANG), "sometimes") == sentences


DECLENSIONS = {
    "the old man": {
        "nominative": "der alte Mann",
        "accusative": "den alten Mann",
        "dative": "dem alten Mann",
    },
    "the old woman": {
        "nominative": "die alte Frau",
        "accusative": "die alte Frau",
        "dative": "der alten Frau",
    },
    "the old child": {
        "nominative": "das alte Kind",
        "accusative": "das alte Kind",
        "dative": "dem alten Kind",
    },
    "the old men": {
        "nominative": "die alten Männer",
        "accusative": "die alten Männer",
        "dative": "den alten Männern",
    },
    "this boy": {"accusative": "diesen Jungen"},
    "this girl": {"nominative": "dieses Mädchen"},
    "this sister": {"dative": "dieser Schwester"},
    "my new car": {"accusative": "mein neues Auto"},
    "my new cars": {"nominative": "meine neuen Autos", "dative": "meinen neuen Autos"},
    "a happy cow": {"accusative": "eine glückliche Kuh", "dative": "einer glücklichen Kuh"},
    "two big houses": {"accusative": "zwei große Häuser", "dative": "zwei großen Häusern"},
    "two big bears": {"nominative": "zwei große Bären"},
    "the bear": {"nominative": "der Bär", "dative": "dem Bären"},
}


@pytest.mark.parametrize(
    ("phrase", "case", "expected"),
    [(phrase, *declined) for phrase, cases in DECLENSIONS.items() for declined in cases.items()],
)
def test_a_noun_phrase_is_declined(phrase, case, expected):
    assert " ".join(german.noun_phrase(np_(phrase), case)) == expected


def arcs_of(main):
    """Write each word with its relation and its parent."""
    _, parse = english.text_and_parse(english.tree(Sentence(main)))
    arcs = zip(parse.words, parse.relations, parse.parents, strict=True)
    return " ".join(f"{word}/{relation}/{parse.words[parent]}" for word, relation, parent in arcs)


def test_the_tree_of_an_object_relative_has_the_labels_of_ewt():
    dog = np_("the dog", relative(np_("two girls"), "could", does("pick up")))
    assert arcs_of(clause(dog, "past", SLEPT)) == (
        "The/det/dog dog/nsubj/slept that/obj/pick two/nummod/girls girls/nsubj/pick "
        "could/aux/pick "
        "pick/acl:relcl/dog up/compound:prt/pick slept/root/slept ./punct/slept"
    )


def test_the_tree_of_a_fronted_clause_has_the_labels_of_ewt():
    girl = np_("my old girl", pp("next to", np_("the cars")))
    inner = clause(girl, "past", does("give", np_("a cake"), to=np_("the boy")))
    sub = SubordinateClause("because", inner, fronted=True)
    main = clause(
        np_("the man"), "past", SANG, does("run", place=pp("through", np_("the city"))), sub=sub
    )
    assert arcs_of(main) == (
        "Because/mark/gave my/nmod:poss/girl old/amod/girl girl/nsubj/gave next/advmod/girl "
        "to/case/cars "
        "the/det/cars cars/obl/next gave/advcl/sang the/det/boy boy/iobj/gave a/det/cake "
        "cake/obj/gave "
        ",/punct/gave the/det/man man/nsubj/sang sang/root/sang and/cc/ran ran/conj/sang "
        "through/case/city the/det/city city/obl/ran ./punct/sang"
    )


@pytest.mark.parametrize(
    ("main", "expected"),
    [
        (clause(np_("the boy", pp("with", np_("the dogs"))), "past", SLEPT), 1),
        (clause(np_("the boys", pp("with", np_("the dogs"))), "past", SLEPT), 0),
        (clause(np_("the boy"), "past", does("see", np_("the dogs"))), 0),
        (
            clause(
                np_("the boy", pp("with", np_("the dogs", pp("near", np_("a car"))))), "past", SLEPT
            ),
            1,
        ),
        # both halves of a pair are heads; a noun after them is none
        (clause(np_("the boy", second=np_("the girl")), "past", SLEPT), 0),
        (
            clause(np_("the boy", second=np_("the girl", pp("with", np_("a dog")))), "past", SLEPT),
            1,
        ),
        # the object of the first verb comes before the second, unless they share their finite verb
        (clause(np_("the boy"), "past", does("see", np_("the dogs")), SLEPT), 1),
        (clause(np_("the boy"), "can", does("see", np_("the dogs")), SLEPT), 0),
        # the antecedent is the subject of its relative clause
        (
            clause(
                np_("a man"),
                "past",
                does("see", np_("a boy", TWO_DOGS, relative(None, "past", SANG))),
            ),
            1,
        ),
        (clause(np_("the dog", relative(np_("the girls"), "past", does("see"))), "past", SLEPT), 1),
    ],
)
def test_attractors_are_the_nouns_of_another_number_before_the_verb(main, expected):
    assert attractors(english.tree(Sentence(main))) == expected


def test_combinations_join_each_verb_with_the_nouns_of_its_subject():
    dog = np_("the dog", relative(None, "past", does("see", np_("a cat"))), second=np_("a bear"))
    root = english.tree(Sentence(clause(dog, "can", SLEPT, does("stand up"))))
    expected = {
        ("dog", "see"),
        *((noun, verb) for noun in ("dog", "bear") for verb in ("sleep", "stand up")),
    }
    assert combinations(root) == expected


def test_every_tree_has_one_root_and_no_cycle_and_no_crossing(corpus):
    for example in every(corpus):
        parents = example.parse.parents.tolist()
        assert [i for i, p in enumerate(parents) if i == p] == [
            example.parse.relations.index("root")
        ]
        assert example.parse.relations.count("root") == 1
        assert is_tree(parents), example.source
        arcs = [(min(i, p), max(i, p)) for i, p in enumerate(parents) if i != p]
        assert not any(a < c < b < d for a, b in arcs for c, d in arcs), example.source


def test_every_span_is_its_word_in_the_text(corpus):
    for example in every(corpus):
        spans = example.parse.spans.tolist()
        assert [example.source[start:end] for start, end in spans] == example.parse.words
        assert len(example.parse) == len(example.parse.tags) == len(example.parse.relations)
        # a word more than there are blanks, the commas, the full stop
        assert example.source.count(" ") + 1 + example.source.count(",") + 1 == len(spans)


def finite_forms(parse):
    """Work out the German finite verb forms from the gold tree, with their prefixes where the verb
    comes last."""
    children = [
        [c for c, p in enumerate(parse.parents) if p == w and c != w] for w in range(len(parse))
    ]

    def child(word, relation):
        return next((c for c in children[word] if parse.relations[c] == relation), None)

    def is_plural(noun, *, alone):
        pair = any(parse.relations[c] == "conj" for c in children[noun])
        return (pair and not alone) or NOUN_OF_FORM[parse.words[noun].lower()][1]

    for word, tag in enumerate(parse.tags):
        if tag != "VERB":
            continue
        particle, auxiliary, subject = (child(word, r) for r in ("compound:prt", "aux", "nsubj"))
        bearer = word if parse.relations[word] != "conj" else parse.parents[word]
        if bearer != word:
            subject = child(bearer, "nsubj")
            if child(bearer, "aux") is not None:
                continue
        is_relative = parse.tags[subject] == "PRON"
        subject = parse.parents[bearer] if is_relative else subject
        verb = VERB_OF_FORM[
            parse.words[word], parse.words[particle] if particle is not None else ""
        ]
        form = parse.words[word]
        plural = is_plural(subject, alone=is_relative)
        prefix = verb.prefix if parse.relations[bearer] in ("advcl", "ccomp", "acl:relcl") else ""
        if auxiliary is None and form == verb.past:
            yield prefix + verb.preterite + plural * ("n" if verb.preterite[-1] == "e" else "en")
        elif auxiliary is None:
            assert form == (verb.base if plural else verb.third), (form, plural)
            yield prefix + (verb.plural if plural else verb.singular)
        elif parse.words[auxiliary] == "had":
            yield {"haben": ("hatte", "hatten"), "sein": ("war", "waren")}[verb.auxiliary][plural]
        else:
            yield GERMAN_MODALS[parse.words[auxiliary]].split()[plural]


def test_every_german_verb_agrees_with_the_subject_of_the_gold_tree(corpus):
    known = {"hatte", "hatten", "war", "waren"} | {
        f for forms in GERMAN_MODALS.values() for f in forms.split()
    }
    for example in every(corpus):
        words = Counter(re.findall(r"\w+", example.target.lower()))
        for form in finite_forms(example.parse):
            assert words[form] > 0, (example.source, example.target, form)
            words[form] -= 1
        assert not any(words[form] for form in known), example.target


def test_german_text_is_raw_text(corpus):
    nouns = {form for noun in lexicon.NOUNS for form in (noun.german, noun.german_plural)}
    for example in every(corpus):
        assert re.fullmatch(r"[A-ZÄÖÜ]\w*(,? \w+)*\.", example.target), example.target
        assert re.fullmatch(r"[A-Z]\w*(,? \w+)*\.", example.source), example.source
        assert len(nouns & set(re.findall(r"\w+", example.target))) > 0


def test_each_part_has_the_size_asked_for():
    parts = controlled.generate(seed=3, train=17, valid=0, test=5)
    assert {part: len(examples) for part, examples in parts.items()} == {
        "train": 17,
        "valid": 0,
        "test": 5,
    }


def test_no_sentence_comes_twice_in_the_whole_corpus(corpus):
    sources = [example.source for example in every(corpus)]
    assert len(set(sources)) == len(sources) == 7500
    assert len({example.target for example in every(corpus)}) > 7490


def test_a_sentence_that_is_drawn_again_is_left_out(monkeypatch):
    draw, last = controlled._example, []

    def draw_each_twice(random, cell, fits):
        if last:
            return last.pop()
        last.append(draw(random, cell, fits))
        return last[0]

    monkeypatch.setattr(controlled, "_example", draw_each_twice)
    sources = [each.source for each in every(controlled.generate(train=20, valid=5, test=8))]
    assert len(set(sources)) == len(sources) == 33


def test_the_hard_test_set_is_longer_and_deeper_than_training(corpus):
    hard = controlled.generate_hard(size=12)["hard"]
    assert Counter(one.split for one in hard) == {"longer": 6, "deeper": 6}
    trained = [max(depths(one.parse.parents.tolist())) for one in corpus["train"]]
    assert sum(depth > 8 for depth in trained) <= 0.002 * len(trained)
    for one in hard:
        assert 31 <= len(one.parse) <= 45
        assert one.attractors in (0, 1)
        assert (max(depths(one.parse.parents.tolist())) > 8) == (one.split == "deeper")
        assert not any(map(controlled.is_held_out, one.combinations))


def test_training_and_validation_have_nothing_that_the_test_set_keeps_for_itself(corpus):
    for example in corpus["train"] + corpus["valid"]:
        assert example.split == "seen"
        assert example.attractors <= 1
        assert len(example.parse) <= controlled.TRAINED_WORDS
        assert not any(controlled.is_held_out(each) for each in example.combinations)


def test_each_test_sentence_is_new_in_the_one_respect_of_its_split(corpus):
    trained = {each for example in corpus["train"] for each in example.combinations}
    for example in corpus["test"]:
        new = {
            "combination": any(map(controlled.is_held_out, example.combinations)),
            "attractors": example.attractors > 1,
            "length": len(example.parse) > controlled.TRAINED_WORDS,
        }
        assert [name for name, is_new in new.items() if is_new] == [example.split][
            : example.split != "seen"
        ]
        assert new["combination"] <= bool(example.combinations - trained)


def nouns_before_the_main_verb(example):
    parse = example.parse
    verb = parse.relations.index("root")
    heads = [w for w, p in enumerate(parse.parents) if p == verb and parse.relations[w] == "nsubj"]
    return parse.tags[heads[0] + 1 : verb].count("NOUN")


def test_training_has_subjects_as_long_as_those_with_more_attractors(corpus):
    trained = Counter(map(nouns_before_the_main_verb, corpus["train"]))
    assert all(trained[nouns] > 200 for nouns in range(5)), trained
    tested = [each for each in corpus["test"] if each.split == "attractors"]
    assert all(nouns_before_the_main_verb(each) in trained for each in tested)


def test_every_label_has_enough_sentences_to_be_scored(corpus):
    for label in controlled.LABELS:
        counts = Counter(getattr(example, label) for example in corpus["test"])
        assert min(counts.values()) >= 90, (label, counts)
    assert {example.phenomenon for example in corpus["test"]} == set(controlled.PHENOMENA)
    assert {example.attractors for example in corpus["test"]} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("side", ["source", "target"])
def test_every_word_of_the_test_set_is_trained_often_enough_to_be_learnt(corpus, side):
    texts = (
        " ".join(getattr(example, side) for example in corpus[part]) for part in ("train", "test")
    )
    trained, tested = (Counter(re.findall(r"\w+", text.lower())) for text in texts)
    assert len(trained) < 360
    assert not [word for word in tested if trained[word] < 5]


def fingerprint(corpus):
    digest = hashlib.sha256()
    for example in every(corpus):
        digest.update(f"{example.source}\n{example.target}\n{example.parse.relations}".encode())
        digest.update(example.parse.parents.astype("<i8").tobytes())
    return digest.hexdigest()


def test_the_same_seed_gives_the_same_corpus_on_every_machine(corpus):
    assert fingerprint(corpus) == "4482441c8b4d147ddf9d71abb0efa4231a2366791af48415f2ee880f8677d264"
    assert fingerprint(controlled.generate(2, 20, 5, 5)) != fingerprint(
        controlled.generate(1, 20, 5, 5)
    )


def test_a_larger_training_set_leaves_the_test_set_as_it_is():
    few, many = (controlled.generate(train=size, valid=20, test=40) for size in (10, 50))
    for part in ("valid", "test"):
        assert [each.source for each in few[part]] == [each.source for each in many[part]]


def test_the_files_hold_a_sentence_a_line_and_its_tree_and_its_labels(tmp_path):
    folder, parts = tmp_path / "new", controlled.generate(train=30, valid=10, test=28)
    controlled.write_corpus(folder, parts)
    names = {f"{part}.{kind}" for part in parts for kind in ("en", "de", "en.conllu")}
    assert {path.name for path in folder.iterdir()} == {*names, "test.labels.tsv"}
    for part, examples in parts.items():
        sources, targets = (
            (folder / f"{part}.{side}").read_text("utf-8").splitlines() for side in ("en", "de")
        )
        trees = list(read_conllu(folder / f"{part}.en.conllu"))
        assert sources == [each.source for each in examples] == [text for text, _ in trees]
        assert targets == [each.target for each in examples]
        assert [parse for _, parse in trees] == [example.parse for example in examples]
    head, *labels = (folder / "test.labels.tsv").read_text("utf-8").splitlines()
    assert head == "phenomenon\tattractors\tsplit"
    assert labels == [
        f"{each.phenomenon}\t{each.attractors}\t{each.split}" for each in parts["test"]
    ]


def test_a_folder_that_cannot_be_made_is_a_message(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(SynmtError, match=r"taken.*cannot write.*Not a directory"):
        controlled.write_corpus(
            tmp_path / "taken" / "new", controlled.generate(train=1, valid=1, test=4)
        )


def test_no_child_is_called_old_and_no_boy_young(corpus):
    # nobody says "ein junger Junge", and "ein altes Kind" is not a child
    for example in every(corpus):
        assert not re.search(r"\bold (boy|girl|child)|\byoung boy", example.source), example.source


def test_a_noun_or_a_verb_has_the_forms_of_one_entry_only():
    assert len(NOUN) == len(lexicon.NOUNS)
    assert len(VERB) == len(lexicon.VERBS)
    forms = [
        (form, verb.particle)
        for verb in lexicon.VERBS
        for form in {verb.base, verb.third, verb.past}
    ]
    assert len(set(forms)) == len(forms)
    # a past that looks like the present would leave the tense open
    assert all(verb.past not in (verb.base, verb.third) for verb in lexicon.VERBS)
