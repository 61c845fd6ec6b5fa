"""Expresses a Sentence in German: word order by the type of clause, endings by case, gender and
number."""

from __future__ import annotations

from synmt.controlled.lexicon import ADVERBS, CONJUNCTIONS, Case, Noun, Verb
from synmt.controlled.meaning import (
    Clause,
    NounPhrase,
    Predicate,
    PrepositionPhrase,
    RelativeClause,
    Sentence,
    SubordinateClause,
    Tense,
)

_GENDERS = ("m", "f", "n", "plural")
# endings in the order of _GENDERS, and whole relative pronouns; - means no ending
_ENDINGS: dict[str, dict[Case, str]] = {
    "pronoun": {
        "nominative": "der die das die",
        "accusative": "den die das die",
        "dative": "dem der dem denen",
    },
    "dies": {"nominative": "er e es e", "accusative": "en e es e", "dative": "em er em en"},
    "ein": {"nominative": "- e - e", "accusative": "en e - e", "dative": "em er em en"},
    "after dies": {"nominative": "e e e en", "accusative": "en e e en", "dative": "en en en en"},
    "after ein": {"nominative": "er e es en", "accusative": "en e es en", "dative": "en en en en"},
    "after zwei": {"nominative": "- - - e", "accusative": "- - - e", "dative": "- - - en"},
}
_DECLENSION = {"the": "dies", "this": "dies", "a": "ein", "my": "ein", "two": "zwei"}
_STEMS = {"this": "dies", "a": "ein", "my": "mein"}
_AUXILIARIES = {
    "haben": ("hatte", "hatten"),
    "sein": ("war", "waren"),
    "can": ("kann", "können"),
    "must": ("muss", "müssen"),
    "will": ("wird", "werden"),
    "could": ("konnte", "konnten"),
}
_CONTRACTIONS = {("in", "dem"): "im", ("bei", "dem"): "beim"}


def say(sentence: Sentence) -> str:
    """Express a sentence in German, as raw text."""
    clause = sentence.clause
    front = [ADVERBS[sentence.opening]] if sentence.opening else []
    if clause.subordinate and clause.subordinate.fronted:
        front = _subordinate(clause.subordinate)
    return _text([*front, *_main(clause, inverted=bool(front)), "."])


def _text(words: list[str]) -> str:
    text = ""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        # two clauses with the same end have one comma, and none before the full stop
        if word == "," and (not text or following in (",", ".")):
            continue
        text += word if word in (",", ".") or not text else " " + word
    return text[0].upper() + text[1:]


def _main(clause: Clause, *, inverted: bool) -> list[str]:
    """Build a main clause: the finite verb is second; prefix, infinitive or participle are last."""
    assert clause.subject
    plural = clause.subject.agrees_as_plural
    subject = noun_phrase(clause.subject, "nominative")
    first, *others = clause.predicates
    form = finite(first.verb, clause.tense, plural)
    words = [form, *subject] if inverted else [*subject, form]
    words += _middle(first) + _tail(first.verb, clause.tense)
    for other in others:
        words.append("und")
        if _is_simple(clause.tense):
            words.append(finite(other.verb, clause.tense, plural))
        words += _middle(other) + _tail(other.verb, clause.tense)
    return words + _extraposed(clause)


def _final(clause: Clause, first: str, *, plural: bool = False) -> list[str]:
    """Build a subordinate clause: the verb is last, and the finite form is its last word.

    plural: the number of the first word, if that is the subject.
    """
    words, form = [first], ""
    if clause.subject:
        words += noun_phrase(clause.subject, "nominative")
        plural = clause.subject.agrees_as_plural
    for index, predicate in enumerate(clause.predicates):
        verb = predicate.verb
        form = finite(verb, clause.tense, plural)
        tail = [verb.prefix + form] if _is_simple(clause.tense) else _tail(verb, clause.tense)
        words += ["und"] * (index > 0) + _middle(predicate) + tail
    return words + [form] * (not _is_simple(clause.tense)) + _extraposed(clause)


