"""Train and measure the systems of a comparison; what has been measured is not measured again.

    SYNMT_THREADS=1 python benchmarks/results.py results/controlled.yaml
    python benchmarks/results.py results/controlled.yaml target_parser.model=FOLDER
    python benchmarks/results_page.py

Several of these commands share the runs: start one for each core. Each run that has finished leaves
a small file in the folder of the comparison, to be committed: scores, what is needed to compare
systems sentence by sentence, and what it cost. An interrupted run continues from its last
checkpoint. A run that fails is named, and tried again the next time.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout
from results_plan import Plan, change, fingerprint
from results_stored import ending_errors, labels, measure, read_result

from synmt.errors import SynmtError
from synmt.files.writing import write_json
from synmt.run_folder import Run
from synmt.training.grid import train_run
from synmt.training.grid_runs import FailedRun, GridRun
from synmt.training.pipeline import prepare


def main() -> int:
    """Train what is missing; returns 1 if a run failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plan", type=Path, help="a file of results/")
    parser.add_argument("changes", nargs="*", metavar="key=value", help="changes of every recipe")
    parser.add_argument("--runs", type=Path, default=Path("runs/results"))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--list", action="store_true", help="name the runs that are missing")
    options, failed = parser.parse_intermixed_args(), 0
    with ending_errors():
        plan = Plan.load(options.plan)
        runs = plan.runs(dict(map(change, options.changes)), options.runs)
        missing = [run for run in runs if not _has_result(plan, run)]
        if options.list:
            # all at once: `head` may read no more than it shows
            sys.stdout.write("".join(f"{run.recipe.name}\n" for run in missing))
            return 0
        for folder in (plan.folder, options.runs, options.data):
            folder.mkdir(parents=True, exist_ok=True)
        for run in missing:
            # another process trains a run that is locked
            with suppress(Timeout), FileLock(f"{run.folder}.lock", timeout=0):
                failed |= train(plan, run, options.data)
    return failed


def _has_result(plan: Plan, run: GridRun) -> bool:
    """Whether a run has a result; raises SynmtError if it is that of another recipe."""
    path = plan.result(run.system, run.recipe.training.seed)
    return path.exists() and bool(read_result(path, fingerprint(run.recipe)))


def train(plan: Plan, planned: GridRun, data: Path) -> int:
    """Train and measure a run, unless another process has; returns 1 if it failed."""
    if _has_result(plan, planned):
        return 0
    # one process at a time prepares data; an error comes again when the run is trained
    with suppress(SynmtError), FileLock(data / ".results.lock"):
        for _ in prepare(planned.recipe, data=data):
            pass
    end, run = train_run(planned, data), Run(planned.folder)
    if isinstance(end, FailedRun):
        print(f"{run.name} failed: {end.reason}", flush=True)
        return 1
    named = {"system": planned.system, "fingerprint": fingerprint(planned.recipe)}
    result = {**named, **measure(run)}
    write_json(plan.result(planned.system, result["seed"]), result, indent=1)
    if found := labels(run):
        write_json(plan.folder / "labels.json", found, indent=1)
    for test, measured in result["tests"].items():
        print(f"{run.name}: {test} {measured['scores']['bleu']['score']:.2f} BLEU", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
