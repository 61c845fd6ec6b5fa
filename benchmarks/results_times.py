"""Measure how long a training step of each system of a comparison takes, next to a step of its
baseline.

    SYNMT_THREADS=1 python benchmarks/results_times.py results/controlled.yaml --machine "an AMD
        EPYC (Zen 3)"
    SYNMT_THREADS=1 python benchmarks/results_times.py results/multi30k.yaml
        training.precision=float32

A step reads its batch, computes the gradients and changes the weights. System and baseline take
turns, so that other work on the machine slows both of them. Of a CPU, processor time counts. What
has been measured is not measured again; `times.json` in the folder of the comparison is to be
committed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
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
from synmt.run_folder import Run, check_folder
from synmt.training.distributed import Processes
from synmt.training.pipeline import make_trainer, prepare
from synmt.training.preparation import Prepared

_FIRST = 3
"""Steps that do not count, because the first ones are slower."""
_FEWEST = 6
"""Steps from which the page can compute how far a time may be off."""
_LOCK = ".results.lock"


def in_turns(
    system: Recipe, baseline: Recipe, options: argparse.Namespace
) -> dict[str, list[float]]:
    """Time alternating steps of two models, after a few that do not count: seconds of each."""
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        both = zip(
            steps(system, options.data, first), steps(baseline, options.data, second), strict=True
        )
        own, other = zip(*islice(both, _FIRST, _FIRST + options.steps), strict=True)
    return {"seconds": list(own), "of_baseline": list(other)}


def steps(recipe: Recipe, data: Path, folder: str) -> Iterator[float]:
    """Train a model from the beginning of the text; yield the seconds of each step."""
    with FileLock(data / _LOCK):
        *_, prepared = prepare(recipe, data=data)
    assert isinstance(prepared, Prepared)
    trainer = make_trainer(Run(Path(folder)), recipe, prepared, Processes())
    accumulate, device = trainer.settings.accumulate, trainer.device
    stream = trainer.train_reader.forever(Position())
    while True:
        began = now(device)
        trainer.update([batch.to(device) for batch, _ in islice(stream, accumulate)])
        yield round(now(device) - began, 4)


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plan", type=Path, help="a file of results/")
    parser.add_argument(
        "changes", nargs="*", metavar="key=value", help="the precision, parsers, the device"
    )
    machine = "how the page names the processor; default: as before, or that of a GPU"
    parser.add_argument("--machine", help=machine)
    parser.add_argument(
        "--steps", type=int, default=30, help="to time, of each system (default: 30)"
    )
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
    # None: a GPU
    threads = torch.get_num_threads() if device.type == "cpu" else None
    return {"machine": machine or before, "threads": threads, "precision": training.precision}


def _read(path: Path, how: dict[str, Any]) -> dict[str, Any]:
    """Read the times; raises UsageError if they were measured otherwise."""
    stored = read_times(path) if path.exists() else {**how, "systems": {}}
    before = {key: stored[key] for key in how}
    if before != how:
        do = "Measure as before (--machine, SYNMT_THREADS, training.precision, training.device), "
        do += "or remove the file to measure all systems again"
        raise UsageError(
            f"measured with {_in_words(before)}, not {_in_words(how)}", where=str(path), do=do
        )
    return stored["systems"]


def _in_words(how: dict[str, Any]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in how.items())


def measured(
    plan: Plan,
    changes: Mapping[str, Any],
    options: argparse.Namespace,
    stored: Callable[[], Mapping[str, Any]],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Time the systems that have not been timed, without those in another precision than their
    baseline."""
    systems = Systems(plan)
    changed = {system: _changed(plan, system, changes) for system in systems.names}
    for system in systems.names:
        base = systems.baseline(system)
        pair = {
            "recipe": fingerprint(systems.recipes[system]),
            "baseline": fingerprint(systems.recipes[base]),
        }
        known = pair.items() <= stored().get(system, {}).items()
        same = changed[base].training.precision == changed[system].training.precision
        if base != system and same and not known and systems.kind(system) != "repeat":
            yield system, {**pair, **in_turns(changed[system], changed[base], options)}


def _changed(plan: Plan, system: str, changes: Mapping[str, Any]) -> Recipe:
    """Change what depends on the machine, and leave out what needs a parser during training; raises
    UsageError."""
    planned, recipe = plan.recipe(system, {}), plan.recipe(system, changes)
    precision = planned.training.precision
    if fingerprint(
        plan.recipe(system, {**changes, "training.precision": precision})
    ) != fingerprint(planned):
        what = f"{', '.join(changes)}: would change what is timed"
        raise UsageError(what, allowed="Changes: the precision, parsers, the device")
    training = recipe.training.model_copy(update={"validation_beam_size": 0})
    return recipe.model_copy(update={"training": training})


if __name__ == "__main__":
    main()
