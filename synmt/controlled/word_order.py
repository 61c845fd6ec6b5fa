"""Another order of words in the English of the controlled corpus, and endings of cases.

svo    The boy gave the girl a book.
sov    The boy the girl a book gave.
free   The girlim the boy a bookum gave.      and any other order of the three
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
    # a relative pronoun stays at the beginning of its clause
    moved = [one for one in node.before if one.relation == "nsubj" and one.tag == "NOUN"]
    moved += [child for child in node.after if child.relation in _ENDINGS]
    auxiliaries = [child for child in node.before if child.relation == "aux"]
    others = [child for child in node.before if child not in [*moved, *auxiliaries]]
    node.after = [child for child in node.after if child not in moved]
    if settings.order == "free":
        moved.sort(key=lambda _: random.random())
    node.before = [*others, *moved, *auxiliaries]
