"""The results of a comparison that are there, and how its systems compare."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np
from results_plan import Plan, fingerprint
from results_statistics import Comparison, Difference, bartlett, unstable_systems
from results_stored import AGAIN, read_result, unpacked

from synmt.arrays import DoubleArray
from synmt.evaluation.metrics import make_metric
from synmt.files.json_files import read_json_if_there

_MANY = 8
"""Degrees of freedom of a variance that is not pooled with others."""
_BLEU = make_metric("bleu").aggregate


class Results:
    """The results of a comparison that are there.

    runs: of each system the results of its seeds: each baseline, then its systems from the best to
        the worst.
    unstable: the systems whose seeds vary far more than those of others, on any test set.
    tested: the systems whose difference is tested, with results or still without.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        found = {system: read_results(plan, system) for system in plan.compared}
        first = next(filter(None, found.values()), [{"tests": ()}])
        of_tests = {
            test: {
                system: [run["tests"][test]["scores"]["bleu"]["score"] for run in runs]
                for system, runs in found.items()
                if runs
            }
            for test in first[0]["tests"]
        }
        scores = of_tests.get(plan.test, {})
        self.runs, self.unstable = dict[str, list[dict[str, Any]]](), set[str]()
        for architecture, baseline in plan.baselines.items():
            of_architecture = {
                name: scores[name] for name in scores if plan.architecture(name) == architecture
            }
            ranked = sorted(
                of_architecture,
                key=lambda name: (name != baseline, -np.mean(of_architecture[name])),
            )
            self.runs |= {system: found[system] for system in ranked}
            for by_system in of_tests.values():
                self.unstable |= unstable_systems({name: by_system[name] for name in ranked})
        self.tested = [system for system in plan.tested if system not in self.unstable]

    @cached_property
    def tests(self) -> dict[str, Comparison]:
        """The systems compared by BLEU on each test set, first on that of the plan."""
        tests = next(iter(self.runs.values()))[0]["tests"]
        ordered = sorted(tests, key=lambda test: test != self.plan.test)
        return {test: Comparison(self._counts(test), _BLEU, self._alike()) for test in ordered}

    @cached_property
    def splits(self) -> dict[str, Comparison]:
        """The systems compared by BLEU on each split of the test set of the plan, if it has any."""
        path = self.plan.folder / "labels.json"
        labels = read_json_if_there(path, dict[str, dict[str, list[str]]], do=AGAIN) or {}
        splits = np.array(labels.get(self.plan.test, {}).get("split", ()))  # (N,)
        found, counts = dict[str, Comparison](), self._counts(self.plan.test)
        for split in np.unique(splits).tolist():
            chosen = splits == split
            part = {system: [run[chosen] for run in runs] for system, runs in counts.items()}
            found[split] = Comparison(part, _BLEU, self._alike())
        return found

    @cached_property
    def gains(self) -> dict[str, Difference]:
        """The difference of each system from its baseline on the test set of the plan."""
        return self.differences(self.tests[self.plan.test])

    def differences(self, comparison: Comparison) -> dict[str, Difference]:
        """Compare each system with its baseline."""
        sums = {
            system: {system: 1.0, base: -1.0}
            for system in self.runs
            if (base := self.plan.baseline(system)) != system and base in self.runs
        }
        tested = {system: sums[system] for system in self.tested if system in sums}
        found = {system: comparison.difference(weights) for system, weights in sums.items()}
        return found | comparison.differences(tested, tests=len(self.tested))

    def varying(self) -> dict[str, float]:
        """Test for each group of systems whether their seeds vary alike: p by Bartlett."""
        alike, scores = self._alike(), self.tests[self.plan.test].scores
        groups = dict[str, list[list[float]]]()
        for system, group in alike.items():
            groups.setdefault(group, []).append(scores[system])
        tests = {group: bartlett(members) for group, members in groups.items()}
        return {group: p for group, p in tests.items() if p is not None}

    def other_trees(self) -> dict[str, dict[str, str]]:
        """Pair stable systems with the same models with other trees, for each kind of these."""
        found: dict[str, dict[str, str]] = {}
        stable = [system for system in self.runs if system not in self.unstable]
        for other in stable:
            with_parser = self.plan.systems[other].control_of
            if with_parser in stable:
                lstm = " (LSTM)" if self.plan.architecture(other) == "lstm" else ""
                found.setdefault(self.plan.trees[other] + lstm, {})[with_parser] = other
        return dict(sorted(found.items()))

    def _alike(self) -> dict[str, str]:
        """Name the group of each system whose seeds vary alike: its architecture, its controls if
        they have many seeds, or itself if it is unstable."""
        found, freedom = dict[str, str](), Counter[str]()
        for system, runs in self.runs.items():
            control = ", controls" if self.plan.kind(system) == "control" else ""
            group = self.plan.architecture(system) + control
            found[system] = system if system in self.unstable else group
            freedom[found[system]] += len(runs) - 1
        for system, group in found.items():
            if group.endswith(", controls") and freedom[group] < _MANY:
                found[system] = self.plan.architecture(system)
        return found

    def _counts(self, test: str) -> dict[str, list[DoubleArray]]:
        return {
            system: [unpacked(run["tests"][test]["statistics"]) for run in runs]
            for system, runs in self.runs.items()
        }


def read_results(plan: Plan, system: str) -> list[dict[str, Any]]:
    """Read the results of a system that are there, seed by seed."""
    paths = [plan.result(system, seed) for seed in plan.seeds_of(system)]
    expected = fingerprint(plan.recipes[system])
    return [read_result(path, expected) for path in paths if path.exists()]
