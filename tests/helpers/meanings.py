"""Meanings of controlled sentences, written in brackets.

`past (the boy (with two dogs)) (sleep) (because can (the dog) (sing))`: before the brackets of a
phrase are its words, before those of a sentence its tense and perhaps an adverb; inside are
prepositions, `and` for the second noun, and relative clauses, which begin with their tense.
"""

import re
from dataclasses import replace

from synmt.controlled.lexicon import ADJECTIVES, ADVERBS, NOUNS, PREPOSITION, VERBS
from synmt.controlled.meaning import (
    Clause,
    NounPhrase,
    Predicate,
    PrepositionPhrase,
    RelativeClause,
    Sentence,
    SubordinateClause,
)

VERB = {verb.name: verb for verb in VERBS}
NOUN_OF_FORM = {
    form: (noun, form == noun.english_plural)
    for noun in NOUNS
    for form in (noun.english, noun.english_plural)
}
DETERMINERS = ("the", "a", "this", "my", "two")
TENSES = ("present", "past", "pluperfect", "can", "must", "will", "could")


def meaning_of(text):
    """Read the meaning of a sentence."""
    stack: list[list] = [[]]
    for token in re.findall(r"[()]|[^()\s]+", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            stack[-2].append(stack.pop())
        else:
            stack[-1].append(token)
    opening = stack[0].pop(0) if stack[0][0] in ADVERBS else ""
    return Sentence(clause(stack[0]), opening)


def parted(items):
    """Return the words of a phrase, and the brackets after them."""
    count = sum(isinstance(item, str) for item in items)
    return items[:count], items[count:]


def clause(items):
    tense, *parts = items
    subject, predicates, subordinate = None, [], None
    for part in parts:
        if part[0] in DETERMINERS:
            subject = noun_phrase(part)
        elif " ".join(parted(part)[0]) in VERB:
            predicates.append(predicate(part))
        else:
            is_fronted = part[0] == "fronted"
            conjunction, *inner = part[is_fronted:]
            subordinate = SubordinateClause(conjunction, clause(inner), is_fronted)
    return Clause(subject, tense, tuple(predicates), subordinate)


def predicate(items):
    words, inner = parted(items)
    verb = Predicate(VERB[" ".join(words)])
    for part in inner:
        if part[0] == "to":
            verb = replace(verb, recipient=noun_phrase(part[1:]))
        elif part[0] in DETERMINERS:
            verb = replace(verb, object=noun_phrase(part))
        else:
            verb = replace(verb, place=preposition_phrase(part))
    return verb


def noun_phrase(items):
    (determiner, *names, form), inner = parted(items)
    noun, plural = NOUN_OF_FORM[form]
    adjective = next((each for each in ADJECTIVES if [each.english] == names), None)
    modifiers, second = [], None
    for part in inner:
        if part[0] == "and":
            second = noun_phrase(part[1:])
        elif part[0] in TENSES:
            modifiers.append(RelativeClause(clause(part)))
        else:
            modifiers.append(preposition_phrase(part))
    return NounPhrase(noun, plural, determiner, adjective, tuple(modifiers), second)


def preposition_phrase(items):
    words = 2 if items[0] == "next" else 1
    return PrepositionPhrase(PREPOSITION[" ".join(items[:words])], noun_phrase(items[words:]))
