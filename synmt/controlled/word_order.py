"""Another order of words in the English of the controlled corpus, and endings of cases.

svo    The boy gave the girl a book.
sov    The boy the girl a book gave.
free   Gave the girlim the boy a bookum.      and any other order of the three and the verb
"""

from __future__ import annotations

from random import Random

from synmt.controlled.english import Node
from synmt.recipe.corpus import ControlledRecipe

_ENDINGS = {"obj": "um", "iobj": "im"}


def restyle(node: Node, settings: ControlledRecipe, random: Random) -> None:
    """Give the nouns of a tree endings, and its clauses the order of words."""
    for child in node.before + node.after:
        restyle(child, settings, random)
    if settings.cases and node.tag == "NOUN":
        node.word += _ENDINGS.get(node.relation, "")
    if settings.order == "svo" or node.tag != "VERB":
        return
    moved = [child for child in node.after if child.relation in _ENDINGS]
    node.after = [child for child in node.after if child not in moved]
    behind = list[Node]()
    if settings.order == "free":
        # a relative pronoun stays at the beginning of its clause
        subjects = [one for one in node.before if one.relation == "nsubj" and one.tag == "NOUN"]
        node.before = [child for child in node.before if child not in subjects]
        moved = sorted(subjects + moved, key=lambda _: random.random())
        cut = int(random.random() * (len(moved) + 1))
        moved, behind = moved[:cut], moved[cut:]
    auxiliaries = [child for child in node.before if child.relation == "aux"]
    place = len(node.before) - len(auxiliaries)
    node.before[place:place] = moved
    particles = sum(child.relation == "compound:prt" for child in node.after)
    node.after[particles:particles] = behind
