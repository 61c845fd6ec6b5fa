"""The controlled corpus: its German against sentences written by hand, its trees and its splits
against their rules."""

from __future__ import annotations

import hashlib
import re
from collections import Counter

import pytest
from cases import cases
from meanings import NOUN_OF_FORM, meaning_of, noun_phrase
from places import ROOT
from refusing import assert_fails
from small import is_tree

from synmt.controlled import corpus as controlled
from synmt.controlled import english, german, lexicon
from synmt.controlled.english import attractors, combinations
from synmt.recipe.corpus import ControlledRecipe
from synmt.syntax.conllu import read_conllu
from synmt.syntax.trees import depths

pytestmark = pytest.mark.journey

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def corpus():
    return controlled.generate()


def combinations_of(example):
    return combinations(english.tree(example.meaning))


def drawn(**settings):
    """Draw a few training pairs with settings."""
    settings = ControlledRecipe(pairs=60, **settings)
    return controlled.generate(valid=0, test=0, settings=settings)["train"]


def order_of(example):
    """Write the order of subject, objects and verb of the main clause, as `svo`."""
    parse = example.parse
    [root] = [word for word, parent in enumerate(parse.parents) if word == parent]
    places = {root: "v"}
    letters = {"nsubj": "s", "obj": "o", "iobj": "o"}
    for word in (parse.parents == root).nonzero()[0].tolist():
        if parse.relations[word] in letters:
            places[word] = letters[parse.relations[word]]
    return "".join(places[place] for place in sorted(places))


def test_the_order_of_words_is_that_of_the_settings_and_the_german_the_same():
    orders = {
        "svo": {"sv", "svo", "svoo"},
        "sov": {"sv", "sov", "soov"},
        "free": {"sv", "sov", "osv", "soov", "osov", "oosv"},
    }
    for order, expected in orders.items():
        examples = drawn(order=order, cases=order == "free")
        found = set(map(order_of, examples))
        assert found <= expected
        assert ("osv" in found) == (order == "free")
        for example in examples:
            assert is_tree(example.parse.parents)
            assert german.say(example.meaning) == example.target
            assert "".join(example.parse.words) == example.source.replace(" ", "")
    assert [example.source for example in drawn()] != [
        example.source for example in drawn(order="sov")
    ]


def test_nouns_end_in_their_case():
    seen = Counter()
    for example in drawn(cases=True):
        for word, relation in zip(example.parse.words, example.parse.relations, strict=True):
            ending = {"obj": "um", "iobj": "im"}.get(relation, "")
            form = word.lower().removesuffix(ending)
            if form in NOUN_OF_FORM:
                assert word.lower() == form + ending
                seen[relation] += 1
    assert seen["obj"] > 20 < seen["nsubj"]
    assert seen["iobj"]


def test_fewer_pairs_are_the_first_ones_shallow_ones_are_shallow_and_nouns_can_be_more():
    texts = [(example.source, example.target) for example in drawn()]
    again = controlled.generate(settings=ControlledRecipe(pairs=25), valid=0, test=0)["train"]
    assert [(example.source, example.target) for example in again] == texts[:25]
    for example in drawn(depth=4):
        assert depths(example.parse.parents).max() <= 4
    words = {word for example in drawn(lexicon=3) for word in example.parse.words}
    assert {"badog", "dodog"} & words
    assert not {"fidog", "fidogs"} & words
    inventing = lexicon.nouns(10)
    assert (
        len({noun.english for noun in inventing}) == len({noun.german for noun in inventing}) == 330
    )
    [dog] = [noun for noun in inventing if noun.english == "badog"]
    assert (dog.german, dog.german_plural, dog.gender, dog.kinds) == (
        "Tihund",
        "Tihunde",
        "m",
        "ak",
    )


def every(corpus):
    return [example for part in corpus.values() for example in part]


def said(text):
    """Express a meaning in English and in German."""
    sentence = meaning_of(text)
    source, _ = english.text_and_parse(english.tree(sentence))
    return [source, german.say(sentence)]


