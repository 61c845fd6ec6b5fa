"""Finds the verbs that agree with a subject in the gold tree of a controlled sentence, and the
attractors between them.

An attractor is a noun between the head noun of a subject and the finite verb that differs from the
subject in number. In a relative clause, the pronoun as the subject has its antecedent as the head
noun; "the boy and the girl" has two heads, and is plural. The attractors of a sentence are those of
its finite verb that has most of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from synmt.controlled.english import Node
from synmt.controlled.german import finite
from synmt.controlled.lexicon import Noun, Verb
from synmt.controlled.meaning import Tense


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
        """List the German finite forms in a number: in a main clause, and at the end of a clause if
        it differs."""
        form = finite(self.verb, self.tense, plural)
        is_separable = bool(self.verb.prefix) and self.tense in ("present", "past")
        return [form, self.verb.prefix + form] if is_separable else [form]


def finite_verbs(root: Node) -> list[FiniteVerb]:
    """Find the verbs that agree with a subject, in the order of the sentence."""
    nodes = root.in_order()
    index = {id(node): place for place, node in enumerate(nodes)}
    verbs = []
    for verb, heads in sorted(_subjects(root), key=lambda pair: index[id(pair[0])]):
        agreeing = next((child for child in verb.before if child.tag == "AUX"), verb)
        # "can sing and laugh": the second verb is an infinitive
        if agreeing.finite:
            plural = heads[0].plural or len(heads) > 1
            between = nodes[index[id(heads[0])] + 1 : index[id(agreeing)]]
            differing = sum(
                node.tag == "NOUN" and node.plural != plural
                for node in between
                if node not in heads
            )
            entry = cast(Verb, verb.entry)
            verbs.append(FiniteVerb(entry, _tense(entry, agreeing), plural, differing))
    return verbs


def attractors(root: Node) -> int:
    """Count the attractors of the sentence."""
    return max((verb.attractors for verb in finite_verbs(root)), default=0)


def combinations(root: Node) -> frozenset[tuple[str, str]]:
    """Collect the pairs (subject noun, verb) of all clauses, in English."""
    return frozenset(
        (cast(Noun, noun.entry).english, cast(Verb, verb.entry).name)
        for verb, heads in _subjects(root)
        for noun in heads
    )


def _tense(verb: Verb, agreeing: Node) -> Tense:
    if agreeing.tag == "AUX":
        return cast(Tense, "pluperfect" if agreeing.word == "had" else agreeing.word)
    return "present" if agreeing.word in (verb.base, verb.third) else "past"


def _subjects(root: Node) -> list[tuple[Node, list[Node]]]:
    """Pair every verb with the nouns that head its subject."""
    pairs: list[tuple[Node, list[Node]]] = []

    def visit(node: Node, antecedent: Node | None, shared: list[Node]) -> None:
        heads: list[Node] = []
        if node.tag == "VERB":
            heads = _heads(node.child("nsubj"), antecedent) or shared
            assert heads, node
            pairs.append((node, heads))
        for child in node.before + node.after:
            visit(child, node if child.relation == "acl:relcl" else None, heads)

    visit(root, None, [])
    return pairs


def _heads(subject: Node | None, antecedent: Node | None) -> list[Node]:
    if subject is None:
        return []
    if subject.tag == "PRON":
        assert antecedent
        return [antecedent]
    conjunct = subject.child("conj")
    return [subject, conjunct] if conjunct else [subject]
