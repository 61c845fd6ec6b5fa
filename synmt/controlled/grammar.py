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

from random import Random

from synmt.controlled.lexicon import VERBS, Verb
from synmt.controlled.meaning import Clause, NounPhrase, Predicate, Sentence, SubordinateClause
from synmt.controlled.phrases import DeadEndError, Phrases, SentencePlan, Style

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


def draw(random: Random, plan: SentencePlan) -> Sentence | None:
    """Draw a sentence; None if no word is left that fits the ones drawn before."""
    try:
        return Clauses(random, plan).sentence()
    except DeadEndError:
        return None


class Clauses(Phrases):
    """Draws the clauses of one sentence.

    One clause has the phenomenon and the attractors of the plan: the one with `planned=True`.
    """

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
        main = (
            self.saying() if conjunction == "that" else self.clause(planned=planned, simple=simple)
        )
        inner = self.clause(planned=not planned, simple=simple)
        fronted = conjunction != "that" and self.chance(0.5)
        return Clause(
            main.subject,
            main.tense,
            main.predicates,
            SubordinateClause(conjunction, inner, fronted),
        )

    def saying(self) -> Clause:
        """Draw the main clause of a "that" clause."""
        verb = self.verb([verb for verb in VERBS if verb.pattern == "clause"], "p")
        return Clause(self.subject("p", planned=False), self.tense(simple=True), (Predicate(verb),))

    def clause(self, *, planned: bool, simple: bool = False) -> Clause:
        """Draw a clause with a subject."""
        if planned and self.plan.phenomenon == "coordination":
            return (
                self.paired_subjects(simple) if self.chance(0.6) else self.paired_predicates(simple)
            )
        kinds = self.choose("pppa")
        subject = self.subject(kinds, planned=planned)
        return Clause(subject, self.tense(simple=simple), (self.predicate(kinds, planned=planned),))

    def paired_subjects(self, simple: bool) -> Clause:
        """Draw a clause whose subject is a pair of nouns; the chain of nouns follows the second
        one."""
        kinds = self.choose("pppa")
        first = self.noun_phrase(kinds)
        second = self.noun_phrase(kinds, chain=self.numbers(True), style="prepositions")
        subject = NounPhrase(
            first.noun, first.plural, first.determiner, first.adjective, second=second
        )
        return Clause(subject, self.tense(simple=simple), (self.predicate(kinds),))

    def paired_predicates(self, simple: bool) -> Clause:
        """Draw a clause with two predicates of one subject."""
        kinds = self.choose("pppa")
        subject = self.subject(kinds, planned=True)
        tense = self.tense(simple=simple)
        # in German, two participles may need two auxiliaries
        tense = "past" if tense == "pluperfect" else tense
        # the second predicate would belong to a relative clause at the end of the first one
        return Clause(subject, tense, (self.predicate(kinds, plain=True), self.predicate(kinds)))

    def subject(self, kinds: str, *, planned: bool) -> NounPhrase:
        """Draw a subject; that of the planned clause has the chain of nouns."""
        if not planned:
            return self.noun_phrase(kinds)
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
        verbs = [verb for verb in VERBS if verb.pattern != "clause"]
        verb = self.verb([verb for verb in verbs if not planned or self.shows(verb)], kinds)
        if verb.pattern == "alone":
            return Predicate(verb, place=self.place(verb) if self.chance(0.3) else None)
        recipient = self.noun_phrase("p") if verb.pattern == "both" else None
        return Predicate(verb, self.object_phrase(verb.objects, plain=plain), recipient)

    def shows(self, verb: Verb) -> bool:
        """Tell whether a verb fits the phenomenon of the plan."""
        if self.plan.phenomenon == "separable":
            return bool(verb.prefix)
        if self.plan.phenomenon == "case":
            return verb.pattern in ("dative", "both")
        return not verb.prefix if self.plan.phenomenon == "agreement" else True
