"""The depth of a tree, and the distances between its words and their parents, without punctuation.

    depth      = max_i (arcs from the root down to i)
    distance_i = | place(i) - place(parent(i)) |

place numbers the words without punctuation, because a comma between two words does not make them harder to join. The
distances are those of Liu (2008), whose mean over a sentence also leaves out the root. A word whose parent is
punctuation, which is always a parser error, has no distance.
"""

from __future__ import annotations

import numpy as np

from synmt.analysis.trees.attachment import not_punctuation
from synmt.arrays import IntArray
from synmt.syntax.parse import Parse
from synmt.syntax.trees import ancestors


def depth(parse: Parse) -> int:
    """Count the arcs from the root to the deepest word; 0 for at most one word."""
    below_root = ancestors(parse.parents).sum(1) - 1  # (W,)
    return int(below_root[not_punctuation(parse)].max(initial=0))


def longest_distance(parse: Parse) -> int:
    """Return the longest distance in a sentence; 0 if it has no arc."""
    return int(distances(parse).max(initial=0))


def mean_distance(parse: Parse) -> float:
    """Return the mean distance in a sentence; 0 if it has no arc."""
    lengths = distances(parse)
    return float(lengths.mean()) if len(lengths) else 0.0


def distances(parse: Parse) -> IntArray:
    """Measure the arcs between words other than punctuation: A arcs, (A,)."""
    words = not_punctuation(parse)  # (W,)
    places = np.cumsum(words)  # (W,)
    arcs = words & words[parse.parents] & (parse.parents != np.arange(len(parse)))  # (W,)
    return np.abs(places - places[parse.parents])[arcs]
