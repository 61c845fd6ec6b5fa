"""The results of a comparison that are there, and how its systems compare."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from results_plan import Group, Plan, fingerprint
from results_statistics import (
    CONTROLS,
    Compared,
    Design,
    Line,
    Resampled,
    times_as_long,
    unstable_systems,
)
from results_stored import read_result, read_stored, read_times, unpacked
from results_systems import OTHER_TREES, TESTED, Systems

from synmt.arrays import BoolArray, DoubleArray
from synmt.errors import SynmtError
from synmt.evaluation.metrics import make_metric
from synmt.reporting.values import Interval

_MANY = 8
"""Degrees of freedom of a variance that is not pooled with others."""
_BLEU = make_metric("bleu").aggregate


class Results:
    """The results of a comparison that are there.

    systems: all those of the plan, also without results.
    runs: of each system the results of its seeds: each baseline, then its systems from the best to
        the worst.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.systems = plan, Systems(plan)
        self._arrays: dict[str, DoubleArray] = {}
        by_system: dict[str, list[dict[str, Any]]] = {}
        found = [read_result(path) for path in sorted(plan.folder.glob("*-seed*.json"))]
        for result in sorted(found, key=lambda one: one["seed"]):
            by_system.setdefault(result["system"], []).append(result)
        self._check_recipes(by_system)
        present = [system for system in self.systems.names if system in by_system]
        architectures = list(plan.baselines)

        def rank(system: str) -> tuple[int, bool, float]:
            tests = [run["tests"][plan.test] for run in by_system[system]]
            mean = np.mean([test["scores"]["bleu"]["score"] for test in tests])
            plain = self.systems.plain(system)
            return (
                architectures.index(self.systems.architecture(system)),
                system != plain,
                -float(mean),
            )

        self.runs = {system: by_system[system] for system in sorted(present, key=rank)}

    def _check_recipes(self, by_system: Mapping[str, list[dict[str, Any]]]) -> None:
        """Raise SynmtError for results of other recipes than the plan has now."""
        plan, others = self.plan, list[str]()
        for system in {*self.systems.names, *plan.search} & by_system.keys():
            now = fingerprint(plan.recipe(system, {}))
            others += [system] * any(run["fingerprint"] != now for run in by_system[system])
        if others:
            names = ", ".join(sorted(others))
            what = f"has results of other recipes than {plan.path.name} has now, of {names}"
            raise SynmtError(what, where=str(plan.folder), do="Remove them, and run `make results`")

    @cached_property
    def design(self) -> Design:
        """What is compared with what, on all test sets and groups of sentences."""
        systems, scores = self.systems, self._resampled[self.plan.test].scores
        unstable, alike = set[str](), dict[str, str]()
        for architecture in self.plan.baselines:
            own = [name for name in scores if systems.architecture(name) == architecture]
            unstable |= unstable_systems({name: scores[name] for name in own})
            alike |= dict.fromkeys(own, architecture)
            controls = [
                one for one in own if systems.kind(one) == "control" and one not in unstable
            ]
            if sum(len(scores[one]) - 1 for one in controls) >= _MANY:
                alike |= dict.fromkeys(controls, architecture + CONTROLS)
        stable = [name for name in systems.names if name not in unstable]
        compared = [name for name in stable if systems.baseline(name) != name]
        tested = [name for name in compared if systems.kind(name) in TESTED]
        return Design({name: systems.baseline(name) for name in self.runs}, tested, alike, unstable)

    @cached_property
    def _resampled(self) -> dict[str, Resampled]:
        tests = next(iter(self.runs.values()))[0]["tests"]
        ordered = sorted(tests, key=lambda test: test != self.plan.test)
        return {test: self._on(test, "statistics") for test in ordered}

    @cached_property
    def by_test(self) -> dict[str, Compared]:
        """The systems compared by BLEU on each test set, first on that of the plan."""
        return self.compared(self.design)

    def compared(self, design: Design) -> dict[str, Compared]:
        """Compare the systems by BLEU on each test set, with some design."""
        return {test: Compared(runs, design) for test, runs in self._resampled.items()}

    @cached_property
    def bleu(self) -> dict[str, list[Line]]:
        """The scores and differences of all systems on each test set."""
        return {test: compared.lines() for test, compared in self.by_test.items()}

    @property
    def lines(self) -> list[Line]:
        """Those on the test set of the plan."""
        return self.bleu[self.plan.test]

    @cached_property
    def other_trees(self) -> dict[str, dict[str, str]]:
        """Of each kind of other trees, the systems with the parser's trees and the same models with
        the others.

        Kinds are named `random`, `rewired 50 %`, or `random (LSTM)` for LSTMs beside Transformers.
        Unstable systems are left out.
        """
        found: dict[str, dict[str, str]] = {}
        for other in self.runs:
            own = self.systems.with_other_trees.get(other)
            if own in self.runs and not self.design.unstable & {own, other}:
                share = self.systems.recipes[other].parser.rewire
                trees = self.systems.trees[other] + (f" {100 * share:.0f} %" if share else "")
                lstm = (
                    self.systems.architecture(other) == "lstm"
                    and "transformer" in self.plan.baselines
                )
                found.setdefault(trees + " (LSTM)" * lstm, {})[own] = other
        kinds = sorted(
            found, key=lambda trees: ("LSTM" in trees, OTHER_TREES.index(trees.split()[0]))
        )
        return {trees: found[trees] for trees in kinds}

    def grouping(self, group: Group) -> dict[str, list[Line]]:
        """Compare the systems on each group of sentences."""
        labels = read_stored(self.plan.folder / "labels.json", group.test)[group.test]
        values = np.array(labels[group.by])  # (N,)
        kept = np.ones(len(values), dtype=bool)
        for label, value in group.without.items():
            kept &= np.array(labels[label]) != value
        found: dict[str, list[Line]] = {}
        for value in sorted(set(values[kept].tolist()), key=_by_size):
            runs = self._on(group.test, _STORED[group.metric], kept & (values == value))
            found[value] = Compared(runs, self.design).lines()
        return found

    def _on(self, test: str, key: str, chosen: BoolArray | None = None) -> Resampled:
        """Resample all or chosen sentences, (N,), for BLEU or for the share of exact
        translations."""
        counts: dict[str, list[DoubleArray]] = {}
        for system, runs in self.runs.items():
            each = [self.counts(run["tests"][test], key) for run in runs]
            counts[system] = each if chosen is None else [one[chosen] for one in each]
        return Resampled(counts, _BLEU if key == "statistics" else _share)

    def counts(self, test: dict[str, Any], key: str) -> DoubleArray:
        """Read the counts of the sentences of a test set, BLEU's or exact ones and all: (N, S)."""
        stored = test[key]
        if stored["data"] not in self._arrays:
            found = unpacked(stored)
            exact = np.hstack([found, np.ones_like(found)])
            self._arrays[stored["data"]] = exact if key == "exact" else found
        return self._arrays[stored["data"]]

    @cached_property
    def times(self) -> dict[str, tuple[float, Interval]]:
        """How many times as long as its baseline's the step of each system takes that was timed
        next to it."""
        found: dict[str, tuple[float, Interval]] = {}
        for system, measured in self.timed.get("systems", {}).items():
            if system in self.runs:
                names = {"recipe": system, "baseline": self.systems.baseline(system)}
                now = {key: fingerprint(self.systems.recipes[name]) for key, name in names.items()}
                if now.items() <= measured.items():
                    found[system] = times_as_long(measured)
        return found

    @cached_property
    def timed(self) -> dict[str, Any]:
        """What `results_times.py` has written; empty if it has not."""
        path = self.plan.folder / "times.json"
        return read_times(path) if path.exists() else {}


_STORED = {"bleu": "statistics", "exact": "exact"}


def _by_size(value: str) -> tuple[int, int, str]:
    """Sort numbers by their size, before words."""
    return (0, int(value), "") if value.isdecimal() else (1, 0, value)


def _share(totals: DoubleArray) -> float:
    return float(100 * totals[0] / totals[1])


def plans(folder: Path) -> list[Plan]:
    """Read all comparisons of a folder that have results."""
    found = [Plan.load(path) for path in sorted(folder.glob("*.yaml"))]
    return [plan for plan in found if any(plan.folder.glob("*-seed*.json"))]
