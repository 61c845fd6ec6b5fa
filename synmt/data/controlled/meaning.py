"""What a sentence of the controlled corpus says, before it is English or German.

The grammar draws a Sentence; `english` says it with its gold tree, `german` says it with its agreement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from synmt.data.controlled.lexicon import Adjective, Noun, Preposition, Verb

Tense = Literal["present", "past", "pluperfect", "can", "must", "will", "could"]
Determiner = Literal["the", "a", "this", "my", "two"]


@dataclass(frozen=True)
class NounPhrase:
    """A noun with what stands around it.

    second: the other half of "the boy and the girl"; the whole is then plural.
    """

    noun: Noun
    plural: bool = False
    determiner: Determiner = "the"
    adjective: Adjective | None = None
    modifiers: tuple[PrepositionPhrase | Relative, ...] = ()
    second: NounPhrase | None = None

    @property
    def agrees_as_plural(self) -> bool:
        """Tell the number that a verb takes with this subject."""
        return self.plural or self.second is not None


@dataclass(frozen=True)
class PrepositionPhrase:
    """A preposition and the noun phrase whose case it decides."""

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

    subject: None in a subject relative, where the antecedent is the subject.
    """

    subject: NounPhrase | None
    tense: Tense
    predicates: tuple[Predicate, ...]
    subordinate: Subordinate | None = None


@dataclass(frozen=True)
class Relative:
    """A relative clause; a subject relative has no subject of its own, an object relative no object."""

    clause: Clause


@dataclass(frozen=True)
class Subordinate:
    """A clause with its conjunction; fronted, it turns the German main clause around."""

    conjunction: str
    clause: Clause
    fronted: bool = False


@dataclass(frozen=True)
class Sentence:
    """A main clause, perhaps opened by an adverb."""

    clause: Clause
    opening: str = ""
