"""How long training steps take, as `results_times.py` has measured it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from results_files import read_times

from synmt.errors import counted

_RESAMPLES = 2_000


@dataclass(frozen=True)
class TimesAsLong:
    """How many times as long one thing takes as another one, with a 95 % interval."""

    value: float
    low: float
    high: float

    def written(self) -> str:
        """Write `1.10 (1.08 to 1.12)`."""
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def times_as_long(measured: Mapping[str, Any]) -> TimesAsLong:
    """Divide the seconds of all steps of a system by those of its baseline; the interval resamples the steps."""
    seconds = np.array([measured["seconds"], measured["of_baseline"]])  # (2, N)
    steps = seconds.shape[1]
    chosen = np.random.default_rng(1).integers(0, steps, (_RESAMPLES, steps))
    own, other = seconds[:, chosen].sum(-1)  # (R,), (R,)
    low, high = np.quantile(own / other, (0.025, 0.975))
    return TimesAsLong(float(seconds[0].sum() / seconds[1].sum()), float(low), float(high))


class StepTimes:
    """How many times as long as that of its baseline the training step of each system takes.

    pairs: of each system the fingerprints of its recipe and of its baseline's (`recipe`, `baseline`); what was measured
    of others is left out.
    of_system: empty if nothing was measured.
    """

    def __init__(self, path: Path, pairs: Mapping[str, Mapping[str, str]]) -> None:
        self._stored: dict[str, Any] = read_times(path) if path.exists() else {"systems": {}}
        self.of_system = {
            system: times_as_long(measured)
            for system, measured in self._stored["systems"].items()
            if system in pairs and pairs[system].items() <= measured.items()
        }

    def how(self) -> str:
        """Say how they were measured."""
        threads = self._stored["threads"]
        on = f"processor time, {counted(threads, 'thread')} of " if threads else ""
        return f"interleaved, {on}{self._stored['machine']}, {self._stored['precision']}"
