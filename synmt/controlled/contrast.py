"""Contrastive pairs of the controlled corpus: the correct German, and the same sentence with one
wrong word.

agreement    a finite verb in the other number
             The boy near the cats sleeps.    Der Junge bei den Katzen schläft.
             Der Junge bei den Katzen schlafen.
case         the article of an object in the dative instead of the accusative, or the reverse;
             nothing else changes
             The boy helped the girl.         Der Junge half dem Mädchen.
             Der Junge half das Mädchen.
particle     the particle of a separable verb is missing, or replaced by one that this verb does not
             have in the lexicon
             The girl calls the teacher.      Das Mädchen ruft den Lehrer an.
             Das Mädchen ruft den Lehrer auf.

If there are several verbs, the one with most attractors is wrong; of several articles or particles,
it is the one farthest from its verb. To find an article, a particle or a verb in the German
sentence, the meaning is changed in this word and expressed again: the difference is its position.
All forms come from the generator.

These are left out: articles whose wrong form is correct in the other number ("den Jungen", the boy,
and "die Jungen", the boys); "zwei", which has one form; particles that are part of the verb
("anruft"); and verbs with the same form as another word of the sentence, since the tree does not
tell which of the two agrees.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from synmt.controlled import english
from synmt.controlled.corpus import ControlledExample
from synmt.controlled.german import noun_phrase, object_case, say
from synmt.controlled.lexicon import VERBS, Case, Verb
from synmt.controlled.meaning import Determiner, NounPhrase, Predicate, predicates, replace_part

_OTHER_DETERMINER: dict[Determiner, Determiner] = {
    "the": "this",
    "this": "the",
    "a": "my",
    "my": "a",
}
"""Both have the same declension, so that only the article changes."""
_OTHER_FORMS = {"plural": "tun", "singular": "tut", "preterite": "tat", "perfect": "getan"}
"""The forms of a verb that is not in the lexicon."""
_ALSO_RIGHT = {"schalten": ("an", "ab")}
"""Particles that are also correct with a verb of the lexicon: "anschalten" means the same as
"einschalten"."""


@dataclass(frozen=True, eq=False)
class Pair:
    """An example with its correct and a wrong translation.

    phenomenon: agreement, case or particle.
    word: index of the wrong or missing word in the correct translation.
    groups: for each grouping, the group of the pair: `attractors` of the verb that agrees;
        `right case`, and `case distance`, the number of words between article and verb; `particle`
        (missing or another), and `particle distance`, the number of words between particle and
        verb.
    """

    example: ControlledExample
    phenomenon: str
    incorrect: str
    word: int
    groups: Mapping[str, str | int]


def contrastive_pairs(examples: Iterable[ControlledExample]) -> Iterator[Pair]:
    """Make all pairs of each example: at most one for agreement, one for case and two for
    particles."""
    for example in examples:
        yield from _agreement_pair(example)
        yield from _case_pair(example)
        yield from _particle_pairs(example)


def words_of(text: str) -> list[str]:
    """Split a translation into words, without commas and the full stop."""
    return re.findall(r"\w+", text)


def _agreement_pair(example: ControlledExample) -> Iterator[Pair]:
    """Make a pair if one of the hardest verbs has a form that no other word has."""
    words = words_of(example.target)
    for verb in english.finite_verbs(english.tree(example.meaning)):
        others = verb.other_forms()
        found = [index for index, word in enumerate(words) if word in others]
        if verb.attractors == example.attractors and len(found) == 1:
            [word] = found
            incorrect = _with_word(example.target, word, others[words[word]])
            yield Pair(example, "agreement", incorrect, word, {"attractors": verb.attractors})
            return


def _case_pair(example: ControlledExample) -> Iterator[Pair]:
    """Make a pair for the object whose article is farthest from its verb."""
    articles = list(_wrong_articles(example))
    if articles:
        distance, word, right, wrong = max(articles, key=lambda article: article[0])
        incorrect = _with_word(example.target, word, wrong)
        yield Pair(
            example, "case", incorrect, word, {"right case": right, "case distance": distance}
        )


def _wrong_articles(example: ControlledExample) -> Iterator[tuple[int, int, Case, str]]:
    """Yield the articles that have a wrong form: distance to the verb, index, correct case and
    wrong form."""
    for predicate in predicates(example.meaning):
        for phrase in filter(None, (predicate.recipient, predicate.object)):
            if phrase.determiner not in _OTHER_DETERMINER:
                continue
            other = replace(phrase, determiner=_OTHER_DETERMINER[phrase.determiner])
            word = _difference(example.target, say(replace_part(example.meaning, phrase, other)))
            right: Case = "dative" if phrase is predicate.recipient else object_case(predicate.verb)
            wrong = noun_phrase(phrase, "dative" if right == "accusative" else "accusative")[0]
            if not _is_right_in_number(phrase, right, wrong):
                yield abs(word - _verb_index(example, predicate)) - 1, word, right, wrong


def _is_right_in_number(phrase: NounPhrase, case: Case, article: str) -> bool:
    """Check whether the wrong article is correct for the phrase in the other number."""
    bare = replace(phrase, modifiers=())
    other = noun_phrase(replace(bare, plural=not bare.plural), case)
    # "a" has no plural
    return phrase.determiner != "a" and other == [article, *noun_phrase(bare, case)[1:]]


def _particle_pairs(example: ControlledExample) -> Iterator[Pair]:
    """Make two pairs for the particle farthest from its verb: without it, and with another one."""
    right, particles = words_of(example.target), []
    for predicate in predicates(example.meaning):
        without = _with_forms(example, predicate, prefix="")
        if len(words_of(without)) < len(right):
            another = _wrong_particle(example, predicate.verb)
            other = _with_forms(example, predicate, prefix=another)
            word = _difference(example.target, other)
            particles.append((word - _verb_index(example, predicate) - 1, word, without, other))
    if particles:
        distance, word, *wrong = max(particles, key=lambda particle: particle[0])
        for kind, incorrect in zip(("missing", "another"), wrong, strict=True):
            yield Pair(
                example,
                "particle",
                incorrect,
                word,
                {"particle": kind, "particle distance": distance},
            )


def _with_forms(example: ControlledExample, predicate: Predicate, **forms: str) -> str:
    """Express an example with other forms of a German verb."""
    changed = replace(predicate, verb=replace(predicate.verb, **forms))
    return say(replace_part(example.meaning, predicate, changed))


def _wrong_particle(example: ControlledExample, verb: Verb) -> str:
    """Choose a particle that only other verbs have; the choice depends on the source sentence
    alone."""
    right_particles = {other.prefix for other in VERBS if other.plural == verb.plural} | {
        *_ALSO_RIGHT.get(verb.plural, ())
    }
    others = sorted({other.prefix for other in VERBS if other.prefix} - right_particles)
    return others[hashlib.sha256(example.source.encode()).digest()[0] % len(others)]


def _verb_index(example: ControlledExample, predicate: Predicate) -> int:
    return _difference(example.target, _with_forms(example, predicate, **_OTHER_FORMS))


def _difference(correct: str, changed: str) -> int:
    """Find the word of the correct translation that is another one in the changed translation."""
    pairs = zip(words_of(correct), words_of(changed), strict=True)
    [index] = [index for index, (left, right) in enumerate(pairs) if left != right]
    return index


def _with_word(text: str, index: int, word: str) -> str:
    start, end = list(re.finditer(r"\w+", text))[index].span()
    return text[:start] + word + text[end:]
