"""Train and measure the systems of a comparison; what has been measured is not measured again.

    python benchmarks/results.py results/controlled.yaml
    python benchmarks/results.py results/controlled.yaml --jobs 1 --seeds 1 target_parser.model=FOLDER
    python benchmarks/results_page.py

Each run that has finished leaves a small file of JSON in the folder of the comparison, to be committed: scores, what is
needed to compare systems sentence by sentence, and what it cost. An interrupted run continues from its last checkpoint.
A run that fails is named, and tried again the next time.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock
from results_measure import labels, measure
from results_plan import Plan, Planned

from synmt.errors import SynmtError
from synmt.files.writing import write_json
from synmt.parallel.processes import in_processes
from synmt.parallel.threads import chosen_cores
from synmt.recipe.yaml_text import parse_yaml_value
from synmt.run import Run
from synmt.training.grid import train_run
from synmt.training.grid_runs import FailedRun, GridRun
from synmt.training.pipeline import prepare


def main() -> int:
    """Train what is missing; returns 1 if a run failed."""
    options = _options()
    plan = Plan.load(options.plan)
    failed = 0
    _check_systems(plan, options)
    settings, missing = (plan, options.runs, options.data), list(_missing(plan, options))
    if options.list:
        # all at once: `head` may read no more than it shows
        sys.stdout.write("".join(f"{planned.recipe.name}\n" for planned in missing))
        return 0
    items = _prepared(missing, options.data)
    outcomes = in_processes(_train_and_measure, settings, items, min(options.jobs, len(missing)), where=options.runs)
    for planned, outcome in outcomes if missing else ():
        if isinstance(outcome, FailedRun):
            failed += 1
            print(f"{planned.recipe.name} failed: {outcome.reason}", flush=True)
        else:
            write_json(planned.result, outcome, indent=1)
            labels_file = plan.folder / "labels.json"
            if not labels_file.exists():
                write_json(labels_file, labels(Run(options.runs / planned.recipe.name)))
            print(f"{planned.recipe.name}: {_summary(outcome)}", flush=True)
    return int(failed > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path, help="a file of results/")
    parser.add_argument("changes", nargs="*", metavar="key=value", help="changes of every recipe")
    parser.add_argument("--seeds", type=int, nargs="+", help="only these")
    parser.add_argument("--systems", nargs="+", help="only these")
    jobs = "runs at the same time, each on one core (a single one on all); default: one for each core"
    parser.add_argument("--jobs", type=int, default=chosen_cores(), help=jobs)
    parser.add_argument("--runs", type=Path, default=Path("runs/results"))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--list", action="store_true", help="name the runs that are missing, and stop")
    return parser.parse_intermixed_args()


def _check_systems(plan: Plan, options: argparse.Namespace) -> None:
    for name in options.systems or ():
        if name not in {*plan.systems, *plan.search}:
            hint = "; write changes before --systems" if "=" in name else ""
            raise SystemExit(f"{options.plan} has no system `{name}`{hint}")


def _missing(plan: Plan, options: argparse.Namespace) -> Iterator[Planned]:
    """Yield the runs without a result; a result of another recipe is an error."""
    changes = dict(change.split("=", 1) for change in options.changes)
    for planned in plan.runs({key: parse_yaml_value(value) for key, value in changes.items()}):
        if options.seeds and planned.seed not in options.seeds:
            continue
        if options.systems and planned.system not in options.systems:
            continue
        if planned.result.exists():
            measured = json.loads(planned.result.read_text(encoding="utf-8"))["fingerprint"]
            if measured != planned.fingerprint:
                raise SystemExit(f"{planned.result} belongs to another recipe ({measured}): remove it to measure again")
        else:
            yield planned


def _prepared(missing: Sequence[Planned], data: Path) -> Iterator[Planned]:
    """Prepare the data of each run before it is handed on, so that two processes never prepare the same.

    A second comparison that starts at the same time waits.
    """
    data.mkdir(parents=True, exist_ok=True)
    for planned in missing:
        # an error comes again when the run is trained, and is reported there
        with suppress(SynmtError), FileLock(data / ".results.lock"):
            for _ in prepare(planned.recipe, data=data):
                pass
        yield planned


def _train_and_measure(
    settings: tuple[Plan, Path, Path], planned: Planned
) -> tuple[Planned, dict[str, Any] | FailedRun]:
    plan, runs, data = settings
    folder = runs / planned.recipe.name
    end = train_run(GridRun(planned.system, planned.recipe, folder), data)
    return planned, end if isinstance(end, FailedRun) else measure(plan, planned, folder)


def _summary(result: dict[str, Any]) -> str:
    scores = (f"{name} {test['scores']['bleu']['score']:.2f} BLEU" for name, test in result["tests"].items())
    return f"{', '.join(scores)}, {result['training']['processor_seconds']:,.0f} s of processor time"


if __name__ == "__main__":
    sys.exit(main())
