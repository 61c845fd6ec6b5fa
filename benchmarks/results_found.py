"""The results of a comparison that are there, and how its systems compare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from results_measure import unpacked
from results_plan import Plan, first_part, trees_of
from results_statistics import Aggregate, Difference, Line, average_differences, compare

from synmt.arrays import BoolArray, DoubleArray
from synmt.evaluation.metrics import make_metric
from synmt.recipe.load import recipe_values

_KINDS = {"parser": "right", "gold": "right", "induced": "right", "none": "none"}
"""Kinds of trees; the others are wrong on purpose."""
_METRICS = {"bleu": "BLEU", "exact": "Exact match in percent"}
_OTHER_TREES = ("random", "shuffled", "rewired", "left", "right", "gold")


@dataclass(frozen=True)
class Grouping:
    """How systems compare on groups of sentences with the same value of a label.

    metric: `bleu` or `exact`.
    of_test: names the test set, unless it is that of the plan.
    without: sentences that are left out, by another label.
    groups: the compared systems by value.
    """

    metric: str
    of_test: str
    label: str
    without: Mapping[str, str]
    groups: dict[str, list[Line]]

    @property
    def title(self) -> str:
        """What a table of it shows."""
        less = "".join(f", without the {name} `{value}`" for name, value in self.without.items())
        return f"{_METRICS[self.metric]}{self.of_test} by {self.label}{less}"


class Results:
    """The results of a comparison that are there.

    runs: of each system the results of its seeds: each baseline, then its systems from the best to the worst.
    found: the mixture that the search of the plan has found, if it has.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.found = plan, plan.found()
        found = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(plan.folder.glob("*-seed*.json")))
        by_system: dict[str, list[dict[str, Any]]] = {}
        for result in sorted(found, key=lambda one: one["seed"]):
            by_system.setdefault(result["system"], []).append(result)
        compared = (*plan.systems, *filter(None, [self.found]))
        present = [(system, by_system[system]) for system in compared if system in by_system]
        self.runs = dict(sorted(present, key=self._rank))

    def _rank(self, result: tuple[str, list[dict[str, Any]]]) -> tuple[int, bool, float]:
        system, runs = result
        architecture = runs[0]["architecture"]
        scores = [run["tests"][self.plan.test]["scores"]["bleu"]["score"] for run in runs]
        group = list(self.plan.baselines).index(architecture)
        return group, system != self.plan.baselines[architecture], -sum(scores) / len(scores)

    @cached_property
    def labels(self) -> dict[str, dict[str, list[str]]]:
        """The labels of the sentences of each test set."""
        return json.loads((self.plan.folder / "labels.json").read_text(encoding="utf-8"))

    def baseline(self, system: str) -> str:
        """Name the system that a system is compared with."""
        return self.plan.baselines[self.runs[system][0]["architecture"]]

    def plain(self, lines: Sequence[Line]) -> list[Line]:
        """Choose the lines of baselines."""
        return [line for line in lines if self.baseline(line.system) == line.system]

    @cached_property
    def bleu(self) -> dict[str, list[Line]]:
        """The systems compared by BLEU on each test set."""
        tests = next(iter(self.runs.values()))[0]["tests"]
        return {test: self.compared(test, "bleu") for test in tests}

    @cached_property
    def trees(self) -> dict[str, str]:
        """Which trees each system reads or learns from, as `trees_of` says it."""
        return {system: trees_of(self.plan.recipe(system, {})) for system in self.runs}

    def kind(self, system: str) -> str:
        """Tell whether a system has `right` trees, `wrong` ones or `none`; a found `mixture` may have both."""
        if system == self.found:
            return "mixture"
        return _KINDS.get(self.trees[system], "wrong")

    def of_trees(self, lines: Sequence[Line], *kinds: str) -> list[Line]:
        """Choose systems by the kind of their trees; baselines are left out."""
        return [line for line in lines if line.difference and self.kind(line.system) in kinds]

    def mixture(self, test: str) -> Line | None:
        """Compare the mixture that was found with the system that it begins with, by BLEU; None without results."""
        first = first_part(self.found or "")
        if self.found not in self.runs or first not in self.runs:
            return None
        return self.against(test, {self.found: first})[0]

    @cached_property
    def other_trees(self) -> dict[str, dict[str, str]]:
        """Of each kind of other trees, the systems with the parser's trees and the same model with the others."""
        own = {self._model(system): system for system in self.plan.systems if self.trees.get(system) == "parser"}
        found: dict[str, dict[str, str]] = {}
        for other, trees in self.trees.items():
            system = own.get(self._model(other))
            if system and system != other:
                found.setdefault(trees, {})[system] = other
        return {trees: found[trees] for trees in _OTHER_TREES if trees in found}

    def _model(self, system: str) -> str:
        """Identify all values of a system's recipe but those that choose its trees."""
        values = recipe_values(self.plan.recipe(system, {"parser.control": "none", "parser.rewire": 0.0}))
        return json.dumps({**values, "name": ""}, sort_keys=True)

    def of_random_trees(self, test: str) -> list[Line]:
        """Compare each system with the same model under random trees, by BLEU, if both have results."""
        return self.against(test, self.other_trees.get("random", {}))

    def of_other_trees(self, test: str) -> dict[str, Difference]:
        """Compare the parser's trees with each kind of other trees, by BLEU, on average over the systems."""
        counts, architectures = self._counts(test, "statistics"), self._architectures
        return average_differences(counts, make_metric("bleu").aggregate, self.other_trees, architectures)

    def against(self, test: str, others: Mapping[str, str]) -> list[Line]:
        """Compare some systems by BLEU, each with another one than its baseline; p is adjusted for their number."""
        baselines = {system: others.get(system, system) for system in self.runs}
        lines = self._lines(test, "statistics", make_metric("bleu").aggregate, None, baselines)
        return [line for line in lines if line.difference]

    @cached_property
    def groupings(self) -> list[Grouping]:
        """The systems compared on groups of sentences, for each label by which the plan groups a test set."""
        return [self._grouping(**group) for group in self.plan.groups]

    def _grouping(self, test: str, by: str, metric: str, without: Mapping[str, str] | None = None) -> Grouping:
        left_out = np.zeros(len(self.labels[test][by]), dtype=bool)
        for pair in (without or {}).items():
            left_out |= self._group(test, *pair)
        chosen = {value: self._group(test, by, value) & ~left_out for value in sorted(set(self.labels[test][by]))}
        groups = {value: self.compared(test, metric, one) for value, one in chosen.items() if one.any()}
        return Grouping(metric, "" if test == self.plan.test else f" of `{test}`", by, without or {}, groups)

    def _group(self, test: str, label: str, value: str) -> BoolArray:
        """Choose the sentences whose label has a value: (N,)."""
        return np.array([one == value for one in self.labels[test][label]])

    def compared(self, test: str, metric: str, chosen: BoolArray | None = None) -> list[Line]:
        """Compare the systems by `bleu`, or by the share of the sentences that equal the reference (`exact`)."""
        if metric == "bleu":
            return self._lines(test, "statistics", make_metric("bleu").aggregate, chosen)
        return self._lines(test, "exact", _share, chosen)

    def _lines(
        self,
        test: str,
        what: str,
        aggregate: Aggregate,
        chosen: BoolArray | None,
        baselines: Mapping[str, str] | None = None,
    ) -> list[Line]:
        baselines = baselines or {one: self.baseline(one) for one in self.runs}
        return compare(self._counts(test, what, chosen), aggregate, baselines, self._architectures)

    def _counts(self, test: str, what: str, chosen: BoolArray | None = None) -> dict[str, list[DoubleArray]]:
        counts = {name: [unpacked(run["tests"][test][what]) for run in runs] for name, runs in self.runs.items()}
        if what == "exact":
            counts = {name: [np.hstack([one, np.ones_like(one)]) for one in seeds] for name, seeds in counts.items()}
        if chosen is not None:
            counts = {name: [one[chosen] for one in seeds] for name, seeds in counts.items()}
        return counts

    @property
    def _architectures(self) -> dict[str, str]:
        return {system: runs[0]["architecture"] for system, runs in self.runs.items()}


def _share(totals: DoubleArray) -> float:
    return float(100 * totals[0] / totals[1])


def plans(folder: Path) -> list[Plan]:
    """Read all comparisons of a folder that have results."""
    return [plan for plan in map(Plan.load, sorted(folder.glob("*.yaml"))) if any(plan.folder.glob("*-seed*.json"))]
