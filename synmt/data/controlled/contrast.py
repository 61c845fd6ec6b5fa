"""Contrastive pairs of the controlled corpus: the right German, and the same with one word wrong.

agreement    a finite verb in the other number
             The boy near the cats sleeps.    Der Junge bei den Katzen schläft.     Der Junge bei den Katzen schlafen.
case         the article of an object in the dative for the accusative, or the reverse; the rest of the phrase stays
             The boy helped the girl.         Der Junge half dem Mädchen.           Der Junge half das Mädchen.
particle     the particle of a separable verb is missing, or is one that the lexicon does not have with this verb
             The girl calls the teacher.      Das Mädchen ruft den Lehrer an.       Das Mädchen ruft den Lehrer auf.

Of several verbs, the one with most attractors is wrong; of several articles or particles, the one farthest from its
verb. Articles, particles and their verbs are found by saying the sentence again with that word changed in its
meaning, and seeing where the German differs. All forms are those of the generator.

Left out are articles whose wrong form is the right one of the other number, as "den Jungen", the boy, for "die Jungen",
the boys; "zwei", which has one form; particles that are no words of their own ("anruft"); and verbs that have the very
form of another word of the sentence, since then the tree does not say which of the two agrees.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from synmt.data.controlled.agreement import FiniteVerb, finite_verbs
from synmt.data.controlled.corpus import ControlledExample
from synmt.data.controlled.german import noun_phrase, say
from synmt.data.controlled.lexicon import VERBS, Case, Verb
from synmt.data.controlled.meaning import Determiner, NounPhrase, Predicate, predicates, replace_part

_OTHER_DETERMINER: dict[Determiner, Determiner] = {"the": "this", "this": "the", "a": "my", "my": "a"}
"""Declined alike, so that nothing but the article changes."""
_OTHER_FORMS = {"plural": "tun", "singular": "tut", "preterite": "tat", "perfect": "getan"}
"""Of a verb that is not in the lexicon."""
_ALSO_RIGHT = {"schalten": ("an", "ab")}
"""Particles that German has with a verb for what another one says in the lexicon: "anschalten" is to turn on."""


@dataclass(frozen=True, eq=False)
class Pair:
    """An example with a wrong translation beside its right one.

    phenomenon: agreement, case or particle.
    word: the place of the wrong word, or of the missing one, among the words of the right translation.
    groups: what else the pair is counted under, by the name of each grouping: `attractors` of the verb that agrees;
        `right case`, and `case distance`, the words between article and verb; `particle`, missing or another, and
        `particle distance`, the words between particle and verb.
    """

    example: ControlledExample
    phenomenon: str
    incorrect: str
    word: int
    groups: Mapping[str, str | int]


def contrastive_pairs(examples: Iterable[ControlledExample]) -> Iterator[Pair]:
    """Make all pairs of each example: one of agreement and of case, two of particles, or fewer."""
    for example in examples:
        yield from _agreement_pair(example)
        yield from _case_pair(example)
        yield from _particle_pairs(example)


def words_of(text: str) -> list[str]:
    """Split a translation into words, without its commas and its full stop."""
    return re.findall(r"\w+", text)


def _agreement_pair(example: ControlledExample) -> Iterator[Pair]:
    """Make a pair of the example if one of its hardest verbs can be told from all others."""
    hardest = [verb for verb in finite_verbs(example.parse) if verb.attractors == example.attractors]
    found = next(filter(None, (_swapped(example.target, verb) for verb in hardest)), None)
    if found:
        word, other = found
        incorrect = _with_word(example.target, word, other)
        yield Pair(example, "agreement", incorrect, word, {"attractors": example.attractors})


def _swapped(target: str, verb: FiniteVerb) -> tuple[int, str] | None:
    """Give the verb's place and its other number; None where more than one word could be it."""
    others = dict(zip(verb.forms(plural=verb.plural), verb.forms(plural=not verb.plural), strict=True))
    places = [(place, others[word]) for place, word in enumerate(words_of(target)) if word in others]
    return places[0] if len(places) == 1 else None