def rows(text):
    """List the lines of a text, without comments."""
    return [line for line in text.strip().splitlines() if not line.startswith("#")]


WRITTEN_BY_HAND = rows("""
# agreement across attractors, in each kind of verb form
The boy next to the girls buys the cake.
Der Junge neben den Mädchen kauft den Kuchen.
present (the boy (next to the girls)) (buy (the cake))
The boys behind the car slept.
Die Jungen hinter dem Auto schliefen.
past (the boys (behind the car)) (sleep)
The man near two dogs could sing.
Der Mann bei zwei Hunden konnte singen.
could (the man (near two dogs)) (sing)
The women without an apple had arrived.
Die Frauen ohne einen Apfel waren angekommen.
pluperfect (the women (without a apple)) (arrive)
The cat with the birds near the doors must sleep.
Die Katze mit den Vögeln bei den Türen muss schlafen.
must (the cat (with the birds (near the doors))) (sleep)
# subject relatives: nominative in three genders and the plural, verb at the end
The dog that saw the cats slept.
Der Hund, der die Katzen sah, schlief.
past (the dog (past (see (the cats)))) (sleep)
The queen who called the men sang.
Die Königin, die die Männer anrief, sang.
past (the queen (past (call (the men)))) (sing)
The child who can sing sleeps.
Das Kind, das singen kann, schläft.
present (the child (can (sing))) (sleep)
The boys behind the car who sang had slept.
Die Jungen hinter dem Auto, die sangen, hatten geschlafen.
pluperfect (the boys (behind the car) (past (sing))) (sleep)
# object relatives: accusative and dative pronouns, the number from the inner subject
The dog that the girls saw slept.
Der Hund, den die Mädchen sahen, schlief.
past (the dog (past (the girls) (see))) (sleep)
The cars that the neighbour had found slept.
Die Autos, die der Nachbar gefunden hatte, schliefen.
past (the cars (pluperfect (the neighbour) (find))) (sleep)
The boy who the aunts helped sang.
Der Junge, dem die Tanten halfen, sang.
past (the boy (past (the aunts) (help))) (sing)
The sister who a bear followed sang.
Die Schwester, der ein Bär folgte, sang.
past (the sister (past (a bear) (follow))) (sing)
The men saw the girls who the boy thanked.
Die Männer sahen die Mädchen, denen der Junge dankte.
past (the men) (see (the girls (past (the boy) (thank))))
# subordinate clauses: verb last; fronted, they turn the main clause around
The man slept because the girls turned on the lamp.
Der Mann schlief, weil die Mädchen die Lampe einschalteten.
past (the man) (sleep) (because past (the girls) (turn on (the lamp)))
If the bird sings, the men pick up my aunt.
Wenn der Vogel singt, holen die Männer meine Tante ab.
present (the men) (pick up (my aunt)) (fronted if present (the bird) (sing))
The boys knew that the queen could invite these princes.
Die Jungen wussten, dass die Königin diese Prinzen einladen konnte.
past (the boys) (know) (that could (the queen) (invite (this princes)))
While a man who the dogs heard slept, the girl sang.
Während ein Mann, den die Hunde hörten, schlief, sang das Mädchen.
past (the girl) (sing) (fronted while past (a man (past (the dogs) (hear))) (sleep))
# separable verbs: prefix last, glued to infinitive, participle and verb-final form
The teacher calls the students who sing.
Der Lehrer ruft die Studenten, die singen, an.
present (the teacher) (call (the students (present (sing))))
The teachers will open a small door.
Die Lehrer werden eine kleine Tür aufmachen.
will (the teachers) (open (a small door))
The child had turned off a red radio.
Das Kind hatte ein rotes Radio ausgeschaltet.
pluperfect (the child) (turn off (a red radio))
The horse stood up in the garden.
Das Pferd stand im Garten auf.
past (the horse) (stand up (in the garden))
# case: dative verbs, two objects, weak nouns, adjectives after each kind of article
An old man thanks my small sister.
Ein alter Mann dankt meiner kleinen Schwester.
present (a old man) (thank (my small sister))
The old man gave the small children a red apple.
Der alte Mann gab den kleinen Kindern einen roten Apfel.
past (the old man) (give (to the small children) (a red apple))
My old neighbour helped this young student.
Mein alter Nachbar half diesem jungen Studenten.
past (my old neighbour) (help (this young student))
Two big bears saw the young prince.
Zwei große Bären sahen den jungen Prinzen.
past (two big bears) (see (the young prince))
These hungry girls showed two old women two new cars.
Diese hungrigen Mädchen zeigten zwei alten Frauen zwei neue Autos.
past (this hungry girls) (show (to two old women) (two new cars))
A young horse had run through an old forest.
Ein junges Pferd war durch einen alten Wald gelaufen.
pluperfect (a young horse) (run (through a old forest))
My letter for a big doctor arrived.
Mein Brief für einen großen Arzt kam an.
past (my letter (for a big doctor)) (arrive)
# coordination: pairs are plural, a second verb agrees with the far subject
The boy and the girl near the house slept.
Der Junge und das Mädchen beim Haus schliefen.
past (the boy (and the girl (near the house))) (sleep)
The boy near the cows slept and closed the window.
Der Junge bei den Kühen schlief und machte das Fenster zu.
past (the boy (near the cows)) (sleep) (close (the window))
The girls can sing and answer the prince.
Die Mädchen können singen und dem Prinzen antworten.
can (the girls) (sing) (answer (the prince))
The dog slept because the aunt can sing and call the boy.
Der Hund schlief, weil die Tante singen und den Jungen anrufen kann.
past (the dog) (sleep) (because can (the aunt) (sing) (call (the boy)))
""")


