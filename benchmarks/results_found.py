"""The results of a comparison that are there, and how its systems compare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from results_measure import unpacked
from results_plan import Plan, trees_of
from results_statistics import Aggregate, Compared, Design, Difference, Line, adjusted, average, unstable_systems

from synmt.arrays import BoolArray, DoubleArray
from synmt.evaluation.metrics import make_metric
from synmt.recipe.load import recipe_values
from synmt.recipe.schema import Recipe

SINGLE = ("parser", "induced", "none")
"""Kinds of single systems by their trees; systems with other trees are controls."""
TESTED = (*SINGLE, "mixture")
"""Kinds of systems that someone would use: whether they help is tested."""
_MANY = 8
"""Degrees of freedom of a variance that is not pooled with others."""
_BLEU: Aggregate = make_metric("bleu").aggregate
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
        given = self.plan.baseline(system) or self.repeats.get(system)
        return given or self.plan.baselines[self.architecture(system)]

    def architecture(self, system: str) -> str:
        """Name the architecture of a system: `transformer` or `lstm`."""
        return self.runs[system][0]["architecture"]

    def recipe(self, system: str) -> Recipe:
        """Make the recipe of a system."""
        return self.plan.recipe(system, {})

    def plain(self, lines: Sequence[Line]) -> list[Line]:
        """Choose the lines of baselines."""
        return [line for line in lines if self.baseline(line.system) == line.system]

    @cached_property
    def trees(self) -> dict[str, str]:
        """Which trees each system reads or learns from, as `trees_of` says it."""
        return {system: trees_of(self.recipe(system)) for system in self.runs}

    def kind(self, system: str) -> str:
        """Tell the kind of a system.

        `parser`, `induced` or `none`, by its trees; `control`: with other trees than the parser's; `mixture`: the one
        that was found; `repeat`: another system in another precision.
        """
        if system == self.found:
            return "mixture"
        if system in self.repeats:
            return "repeat"
        return self.trees[system] if self.trees[system] in SINGLE else "control"

    def of_kind(self, lines: Sequence[Line], *kinds: str) -> list[Line]:
        """Choose systems whose difference is tested, by their kind."""
        return [
            line
            for line in lines
            if line.difference and line.difference.p is not None and self.kind(line.system) in kinds
        ]

    @cached_property
    def repeats(self) -> dict[str, str]:
        """Of each system that only repeats another one in another precision, the other one."""
        first: dict[str, str] = {}
        # a baseline is never the repeat
        ordered = sorted(self.plan.systems, key=lambda system: system not in self.plan.baselines.values())
        same = {system: self._same(system, {"training.precision": "float32"}) for system in ordered}
        return {system: first[key] for system, key in same.items() if first.setdefault(key, system) != system}

    @cached_property
    def other_trees(self) -> dict[str, dict[str, str]]:
        """Of each kind of other trees, the systems with the parser's trees and the same model with the others.

        Kinds are named `random`, or `random (LSTM)` for LSTMs beside Transformers. Unstable systems are left out.
        """
        as_parsed = {"parser.control": "none", "parser.rewire": 0.0}
        own = {self._same(name, as_parsed): name for name in self.plan.systems if self.trees.get(name) == "parser"}
        found: dict[str, dict[str, str]] = {}
        for other, trees in self.trees.items():
            system = own.get(self._same(other, as_parsed))
            if system and trees in _OTHER_TREES and not self.design.unstable & {system, other}:
                lstm = self.architecture(other) == "lstm" and "transformer" in self.plan.baselines
                found.setdefault(f"{trees} (LSTM)" if lstm else trees, {})[system] = other
        return dict(sorted(found.items(), key=lambda one: ("LSTM" in one[0], _OTHER_TREES.index(one[0].split()[0]))))

    @property
    def random_trees(self) -> dict[str, str]:
        """Of each system the same model with random trees, if both have results."""
        return {
            own: other for of in self.other_trees.values() for own, other in of.items() if self.trees[other] == "random"
        }

    def _same(self, system: str, changes: Mapping[str, Any]) -> str:
        """Identify all values of a system's recipe, after some changes."""
        values = recipe_values(self.plan.recipe(system, changes))
        return json.dumps({**values, "name": ""}, sort_keys=True)

    @cached_property
    def _by_test(self) -> dict[str, Compared]:
        """What is known of each test set, for contrasts of BLEU."""
        tests = next(iter(self.runs.values()))[0]["tests"]
        return {test: self._compared(test, "bleu", None) for test in tests}

    @cached_property
    def bleu(self) -> dict[str, list[Line]]:
        """The systems compared by BLEU on each test set."""
        return {test: compared.lines() for test, compared in self._by_test.items()}

    def contrast(self, test: str, weights: Mapping[str, float]) -> Difference:
        """Add the weighted mean BLEU of systems; it is not tested."""
        return self._by_test[test].contrast(weights)

    def of_random_trees(self, test: str) -> dict[str, Difference]:
        """Compare each system with the same model under random trees, by BLEU; p is adjusted for their number."""
        return adjusted({own: self.contrast(test, {own: 1, other: -1}) for own, other in self.random_trees.items()})

    def of_other_trees(self, test: str) -> dict[str, Difference]:
        """Compare the parser's trees with each kind of other trees, by BLEU, on average over the systems."""
        return adjusted({trees: self.contrast(test, average(of)) for trees, of in self.other_trees.items()})

    def from_plain(self, test: str, systems: Sequence[str]) -> Difference:
        """Compare some systems with the plain model of their architecture, by BLEU, on average; it is not tested."""
        return self.contrast(
            test, average({system: self.plan.baselines[self.architecture(system)] for system in systems})
        )

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
        return self._compared(test, metric, chosen).lines()

    def _compared(self, test: str, metric: str, chosen: BoolArray | None) -> Compared:
        if metric == "bleu":
            return Compared(self._counts(test, "statistics", chosen), _BLEU, self.design)
        return Compared(self._counts(test, "exact", chosen), _share, self.design)

    @cached_property
    def design(self) -> Design:
        """What is compared with what, on all test sets and groups of sentences."""
        counts = self._counts(self.plan.test, "statistics", None)
        scores = {system: [_BLEU(one.sum(0)) for one in seeds] for system, seeds in counts.items()}
        unstable: set[str] = set()
        for architecture in self.plan.baselines:
            unstable |= unstable_systems(
                {name: own for name, own in scores.items() if self.architecture(name) == architecture}
            )
        return Design(
            {system: self.baseline(system) for system in self.runs},
            [system for system in self.runs if self.kind(system) in TESTED and system not in unstable],
            self._alike(unstable),
            unstable,
        )

    def _alike(self, unstable: Set[str]) -> dict[str, str]:
        """Group systems whose seeds vary alike: by architecture, and many with random trees apart from them."""
        freedom = dict.fromkeys(self.plan.baselines, 0)
        random = [system for system, trees in self.trees.items() if trees == "random" and system not in unstable]
        for system in random:
            freedom[self.architecture(system)] += len(self.runs[system]) - 1
        apart = [system for system in random if freedom[self.architecture(system)] >= _MANY]
        return {name: f"{self.architecture(name)}{', random trees' * (name in apart)}" for name in self.runs}

    def _counts(self, test: str, what: str, chosen: BoolArray | None) -> dict[str, list[DoubleArray]]:
        counts = {name: [unpacked(run["tests"][test][what]) for run in runs] for name, runs in self.runs.items()}
        if what == "exact":
            counts = {name: [np.hstack([one, np.ones_like(one)]) for one in seeds] for name, seeds in counts.items()}
        if chosen is not None:
            counts = {name: [one[chosen] for one in seeds] for name, seeds in counts.items()}
        return counts


def _share(totals: DoubleArray) -> float:
    return float(100 * totals[0] / totals[1])


def plans(folder: Path) -> list[Plan]:
    """Read all comparisons of a folder that have results."""
    return [plan for plan in map(Plan.load, sorted(folder.glob("*.yaml"))) if any(plan.folder.glob("*-seed*.json"))]