def _case_pair(example: ControlledExample) -> Iterator[Pair]:
    """Make a pair of the object whose article is farthest from its verb."""
    found = list(_wrong_articles(example))
    if found:
        distance, word, right, wrong = max(found, key=lambda each: each[0])
        incorrect = _with_word(example.target, word, wrong)
        yield Pair(example, "case", incorrect, word, {"right case": right, "case distance": distance})


def _wrong_articles(example: ControlledExample) -> Iterator[tuple[int, int, Case, str]]:
    """List the articles that have a wrong form: distance to the verb, place, right case and wrong form."""
    words = words_of(example.target)
    for predicate in predicates(example.meaning):
        for phrase in filter(None, (predicate.recipient, predicate.object)):
            if phrase.determiner not in _OTHER_DETERMINER:
                continue
            word = _place(example, phrase, replace(phrase, determiner=_OTHER_DETERMINER[phrase.determiner]))
            right: Case = "accusative" if words[word] == noun_phrase(phrase, "accusative")[0] else "dative"
            wrong = noun_phrase(phrase, "dative" if right == "accusative" else "accusative")[0]
            if not _is_right_in_number(phrase, right, wrong):
                yield abs(word - _verb_place(example, predicate)) - 1, word, right, wrong


def _is_right_in_number(phrase: NounPhrase, case: Case, article: str) -> bool:
    """Tell whether an article makes a phrase one of the right case in the other number."""
    bare = replace(phrase, modifiers=())
    other = noun_phrase(replace(bare, plural=not bare.plural), case)
    # of "a" there is no plural
    return phrase.determiner != "a" and other == [article, *noun_phrase(bare, case)[1:]]


def _particle_pairs(example: ControlledExample) -> Iterator[Pair]:
    """Make two pairs of the particle farthest from its verb: it is missing, and it is another one."""
    right, found = words_of(example.target), []
    for predicate in predicates(example.meaning):
        without = _with_particle(example, predicate, "")
        if len(words_of(without)) < len(right):
            other = _with_particle(example, predicate, _wrong_particle(example, predicate.verb))
            word = _difference(example.target, other)
            found.append((word - _verb_place(example, predicate) - 1, word, without, other))
    if found:
        distance, word, *wrong = max(found, key=lambda each: each[0])
        for kind, incorrect in zip(("missing", "another"), wrong, strict=True):
            yield Pair(example, "particle", incorrect, word, {"particle": kind, "particle distance": distance})


def _with_particle(example: ControlledExample, predicate: Predicate, particle: str) -> str:
    changed = replace(predicate, verb=replace(predicate.verb, prefix=particle))
    return say(replace_part(example.meaning, predicate, changed))


def _wrong_particle(example: ControlledExample, verb: Verb) -> str:
    """Draw a particle that goes with other verbs only; a sentence always has the same one."""
    own = {other.prefix for other in VERBS if other.plural == verb.plural} | {*_ALSO_RIGHT.get(verb.plural, ())}
    others = sorted({other.prefix for other in VERBS if other.prefix} - own)
    return others[hashlib.sha256(example.source.encode()).digest()[0] % len(others)]


def _verb_place(example: ControlledExample, predicate: Predicate) -> int:
    changed = replace(predicate, verb=replace(predicate.verb, **_OTHER_FORMS))
    return _place(example, predicate, changed)


def _place(example: ControlledExample, part: NounPhrase | Predicate, other: NounPhrase | Predicate) -> int:
    """Find the word of the right translation that is another one where a part of the meaning is another one."""
    return _difference(example.target, say(replace_part(example.meaning, part, other)))


def _difference(one: str, other: str) -> int:
    pairs = zip(words_of(one), words_of(other), strict=True)
    [place] = [place for place, (left, right) in enumerate(pairs) if left != right]
    return place


def _with_word(text: str, place: int, word: str) -> str:
    start, end = list(re.finditer(r"\w+", text))[place].span()
    return text[:start] + word + text[end:]
