"""Measure how long a training step of each system of a comparison takes, relative to its baseline.

    SYNMT_THREADS=1 python benchmarks/results_times.py results/controlled.yaml --machine "AMD EPYC (Zen 3)"
    SYNMT_THREADS=1 python benchmarks/results_times.py results/multi30k.yaml training.precision=float32

A step reads its batches, computes the gradients and changes the weights. System and baseline take turns on the same
text, so that other work on the machine slows both of them. Of a CPU, processor time counts. What has been measured is
not measured again; `times.json` in the folder of the comparison is to be committed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import measuring  # noqa: F401
import torch
from filelock import FileLock
from results_files import ending_errors, read_times
from results_plan import Plan
from results_recipes import change, fingerprint
from results_systems import Systems

from synmt.data.stream import Position
from synmt.errors import UsageError
from synmt.files.writing import write_json
from synmt.model.device import choose_device, device_name
from synmt.recipe.schema import Recipe
from synmt.run import Run, check_folder
from synmt.training.distributed import Processes
from synmt.training.pipeline import make_trainer, prepare
from synmt.training.stages import Prepared

_FIRST = 3
"""Steps that are not counted, because the first ones are slower."""


class Timed:
    """A model in training whose steps are timed."""

    def __init__(self, recipe: Recipe, data: Path, place: str) -> None:
        with FileLock(data / ".results.lock"):
            *_, prepared = prepare(recipe, data=data)
        assert isinstance(prepared, Prepared)
        # a baseline may be timed as a system, too
        folder = Path(mkdtemp(dir=place))
        self._trainer = make_trainer(Run(folder), recipe, prepared, Processes())

    def seconds(self, steps: int) -> Iterator[float]:
        """Time steps, from the beginning of the text."""
        accumulate, device = self._trainer.settings.accumulate, self._trainer.device
        stream = self._trainer.train_reader.forever(Position())
        for _ in range(steps):
            began = _now(device)
            self._trainer.update([batch.to(device) for batch, _ in islice(stream, accumulate)])
            yield _now(device) - began


def _now(device: torch.device) -> float:
    if device.type == "cpu":
        return time.process_time()
    # a GPU works while the processor waits
    torch.cuda.synchronize(device)
    return time.perf_counter()


def ratios(system: Timed, baseline: Timed, steps: int) -> list[float]:
    """Time two models in turns: how many times as long each step of the first one takes, after a few more steps."""
    pairs = zip(system.seconds(_FIRST + steps), baseline.seconds(_FIRST + steps), strict=True)
    return [round(own / other, 4) for own, other in pairs][_FIRST:]


def main() -> None:
    """Measure what is missing."""
    options = _options()
    with ending_errors():
        plan = Plan.load(options.plan)
        changes = dict(map(change, options.changes))
        for folder in (plan.folder, options.data):
            check_folder(folder)
            folder.mkdir(parents=True, exist_ok=True)
        path = plan.folder / "times.json"
        stored = _begun(path, plan, options, changes)
        for system, found in _measured(plan, options, changes, stored["systems"]):
            stored["systems"][system] = found
            write_json(path, stored, indent=1)
            print(f"{system}: {statistics.median(found['ratios']):.2f}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path, help="a file of results/")
    parser.add_argument("changes", nargs="*", metavar="key=value", help="changes of every recipe")
    parser.add_argument("--machine", help="how the page names the processor")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--data", type=Path, default=Path("data"))
    return parser.parse_intermixed_args()


def _begun(path: Path, plan: Plan, options: argparse.Namespace, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Read what has been measured; raises UsageError if it was measured in another way."""
    training = plan.recipe(next(iter(plan.baselines.values())), changes).training
    device = choose_device(training.device)
    how = {
        "machine": options.machine or device_name(device),
        "threads": torch.get_num_threads() if device.type == "cpu" else None,
        "precision": training.precision,
    }
    stored = read_times(path) if path.exists() else {**how, "systems": {}}
    for key, value in how.items():
        if stored[key] != value:
            what = f"measured with {key} {stored[key]}, not {value}"
            raise UsageError(what, where=str(path), do="Use the same, or remove the file to measure all systems again")
    return stored


def _measured(
    plan: Plan, options: argparse.Namespace, changes: Mapping[str, Any], stored: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Time the systems that have not been timed; repeats in another precision are left out."""
    systems, baselines = Systems(plan), dict[str, Timed]()
    with TemporaryDirectory() as place:

        def timed(system: str) -> Timed:
            return Timed(_for_steps(plan.recipe(system, changes)), options.data, place)

        for system in systems.names:
            base, identity = systems.baseline(system), fingerprint(systems.recipes[system])
            known = stored.get(system, {}).get("fingerprint") == identity
            if base == system or known or systems.kind(system) == "repeat":
                continue
            if base not in baselines:
                # one at a time: each of them takes memory
                baselines = {base: timed(base)}
            found = ratios(timed(system), baselines[base], options.steps)
            yield system, {"fingerprint": identity, "ratios": found}


def _for_steps(recipe: Recipe) -> Recipe:
    """Leave out what needs a parser during training."""
    training = recipe.training.model_copy(update={"validation_beam_size": 0})
    return recipe.model_copy(update={"training": training})


if __name__ == "__main__":
    sys.exit(main())
