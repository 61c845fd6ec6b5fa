"""Group sentences by their dependency trees: by depth, distances to parents, dependents of a word,
arcs that are not projective, the parser's certainty, and relations.

    depth      = max_i (arcs from the root down to i)
    distance_i = | place(i) - place(parent(i)) |
    arity      = max_j (number of i with parent(i) = j)
    crossing   = number of i with a word between i and parent(i) that is not below parent(i)
    entropy    = mean_i -Σ_j P(parent(i) = j) log2 P(parent(i) = j)

Punctuation does not count, but for entropy: place numbers the other words, because a comma between
two words does not make them harder to join. The distances are those of Liu (2008), whose mean over
a sentence also leaves out the root. A word whose parent is punctuation, which is always a parser
error, has no distance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis.groups.grouping import (
    Edges,
    Grouping,
    by_value,
    quarters,
)
from synmt.analysis.inputs import (
    file_language,
    find_parser,
    name_parser,
    parse_lines,
)
from synmt.analysis.options import GroupOptions, SystemOptions
from synmt.arrays import IntArray, Side, Texts, int_array
from synmt.syntax.arcs import without_arcs
from synmt.syntax.conllu import read_parses
from synmt.syntax.parse import Parse, Trees
from synmt.syntax.relations import base_name
from synmt.syntax.trees import ancestors, depths, not_punctuation

if TYPE_CHECKING:
    from synmt.parsing.parser import StanzaParser
    from synmt.run_folder import Run


def group_by_trees(
    options: GroupOptions, parses: Trees, *, side: Side, edges: Edges | None
) -> list[Grouping]:
    """Make the groupings by trees that the options choose."""
    groupings = [
        by_measure(measure, parses, side=side, edges=edges)
        for name, measures in _MEASURES.items()
        if getattr(options, name)
        for measure in measures
    ]
    return [*groupings, by_relation(parses, side=side)] if options.by_relation else groupings


def asks_for_trees(options: GroupOptions) -> bool:
    """Return whether the options choose a grouping by trees."""
    return options.by_relation or any(getattr(options, name) for name in _MEASURES)


@dataclass(frozen=True)
class TreeMeasure:
    """A number that a tree has: its name, its unit, what it is, and the decimals of quarters of the
    data."""

    name: str
    unit: str
    measure: Callable[[Parse], float]
    about: str
    decimals: int = 0


def by_measure(
    measure: TreeMeasure,
    parses: Trees,
    *,
    side: Side = "source",
    edges: Edges | None = None,
) -> Grouping:
    """Group sentences by a number of their trees, by default in quarters of the data."""
    values = np.array([measure.measure(parse) for parse in parses])  # (N,)
    edges = edges or quarters(values, decimals=measure.decimals)
    name = f"{side} {measure.name}"
    return by_value(name, measure.unit, values, edges, sizes=_lengths(parses), about=measure.about)


def by_relation(parses: Trees, *, side: Side = "source") -> Grouping:
    """Group sentences by the relations in their trees, the most frequent first; the groups overlap.

    A relation includes its subtypes. `root` is left out because every sentence has it.
    """
    sets = [{*parse.relations, *map(base_name, parse.relations)} - {"root"} for parse in parses]
    counts = Counter(chain.from_iterable(sets))
    names = sorted(counts, key=lambda name: (-counts[name], name))
    rows = [[name in relations for relations in sets] for name in names]
    members = np.array(rows, dtype=bool).reshape(len(names), len(parses))  # (G, N)
    by, about = f"{side} relation", "relation: sentences with it or one of its subtypes"
    return Grouping(by, "", names, members, _lengths(parses), about=about)


def depth(parse: Parse) -> int:
    """Count the arcs from the root to the deepest word; 0 for at most one word."""
    return int(depths(parse.parents)[not_punctuation(parse)].max(initial=0))


def longest_distance(parse: Parse) -> int:
    """Return the longest distance in a sentence; 0 if it has no arc."""
    return int(distances(parse).max(initial=0))


def mean_distance(parse: Parse) -> float:
    """Return the mean distance in a sentence; 0 if it has no arc."""
    lengths = distances(parse)
    return float(lengths.mean()) if len(lengths) else 0.0


def distances(parse: Parse) -> IntArray:
    """Measure the arcs between words other than punctuation: A arcs, (A,)."""
    lengths = word_distances(parse)
    return lengths[lengths > 0]


def word_distances(parse: Parse) -> IntArray:
    """Measure the distance of each word to its parent: (W,), 0 for the root, punctuation and words
    below it."""
    words = not_punctuation(parse)  # (W,)
    places = np.cumsum(words)  # (W,)
    arcs = words & words[parse.parents]  # (W,)
    return np.where(arcs, np.abs(places - places[parse.parents]), 0)


def arity(parse: Parse) -> int:
    """Count the dependents of the word that has most; 0 if there is no arc."""
    return int(np.bincount(parse.parents[_children(parse)], minlength=1).max())


def crossings(parse: Parse) -> int:
    """Count the arcs over a word that is not below their parent."""
    below, words = ancestors(parse.parents), not_punctuation(parse)  # (W, W), (W,)
    over = 0
    for child in _children(parse).tolist():
        parent = int(parse.parents[child])
        between = slice(min(child, parent) + 1, max(child, parent))
        over += not below[between, parent][words[between]].all()
    return over


def parent_entropy(parse: Parse) -> float:
    """Return the mean entropy of the parents of a word in bits; raises SynmtError without
    probabilities of arcs."""
    from synmt.analysis.attention.statistics import entropies

    if parse.arcs is None:
        raise without_arcs("a tree", reader="--by-entropy")
    table = np.zeros((len(parse), len(parse)))
    np.add.at(table, (parse.arcs.words, parse.arcs.parents), parse.arcs.probabilities)
    return float(entropies(table).mean()) if len(parse) else 0.0


def _children(parse: Parse) -> IntArray:
    """List the words that hang on another one, without punctuation: (A,)."""
    return np.flatnonzero(not_punctuation(parse) & (parse.parents != np.arange(len(parse))))


_DISTANCE = "distance: words from a word to its parent, without the root and without punctuation"
DEPTH = TreeMeasure(
    "tree depth",
    "arcs",
    depth,
    "depth: arcs from the root to the deepest word, without punctuation",
)
MEAN_DISTANCE = TreeMeasure(
    "mean distance to the parent", "words", mean_distance, _DISTANCE, decimals=1
)
LONGEST_DISTANCE = TreeMeasure(
    "longest distance to the parent", "words", longest_distance, _DISTANCE
)
ARITY = TreeMeasure(
    "arity", "dependents", arity, "arity: dependents of the word with most, without punctuation"
)
CROSSINGS = TreeMeasure(
    "non-projective arcs",
    "arcs",
    crossings,
    "non-projective: an arc over a word that is not below its parent, without punctuation",
)
ENTROPY = TreeMeasure(
    "entropy of the parents",
    "bits",
    parent_entropy,
    "entropy: of the parser's distribution over the parents of a word; mean of a sentence",
    decimals=2,
)
_MEASURES = {
    "by_depth": (DEPTH,),
    "by_distance": (MEAN_DISTANCE, LONGEST_DISTANCE),
    "by_arity": (ARITY,),
    "by_projectivity": (CROSSINGS,),
    "by_entropy": (ENTROPY,),
}
"""The measures of options."""


def _lengths(parses: Trees) -> IntArray:
    return int_array(map(len, parses))


def parse_side(
    options: SystemOptions,
    run: Run | None,
    texts: Sequence[Texts],
    *,
    side: Side,
    arcs: bool = False,
) -> tuple[list[list[Parse]], str]:
    """Find the trees of texts of one side, and say where they come from: those of the first text
    from the file that the user gave, all others from a parser.

    arcs: with probabilities of arcs.
    """
    parses, names = list[list[Parse]](), list[str]()
    if options.parses:
        parses.append(list(read_parses(options.parses, texts[0])))
        names.append(options.parses.name)
    if unparsed := texts[len(parses) :]:
        file = options.source if side == "source" else options.references
        parser = find_side_parser(options.parser, run, side, file)
        parser = parser.with_arcs() if arcs else parser
        parses += [parse_lines(parser, lines) for lines in unparsed]
        names.append(name_parser(parser))
    return parses, ", ".join(names)


def find_side_parser(
    model: str | None, run: Run | None, side: Side, file: Path | None
) -> StanzaParser:
    """Find the parser with the model that the user named, else that of the run, of its recipe, or
    of a file's language.

    file: of the side; its name tells the language if there is no run.
    """
    from synmt.decode.tree_provider import recorded_parser
    from synmt.parsing.parser import StanzaParser

    if run is None:
        language = file_language(file, side)
        return StanzaParser(language, model=model or "auto", download=True)
    identity, recipe = run.info().get("parser"), run.recipe()
    if model is None and side == "source" and identity:
        return recorded_parser(identity, "auto", arcs=False)
    return find_parser(recipe, side, model)
