"""How long training steps take, relative to the baseline's, as `step_times.py` has measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from results_plan import Plan, fingerprint
from results_stored import AGAIN

from synmt.files.json_files import read_json_if_there
from synmt.reporting.values import Interval

_SAMPLES = 2000


def read_timed(plan: Plan) -> dict[str, Any]:
    """Read what has been measured; empty if nothing has."""
    return read_json_if_there(plan.folder / "times.json", dict[str, Any], do=AGAIN) or {}


def times(plan: Plan) -> dict[str, tuple[float, Interval]]:
    """Compute how many times as long as its baseline's the step of each system takes."""
    found: dict[str, tuple[float, Interval]] = {}
    for system, measured in read_timed(plan).get("systems", {}).items():
        if system in plan.systems:
            names = (system, plan.baseline(system))
            prints = [fingerprint(plan.recipes[name]) for name in names]
            if prints == [measured["recipe"], measured["baseline"]]:
                found[system] = times_as_long(measured)
    return found


def times_as_long(measured: Mapping[str, Sequence[float]]) -> tuple[float, Interval]:
    """Divide the seconds of a system by those of its baseline; the interval resamples steps."""
    seconds = np.array([measured["seconds"], measured["of_baseline"]])  # (2, N)
    steps = seconds.shape[1]
    chosen = np.random.default_rng(1).integers(0, steps, (_SAMPLES, steps))
    system, baseline = seconds[:, chosen].sum(-1)  # (R,), (R,)
    low, high = np.quantile(system / baseline, (0.025, 0.975))
    return float(seconds[0].sum() / seconds[1].sum()), Interval(float(low), float(high))