@pytest.mark.parametrize("place", range(0, len(WRITTEN_BY_HAND), 3))
def test_a_meaning_is_said_as_a_person_would_say_it(place):
    *sentences, meaning = WRITTEN_BY_HAND[place : place + 3]
    assert said(meaning) == sentences


QUICKSTART = rows("""
present (the boy (next to the girls)) (see (the dog))
present (the girls (next to the boy)) (see (the dogs))
present (the teacher (behind the cars)) (hear (the horses))
present (the students (near the doctor)) (visit (the queen))
present (the aunt (with the cats)) (find (the letter))
present (the dogs (behind the window)) (follow (the man))
present (the princes (without the horse)) (call (the woman))
past (the old neighbour (with the birds)) (love (my sister))
can (the cats (near the small child)) (hear (a bird))
present (the child (next to the lamps)) (turn on (the radio))
past (the women (behind the house)) (help (the doctor))
""")


def test_make_quickstart_compares_translations_with_the_german_of_the_grammar(corpus):
    english_lines, german_lines = (
        (DOCS / f"quickstart.{side}").read_text("utf-8").splitlines() for side in ("en", "de")
    )
    sentences = [list(pair) for pair in zip(english_lines, german_lines, strict=True)]
    assert list(map(said, QUICKSTART)) == sentences
    assert {attractors(english.tree(meaning_of(text))) for text in QUICKSTART} == {1}
    assert not {example.source for example in every(corpus)} & set(english_lines)


def test_an_adverb_in_front_turns_the_main_clause_around():
    sentences = ["Sometimes the girls will sing.", "Manchmal werden die Mädchen singen."]
    assert said("sometimes will (the girls) (sing)") == sentences


DECLENSIONS = """
the old man | nominative | der alte Mann
the old man | accusative | den alten Mann
the old man | dative | dem alten Mann
the old woman | nominative | die alte Frau
the old woman | accusative | die alte Frau
the old woman | dative | der alten Frau
the old child | nominative | das alte Kind
the old child | accusative | das alte Kind
the old child | dative | dem alten Kind
the old men | nominative | die alten Männer
the old men | accusative | die alten Männer
the old men | dative | den alten Männern
this boy | accusative | diesen Jungen
this girl | nominative | dieses Mädchen
this sister | dative | dieser Schwester
my new car | accusative | mein neues Auto
my new cars | nominative | meine neuen Autos
my new cars | dative | meinen neuen Autos
a happy cow | accusative | eine glückliche Kuh
a happy cow | dative | einer glücklichen Kuh
two big houses | accusative | zwei große Häuser
two big houses | dative | zwei großen Häusern
two big bears | nominative | zwei große Bären
the bear | nominative | der Bär
the bear | dative | dem Bären
"""


