"""How systems compare on groups of sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from results_plan import Group, Plan
from results_statistics import Line

from synmt.arrays import BoolArray
from synmt.errors import UsageError

_METRICS = {"bleu": "BLEU", "exact": "Exact match in percent"}


@dataclass(frozen=True)
class Grouping:
    """How systems compare on groups of sentences with the same value of a label.

    group: what the plan says of it.
    of_test: names the test set, unless it is that of the plan.
    groups: the compared systems by value.
    """

    group: Group
    of_test: str
    groups: dict[str, list[Line]]

    @property
    def title(self) -> str:
        """What a table of it shows."""
        less = "".join(f", without the {name} `{value}`" for name, value in self.group.without.items())
        return f"{_METRICS[self.group.metric]}{self.of_test} by {self.group.by}{less}"


def grouping(
    labels: Mapping[str, list[str]], group: Group, compare: Callable[[BoolArray], list[Line]], plan: Plan
) -> Grouping:
    """Compare systems on each group of sentences; raises UsageError for a label that the test set does not have.

    labels: the values of each label for the sentences of the test set.
    compare: compares the systems on chosen sentences, (N,).
    """
    for label in (group.by, *group.without):
        if label not in labels:
            what = f"the test set '{group.test}' has no label '{label}'"
            raise UsageError(what, where=str(plan.path), allowed=f"Labels: {', '.join(labels)}")
    left_out = np.zeros(len(labels[group.by]), dtype=bool)
    for label, value in group.without.items():
        left_out |= _has(labels[label], value)
    chosen = {value: _has(labels[group.by], value) & ~left_out for value in _sorted(labels[group.by])}
    groups = {value: compare(one) for value, one in chosen.items() if one.any()}
    of_test = "" if group.test == plan.test else f" of `{group.test}`"
    return Grouping(group, of_test, groups)


def _has(values: Iterable[str], value: str) -> BoolArray:
    """Choose the sentences whose label has a value: (N,)."""
    return np.array([one == value for one in values])


def _sorted(values: Iterable[str]) -> list[str]:
    """Sort the values of a label, each once: numbers by their size, before words."""
    return sorted(set(values), key=lambda value: (0, int(value), "") if value.isdecimal() else (1, 0, value))
