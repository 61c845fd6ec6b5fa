"""How deep a tree is, and how far its words stand from their parents; punctuation does not count.

    depth      = max_i (arcs from the root down to i)
    distance_i = | place(i) - place(parent(i)) |

place numbers the words that are no punctuation, since a comma between two words makes them no harder to join. The
distances are those of Liu (2008), whose mean over a sentence leaves out the root as well. A word below punctuation,
which only errors of a parser make, has no distance.
"""

from __future__ import annotations

import numpy as np

from synmt.analysis.trees.attachment import not_punctuation
from synmt.arrays import IntArray
from synmt.syntax.parse import Parse
from synmt.syntax.trees import ancestors


def depth(parse: Parse) -> int:
    """Count the arcs from the root down to the deepest word; 0 for a single word, or none."""
    below_root = ancestors(parse.parents).sum(1) - 1  # (W,)
    return int(below_root[not_punctuation(parse)].max(initial=0))


def longest_distance(parse: Parse) -> int:
    """Give the longest distance of a sentence; 0 where it has no arc."""
    return int(distances(parse).max(initial=0))


def mean_distance(parse: Parse) -> float:
    """Give the mean distance of a sentence; 0 where it has no arc."""
    found = distances(parse)
    return float(found.mean()) if len(found) else 0.0


def distances(parse: Parse) -> IntArray:
    """Measure the arcs between words that are no punctuation: A arcs, (A,)."""
    words = not_punctuation(parse)  # (W,)
    places = np.cumsum(words)  # (W,)
    arcs = words & words[parse.parents] & (parse.parents != np.arange(len(parse)))  # (W,)
    return np.abs(places - places[parse.parents])[arcs]
