"""Measures the difficulty of a controlled sentence on its gold tree.

An attractor is a noun between the head noun of a subject and the finite verb that differs from the subject in number.
In a relative clause, the pronoun as the subject has its antecedent as the head noun; "the boy and the girl" has two
heads, and is plural. The attractors of a sentence are those of its finite verb that has most of them.
"""

from __future__ import annotations

from synmt.data.controlled.english import Node


def attractors(root: Node) -> int:
    """Count the attractors of the sentence."""
    nodes = root.in_order()
    index = {id(node): place for place, node in enumerate(nodes)}
    counts = [0]
    for verb, heads in _subjects(root):
        agreeing = next((child for child in verb.before if child.tag == "AUX"), verb)
        if agreeing.finite:
            between = nodes[index[id(heads[0])] + 1 : index[id(agreeing)]]
            counts.append(_count_differing(between, heads))
    return max(counts)


def combinations(root: Node) -> frozenset[tuple[str, str]]:
    """Collect the pairs (subject noun, verb) of all clauses, in English."""
    return frozenset(
        (noun.entry.english, verb.entry.name)  # type: ignore[union-attr]
        for verb, heads in _subjects(root)
        for noun in heads
    )


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


def _count_differing(between: list[Node], heads: list[Node]) -> int:
    plural = heads[0].plural or len(heads) > 1
    return sum(node.tag == "NOUN" and node.plural != plural for node in between if node not in heads)
