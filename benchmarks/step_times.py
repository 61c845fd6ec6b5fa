"""Measure how long a training step of each system of a comparison takes, next to a step of its
baseline.

    SYNMT_THREADS=1 python benchmarks/step_times.py results/controlled.yaml --machine "an AMD EPYC"

A step reads its batch, computes the gradients and changes the weights, in float32. System and
baseline take turns, so that other work on the machine slows both of them. Of a CPU, processor time
counts. What has been measured is not measured again; `times.json` in the folder of the comparison
is to be committed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from measuring import now
from results_plan import Plan, change, fingerprint
from results_stored import ending_errors
from results_times import read_timed, times

from synmt.data.stream import Position
from synmt.errors import UsageError
from synmt.files.writing import write_json
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run
from synmt.training.distributed import Processes
from synmt.training.pipeline import make_trainer, prepare
from synmt.training.preparation import Prepared

_FIRST = 3
"""Steps that do not count, because the first ones are slower."""


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plan", type=Path, help="a file of results/")
    parser.add_argument("changes", nargs="*", metavar="key=value", help="parsers, the device")
    parser.add_argument("--machine", required=True, help="how the page names the processor")
    parser.add_argument("--steps", type=int, default=30, help="to time, of each system")
    parser.add_argument("--data", type=Path, default=Path("data"))
    options = parser.parse_intermixed_args()
    with ending_errors():
        measure(Plan.load(options.plan), options)


def measure(plan: Plan, options: argparse.Namespace) -> None:
    """Time the systems that have not been timed; raises UsageError if others were on another
    machine."""
    path, conditions = plan.folder / "times.json", {"machine": options.machine}
    conditions |= {"threads": torch.get_num_threads(), "precision": "float32"}
    stored = read_timed(plan) or {**conditions, "systems": {}}
    if not conditions.items() <= stored.items():
        what, do = "measured on another machine or by other threads", "Remove it to measure again"
        raise UsageError(what, where=str(path), do=do)
    # what needs a parser during training would be timed with it
    changes = {"training.precision": "float32", "training.validation_beam_size": 0}
    changes |= dict(map(change, options.changes))
    for system in plan.compared:
        pair = (system, plan.baseline(system))
        if pair[0] != pair[1] and plan.systems[system].tested and system not in times(plan):
            recipes = [plan.recipe(name, changes) for name in pair]
            seconds, of_baseline = in_turns(recipes, options.data, options.steps)
            prints = [fingerprint(plan.recipes[name]) for name in pair]
            measured = {"recipe": prints[0], "baseline": prints[1]}
            stored["systems"][system] = {**measured, "seconds": seconds, "of_baseline": of_baseline}
            write_json(path, stored, indent=1)
            ratio, interval = times(plan)[system]
            print(f"{system}: {ratio:.2f} ({interval.low:.2f} to {interval.high:.2f})", flush=True)


def in_turns(recipes: Sequence[Recipe], data: Path, count: int) -> list[list[float]]:
    """Time alternating steps of two models: seconds of each."""
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        models = [steps(recipes[0], data, first), steps(recipes[1], data, second)]
        turns = list(islice(zip(*models, strict=True), _FIRST, _FIRST + count))
    return [list(seconds) for seconds in zip(*turns, strict=True)]


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


if __name__ == "__main__":
    main()
