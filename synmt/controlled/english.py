"""Expresses a Sentence in English, with its gold tree in the style of Universal Dependencies
English EWT."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from synmt.controlled.lexicon import ADVERBS, Noun, Verb
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
    finite: whether it is the verb form that agrees with the subject.
    """

    word: str
    tag: str
    relation: str
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)
    plural: bool = False
    entry: Noun | Verb | None = None
    finite: bool = False

    def child(self, relation: str) -> Node | None:
        """Find the first child with a relation."""
        return next((node for node in self.before + self.after if node.relation == relation), None)

    def in_order(self) -> list[Node]:
        """List the nodes of this subtree in the order of the sentence."""
        left = [node for child in self.before for node in child.in_order()]
        return [*left, self, *(node for child in self.after for node in child.in_order())]


def tree(sentence: Sentence) -> Node:
    """Build the tree of a sentence, its first word capitalised."""
    root = _clause(sentence.clause, "root")
    if sentence.opening in ADVERBS:
        root.before.insert(0, Node(sentence.opening, "ADV", "advmod"))
    root.after.append(Node(".", "PUNCT", "punct"))
    first = root.in_order()[0]
    first.word = first.word[0].upper() + first.word[1:]
    return root


def text_and_parse(root: Node) -> tuple[str, Parse]:
    """Turn a tree into raw text and a Parse of this text."""
    nodes = root.in_order()
    position = {id(node): index for index, node in enumerate(nodes)}
    parents = list(range(len(nodes)))
    for node in nodes:
        for child in node.before + node.after:
            parents[position[id(child)]] = position[id(node)]
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
        verb.before.append(Node(_AUXILIARIES[clause.tense], "AUX", "aux", finite=True))
    for other in others:
        conjunct = _predicate(other, clause.tense, plural, "conj")
        conjunct.before.append(Node("and", "CCONJ", "cc"))
        verb.after.append(conjunct)
    _add_subordinate(verb, clause.subordinate)
    return verb


def _add_subordinate(verb: Node, subordinate: SubordinateClause | None) -> None:
    if subordinate is None:
        return
    relation = "ccomp" if subordinate.conjunction == "that" else "advcl"
    node = _clause(subordinate.clause, relation)
    node.before.insert(0, Node(subordinate.conjunction, "SCONJ", "mark"))
    if subordinate.fronted:
        node.after.append(Node(",", "PUNCT", "punct"))
        verb.before.insert(0, node)
    else:
        verb.after.append(node)


def _predicate(predicate: Predicate, tense: Tense, plural: bool, relation: str) -> Node:
    verb = predicate.verb
    node = Node(
        _form(verb, tense, plural), "VERB", relation, entry=verb, finite=tense not in _AUXILIARIES
    )
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
        is_relative = isinstance(modifier, RelativeClause)
        node.after.append(
            _clause(modifier.clause, "acl:relcl", phrase)
            if is_relative
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
