"""The grammar of the controlled corpus: draws the meaning of one sentence for a phenomenon.

German forms depend on the structure of the English sentence, and every sentence has exactly one
correct translation:

- Most English verb forms (past, had, can, must, will, could) do not show number; all German ones
  do.
- A relative clause belongs to the nearest noun before it that fits its pronoun (who: persons, that:
  all others).
- A second predicate belongs to the nearest clause that can have it, and no relative clause follows
  a pair of subjects that could share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal, TypeVar

from synmt.controlled.lexicon import (
    ADJECTIVES,
    NOUNS,
    PREPOSITION,
    PREPOSITIONS,
    VERBS,
    Noun,
    Preposition,
    Verb,
)
from synmt.controlled.meaning import (
    Clause,
    Determiner,
    NounPhrase,
    Predicate,
    PrepositionPhrase,
    RelativeClause,
    Sentence,
    SubordinateClause,
    Tense,
)

Item = TypeVar("Item")
Modifiers = tuple[PrepositionPhrase | RelativeClause, ...]
Style = Literal["any", "prepositions", "subject relative", "object relative"]

_TENSES: dict[str, tuple[Tense, ...]] = {
    "past": ("past", "past", "past", "pluperfect", "could"),
    "present": ("present", "present", "present", "can", "must", "will"),
}
_DETERMINERS: dict[bool, tuple[Determiner, ...]] = {
    False: ("the", "the", "the", "the", "a", "this"),
    True: ("the", "the", "the", "the", "two", "this"),
}
PHENOMENA = (
    "agreement",
    "subject_relative",
    "object_relative",
    "subordinate",
    "separable",
    "case",
    "coordination",
)
_CONJUNCTIONS = {
    "past": ("because", "although", "while", "before", "that", "that"),
    "present": ("because", "although", "while", "if", "that", "that"),
}
_SIMULTANEOUS = ("while", "before", "if")
_STYLES: dict[str, Style] = {
    "agreement": "prepositions",
    "subject_relative": "subject relative",
    "object_relative": "object relative",
}


class DeadEndError(Exception):
    """No word is left that fits: another sentence must be drawn."""


@dataclass(frozen=True)
class SentencePlan:
    """The properties that a sentence must have.

    between: number of nouns between the head of the planned subject and its verb.
    attractors: number of these nouns that differ from the subject in number.
    rich: probability of each adjective, object modifier and additional clause.
    """

    phenomenon: str
    between: int = 0
    attractors: int = 0
    rich: float = 0.2


def draw(random: Random, plan: SentencePlan, nouns: Sequence[Noun] = NOUNS) -> Sentence | None:
    """Draw a sentence; None if no word is left that fits the ones drawn before."""
    try:
        return _Drawing(random, plan, nouns).sentence()
    except DeadEndError:
        return None


class _Drawing:
    """Draws the clauses and phrases of one sentence.

    No noun, verb, adjective or preposition occurs twice in it. One clause has the phenomenon and
    the attractors of the plan: the one with `planned=True`.
    """

    def __init__(self, random: Random, plan: SentencePlan, nouns: Sequence[Noun]) -> None:
        self.random = random
        self.plan = plan
        self.nouns = nouns
        self.world: Tense = "past" if self.chance(0.5) else "present"
        self.used: set[Any] = set()

    def sentence(self) -> Sentence:
        """Draw the sentence of the plan."""
        if self.plan.phenomenon == "subordinate" or self.chance(self.plan.rich / 2):
            return Sentence(self.complex_clause())
        opening = self.choose(("then", "sometimes")) if self.chance(0.12) else ""
        return Sentence(self.clause(planned=True), opening)

    def complex_clause(self) -> Clause:
        """Draw a main and a subordinate clause; the plan is for one of them."""
        conjunction = self.choose(_CONJUNCTIONS[self.world])
        simple = conjunction in _SIMULTANEOUS
        planned = self.chance(0.5) and conjunction != "that"
        if conjunction == "that":
            verb = self.verb("p", lambda verb: verb.pattern == "clause")
            subject = self.noun_phrase("p")
            main = Clause(subject, self.tense(simple=True), (Predicate(verb),))
        else:
            main = self.clause(planned=planned, simple=simple)
        inner = self.clause(planned=not planned, simple=simple)
        fronted = conjunction != "that" and self.chance(0.5)
        return replace(main, subordinate=SubordinateClause(conjunction, inner, fronted))

    def clause(self, *, planned: bool, simple: bool = False) -> Clause:
        """Draw a clause with a subject; a planned coordination has two subjects or two
        predicates."""
        paired = planned and self.plan.phenomenon == "coordination"
        paired_subjects = paired and self.chance(0.6)
        kinds = self.choose("pppa")
        if paired_subjects:
            # the chain of nouns follows the second one
            first = self.noun_phrase(kinds)
            second = self.noun_phrase(kinds, chain=self.numbers(True), style="prepositions")
            subject = replace(first, second=second)
        else:
            subject = self.planned_subject(kinds) if planned else self.noun_phrase(kinds)
        tense = self.tense(simple=simple)
        if not paired or paired_subjects:
            return Clause(subject, tense, (self.predicate(kinds, planned=planned),))
        # in German, two participles may need two auxiliaries
        tense = "past" if tense == "pluperfect" else tense
        # the second predicate would belong to a relative clause at the end of the first one
        return Clause(subject, tense, (self.predicate(kinds, plain=True), self.predicate(kinds)))

    def planned_subject(self, kinds: str) -> NounPhrase:
        """Draw the subject of the planned clause, which has the chain of nouns."""
        plural = self.chance(0.5)
        style = _STYLES.get(self.plan.phenomenon, "any")
        return self.noun_phrase(kinds, plural=plural, chain=self.numbers(plural), style=style)

    def numbers(self, plural: bool) -> list[bool]:
        """Draw the numbers of the nouns in the chain: the planned number of attractors, at random
        positions."""
        places = list(range(self.plan.between))
        numbers = [plural] * len(places)
        for _ in range(self.plan.attractors):
            chosen = self.choose(places)
            places.remove(chosen)
            numbers[chosen] = not plural
        return numbers

    def predicate(self, kinds: str, *, planned: bool = False, plain: bool = False) -> Predicate:
        """Draw a verb with its objects, or with a place."""
        verb = self.verb(
            kinds, lambda verb: verb.pattern != "clause" and (not planned or self.shows(verb))
        )
        if verb.pattern == "alone":
            moves = verb.auxiliary == "sein" and not verb.prefix
            where = PREPOSITION["through" if moves else "in"]
            is_somewhere = self.chance(0.3)
            place = self.joined(where, self.chance(0.5), (), "any") if is_somewhere else None
            return Predicate(verb, place=place)
        recipient = self.noun_phrase("p") if verb.pattern == "both" else None
        modified = not plain and self.chance(self.plan.rich)
        chain = [self.chance(0.5)] if modified else ()
        return Predicate(verb, self.noun_phrase(verb.objects, chain=chain), recipient)

    def shows(self, verb: Verb) -> bool:
        """Check whether a verb fits the phenomenon of the plan."""
        if self.plan.phenomenon == "separable":
            return bool(verb.prefix)
        if self.plan.phenomenon == "case":
            return verb.pattern in ("dative", "both")
        return not verb.prefix if self.plan.phenomenon == "agreement" else True

    def chance(self, probability: float) -> bool:
        """Draw an event with a probability, by random() alone: its stream is the same in all
        versions of Python."""
        return self.random.random() < probability

    def choose(self, items: Sequence[Item]) -> Item:
        """Draw one of the items."""
        if not items:
            raise DeadEndError
        return items[int(self.random.random() * len(items))]

    def tense(self, *, simple: bool = False) -> Tense:
        """Draw a tense that fits the time of the sentence."""
        return self.choose((self.world,) if simple else _TENSES[self.world])

    def noun_phrase(
        self,
        kinds: str,
        *,
        plural: bool | None = None,
        chain: Sequence[bool] = (),
        style: Style = "any",
    ) -> NounPhrase:
        """Draw a noun phrase.

        chain: for each noun inside it, whether it is plural.
        style: how the first of them is joined.
        """
        noun = self.unused(self.nouns, lambda word: _meet(word.kinds, kinds))
        plural = self.chance(0.5) if plural is None else plural
        determiner = self.choose(_DETERMINERS[plural] + ("my",) * ("k" in noun.kinds))
        # adjectives show cases
        rate = 0.6 if self.plan.phenomenon == "case" else self.plan.rich
        adjective = None
        if self.chance(rate):
            adjective = self.unused(ADJECTIVES, lambda word: _meet(word.kinds, noun.kinds))
        return NounPhrase(noun, plural, determiner, adjective, self.modifiers(noun, chain, style))

    def unused(self, words: Iterable[Item], is_right: Callable[[Item], bool]) -> Item:
        """Draw an unused word that is right here."""
        word = self.choose([word for word in words if word not in self.used and is_right(word)])
        self.used.add(word)
        return word

    def verb(self, subject: str, is_right: Callable[[Verb], bool]) -> Verb:
        """Draw an unused verb that a subject of these kinds can have, and that is right here."""
        return self.unused(VERBS, lambda verb: _meet(verb.subjects, subject) and is_right(verb))

    def modifiers(self, noun: Noun, chain: Sequence[bool], style: Style) -> Modifiers:
        """Draw the modifiers of a noun that contain a chain of nouns."""
        if style == "prepositions":
            return (self.preposition_phrase(noun, chain, style),) if chain else ()
        if style == "subject relative":
            return (self.subject_relative(noun, chain),)
        if style == "object relative":
            return (self.object_relative(noun, chain),)
        if not chain:
            return ()
        if len(chain) > 1 and self.chance(0.3):
            return self.both(noun, chain)
        if self.chance(0.5):
            return (self.preposition_phrase(noun, chain, "any"),)
        return (self.relative(noun, chain),)

    def both(self, noun: Noun, chain: Sequence[bool]) -> Modifiers:
        """Draw "the boy behind the car who ...", where only the first noun fits the pronoun."""
        phrase = self.preposition_phrase(noun, chain[:1], "any")
        if phrase.phrase.noun.person == noun.person:
            raise DeadEndError
        return phrase, self.relative(noun, chain[1:])

    def preposition_phrase(
        self, noun: Noun, chain: Sequence[bool], style: Style
    ) -> PrepositionPhrase:
        """Draw a preposition phrase that can follow a noun."""
        preposition = self.unused(PREPOSITIONS, lambda word: _meet(word.before, noun.kinds))
        return self.joined(preposition, chain[0], chain[1:], style)

    def joined(
        self, preposition: Preposition, plural: bool, chain: Sequence[bool], style: Style
    ) -> PrepositionPhrase:
        """Draw a preposition phrase with this preposition."""
        return PrepositionPhrase(
            preposition,
            self.noun_phrase(preposition.after, plural=plural, chain=chain, style=style),
        )

    def relative(self, noun: Noun, chain: Sequence[bool]) -> RelativeClause:
        """Draw a relative clause; a thing is always its object."""
        if _meet("pa", noun.kinds) and self.chance(0.5):
            return self.subject_relative(noun, chain)
        return self.object_relative(noun, chain)

    def subject_relative(self, noun: Noun, chain: Sequence[bool]) -> RelativeClause:
        """Draw a relative clause whose subject is the noun, and whose object is the first noun of
        the chain."""
        patterns = ("accusative", "dative") if chain else ("alone",)
        verb = self.verb(noun.kinds, lambda verb: verb.pattern in patterns)
        phrase = self.noun_phrase(verb.objects, plural=chain[0], chain=chain[1:]) if chain else None
        return RelativeClause(Clause(None, self.tense(), (Predicate(verb, phrase),)))

    def object_relative(self, noun: Noun, chain: Sequence[bool]) -> RelativeClause:
        """Draw a relative clause whose object is the noun, and whose subject is the first noun of
        the chain."""
        if not chain:
            raise DeadEndError
        kinds = self.choose("pppa")
        verb = self.verb(
            kinds,
            lambda verb: (
                verb.pattern in ("accusative", "dative") and _meet(verb.objects, noun.kinds)
            ),
        )
        # a second relative clause between this subject and its verb would be hard to read
        subject = self.noun_phrase(kinds, plural=chain[0], chain=chain[1:], style="prepositions")
        return RelativeClause(Clause(subject, self.tense(), (Predicate(verb),)))


def _meet(kinds: str, others: str) -> bool:
    return not set(kinds).isdisjoint(others)
