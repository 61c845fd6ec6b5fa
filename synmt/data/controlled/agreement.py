"""Finds the verbs that agree with a subject in the gold tree of an English sentence, with their German forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from synmt.data.controlled.german import finite
from synmt.data.controlled.lexicon import NOUNS, VERBS, Verb
from synmt.data.controlled.meaning import Tense
from synmt.syntax.parse import Parse

_PLURALS = frozenset(noun.english_plural for noun in NOUNS)


@dataclass(frozen=True)
class FiniteVerb:
    """A verb that agrees with a subject.

    attractors: number of nouns between the two that differ from the subject in number.
    """

    verb: Verb
    tense: Tense
    plural: bool
    attractors: int

    def forms(self, *, plural: bool) -> list[str]:
        """List the finite forms in a number: in a main clause, and at the end of a subordinate clause if it differs."""
        form = finite(self.verb, self.tense, plural)
        is_separable = bool(self.verb.prefix) and self.tense in ("present", "past")
        return [form, self.verb.prefix + form] if is_separable else [form]


def finite_verbs(parse: Parse) -> list[FiniteVerb]:
    """Find the verbs that agree with a subject in a gold tree of the English side."""
    verbs = []
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
        verbs.append(FiniteVerb(_entry(parse, word), _tense(parse, word, auxiliary), plural, differing))
    return verbs


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
    name = parse.words[particle] if particle is not None else ""
    form = parse.words[word]
    [entry] = [
        verb for verb in VERBS if verb.particle == name and form in (verb.base, verb.third, verb.past, verb.participle)
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
    return next((child for child, (parent, name) in enumerate(rows) if parent == word and name == relation), None)
