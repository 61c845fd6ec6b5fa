"""The results of a comparison that are there, and how its systems compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from results_files import read_labels, read_result
from results_groups import Grouping, grouping
from results_measure import unpacked
from results_plan import Plan, first_part
from results_recipes import fingerprint
from results_statistics import CONTROLS, Compared, Design, Difference, Line, adjusted, any_seeded, average
from results_systems import OTHER_TREES, TESTED, Systems
from results_timing import StepTimes
from results_variances import Aggregate, Resampled, unstable_systems

from synmt.arrays import BoolArray, DoubleArray
from synmt.evaluation.metrics import make_metric

_MANY = 8
"""Degrees of freedom of a variance that is not pooled with others."""
_BLEU: Aggregate = make_metric("bleu").aggregate


class Results:
    """The results of a comparison that are there.

    systems: all those of the plan, also without results.
    runs: of each system the results of its seeds: each baseline, then its systems from the best to the worst.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.systems = plan, Systems(plan)
        self._arrays: dict[tuple[str, int, str, str], DoubleArray] = {}
        found = map(read_result, sorted(plan.folder.glob("*-seed*.json")))
        by_system: dict[str, list[dict[str, Any]]] = {}
        for result in sorted(found, key=lambda one: one["seed"]):
            by_system.setdefault(result["system"], []).append(result)
        present = [(system, by_system[system]) for system in self.systems.names if system in by_system]
        self.runs = dict(sorted(present, key=self._rank))

    def _rank(self, result: tuple[str, list[dict[str, Any]]]) -> tuple[int, bool, float]:
        system, runs = result
        architecture = self.systems.architecture(system)
        scores = [run["tests"][self.plan.test]["scores"]["bleu"]["score"] for run in runs]
        group = list(self.plan.baselines).index(architecture)
        return group, system != self.plan.baselines[architecture], -sum(scores) / len(scores)

    @cached_property
    def labels(self) -> dict[str, dict[str, list[str]]]:
        """The labels of the sentences of each test set."""
        return read_labels(self.plan.folder / "labels.json", [group.test for group in self.plan.groups])

    @cached_property
    def times(self) -> StepTimes:
        """How long the steps of the systems take that were timed."""
        prints = {system: fingerprint(recipe) for system, recipe in self.systems.recipes.items()}
        pairs = {name: {"recipe": prints[name], "baseline": prints[self.systems.baseline(name)]} for name in self.runs}
        return StepTimes(self.plan.folder / "times.json", pairs)

    def plain(self, lines: Sequence[Line]) -> list[Line]:
        """Choose the lines of baselines."""
        return [line for line in lines if self.systems.baseline(line.system) == line.system]

    def is_from_plain(self, line: Line) -> bool:
        """Tell whether a system is compared with the plain model of its architecture, in whichever precision."""
        return self.systems.baseline(line.system) == self._plain_of(line.system)

    def _plain_of(self, system: str) -> str:
        """Name the plain model of the architecture of a system, in the precision of its baseline if that is plain."""
        base, plain = self.systems.baseline(system), self.plan.baselines[self.systems.architecture(system)]
        return base if self.systems.repeats.get(base) == plain else plain

    def tested(self, lines: Sequence[Line], *kinds: str) -> list[Line]:
        """Choose the systems of some kinds (all: `TESTED`) whose difference counts.

        Those whose seeds do not tell chance from more than chance are left out, unless all are like that.
        """
        tested, seeded = set(self.design.tested), any_seeded(lines)
        return [
            line
            for line in lines
            if line.difference and (line.difference.seeded or not seeded)
            if line.system in tested and self.systems.kind(line.system) in (kinds or TESTED)
        ]

    @cached_property
    def other_trees(self) -> dict[str, dict[str, str]]:
        """Of each kind of other trees, the systems with the parser's trees and the same model with the others.

        Kinds are named `random`, `rewired 50 %`, or `random (LSTM)` for LSTMs beside Transformers. Unstable systems are
        left out.
        """
        found: dict[str, dict[str, str]] = {}
        for other in self.runs:
            own = self.systems.with_other_trees.get(other)
            if own in self.runs and not self.design.unstable & {own, other}:
                lstm = self.systems.architecture(other) == "lstm" and "transformer" in self.plan.baselines
                share = self.systems.recipes[other].parser.rewire
                rewired = f" {100 * share:.0f} %" if share else ""
                trees = f"{self.systems.trees[other]}{rewired}{' (LSTM)' * lstm}"
                found.setdefault(trees, {})[own] = other
        return dict(sorted(found.items(), key=lambda one: ("LSTM" in one[0], OTHER_TREES.index(one[0].split()[0]))))

    @property
    def random_trees(self) -> dict[str, str]:
        """Of each system the same model with random trees, if both have results."""
        return {own: other for trees, of in self.other_trees.items() if "random" in trees for own, other in of.items()}

    @cached_property
    def _by_test(self) -> dict[str, Compared]:
        """What is known of each test set, for contrasts of BLEU."""
        return {test: Compared(runs, self.design) for test, runs in self._resampled.items()}

    @cached_property
    def _resampled(self) -> dict[str, Resampled]:
        tests = next(iter(self.runs.values()))[0]["tests"]
        return {test: self._on(test, "bleu", None) for test in tests}

    @cached_property
    def bleu(self) -> dict[str, list[Line]]:
        """The systems compared by BLEU on each test set."""
        return {test: compared.lines() for test, compared in self._by_test.items()}

    @property
    def of_plan(self) -> list[Line]:
        """The systems compared by BLEU on the test set of the plan."""
        return self.bleu[self.plan.test]

    @property
    def compared_systems(self) -> list[str]:
        """All systems that are compared with another one, but repeats and those that fail with some seeds."""
        return [one for one in self._stable(self.design.unstable) if self.systems.kind(one) != "repeat"]

    @cached_property
    def as_one(self) -> dict[str, list[Line]]:
        """The same on each test set, but with controls tested, too, and one variance for each architecture."""
        alike = {system: self.systems.architecture(system) for system in self.runs}
        design = replace(self.design, tested=self.compared_systems, alike=alike)
        return {test: Compared(runs, design).lines() for test, runs in self._resampled.items()}

    def contrast(self, test: str, weights: Mapping[str, float]) -> Difference:
        """Add the weighted mean BLEU of systems; it is not tested."""
        return self._by_test[test].contrast(weights)

    def gain_of_mixture(self, test: str, mixture: str) -> Difference | None:
        """Compare a mixture with the system that it begins with, by BLEU; it is not tested.

        None if that has no results or fails with some seeds, or if no seeds tell chance from more than chance.
        """
        first = first_part(mixture)
        if first not in self.runs or first in self.design.unstable:
            return None
        found = self.contrast(test, {mixture: 1, first: -1})
        return found if found.seeded else None

    def of_random_trees(self, test: str) -> dict[str, Difference]:
        """Compare each system with the same model under random trees, by BLEU; p is adjusted for their number."""
        return adjusted({own: self.contrast(test, {own: 1, other: -1}) for own, other in self.random_trees.items()})

    def of_other_trees(self, test: str) -> dict[str, Difference]:
        """Compare the parser's trees with each kind of other trees, by BLEU, on average over the systems."""
        return adjusted({trees: self.average(test, of) for trees, of in self.other_trees.items()})

    def without_chosen(self, trees: str) -> Iterator[dict[str, str]]:
        """Yield the pairs of other trees without those that were added because of their scores, if there are both."""
        pairs = self.other_trees[trees]
        kept = {own: other for own, other in pairs.items() if other not in self.plan.chosen_by_score}
        if kept and len(kept) < len(pairs):
            yield kept

    def average(self, test: str, pairs: Mapping[str, str]) -> Difference:
        """Compare the first ones of pairs with the second ones, by BLEU, on average; it is not tested."""
        return self.contrast(test, average(pairs))

    def from_plain(self, test: str, systems: Sequence[str]) -> Difference | None:
        """Compare some systems with the plain model of their architecture, by BLEU, on average; it is not tested.

        None without a result of each plain model.
        """
        plain = {system: self._plain_of(system) for system in systems}
        return self.average(test, plain) if set(plain.values()) <= set(self.runs) else None

    @cached_property
    def groupings(self) -> list[Grouping]:
        """The systems compared on groups of sentences, for each label by which the plan groups a test set."""
        return [
            grouping(
                self.labels[group.test],
                group,
                lambda chosen, of=group: self.compared(of.test, of.metric, chosen),
                self.plan,
            )
            for group in self.plan.groups
        ]

    def compared(self, test: str, metric: str, chosen: BoolArray | None = None) -> list[Line]:
        """Compare the systems by `bleu`, or by the share of the sentences that equal the reference (`exact`)."""
        return Compared(self._on(test, metric, chosen), self.design).lines()

    def _on(self, test: str, metric: str, chosen: BoolArray | None) -> Resampled:
        what, aggregate = ("statistics", _BLEU) if metric == "bleu" else ("exact", _share)
        return Resampled(self._counts(test, what, chosen), aggregate)

    @cached_property
    def design(self) -> Design:
        """What is compared with what, on all test sets and groups of sentences."""
        scores = self._resampled[self.plan.test].scores
        unstable: set[str] = set()
        for architecture in self.plan.baselines:
            own = {name: one for name, one in scores.items() if self.systems.architecture(name) == architecture}
            unstable |= unstable_systems(own)
        return Design(
            {system: self.systems.baseline(system) for system in self.runs},
            [system for system in self._stable(unstable) if self.systems.kind(system) in TESTED],
            self._alike(unstable),
            unstable,
        )

    def _stable(self, unstable: Set[str]) -> list[str]:
        """Choose all systems that are compared with another one."""
        names = (name for name in self.systems.names if name not in unstable)
        return [name for name in names if self.systems.baseline(name) != name]

    def _alike(self, unstable: Set[str]) -> dict[str, str]:
        """Group systems whose seeds vary alike: by architecture, and many controls apart from the others."""
        freedom = dict.fromkeys(self.plan.baselines, 0)
        controls = [one for one in self.runs if self.systems.kind(one) == "control" and one not in unstable]
        for system in controls:
            freedom[self.systems.architecture(system)] += len(self.runs[system]) - 1
        apart = [system for system in controls if freedom[self.systems.architecture(system)] >= _MANY]
        return {name: f"{self.systems.architecture(name)}{CONTROLS * (name in apart)}" for name in self.runs}

    def _counts(self, test: str, what: str, chosen: BoolArray | None) -> dict[str, list[DoubleArray]]:
        counts = {name: [self._unpacked(run, test, what) for run in runs] for name, runs in self.runs.items()}
        if what == "exact":
            counts = {name: [np.hstack([one, np.ones_like(one)]) for one in seeds] for name, seeds in counts.items()}
        if chosen is not None:
            counts = {name: [one[chosen] for one in seeds] for name, seeds in counts.items()}
        return counts

    def _unpacked(self, run: dict[str, Any], test: str, what: str) -> DoubleArray:
        key = (run["system"], run["seed"], test, what)
        if key not in self._arrays:
            self._arrays[key] = unpacked(run["tests"][test][what])
        return self._arrays[key]


def _share(totals: DoubleArray) -> float:
    return float(100 * totals[0] / totals[1])


def plans(folder: Path) -> list[Plan]:
    """Read all comparisons of a folder that have results."""
    return [plan for plan in map(Plan.load, sorted(folder.glob("*.yaml"))) if any(plan.folder.glob("*-seed*.json"))]
