"""The grammar of the controlled corpus: draws the meaning of one sentence for a phenomenon.

What English leaves to structure, German decides by it, and every sentence has one right translation:

- Most verb forms (past, had, can, must, will, could) show no number in English; German shows it in all.
- A relative clause belongs to the nearest noun before it that its pronoun fits (who: persons, that: all else).
- A second predicate belongs to the nearest clause that can take it, and no relative clause follows a pair of
  subjects that could share it.
"""

from __future__ import annotations

from random import Random

from synmt.data.controlled.lexicon import VERBS, Verb
from synmt.data.controlled.meaning import Clause, NounPhrase, Predicate, Sentence, SubordinateClause
from synmt.data.controlled.phrases import DeadEndError, Phrases, SentencePlan, Style

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
    """Draw a sentence; None where the words do not suffice for what has been drawn so far."""
    try:
        return Speaker(random, plan).sentence()
    except DeadEndError:
        return None


class Speaker(Phrases):
    """Draws the clauses of one sentence; the clause that carries the plan shows its phenomenon."""

    def sentence(self) -> Sentence:
        """Draw the sentence of the plan."""
        if self.plan.phenomenon == "subordinate" or self.chance(self.plan.rich / 2):
            return Sentence(self.complex_clause())
        opening = self.choose(("then", "sometimes")) if self.chance(0.12) else ""
        return Sentence(self.clause(carries=True), opening)

    def complex_clause(self) -> Clause:
        """Draw a main clause with a subordinate one; either carries the plan."""
        conjunction = self.choose(_CONJUNCTIONS[self.world])
        simple = conjunction in _SIMULTANEOUS
        carries = self.chance(0.5) and conjunction != "that"
        main = self.saying() if conjunction == "that" else self.clause(carries=carries, simple=simple)
        inner = self.clause(carries=not carries, simple=simple)
        fronted = conjunction != "that" and self.chance(0.5)
        return Clause(main.subject, main.tense, main.predicates, SubordinateClause(conjunction, inner, fronted))

    def saying(self) -> Clause:
        """Draw the clause that a "that" clause belongs to."""
        verb = self.verb([verb for verb in VERBS if verb.pattern == "clause"], "p")
        return Clause(self.subject("p", carries=False), self.tense(simple=True), (Predicate(verb),))

    def clause(self, *, carries: bool, simple: bool = False) -> Clause:
        """Draw a clause with a subject."""
        if carries and self.plan.phenomenon == "coordination":
            return self.paired_subjects(simple) if self.chance(0.6) else self.paired_predicates(simple)
        kinds = self.choose("pppa")
        subject = self.subject(kinds, carries=carries)
        return Clause(subject, self.tense(simple=simple), (self.predicate(kinds, carries=carries),))

    def paired_subjects(self, simple: bool) -> Clause:
        """Draw a clause whose subject is a plural pair; the chain follows its second half."""
        kinds = self.choose("pppa")
        first = self.noun_phrase(kinds)
        second = self.noun_phrase(kinds, chain=self.numbers(True), style="prepositions")
        subject = NounPhrase(first.noun, first.plural, first.determiner, first.adjective, second=second)
        return Clause(subject, self.tense(simple=simple), (self.predicate(kinds),))

    def paired_predicates(self, simple: bool) -> Clause:
        """Draw a clause whose subject has two verbs, far from each other."""
        kinds = self.choose("pppa")
        subject = self.subject(kinds, carries=True)
        tense = self.tense(simple=simple)
        # two participles may need two auxiliaries in German
        tense = "past" if tense == "pluperfect" else tense
        # a relative clause at the end of the first predicate would claim the second
        return Clause(subject, tense, (self.predicate(kinds, plain=True), self.predicate(kinds)))

    def subject(self, kinds: str, *, carries: bool) -> NounPhrase:
        """Draw a subject; one that carries the plan has its chain of nouns."""
        if not carries:
            return self.noun_phrase(kinds)
        plural = self.chance(0.5)
        style = _STYLES.get(self.plan.phenomenon, "any")
        return self.noun_phrase(kinds, plural=plural, chain=self.numbers(plural), style=style)

    def numbers(self, plural: bool) -> list[bool]:
        """Draw which nouns of the chain are plural: as many attractors as planned, anywhere."""
        places = list(range(self.plan.between))
        numbers = [plural] * len(places)
        for _ in range(self.plan.attractors):
            chosen = self.choose(places)
            places.remove(chosen)
            numbers[chosen] = not plural
        return numbers

    def predicate(self, kinds: str, *, carries: bool = False, plain: bool = False) -> Predicate:
        """Draw a verb and what it asks for."""
        verbs = [verb for verb in VERBS if verb.pattern != "clause"]
        verb = self.verb([verb for verb in verbs if not carries or self.shows(verb)], kinds)
        if verb.pattern == "alone":
            return Predicate(verb, place=self.place(verb) if self.chance(0.3) else None)
        recipient = self.noun_phrase("p") if verb.pattern == "both" else None
        return Predicate(verb, self.object_phrase(verb.objects, plain=plain), recipient)

    def shows(self, verb: Verb) -> bool:
        """Tell whether a verb shows the phenomenon of the plan."""
        if self.plan.phenomenon == "separable":
            return bool(verb.prefix)
        if self.plan.phenomenon == "case":
            return verb.pattern in ("dative", "both")
        return not verb.prefix if self.plan.phenomenon == "agreement" else True
