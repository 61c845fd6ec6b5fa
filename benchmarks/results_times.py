"""Measure how long a training step of each system of a comparison takes, next to a step of its baseline.

    SYNMT_THREADS=1 python benchmarks/results_times.py results/controlled.yaml --machine "an AMD EPYC (Zen 3)"
    SYNMT_THREADS=1 python benchmarks/results_times.py results/multi30k.yaml training.precision=float32

A step reads its batch, computes the gradients and changes the weights. System and baseline take turns, so that
other work on the machine slows both of them. Of a CPU, processor time counts. What has been measured is not
measured again; `times.json` in the folder of the comparison is to be committed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import torch
from filelock import FileLock
from measuring import now
from results_plan import Plan, change, fingerprint
from results_statistics import times_as_long
from results_stored import ending_errors, read_times
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
"""Steps that do not count, because the first ones are slower."""
_FEWEST = 6
"""Steps from which the page can compute how far a time may be off."""
_LOCK = ".results.lock"


class Timed:
    """A model in training whose steps are timed."""

    def __init__(self, recipe: Recipe, data: Path, place: str) -> None:
        with FileLock(data / _LOCK):
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
            began = now(device)
            self._trainer.update([batch.to(device) for batch, _ in islice(stream, accumulate)])
            yield now(device) - began


def in_turns(system: Timed, baseline: Timed, steps: int) -> dict[str, list[float]]:
    """Time alternating steps of two models, after a few that do not count: seconds of each."""
    both = zip(system.seconds(_FIRST + steps), baseline.seconds(_FIRST + steps), strict=True)
    pairs = list(islice(both, _FIRST, None))
    own, other = ([round(second, 4) for second in seconds] for seconds in zip(*pairs, strict=True))
    return {"seconds": own, "of_baseline": other}


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path, help="a file of results/")
    parser.add_argument("changes", nargs="*", metavar="key=value", help="the precision, parsers, the device")
    machine = "how the page names the processor; default: as before, or that of a GPU"
    parser.add_argument("--machine", help=machine)
    parser.add_argument("--steps", type=int, default=30, help="to time, of each system (default: 30)")
    parser.add_argument("--data", type=Path, default=Path("data"))
    options = parser.parse_intermixed_args()
    if options.steps < _FEWEST:
        parser.error(f"--steps: must be {_FEWEST} or more")
    with ending_errors():
        plan, changes = Plan.load(options.plan), dict(map(change, options.changes))
        for folder in (plan.folder, options.data):
            check_folder(folder)
            folder.mkdir(parents=True, exist_ok=True)
        path = plan.folder / "times.json"
        how = _how(path, plan, changes, options.machine)
        for system, found in measured(plan, changes, options, lambda: _read(path, how)):
            # another process may have added to them meanwhile
            with FileLock(options.data / _LOCK):
                write_json(path, {**how, "systems": {**_read(path, how), system: found}}, indent=1)
            value, interval = times_as_long(found)
            print(f"{system}: {value:.2f} ({interval.low:.2f} to {interval.high:.2f})", flush=True)


def _how(path: Path, plan: Plan, changes: Mapping[str, Any], machine: str | None) -> dict[str, Any]:
    """Collect what all times of a file have in common."""
    training = plan.recipe(next(iter(plan.baselines.values())), changes).training
    device = choose_device(training.device)
    before = read_times(path)["machine"] if path.exists() else device_name(device)
    threads = torch.get_num_threads() if device.type == "cpu" else None
    return {"machine": machine or before, "threads": threads, "precision": training.precision}


def _read(path: Path, how: Mapping[str, Any]) -> dict[str, Any]:
    """Read the times; raises UsageError if they were measured otherwise."""
    stored = read_times(path) if path.exists() else {**how, "systems": {}}
    for key, value in how.items():
        if stored[key] != value:
            what = f"measured with {key} {stored[key] or 'of a GPU'}, not {value or 'of a GPU'}"
            do = "Measure as before (--machine, SYNMT_THREADS, training.precision, training.device), "
            do += "or remove the file to measure all systems again"
            raise UsageError(what, where=str(path), do=do)
    return stored["systems"]


def measured(
    plan: Plan, changes: Mapping[str, Any], options: argparse.Namespace, stored: Callable[[], Mapping[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Time the systems that have not been timed, without those in another precision than their baseline."""
    systems, baselines = Systems(plan), dict[str, Timed]()
    changed = {system: _changed(plan, system, changes) for system in systems.names}
    stored()
    with TemporaryDirectory() as place:
        for system in systems.names:
            base = systems.baseline(system)
            names = {"recipe": system, "baseline": base}
            pair = {key: fingerprint(systems.recipes[name]) for key, name in names.items()}
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
    precision = planned.training.precision
    if fingerprint(plan.recipe(system, {**changes, "training.precision": precision})) != fingerprint(planned):
        what = f"{', '.join(changes)}: would change what is timed"
        raise UsageError(what, allowed="Changes: the precision, parsers, the device")
    training = recipe.training.model_copy(update={"validation_beam_size": 0})
    return recipe.model_copy(update={"training": training})


if __name__ == "__main__":
    main()
