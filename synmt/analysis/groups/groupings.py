"""The ways to group sentences: by length, by the depth, distances and relations of trees, by a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from synmt.analysis.groups.buckets import PASCAL, Edges, Values, bucket_names, bucket_numbers, quarters
from synmt.analysis.groups.labels import number_values
from synmt.analysis.groups.scores import FEW, Grouping
from synmt.analysis.groups.tree_measures import depth, longest_distance, mean_distance
from synmt.arrays import BoolArray, IntArray, Side
from synmt.data.vocabulary import Vocabulary
from synmt.syntax.parse import Parse
from synmt.syntax.relations import base_name

UNITS = ("words", "pieces", "characters")
"""What a length counts: what spaces separate, units of a vocabulary, or characters, for text without spaces."""

CALLED = {"source": "source", "target": "reference"}
"""The two sides of a test set: its target is the reference."""


def count_units(lines: Sequence[str], unit: str, vocabulary: Vocabulary | None = None) -> IntArray:
    """Measure lines in one of UNITS; pieces need their vocabulary: N lines -> (N,)."""
    if unit == "pieces":
        assert vocabulary is not None
        counts = [len(ids) for ids in vocabulary.encode_batch(lines)]
    else:
        counts = [len(line.split()) if unit == "words" else len(line.strip()) for line in lines]
    return np.array(counts, dtype=np.int64)


def by_length(lengths: IntArray, *, side: Side = "source", unit: str = "words", edges: Edges | None = None) -> Grouping:
    """Group sentences by their length, (N,) in `unit`; by default in the buckets of PASCAL's figure 2."""
    edges = PASCAL if edges is None else edges
    chosen = _masks(bucket_numbers(lengths, edges), len(edges) + 1)  # (G, N)
    return Grouping(f"{CALLED[side]} length", unit, bucket_names(lengths, edges), chosen, lengths, counted=unit)


def by_depth(parses: Sequence[Parse], *, side: Side = "source", edges: Edges | None = None) -> Grouping:
    """Group sentences by the depth of their trees; by default in quarters of the data."""
    depths = np.array([depth(parse) for parse in parses], dtype=np.int64)  # (N,)
    about = "depth: arcs from the root down to the deepest word that is no punctuation"
    return _by_tree(f"{CALLED[side]} tree depth", "arcs", depths, parses, edges or quarters(depths), about)


def by_distance(
    parses: Sequence[Parse], *, side: Side = "source", edges: Edges | None = None
) -> tuple[Grouping, Grouping]:
    """Group sentences by the mean and by the longest distance to a parent; by default in quarters of the data."""
    means = np.array([mean_distance(parse) for parse in parses])  # (N,)
    longest = np.array([longest_distance(parse) for parse in parses], dtype=np.int64)  # (N,)
    about = "distance: words from a word to its parent, without the root and without punctuation"
    name = CALLED[side]
    return (
        _by_tree(
            f"{name} mean distance to the parent", "words", means, parses, edges or quarters(means, decimals=1), about
        ),
        _by_tree(f"{name} longest distance to the parent", "words", longest, parses, edges or quarters(longest), about),
    )


def _by_tree(by: str, unit: str, values: Values, parses: Sequence[Parse], edges: Edges, about: str) -> Grouping:
    chosen = _masks(bucket_numbers(values, edges), len(edges) + 1)  # (G, N)
    return Grouping(by, unit, bucket_names(values, edges), chosen, _words(parses), about=about)


def by_relation(parses: Sequence[Parse], *, side: Side = "source") -> Grouping:
    """Group sentences by the relations that they have, the most frequent first; a sentence has several groups.

    A relation has the sentences of its subtypes, too. `root` is left out: every sentence has one.
    """
    found: dict[str, BoolArray] = {}
    for number, parse in enumerate(parses):
        for relation in {*parse.relations, *map(base_name, parse.relations)}:
            found.setdefault(relation, np.zeros(len(parses), dtype=np.bool_))[number] = True  # (N,)
    found.pop("root", None)
    ordered = sorted(found, key=lambda name: (-int(found[name].sum()), name))
    chosen = np.array([found[name] for name in ordered]).reshape(len(ordered), len(parses))  # (G, N)
    about = "relation: the sentences that have it, or a subtype of it (nsubj has nsubj:pass); they overlap"
    return Grouping(f"{CALLED[side]} relation", "", ordered, chosen, _words(parses), about=about)


def without_empty_end(grouping: Grouping) -> Grouping:
    """Leave out buckets beyond the last sentence; the first one always stays."""
    last = max(np.flatnonzero(grouping.chosen.any(1)).tolist(), default=0)
    return replace(grouping, names=grouping.names[: last + 1], chosen=grouping.chosen[: last + 1])


def without_rare(grouping: Grouping, fewest: int = FEW) -> tuple[Grouping, list[str]]:
    """Leave out groups of fewer sentences, unless all groups are such, and name those left out."""
    frequent = grouping.chosen.sum(1) >= fewest  # (G,)
    if not frequent.any():
        return grouping, []
    names = [name for name, keep in zip(grouping.names, frequent, strict=True) if keep]
    rare = [name for name, keep in zip(grouping.names, frequent, strict=True) if not keep]
    return replace(grouping, names=names, chosen=grouping.chosen[frequent]), rare


def by_label(name: str, values: Sequence[str], sizes: IntArray) -> Grouping:
    """Group sentences by the value of a label; numbers are ordered as numbers."""
    names, members = number_values(values)
    return Grouping(name, "", names, _masks(members, len(names)), sizes, exact=True)


def _masks(members: IntArray, groups: int) -> BoolArray:
    """Tell which sentences each group has, from the group of each sentence: (N,) -> (G, N)."""
    return np.arange(groups)[:, None] == members


def _words(parses: Sequence[Parse]) -> IntArray:
    return np.array([len(parse) for parse in parses], dtype=np.int64)
