"""Expresses a Sentence in English, with its gold tree in the style of Universal Dependencies
English EWT."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from synmt.controlled.german import finite
from synmt.controlled.lexicon import ADVERBS, Verb
from synmt.controlled.meaning import (
    Clause,
    NounPhrase,
    Predicate,
    PrepositionPhrase,
    RelativeClause,
    Sentence,
    SubordinateClause,
    Tense,
)
from synmt.syntax.parse import Parse

_AUXILIARIES = {"pluperfect": "had", "can": "can", "must": "must", "will": "will", "could": "could"}


@dataclass(eq=False)
class Node:
    """A word of the tree with its children to the left and to the right.

    entry: of the lexicon.
    tense: that of the clause, if this is the verb form that agrees with the subject.
    """

    word: str
    tag: str
    relation: str
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)
    plural: bool = False
    entry: Any = None
    tense: Tense | None = None

    def child(self, relation: str) -> Node | None:
        """Find the first child with a relation."""
        return next((node for node in self.before + self.after if node.relation == relation), None)

    def in_order(self) -> list[Node]:
        """List the nodes of this subtree in the order of the sentence."""
        left = [node for child in self.before for node in child.in_order()]
        return [*left, self, *(node for child in self.after for node in child.in_order())]


def tree(sentence: Sentence, restyle: Callable[[Node], None] | None = None) -> Node:
    """Build the tree of a sentence, its first word capitalised; `restyle` may change its words
    before that."""
    root = _clause(sentence.clause, "root")
    if restyle:
        restyle(root)
    if sentence.opening in ADVERBS:
        root.before.insert(0, Node(sentence.opening, "ADV", "advmod"))
    root.after.append(Node(".", "PUNCT", "punct"))
    first = root.in_order()[0]
    first.word = first.word[0].upper() + first.word[1:]
    return root


def text_and_parse(root: Node) -> tuple[str, Parse]:
    """Turn a tree into raw text and a Parse of this text."""
    nodes = root.in_order()
    position = {node: index for index, node in enumerate(nodes)}
    parents = list(range(len(nodes)))
    for node in nodes:
        for child in node.before + node.after:
            parents[position[child]] = position[node]
    text, spans = "", []
    for node in nodes:
        text += " " if text and node.tag != "PUNCT" else ""
        spans.append((len(text), len(text) + len(node.word)))
        text += node.word
    parse = Parse(
        words=[node.word for node in nodes],
        spans=np.array(spans, dtype=np.int64),
        parents=np.array(parents, dtype=np.int64),
        relations=[node.relation for node in nodes],
        tags=[node.tag for node in nodes],
    )
    return text, parse


def _clause(clause: Clause, relation: str, antecedent: NounPhrase | None = None) -> Node:
    """Build a clause; with an antecedent it is relative, and its pronoun is the subject or the
    object."""
    plural = (
        clause.subject.agrees_as_plural
        if clause.subject
        else bool(antecedent and antecedent.plural)
    )
    first, *others = clause.predicates
    verb = _predicate(first, clause.tense, plural, relation)
    if antecedent:
        role = "obj" if clause.subject else "nsubj"
        verb.before.append(Node("who" if antecedent.noun.person else "that", "PRON", role))
    if clause.subject:
        verb.before.append(noun_phrase(clause.subject, "nsubj"))
    if clause.tense in _AUXILIARIES:
        verb.before.append(Node(_AUXILIARIES[clause.tense], "AUX", "aux", tense=clause.tense))
    for other in others:
        conjunct = _predicate(other, clause.tense, plural, "conj")
        conjunct.before.append(Node("and", "CCONJ", "cc"))
        verb.after.append(conjunct)
    if clause.subordinate:
        node = _subordinate(clause.subordinate)
        if clause.subordinate.fronted:
            node.after.append(Node(",", "PUNCT", "punct"))
            verb.before.insert(0, node)
        else:
            verb.after.append(node)
    return verb


def _subordinate(subordinate: SubordinateClause) -> Node:
    relation = "ccomp" if subordinate.conjunction == "that" else "advcl"
    node = _clause(subordinate.clause, relation)
    node.before.insert(0, Node(subordinate.conjunction, "SCONJ", "mark"))
    return node


def _predicate(predicate: Predicate, tense: Tense, plural: bool, relation: str) -> Node:
    verb = predicate.verb
    node = Node(_form(verb, tense, plural), "VERB", relation, entry=verb)
    if tense not in _AUXILIARIES:
        node.tense = tense
    if verb.particle:
        node.after.append(Node(verb.particle, "ADP", "compound:prt"))
    if predicate.recipient:
        node.after.append(noun_phrase(predicate.recipient, "iobj"))
    if predicate.object:
        node.after.append(noun_phrase(predicate.object, "obj"))
    if predicate.place:
        node.after.append(_preposition_phrase(predicate.place, "obl"))
    return node


def _form(verb: Verb, tense: Tense, plural: bool) -> str:
    if tense == "present":
        return verb.base if plural else verb.third
    return {"past": verb.past, "pluperfect": verb.participle}.get(tense, verb.base)


def noun_phrase(phrase: NounPhrase, relation: str) -> Node:
    """Build a noun phrase with its determiner, adjective, modifiers and conjunct."""
    word = phrase.noun.english_plural if phrase.plural else phrase.noun.english
    node = Node(word, "NOUN", relation, plural=phrase.plural, entry=phrase.noun)
    adjective = [Node(phrase.adjective.english, "ADJ", "amod")] if phrase.adjective else []
    node.before = [_determiner(phrase, (adjective or [node])[0].word), *adjective]
    for modifier in phrase.modifiers:
        node.after.append(
            _clause(modifier.clause, "acl:relcl", phrase)
            if isinstance(modifier, RelativeClause)
            else _preposition_phrase(modifier, "nmod")
        )
    if phrase.second:
        second = noun_phrase(phrase.second, "conj")
        second.before.insert(0, Node("and", "CCONJ", "cc"))
        node.after.append(second)
    return node


def _determiner(phrase: NounPhrase, following: str) -> Node:
    word = phrase.determiner
    if word == "two":
        return Node(word, "NUM", "nummod")
    if word == "my":
        return Node(word, "PRON", "nmod:poss")
    if word == "a" and following[0] in "aeiou":
        return Node("an", "DET", "det")
    return Node("these" if word == "this" and phrase.plural else word, "DET", "det")


def _preposition_phrase(phrase: PrepositionPhrase, relation: str) -> Node:
    """Build a preposition phrase; in EWT, `next` is an adverb, and the parent of the noun after
    `to`."""
    adverb, _, case = phrase.preposition.english.rpartition(" ")
    node = noun_phrase(phrase.phrase, "obl" if adverb else relation)
    node.before.insert(0, Node(case, "ADP", "case"))
    return Node(adverb, "ADV", "advmod", after=[node]) if adverb else node


# the verbs that agree with a subject, and the attractors between them
#
# An attractor is a noun between the head noun of a subject and the finite verb that differs from
# the subject in number. In a relative clause, the pronoun as the subject has its antecedent as the
# head noun; "the boy and the girl" has two heads, and is plural. The attractors of a sentence are
# those of its finite verb that has most of them.


@dataclass(frozen=True)
class FiniteVerb:
    """A verb that agrees with a subject.

    attractors: number of nouns between the two that differ from the subject in number.
    """

    verb: Verb
    tense: Tense
    plural: bool
    attractors: int

    def other_forms(self) -> dict[str, str]:
        """Map the German finite forms, in a main clause and at the end of a clause, to those in the
        other number."""
        right = finite(self.verb, self.tense, self.plural)
        wrong = finite(self.verb, self.tense, not self.plural)
        prefix = "" if self.tense in _AUXILIARIES else self.verb.prefix
        return {right: wrong, prefix + right: prefix + wrong}


def finite_verbs(root: Node) -> list[FiniteVerb]:
    """Find the verbs that agree with a subject, in the order of the sentence."""
    nodes = root.in_order()
    verbs = []
    for verb, heads in sorted(_subjects(root, []), key=lambda pair: nodes.index(pair[0])):
        agreeing = verb.child("aux") or verb
        # "can sing and laugh": the second verb is an infinitive
        if agreeing.tense:
            plural = heads[0].plural or len(heads) > 1
            between = nodes[nodes.index(heads[0]) + 1 : nodes.index(agreeing)]
            differing = sum(
                node.tag == "NOUN" and node.plural != plural and node not in heads
                for node in between
            )
            verbs.append(FiniteVerb(verb.entry, agreeing.tense, plural, differing))
    return verbs


def attractors(root: Node) -> int:
    """Count the attractors of the sentence."""
    return max((verb.attractors for verb in finite_verbs(root)), default=0)


def combinations(root: Node) -> frozenset[tuple[str, str]]:
    """Collect the pairs (subject noun, verb) of all clauses, in English."""
    return frozenset(
        (noun.entry.english, verb.entry.name)
        for verb, heads in _subjects(root, [])
        for noun in heads
    )


def _subjects(node: Node, heads: list[Node]) -> Iterator[tuple[Node, list[Node]]]:
    """Pair every verb with the nouns that head its subject.

    heads: those of a verb without a noun as its subject: of the verb before it, or the antecedent.
    """
    if node.tag == "VERB":
        subject = node.child("nsubj")
        if subject and subject.tag == "NOUN":
            heads = [noun for noun in (subject, subject.child("conj")) if noun]
        assert heads, node
        yield node, heads
    for child in node.before + node.after:
        yield from _subjects(child, [node] if child.relation == "acl:relcl" else heads)
