"""Differences between systems in results/: over sentences and seeds, each against the baseline of its architecture.

    difference = mean over the seeds of the system - mean over the seeds of its baseline
    variance   = variance over resamples of the sentences + pooled variance of the seeds · (1/n + 1/n_baseline)

The variance of two or three seeds says little, so it is pooled over all systems of an architecture (LSTMs vary more
than Transformers). Its degrees of freedom, sum of (n - 1), are those of Student's t for the interval and p. The
p-values of a comparison are adjusted for their number (Holm, 1979).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from results_measure import unpacked
from results_plan import Plan, first_part, trees_of
from scipy import stats

from synmt.arrays import BoolArray, DoubleArray
from synmt.evaluation.metrics import make_metric
from synmt.evaluation.significance import bootstrap_scores, holm

Aggregate = Callable[[DoubleArray], float]
SAMPLES = 1000
REAL = 0.05
"""The adjusted p below which a difference is called real."""
RANDOM = ", random trees"
"""What the name of a system under random trees ends with."""

_KINDS = {"parser": "right", "gold": "right", "induced": "right", "none": "none"}
"""Kinds of trees; the others are wrong on purpose."""


@dataclass(frozen=True)
class Difference:
    """A system's difference from its baseline, in points, with the 95 % interval; p is adjusted.

    seeded: whether the seeds of any system of its architecture tell how far training varies; without it, only
    sentences vary.
    """

    value: float
    low: float
    high: float
    p: float
    seeded: bool

    @property
    def is_real(self) -> bool:
        """Whether it is more than chance; with one seed of each system nothing shows that."""
        return self.seeded and self.p < REAL


@dataclass(frozen=True)
class Line:
    """The scores of one system: one for each seed, in points. The baseline has no difference."""

    system: str
    scores: list[float]
    difference: Difference | None

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return sum(self.scores) / len(self.scores)

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the seeds; None for a single one."""
        return float(np.std(self.scores, ddof=1)) if len(self.scores) > 1 else None


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

    def of_random_trees(self, test: str) -> list[Line]:
        """Compare each system with the same model under random trees, by BLEU, if both have results."""
        controls = {system: f"{system}{RANDOM}" for system in self.runs}
        return self.against(test, {system: one for system, one in controls.items() if one in self.runs})

    def against(self, test: str, others: Mapping[str, str]) -> list[Line]:
        """Compare some systems by BLEU, each with another one than its baseline; p is adjusted for their number."""
        baselines = {system: others.get(system, system) for system in self.runs}
        lines = self._lines(test, "statistics", make_metric("bleu").aggregate, None, baselines)
        return [line for line in lines if line.difference]

    def group(self, test: str, label: str, value: str) -> BoolArray:
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
        counts = [[unpacked(run["tests"][test][what]) for run in runs] for runs in self.runs.values()]
        if what == "exact":
            counts = [[np.hstack([one, np.ones_like(one)]) for one in seeds] for seeds in counts]
        if chosen is not None:
            counts = [[one[chosen] for one in seeds] for seeds in counts]
        baselines = baselines or {one: self.baseline(one) for one in self.runs}
        architectures = {one: runs[0]["architecture"] for one, runs in self.runs.items()}
        return compare(dict(zip(self.runs, counts, strict=True)), aggregate, baselines, architectures)


def _share(totals: DoubleArray) -> float:
    return float(100 * totals[0] / totals[1])


def compare(
    counts: Mapping[str, Sequence[DoubleArray]],
    aggregate: Aggregate,
    baselines: Mapping[str, str],
    architectures: Mapping[str, str],
) -> list[Line]:
    """Compare each system with its baseline, by counts of the same sentences, (N, S) for each seed.

    The seeds of all systems of an architecture say how far its training varies.
    """
    resampled = bootstrap_scores([one for seeds in counts.values() for one in seeds], aggregate, samples=SAMPLES)
    ends = np.cumsum([len(seeds) for seeds in counts.values()])[:-1]
    means = dict(zip(counts, (part.mean(1) for part in np.split(resampled, ends, axis=1)), strict=True))  # (R,) each
    lines = [Line(system, [aggregate(one.sum(0)) for one in seeds], None) for system, seeds in counts.items()]
    of_system = {line.system: line for line in lines}
    pooled = {
        one: pooled_variance([line.scores for line in lines if architectures[line.system] == one])
        for one in set(architectures.values())
    }
    found: list[Line] = []
    for line in lines:
        base = of_system.get(baselines[line.system])
        if base is None or base is line:
            found.append(line)
            continue
        variance, freedom = pooled[architectures[line.system]]
        over_sentences = float(np.var(means[line.system] - means[base.system], ddof=1))
        over_seeds = variance * (1 / len(line.scores) + 1 / len(base.scores))
        difference = _difference(line.mean - base.mean, math.sqrt(over_sentences + over_seeds), freedom)
        found.append(replace(line, difference=difference))
    return _adjusted(found)


def pooled_variance(groups: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Compute the variance within groups, and its degrees of freedom; 0 and 0 if no group has two values."""
    squares = sum(float(np.var(group)) * len(group) for group in groups)
    freedom = sum(len(group) - 1 for group in groups)
    return (squares / freedom if freedom else 0.0), freedom


def _difference(value: float, error: float, freedom: int) -> Difference:
    law = stats.t(freedom) if freedom else stats.norm()
    width = float(law.ppf(0.975)) * error
    p = 2 * float(law.sf(abs(value) / error)) if error else float(value == 0)
    return Difference(value, value - width, value + width, p, freedom > 0)


def _adjusted(lines: Sequence[Line]) -> list[Line]:
    compared = [line.difference for line in lines if line.difference]
    adjusted = iter(holm([one.p for one in compared]))
    return [
        replace(line, difference=replace(line.difference, p=next(adjusted))) if line.difference else line
        for line in lines
    ]


def seeds_of(lines: Sequence[Line]) -> str:
    """Write how many seeds systems have: `3`, or `1 to 3`."""
    counts = sorted({len(line.scores) for line in lines})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def plans(folder: Path) -> list[Plan]:
    """Read all comparisons of a folder that have results."""
    return [plan for plan in map(Plan.load, sorted(folder.glob("*.yaml"))) if any(plan.folder.glob("*-seed*.json"))]
