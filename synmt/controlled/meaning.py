"""The meaning of a controlled sentence, independent of the language.

The grammar draws a Sentence; `english` expresses it with its gold tree, `german` with agreement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Literal

from synmt.arrays import Facts
from synmt.controlled.lexicon import Adjective, Noun, Preposition, Verb

Tense = Literal["present", "past", "pluperfect", "can", "must", "will", "could"]
Determiner = Literal["the", "a", "this", "my", "two"]


@dataclass(frozen=True)
class NounPhrase:
    """A noun with its determiner, adjective and modifiers.

    second: the second noun phrase of "the boy and the girl", which is plural.
    """

    noun: Noun
    plural: bool = False
    determiner: Determiner = "the"
    adjective: Adjective | None = None
    modifiers: tuple[PrepositionPhrase | RelativeClause, ...] = ()
    second: NounPhrase | None = None

    @property
    def agrees_as_plural(self) -> bool:
        """Check whether a verb with this subject is plural."""
        return self.plural or self.second is not None


@dataclass(frozen=True)
class PrepositionPhrase:
    """A preposition and the noun phrase, whose case it determines."""

    preposition: Preposition
    phrase: NounPhrase


@dataclass(frozen=True)
class Predicate:
    """A verb with its objects; the recipient is the first object of "gave the boy a book"."""

    verb: Verb
    object: NounPhrase | None = None
    recipient: NounPhrase | None = None
    place: PrepositionPhrase | None = None


@dataclass(frozen=True)
class Clause:
    """A subject and one predicate, or two that share it.

    subject: None in a subject relative clause, whose subject is the antecedent.
    """

    subject: NounPhrase | None
    tense: Tense
    predicates: tuple[Predicate, ...]
    subordinate: SubordinateClause | None = None


@dataclass(frozen=True)
class RelativeClause:
    """A relative clause: without a subject if the pronoun is the subject, otherwise without an
    object."""

    clause: Clause


@dataclass(frozen=True)
class SubordinateClause:
    """A clause with its conjunction; if it is fronted, the German main clause begins with its
    verb."""

    conjunction: str
    clause: Clause
    fronted: bool = False


@dataclass(frozen=True)
class Sentence:
    """A main clause, perhaps opened by an adverb."""

    clause: Clause
    opening: str = ""


def predicates(sentence: Sentence) -> list[Predicate]:
    """List the predicates of all clauses, each before those that its own phrases contain."""
    return [part for part in _parts(sentence) if isinstance(part, Predicate)]


def replace_part(whole: Any, part: NounPhrase | Predicate, other: NounPhrase | Predicate) -> Any:
    """Put another phrase or predicate in the place of one; `part` is compared by identity, not by
    value."""
    if whole is part:
        return other
    if isinstance(whole, tuple):
        return tuple(replace_part(inner, part, other) for inner in whole)
    values = {name: replace_part(inner, part, other) for name, inner in _values(whole).items()}
    return replace(whole, **values) if values else whole


def _parts(whole: Any) -> Iterator[Any]:
    yield whole
    for inner in whole if isinstance(whole, tuple) else _values(whole).values():
        yield from _parts(inner)


def _values(whole: Any) -> Facts:
    return vars(whole) if is_dataclass(whole) else {}
