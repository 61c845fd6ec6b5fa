"""Contrastive pairs of the controlled corpus: the right German, and the same with one finite verb of the other number.

    The boy near the cats sleeps .    Der Junge bei den Katzen schläft.    Der Junge bei den Katzen schlafen.

The verb is one with as many attractors as any in the sentence, so that a pair is as hard as its sentence. It is found
by the gold tree of the English side, and its forms are those of the lexicon. Left out are the few sentences where
another verb has the very same form, since then the tree does not say which of the two words it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from synmt.controlled import Example
from synmt.controlled.german import finite
from synmt.controlled.lexicon import NOUNS, VERBS, Verb
from synmt.controlled.meaning import Tense
from synmt.syntax.parse import Parse

_PLURALS = frozenset(noun.english_plural for noun in NOUNS)


@dataclass(frozen=True, eq=False)
class AgreementPair:
    """A sentence with its right and its wrong translation.

    parse: the gold tree of the source.
    word: the place of the finite verb among the words of either translation.
    phenomenon, attractors, split: those of the example; its attractors are those of this verb.
    """

    source: str
    correct: str
    incorrect: str
    parse: Parse
    word: int
    phenomenon: str
    attractors: int
    split: str


@dataclass(frozen=True)
class FiniteVerb:
    """A verb that agrees with a subject.

    attractors: nouns of the other number between the two.
    """

    verb: Verb
    tense: Tense
    plural: bool
    attractors: int

    def forms(self, *, plural: bool) -> list[str]:
        """Give the finite form in a number, in a main clause and at the end of any other."""
        form = finite(self.verb, self.tense, plural)
        joined = bool(self.verb.prefix) and self.tense in ("present", "past")
        return [form, self.verb.prefix + form] if joined else [form]


def agreement_pairs(examples: Iterable[Example]) -> Iterator[AgreementPair]:
    """Make a pair of each example in which the verb can be told from all others."""
    for example in examples:
        verbs = finite_verbs(example.parse)
        hardest = [verb for verb in verbs if verb.attractors == example.attractors]
        found = next(filter(None, (_swapped(example.target, verb) for verb in hardest)), None)
        if found:
            word, incorrect = found
            labels = (example.phenomenon, example.attractors, example.split)
            yield AgreementPair(example.source, example.target, incorrect, example.parse, word, *labels)


def finite_verbs(parse: Parse) -> list[FiniteVerb]:
    """Find the verbs that agree with a subject in a gold tree of the English side."""
    found = []
    for word, tag in enumerate(parse.tags or ()):
        if tag != "VERB":
            continue
        auxiliary = _child(parse, word, "aux")
        shared = _parent(parse, word) if parse.relations[word] == "conj" else word
        # "can sing and laugh": the second verb is an infinitive
        if shared != word and _child(parse, shared, "aux") is not None:
            continue
        heads = _heads(parse, shared)
        plural = len(heads) > 1 or _is_plural(parse, heads[0])
        agreeing = word if auxiliary is None else auxiliary
        between = [other for other in range(heads[0] + 1, agreeing) if parse.tags and parse.tags[other] == "NOUN"]
        differing = sum(_is_plural(parse, other) != plural for other in between if other not in heads)
        found.append(FiniteVerb(_entry(parse, word), _tense(parse, word, auxiliary), plural, differing))
    return found


def _swapped(target: str, verb: FiniteVerb) -> tuple[int, str] | None:
    """Put the verb into the other number; None where more than one word could be it."""
    others = dict(zip(verb.forms(plural=verb.plural), verb.forms(plural=not verb.plural), strict=True))
    words = list(re.finditer(r"\w+", target))
    places = [place for place, match in enumerate(words) if match[0] in others]
    if len(places) != 1:
        return None
    start, end = words[places[0]].span()
    return places[0], target[:start] + others[target[start:end]] + target[end:]


def _heads(parse: Parse, verb: int) -> list[int]:
    """Find the nouns that a verb agrees with."""
    subject = _child(parse, verb, "nsubj")
    assert subject is not None, parse.words
    if parse.tags and parse.tags[subject] == "PRON":
        return [_parent(parse, verb)]
    second = _child(parse, subject, "conj")
    return [subject] if second is None else [subject, second]


def _entry(parse: Parse, word: int) -> Verb:
    particle = _child(parse, word, "compound:prt")
    wanted = parse.words[particle] if particle is not None else ""
    form = parse.words[word]
    [entry] = [
        verb
        for verb in VERBS
        if verb.particle == wanted and form in (verb.base, verb.third, verb.past, verb.participle)
    ]
    return entry


def _tense(parse: Parse, word: int, auxiliary: int | None) -> Tense:
    if auxiliary is not None:
        spelled = parse.words[auxiliary]
        return cast(Tense, "pluperfect" if spelled == "had" else spelled)
    entry = _entry(parse, word)
    return "present" if parse.words[word] in (entry.base, entry.third) else "past"


def _is_plural(parse: Parse, noun: int) -> bool:
    return parse.words[noun] in _PLURALS


def _parent(parse: Parse, word: int) -> int:
    return int(parse.parents[word])


def _child(parse: Parse, word: int, relation: str) -> int | None:
    """Find the first child with a relation."""
    rows = zip(parse.parents.tolist(), parse.relations, strict=True)
    return next((child for child, (parent, one) in enumerate(rows) if parent == word and one == relation), None)