@pytest.mark.parametrize(("phrase", "case", "expected"), cases(DECLENSIONS, "|"))
def test_a_noun_phrase_is_declined(phrase, case, expected):
    assert " ".join(german.noun_phrase(noun_phrase(phrase.split()), case)) == expected


def arcs_of(text):
    """Write each word with its relation and its parent."""
    _, parse = english.text_and_parse(english.tree(meaning_of(text)))
    arcs = zip(parse.words, parse.relations, parse.parents, strict=True)
    return [f"{word}/{relation}/{parse.words[parent]}" for word, relation, parent in arcs]


LABELS_OF_EWT = rows(
    """
# an object relative
past (the dog (could (two girls) (pick up))) (sleep)
The/det/dog dog/nsubj/slept that/obj/pick two/nummod/girls girls/nsubj/pick could/aux/pick \
pick/acl:relcl/dog up/compound:prt/pick slept/root/slept ./punct/slept
# a fronted clause
past (the man) (sing) (run (through the city)) (fronted because past (my old girl (next to the \
cars)) (give (to the boy) (a cake)))
Because/mark/gave my/nmod:poss/girl old/amod/girl girl/nsubj/gave next/advmod/girl to/case/cars \
the/det/cars cars/obl/next gave/advcl/sang the/det/boy boy/iobj/gave a/det/cake cake/obj/gave \
,/punct/gave the/det/man man/nsubj/sang sang/root/sang and/cc/ran ran/conj/sang \
through/case/city the/det/city city/obl/ran ./punct/sang
"""
)


@pytest.mark.parametrize("place", range(0, len(LABELS_OF_EWT), 2))
def test_a_tree_has_the_labels_of_ewt(place):
    meaning, arcs = LABELS_OF_EWT[place : place + 2]
    assert arcs_of(meaning) == arcs.split()


ATTRACTORS = """
1 => past (the boy (with the dogs)) (sleep)
0 => past (the boys (with the dogs)) (sleep)
0 => past (the boy) (see (the dogs))
1 => past (the boy (with the dogs (near a car))) (sleep)
# both halves of a pair are heads; a noun after them is none
0 => past (the boy (and the girl)) (sleep)
1 => past (the boy (and the girl (with a dog))) (sleep)
# the object of the first verb comes before the second, unless they share their finite verb
1 => past (the boy) (see (the dogs)) (sleep)
0 => can (the boy) (see (the dogs)) (sleep)
# the antecedent is the subject of its relative clause
1 => past (a man) (see (a boy (with two dogs) (past (sing))))
1 => past (the dog (past (the girls) (see))) (sleep)
"""


@pytest.mark.parametrize(("expected", "text"), cases(ATTRACTORS))
def test_attractors_are_the_nouns_of_another_number_before_the_verb(expected, text):
    assert attractors(english.tree(meaning_of(text))) == int(expected)


def test_combinations_join_each_verb_with_the_nouns_of_its_subject():
    text = "can (the dog (past (see (a cat))) (and a bear)) (sleep) (stand up)"
    expected = {"dog see", "dog sleep", "dog stand up", "bear sleep", "bear stand up"}
    assert set(map(" ".join, combinations(english.tree(meaning_of(text))))) == expected


def test_every_tree_has_the_words_of_the_text_one_root_and_no_crossing(corpus):
    for example in every(corpus):
        parse, parents = example.parse, example.parse.parents.tolist()
        assert [example.source[start:end] for start, end in parse.spans.tolist()] == parse.words
        assert [i for i, p in enumerate(parents) if i == p] == [parse.relations.index("root")]
        assert is_tree(parents), example.source
        arcs = [(min(i, p), max(i, p)) for i, p in enumerate(parents) if i != p]
        assert not any(a < c < b < d for a, b in arcs for c, d in arcs), example.source


