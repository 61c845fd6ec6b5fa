"""How long training steps take, as `results_times.py` has measured it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from results_files import read_times
from scipy import stats

from synmt.errors import counted


class StepTimes:
    """How many times as long as that of its baseline the training step of each system takes.

    fingerprints: identify the recipes of the systems; what was measured of another recipe is left out.
    medians: over the steps that were timed; empty if nothing was measured.
    """

    def __init__(self, path: Path, fingerprints: Mapping[str, str]) -> None:
        self._stored: dict[str, Any] = read_times(path) if path.exists() else {"systems": {}}
        self._ratios = {
            system: measured["ratios"]
            for system, measured in self._stored["systems"].items()
            if measured["fingerprint"] == fingerprints.get(system)
        }
        self.medians = {system: statistics.median(ratios) for system, ratios in self._ratios.items()}

    def how(self) -> str:
        """Say how they were measured, and how far the typical one can be off."""
        errors = []
        for system, ratios in self._ratios.items():
            low, high = around_median(ratios)
            errors.append((high - low) / 2 / self.medians[system])
        on = f"{counted(self._stored['threads'], 'thread')} of {self._stored['machine']}"
        if not self._stored["threads"]:
            on = self._stored["machine"]
        within = f"the 95 % interval of the median system is ±{100 * statistics.median(errors):.0f} %"
        return f"timed in turns on {on}, {self._stored['precision']}; {within}"


def around_median(values: Sequence[float]) -> tuple[float, float]:
    """Find the values between which the median of all lies with 95 % confidence, by their ranks."""
    ordered, rank = sorted(values), int(stats.binom.ppf(0.025, len(values), 0.5))
    # of few values, even the outermost ones are not far enough apart
    from_end = max(0, rank - 1)
    return ordered[from_end], ordered[-1 - from_end]
