"""Which test sentences belong to which group.

A `Grouping` may be made from lengths, trees or labels; all of them are scored in the same way. Groups may overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

from synmt.arrays import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups of sentences.

    by: what the groups are made from, such as `source length`.
    unit: unit of the values in the group names, which are then in order; empty for labels and relations.
    names: names of the G groups, in display order.
    members: (G, N) which sentences belong to each group; a sentence may be in several groups, or in none.
    sizes: (N,) the amount of text in each sentence, in units of `counted`.
    about: explanation of the groups for the legend; empty if the names explain themselves.
    exact: whether to report exact matches with the reference, as on test sets for one phenomenon.
    """

    by: str
    unit: str
    names: list[str]
    members: BoolArray
    sizes: IntArray
    counted: str = "words"
    about: str = ""
    exact: bool = False

    @property
    def overlapping(self) -> bool:
        """Tell whether some sentence is in several groups."""
        return bool((self.members.sum(0) > 1).any())