VERB_OF_FORM = {
    (form, verb.particle): verb
    for verb in lexicon.VERBS
    for form in (verb.base, verb.third, verb.past, verb.participle)
}
GERMAN_MODALS = {
    "can": "kann können",
    "could": "konnte konnten",
    "must": "muss müssen",
    "will": "wird werden",
}


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


def test_no_sentence_comes_twice_in_the_whole_corpus(corpus):
    sources = [example.source for example in every(corpus)]
    assert len(set(sources)) == len(sources) == 7500
    assert len({example.target for example in every(corpus)}) > 7490


def test_the_hard_test_set_is_longer_and_deeper_than_training(corpus):
    hard = controlled.generate_hard(size=12)["hard"]
    assert Counter(one.split for one in hard) == {"longer": 6, "deeper": 6}
    trained = [max(depths(one.parse.parents.tolist())) for one in corpus["train"]]
    assert sum(depth > 8 for depth in trained) <= 0.002 * len(trained)
    for one in hard:
        assert (len(one.parse) in range(31, 46), one.attractors in (0, 1)) == (True, True)
        assert (max(depths(one.parse.parents.tolist())) > 8) == (one.split == "deeper")
        assert not any(map(controlled.is_held_out, combinations_of(one)))


def test_each_test_sentence_is_new_in_the_one_respect_of_its_split(corpus):
    trained = {each for example in corpus["train"] for each in combinations_of(example)}
    for example in every(corpus):
        new = {
            "combination": any(map(controlled.is_held_out, combinations_of(example))),
            "attractors": example.attractors > 1,
            "length": len(example.parse) > controlled.TRAINED_WORDS,
        }
        assert ([name for name, is_new in new.items() if is_new] or ["seen"]) == [example.split]
        assert new["combination"] <= bool(combinations_of(example) - trained)
    assert {example.split for example in corpus["train"] + corpus["valid"]} == {"seen"}


def fingerprint(corpus):
    digest = hashlib.sha256()
    for example in every(corpus):
        digest.update(f"{example.source}\n{example.target}\n{example.parse.relations}".encode())
        digest.update(example.parse.parents.astype("<i8").tobytes())
    return digest.hexdigest()


def test_the_same_seed_gives_the_same_corpus_on_every_machine(corpus):
    assert fingerprint(corpus) == "4482441c8b4d147ddf9d71abb0efa4231a2366791af48415f2ee880f8677d264"
    one, two = (fingerprint(controlled.generate(seed, 20, 5, 5)) for seed in (1, 2))
    assert one != two


def test_a_larger_training_set_leaves_the_test_set_as_it_is():
    few, many = (controlled.generate(train=size, valid=20, test=40) for size in (10, 50))
    for part in ("valid", "test"):
        assert [each.source for each in few[part]] == [each.source for each in many[part]]


def test_the_files_hold_a_sentence_a_line_and_its_tree_and_its_labels(tmp_path):
    parts = controlled.generate(train=30, valid=10, test=28)
    controlled.write_corpus(tmp_path / "new", parts)

    def lines(name):
        return (tmp_path / "new" / name).read_text("utf-8").splitlines()

    for part, examples in parts.items():
        trees = list(read_conllu(tmp_path / "new" / f"{part}.en.conllu"))
        assert trees == [(each.source, each.parse) for each in examples]
        assert lines(f"{part}.en") == [each.source for each in examples]
        assert lines(f"{part}.de") == [each.target for each in examples]
    labels = [f"{each.phenomenon}\t{each.attractors}\t{each.split}" for each in parts["test"]]
    assert lines("test.labels.tsv") == ["phenomenon\tattractors\tsplit", *labels]
    assert len(list((tmp_path / "new").iterdir())) == 3 * 3 + 1


def test_a_folder_that_cannot_be_made_is_a_message(tmp_path):
    (tmp_path / "taken").write_text("a file")
    assert_fails(
        r"taken.*cannot write.*Not a directory",
        controlled.write_corpus,
        tmp_path / "taken" / "new",
        controlled.generate(train=1, valid=1, test=4),
    )
