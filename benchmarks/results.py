"""Train and measure the systems of a comparison; what has been measured is not measured again.

    SYNMT_THREADS=1 python benchmarks/results.py results/controlled.yaml
    python benchmarks/results.py results/controlled.yaml --seeds 1 target_parser.model=FOLDER
    python benchmarks/results_page.py

Several of these commands share the runs: start one for each core. Each run that has finished leaves
a small file of JSON in the folder of the comparison, to be committed: scores, what is needed to
compare systems sentence by sentence, and what it cost. An interrupted run continues from its last
checkpoint. A run that fails is named, and tried again the next time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout
from results_plan import Plan, Planned, change
from results_stored import ending_errors, labels, measure, read_result

from synmt.errors import SynmtError, UsageError, unknown_name
from synmt.files.writing import write_json
from synmt.run_folder import Run
from synmt.training.grid import train_run
from synmt.training.grid_runs import FailedRun, GridRun
from synmt.training.pipeline import prepare


def main() -> int:
    """Train what is missing; returns 1 if a run failed."""
    options, failed = _options(), 0
    with ending_errors():
        plan = Plan.load(options.plan)
        if options.list:
            # all at once: `head` may read no more than it shows
            sys.stdout.write("".join(f"{run.recipe.name}\n" for run in _missing(plan, options)))
            return 0
        for folder in (plan.folder, options.runs, options.data):
            folder.mkdir(parents=True, exist_ok=True)
        # once a search has ended, the mixture that it has found has more runs
        while not failed and (missing := list(_missing(plan, options))):
            for planned in missing:
                lock = options.runs / f".{planned.recipe.name}.lock"
                # another process trains a run that is locked
                with suppress(Timeout), FileLock(lock, timeout=0):
                    failed |= train(plan, planned, options)
            if all(not run.result.exists() for run in missing):
                break
    return failed


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plan", type=Path, help="a file of results/")
    parser.add_argument("changes", nargs="*", metavar="key=value", help="changes of every recipe")
    parser.add_argument("--seeds", type=int, nargs="+", help="only these")
    parser.add_argument("--systems", nargs="+", help="only these")
    parser.add_argument("--runs", type=Path, default=Path("runs/results"))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument(
        "--list", action="store_true", help="name the runs that are missing, and stop"
    )
    return parser.parse_intermixed_args()


def _missing(plan: Plan, options: argparse.Namespace) -> Iterator[Planned]:
    """Yield the chosen runs without a result; raises UsageError for an unknown system, and for the
    result of another recipe."""
    names = (*plan.systems, *plan.search)
    for name in options.systems or ():
        if name not in names:
            raise unknown_name("system", name, names, where=str(options.plan))
    systems, seeds = options.systems or names, options.seeds or plan.seeds
    for run in plan.runs(dict(map(change, options.changes))):
        if run.system not in systems or run.seed not in seeds:
            continue
        if not run.result.exists():
            yield run
        elif (measured := read_result(run.result)["fingerprint"]) != run.fingerprint:
            what = f"the result of another recipe ({measured})"
            do = f"Remove it, and {options.runs / run.recipe.name}, to train and measure again"
            raise UsageError(what, where=str(run.result), do=do)


def train(plan: Plan, planned: Planned, options: argparse.Namespace) -> int:
    """Train and measure a run, unless another process has; returns 1 if it failed."""
    if planned.result.exists():
        return 0
    # one process at a time prepares data; an error comes again when the run is trained
    with suppress(SynmtError), FileLock(options.data / ".results.lock"):
        for _ in prepare(planned.recipe, data=options.data):
            pass
    folder = options.runs / planned.recipe.name
    end = train_run(GridRun(planned.system, planned.recipe, folder), options.data)
    if isinstance(end, FailedRun):
        print(f"{planned.recipe.name} failed: {end.reason}", flush=True)
        return 1
    named = {"system": planned.system, "seed": planned.seed, "fingerprint": planned.fingerprint}
    named["architecture"] = planned.recipe.model.architecture
    result = {**named, **measure(Run(folder), plan.contrast)}
    write_json(planned.result, result, indent=1)
    write_json(plan.folder / "labels.json", labels(Run(folder)))
    scores = [
        f"{test} {of_test['scores']['bleu']['score']:.2f} BLEU"
        for test, of_test in result["tests"].items()
    ]
    print(f"{planned.recipe.name}: {', '.join(scores)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
