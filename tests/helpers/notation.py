"""Trees of a few words; arcs and tables as text, which is shorter to read than lists of numbers."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from synmt.syntax.parse import Arcs, Parse


def tree(
    parents: Sequence[int] | np.ndarray, relations: list[str], words: list[str] | None = None
) -> Parse:
    """Make a tree of words whose places are one letter each, one after the other."""
    count = len(parents)
    spans = np.arange(count)[:, None] + [0, 1]
    return Parse(words or ["w"] * count, spans, np.array(parents, dtype=np.int64), relations)


def matrix(text: str) -> np.ndarray:
    """Read a table of numbers, a row each line."""
    return np.loadtxt(text.strip().splitlines(), ndmin=2)


def pairs(text: str) -> list[list[int]]:
    """Read pairs of numbers such as `0-5 2-5`."""
    return [list(map(int, pair.split("-"))) for pair in text.split()]


def arcs_in(text: str, names: tuple[str, ...] = ()) -> Arcs:
    """Read arcs such as `0>1 det 0.75, 0>2 obj 0.25`: word, parent, relation, probability.

    names: the relations in their order, which is otherwise that of the text.
    """
    rows = [arc.replace(">", " ").split() for arc in text.split(",")]
    words, parents, relations, probabilities = zip(*rows, strict=True)
    names = names or tuple(dict.fromkeys(relations))
    numbers = [names.index(relation) for relation in relations]
    columns = (np.array(column, dtype=np.int64) for column in (words, parents, numbers))
    return Arcs(*columns, np.array(probabilities, dtype=np.float32), names)


def by_arc(arcs: Arcs) -> dict[tuple[int, int, str], float]:
    """Return the probability of each (word, parent, relation), the sum of equal ones."""
    found: Counter[tuple[int, int, str]] = Counter()
    names = [arcs.names[number] for number in arcs.relations.tolist()]
    columns = arcs.words.tolist(), arcs.parents.tolist(), names, arcs.probabilities.tolist()
    for *arc, probability in zip(*columns, strict=True):
        found[tuple(arc)] += probability
    return dict(found)
