"""What a reader of the table of all systems has to know: sentences below it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from results_found import Results
from results_phrases import ARCHITECTURES, scores_of, signed
from results_statistics import Line
from scipy import stats

from synmt.errors import counted, listed
from synmt.evaluation.report import format_p_value

_STILL_FALLING = 0.05
"""The share of the loss that a training at its end may still lose from one validation to the next."""
_FEW = 3
_FAST = 1.4
"""Times the median fall of the loss at the end of the training, beyond which a system is named."""


def notes(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Yield what a reader of the table of all systems has to know."""
    yield from _other_baselines(results, lines)
    yield from _decided_later(results, lines)
    yield from _unfinished(results, lines)
    yield from _unstable(lines)
    yield from _varied_most(results, lines)
    yield from _devices(results, lines)


def _other_baselines(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Name the systems that are compared with another one than the first baseline."""
    compared: dict[str, list[str]] = {}
    for line in lines:
        if line.difference and results.systems.baseline(line.system) != lines[0].system:
            compared.setdefault(results.systems.baseline(line.system), []).append(f"`{line.system}`")
    if compared:
        parts = "; ".join(f"{listed(systems)} with `{base}`" for base, systems in compared.items())
        yield f"Systems are compared with `{lines[0].system}`, but {parts}."


def _decided_later(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say what would follow without two decisions that were made when most runs had ended."""
    tests = len(results.compared_systems)
    if tests == len(results.design.tested) or not any(line.is_real for line in lines):
        return
    apart = results.design.controls_apart
    changed = [
        f"{'' if test == results.plan.test else f'on `{test}`, '}`{now.system}` has p = {_p_value(before)}"
        for test, own in results.bleu.items()
        for now, before in zip(own, results.as_one[test], strict=True)
        if now.is_real != before.is_real
    ]
    yield (
        f"After most of the runs, we decided not to test controls{' and to give them their own variance' * apart}. "
        f"Otherwise ({counted(tests, 'comparison')}{', one variance for each architecture' * apart}), "
        f"{listed(changed) or 'the same systems differ significantly'}."
    )


def _p_value(line: Line) -> str:
    assert line.difference is not None
    assert line.difference.p is not None
    return format_p_value(line.difference.p)


def _devices(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say how many runs were trained on GPUs, and whether these have other scores."""
    runs = [run for runs in results.runs.values() for run in runs]
    gpus = [device for run in runs if (device := run.get("device", "cpu")) != "cpu"]
    if gpus:
        names = " and ".join(sorted(set(gpus)))
        share = f"{len(gpus)} of the {counted(len(runs), 'run')}"
        yield f"Trained on a GPU ({names}): {share}. There, a seed gives other dropout.{_gain_of_gpus(results, lines)}"


def _gain_of_gpus(results: Results, lines: Sequence[Line]) -> str:
    """Estimate by least squares what a GPU adds to a score, next to system and seed; empty if nothing tells."""
    runs = [
        (line.system, run["seed"], run.get("device", "cpu") != "cpu", score)
        for line in lines
        if not line.unstable
        for run, score in zip(results.runs[line.system], line.scores, strict=True)
    ]
    systems, seeds = ({run[place] for run in runs} for place in (0, 1))
    columns = [[run[0] == system for run in runs] for system in sorted(systems)]
    columns += [[run[1] == seed for run in runs] for seed in sorted(seeds)[1:]]
    design = np.array([*columns, [run[2] for run in runs]], dtype=float).T  # (runs, systems + seeds)
    rank, freedom = np.linalg.matrix_rank(design), len(runs) - design.shape[1]
    if rank < design.shape[1] or freedom < 1:
        return ""
    scores = np.array([run[3] for run in runs])
    found, (squares,), *_ = np.linalg.lstsq(design, scores, rcond=None)
    error = (squares / freedom * np.linalg.inv(design.T @ design)[-1, -1]) ** 0.5
    width = stats.t(freedom).ppf(0.975) * error
    ends = f"{signed(found[-1] - width)} to {signed(found[-1] + width)}"
    return (
        f" Allowing for system and seed, these runs score {signed(found[-1])} BLEU ({ends}); nothing is corrected for "
        "that."
    )


def _unfinished(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say how far the loss still fell when training ended, and for which systems it fell most."""
    parts = []
    for architecture in results.plan.baselines:
        own = [line.system for line in lines if results.systems.architecture(line.system) == architecture]
        falls = {system: statistics.fmean(seen) for system in own if (seen := list(_falls(results.runs[system])))}
        typical = statistics.median(falls.values()) if falls else 0.0
        if typical > _STILL_FALLING:
            most = sorted((one for one in falls if falls[one] > _FAST * typical), key=lambda one: -falls[one])
            named = listed(f"`{system}` {100 * falls[system]:.0f} %" for system in most)
            parts.append(
                f"{100 * typical:.0f} % for the median {ARCHITECTURES[architecture]}"
                + f" (most for {named})" * bool(most)
            )
    if parts:
        yield (
            f"At the last validation, the loss still fell: by {' and by '.join(parts)}. So scores also show how fast "
            "systems learn."
        )


def _falls(runs: Sequence[dict[str, Any]]) -> Iterator[float]:
    """Yield for each run by which share the last validation loss is lower than the lowest one before."""
    for run in runs:
        *before, last = (loss for _, loss in run["validation"])
        if before:
            yield 1 - last / min(before)


def _unstable(lines: Sequence[Line]) -> Iterator[str]:
    """Name the systems whose seeds vary so much that nothing can be said of them."""
    named = [f"`{line.system}` ({scores_of(line)})" for line in lines if line.unstable]
    if named:
        yield f"Some systems vary far more from seed to seed than others, and are not tested: {listed(named)} BLEU."


def _varied_most(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Name the system to which more than half of a shared variance is due."""
    pools: dict[str, list[Line]] = {}
    for line in lines:
        if line.deviation is not None and not line.unstable:
            pools.setdefault(results.design.alike[line.system], []).append(line)
    for alike in pools.values():
        squares = {line.system: float(np.var(line.scores)) * len(line.scores) for line in alike}
        most = max(alike, key=lambda line: squares[line.system])
        if len(alike) > _FEW and 2 * squares[most.system] > sum(squares.values()):
            yield (
                f"`{most.system}` alone ({scores_of(most)} BLEU) causes more than half of the variance that "
                f"{len(alike)} systems share. Without it, the intervals of the others would be narrower."
            )
