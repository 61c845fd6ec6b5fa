"""Measure how long a training step of each system of a comparison takes, next to a step of its baseline.

    SYNMT_THREADS=1 python benchmarks/results_times.py results/controlled.yaml --machine "an AMD EPYC (Zen 3)"
    SYNMT_THREADS=1 python benchmarks/results_times.py results/multi30k.yaml training.precision=float32

A step reads its batch, computes the gradients and changes the weights. System and baseline take turns, so that other
work on the machine slows both of them. Of a CPU, processor time counts. What has been measured is not measured again;
`times.json` in the folder of the comparison is to be committed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
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
from results_timing import times_as_long

from synmt.data.stream import Position
from synmt.errors import UsageError
from synmt.files.writing import write_json
from synmt.model.device import choose_device, device_name
from synmt.recipe.schema import Recipe
from synmt.run import Run, check_folder
from synmt.training.distributed import Processes
from synmt.training.pipeline import make_trainer, prepare
from synmt.training.preparation import Prepared

_FIRST = 3
"""Steps that do not count, because the first ones are slower."""
_FEWEST = 6
"""Steps from which the page can tell how far a time may be off."""


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


def in_turns(system: Timed, baseline: Timed, steps: int) -> dict[str, list[float]]:
    """Time alternating steps of two models, after a few that do not count: seconds of each."""
    pairs = list(zip(system.seconds(_FIRST + steps), baseline.seconds(_FIRST + steps), strict=True))[_FIRST:]
    own, other = ([round(pair[place], 4) for pair in pairs] for place in (0, 1))
    return {"seconds": own, "of_baseline": other}


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
        how = _how(path, plan, options, changes)
        _read(path, how)
        for system, found in _measured(plan, options, changes, lambda: _read(path, how)):
            with FileLock(options.data / ".results.lock"):
                write_json(path, {**how, "systems": {**_read(path, how), system: found}}, indent=1)
            print(f"{system}: {times_as_long(found).written()}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path, help="a file of results/")
    parser.add_argument("changes", nargs="*", metavar="key=value", help="the precision, parsers, the device")
    parser.add_argument("--machine", help="how the page names the processor; default: as before, or that of a GPU")
    parser.add_argument("--steps", type=_several, default=30, help="to time, of each system (default: 30)")
    parser.add_argument("--data", type=Path, default=Path("data"))
    return parser.parse_intermixed_args()


def _several(text: str) -> int:
    if int(text) < _FEWEST:
        raise argparse.ArgumentTypeError(f"must be {_FEWEST} or more")
    return int(text)


def _how(path: Path, plan: Plan, options: argparse.Namespace, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Say what all times of a file have in common."""
    training = plan.recipe(next(iter(plan.baselines.values())), changes).training
    device = choose_device(training.device)
    machine = options.machine or (read_times(path)["machine"] if path.exists() else device_name(device))
    threads = torch.get_num_threads() if device.type == "cpu" else None
    return {"machine": machine, "threads": threads, "precision": training.precision}


def _read(path: Path, how: Mapping[str, Any]) -> dict[str, Any]:
    """Read the times, which another process may add to meanwhile; raises UsageError if they were measured otherwise."""
    stored = read_times(path) if path.exists() else {**how, "systems": {}}
    for key, value in how.items():
        if stored[key] != value:
            then, now = (
                "a GPU" if key == "threads" and one is None else f"{key} {one}" for one in (stored[key], value)
            )
            do = f"{_as_before(key, stored[key])}, or remove the file to measure all systems again"
            raise UsageError(f"measured with {then}, not {now}", where=str(path), do=do)
    return stored["systems"]


def _as_before(key: str, value: str | int | None) -> str:
    if key == "machine":
        return "Leave out --machine"
    if key == "precision":
        return f"Give training.precision={value}"
    return f"Give training.device=cpu, and set SYNMT_THREADS={value}" if value else "Use the GPU"


def _measured(
    plan: Plan, options: argparse.Namespace, changes: Mapping[str, Any], stored: Callable[[], Mapping[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Time the systems that have not been timed, without those in another precision than their baseline."""
    systems, baselines = Systems(plan), dict[str, Timed]()
    changed = {system: _changed(plan, system, changes) for system in systems.names}
    with TemporaryDirectory() as place:
        for system in systems.names:
            base = systems.baseline(system)
            pair = {key: fingerprint(systems.recipes[one]) for key, one in (("recipe", system), ("baseline", base))}
            known = pair.items() <= stored().get(system, {}).items()
            same = changed[base].training.precision == changed[system].training.precision
            if base == system or known or not same or systems.kind(system) == "repeat":
                continue
            if base not in baselines:
                # the other one makes room first
                baselines.clear()
                baselines[base] = Timed(changed[base], options.data, place)
            own = Timed(changed[system], options.data, place)
            yield system, {**pair, **in_turns(own, baselines[base], options.steps)}


def _changed(plan: Plan, system: str, changes: Mapping[str, Any]) -> Recipe:
    """Change what depends on the machine, and leave out what needs a parser during training; raises UsageError."""
    planned, recipe = plan.recipe(system, {}), plan.recipe(system, changes)
    in_its_precision = {**changes, "training.precision": planned.training.precision}
    if fingerprint(plan.recipe(system, in_its_precision)) != fingerprint(planned):
        what = f"{', '.join(changes)}: would change what is timed"
        raise UsageError(what, allowed="Changes: the precision, parsers, the device")
    training = recipe.training.model_copy(update={"validation_beam_size": 0})
    return recipe.model_copy(update={"training": training})


if __name__ == "__main__":
    sys.exit(main())
