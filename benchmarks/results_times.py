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
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
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
from synmt.run_folder import Run
from synmt.training.distributed import Processes
from synmt.training.pipeline import make_trainer, prepare
from synmt.training.preparation import Prepared

_FIRST = 3
"""Steps that do not count, because the first ones are slower."""


def in_turns(
    system: Recipe, baseline: Recipe, options: argparse.Namespace
) -> dict[str, list[float]]:
    """Time alternating steps of two models, after a few that do not count: seconds of each."""
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        own_steps = steps(system, options.data, first)
        other_steps = steps(baseline, options.data, second)
        both = islice(zip(own_steps, other_steps, strict=True), _FIRST, _FIRST + options.steps)
        own, other = zip(*both, strict=True)
    return {"seconds": list(own), "of_baseline": list(other)}


def steps(recipe: Recipe, data: Path, folder: str) -> Iterator[float]:
    """Train a model from the beginning of the text; yield the seconds of each step."""
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
    parser.add_argument("--machine", help="how the page names the processor")
    parser.add_argument(
        "--steps", type=int, default=30, help="to time, of each system (default: 30)"
    )
    parser.add_argument("--data", type=Path, default=Path("data"))
    options = parser.parse_intermixed_args()
    with ending_errors():
        plan = Plan.load(options.plan)
        # what needs a parser during training would be timed with it
        changes = {"training.validation_beam_size": 0, **dict(map(change, options.changes))}
        path = plan.folder / "times.json"
        stored = _stored(path, plan.recipe(next(iter(plan.systems)), changes), options.machine)
        for system, base in _pairs(plan, changes):
            pair = {"recipe": fingerprint(plan.recipe(system, {}))}
            pair["baseline"] = fingerprint(plan.recipe(base, {}))
            if pair.items() <= stored["systems"].get(system, {}).items():
                continue
            found = in_turns(plan.recipe(system, changes), plan.recipe(base, changes), options)
            stored["systems"][system] = {**pair, **found}
            write_json(path, stored, indent=1)
            value, interval = times_as_long(found)
            print(f"{system}: {value:.2f} ({interval.low:.2f} to {interval.high:.2f})", flush=True)


def _stored(path: Path, recipe: Recipe, machine: str | None) -> dict[str, Any]:
    """Read the times that are there; raises UsageError if they were measured otherwise."""
    device = choose_device(recipe.training.device)
    # a GPU works while the threads of the processor wait
    threads = torch.get_num_threads() if device.type == "cpu" else None
    conditions = {"threads": threads, "precision": recipe.training.precision}
    if not path.exists():
        return {"machine": machine or device_name(device), **conditions, "systems": {}}
    stored = read_times(path)
    if not conditions.items() <= stored.items() or machine not in (None, stored["machine"]):
        what = "measured on another machine, with other threads or in another precision"
        raise UsageError(what, where=str(path), do="Remove it to measure all systems again")
    return stored


def _pairs(plan: Plan, changes: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each system and its baseline, without those in another precision than it."""
    systems = Systems(plan)
    for system in systems.names:
        base = systems.baseline(system)
        precisions = {plan.recipe(one, changes).training.precision for one in (system, base)}
        if base != system and len(precisions) == 1 and systems.kind(system) != "repeat":
            yield system, base


if __name__ == "__main__":
    main()