def _extraposed(clause: Clause) -> list[str]:
    if clause.subordinate is None or clause.subordinate.fronted:
        return []
    return [",", *_subordinate(clause.subordinate)]


def _subordinate(subordinate: SubordinateClause) -> list[str]:
    return [*_final(subordinate.clause, CONJUNCTIONS[subordinate.conjunction]), ","]


def _relative(relative: RelativeClause, antecedent: NounPhrase) -> list[str]:
    clause = relative.clause
    case = object_case(clause.predicates[0].verb) if clause.subject else "nominative"
    pronoun = _ending("pronoun", antecedent, case)
    return [",", *_final(clause, pronoun, plural=antecedent.plural), ","]


def _middle(predicate: Predicate) -> list[str]:
    """List the words between the two parts of a verb."""
    words: list[str] = []
    if predicate.recipient:
        words += noun_phrase(predicate.recipient, "dative")
    if predicate.object:
        words += noun_phrase(predicate.object, object_case(predicate.verb))
    if predicate.place:
        words += _preposition_phrase(predicate.place)
    return words


def object_case(verb: Verb) -> Case:
    """Return the case of a verb's object."""
    return "dative" if verb.pattern == "dative" else "accusative"


def _is_simple(tense: Tense) -> bool:
    return tense in ("present", "past")


def finite(verb: Verb, tense: Tense, plural: bool) -> str:
    """Return the form that agrees with the subject, without a separable prefix."""
    if tense == "present":
        return verb.plural if plural else verb.singular
    if tense == "past":
        ending = "n" if verb.preterite.endswith("e") else "en"
        return verb.preterite + ending * plural
    return _AUXILIARIES[verb.auxiliary if tense == "pluperfect" else tense][plural]


def _tail(verb: Verb, tense: Tense) -> list[str]:
    if _is_simple(tense):
        return [verb.prefix] if verb.prefix else []
    return [verb.prefix + (verb.perfect if tense == "pluperfect" else verb.plural)]


def _preposition_phrase(phrase: PrepositionPhrase) -> list[str]:
    preposition = phrase.preposition
    first, *rest = noun_phrase(phrase.phrase, preposition.case)
    contraction = _CONTRACTIONS.get((preposition.german, first))
    return [contraction, *rest] if contraction else [preposition.german, first, *rest]


def noun_phrase(phrase: NounPhrase, case: Case) -> list[str]:
    """Decline a noun phrase with its article, adjective and modifiers."""
    words = [_article(phrase, case)]
    if phrase.adjective:
        words.append(
            phrase.adjective.german
            + _ending(f"after {_DECLENSION[phrase.determiner]}", phrase, case)
        )
    words.append(_noun(phrase.noun, phrase.plural, case))
    for modifier in phrase.modifiers:
        words += (
            _relative(modifier, phrase)
            if isinstance(modifier, RelativeClause)
            else _preposition_phrase(modifier)
        )
    if phrase.second:
        words += ["und", *noun_phrase(phrase.second, case)]
    return words


def _ending(table: str, phrase: NounPhrase, case: Case) -> str:
    column = _GENDERS.index("plural" if phrase.plural else phrase.noun.gender)
    return _ENDINGS[table][case].split()[column].replace("-", "")


def _article(phrase: NounPhrase, case: Case) -> str:
    if phrase.determiner == "two":
        return "zwei"
    if phrase.determiner == "the":
        # the articles are the relative pronouns, except for the dative plural
        return _ending("pronoun", phrase, case).replace("denen", "den")
    return _STEMS[phrase.determiner] + _ending(_DECLENSION[phrase.determiner], phrase, case)


def _noun(noun: Noun, plural: bool, case: Case) -> str:
    if not plural:
        return noun.german_plural if noun.weak and case != "nominative" else noun.german
    needs_n = case == "dative" and not noun.german_plural.endswith(("n", "s"))
    return noun.german_plural + "n" * needs_n
