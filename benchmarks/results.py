"""Train and measure the systems of a comparison; what has been measured is not measured again.

    python benchmarks/results.py results/controlled.yaml
    python benchmarks/results.py results/controlled.yaml --jobs 1 --seeds 1
    target_parser.model=FOLDER python benchmarks/results_page.py

Each run that has finished leaves a small file of JSON in the folder of the comparison, to be
committed: scores, what is needed to compare systems sentence by sentence, and what it cost. An
interrupted run continues from its last checkpoint. A run that fails is named, and tried again the
next time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock
from results_plan import Plan, Planned, change
from results_stored import ending_errors, labels, measure, read_labels, read_result

from synmt.corpora.items import test_names
from synmt.errors import SynmtError, UsageError, counted, did_you_mean
from synmt.files.writing import write_json
from synmt.parallel.processes import in_processes
from synmt.parallel.threads import chosen_cores
from synmt.run_folder import Run, check_folder
from synmt.training.grid import train_run
from synmt.training.grid_runs import FailedRun, GridRun
from synmt.training.pipeline import prepare


def main() -> int:
    """Train what is missing; returns 1 if a run failed."""
    options = _options()
    with ending_errors():
        plan = Plan.load(options.plan)
        chosen = list(_chosen(plan, options))
        missing = _missing(chosen, options.runs)
        if options.list:
            # all at once: `head` may read no more than it shows
            sys.stdout.write("".join(f"{run.recipe.name}\n" for run in missing))
            return 0
        sys.stderr.write(
            f"{plan.path}: {len(missing):,} of {counted(len(chosen), 'run')} missing\n"
        )
        for folder in (plan.folder, options.runs, options.data):
            check_folder(folder)
        while missing:
            if train(plan, missing, options):
                return 1
            # once a search has ended, the mixture that it has found has more runs
            missing = _missing(list(_chosen(plan, options)), options.runs)
            if missing:
                left = counted(len(missing), "run")
                sys.stderr.write(f"the search has found {missing[0].system}: {left} missing\n")
        return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plan", type=Path, help="a file of results/")
    parser.add_argument("changes", nargs="*", metavar="key=value", help="changes of every recipe")
    parser.add_argument("--seeds", type=int, nargs="+", help="only these")
    parser.add_argument("--systems", nargs="+", help="only these")
    jobs = (
        "runs at the same time, each on one core (a single one on all); default: one for each core"
    )
    parser.add_argument(
        "--jobs", type=int, choices=range(1, 1000), metavar="N", default=chosen_cores(), help=jobs
    )
    parser.add_argument("--runs", type=Path, default=Path("runs/results"))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument(
        "--list", action="store_true", help="name the runs that are missing, and stop"
    )
    return parser.parse_intermixed_args()


def _chosen(plan: Plan, options: argparse.Namespace) -> Iterator[Planned]:
    """Yield the runs of the chosen systems and seeds; raises UsageError if the plan does not have
    them."""
    where, names = str(options.plan), (*plan.systems, *plan.search)
    for name in options.systems or ():
        if name not in names:
            do = "Write changes before --systems" if "=" in name else did_you_mean(name, names)
            raise UsageError(f"no system is named '{name}'", where=where, do=do)
    for seed in options.seeds or ():
        if seed not in plan.seeds:
            allowed = f"Seeds: {', '.join(map(str, plan.seeds))}"
            raise UsageError(f"the plan does not have seed {seed}", where=where, allowed=allowed)
    systems, seeds = options.systems or names, options.seeds or plan.seeds
    runs = [
        run
        for run in plan.runs(dict(map(change, options.changes)))
        if run.system in systems and run.seed in seeds
    ]
    if not runs:
        what = "only the mixture that the search finds is trained with more seeds than the first"
        raise UsageError(what, where=where, do="Choose other systems or seeds")
    for run in runs:
        _check_tests(plan, run)
        yield run


def _check_tests(plan: Plan, run: Planned) -> None:
    """Raise UsageError if a recipe lacks a test set of the plan; a missing corpus has none at
    all."""
    known = test_names(run.recipe.corpus, run.recipe.source, run.recipe.target)
    for name in plan.tests:
        if known and name not in known:
            what = f"{run.system} has no test set '{name}'"
            allowed, do = f"Test sets: {', '.join(known)}", did_you_mean(name, known)
            raise UsageError(what, where=str(plan.path), allowed=allowed, do=do)


def _missing(chosen: Sequence[Planned], runs: Path) -> list[Planned]:
    """Choose the runs without a result; raises UsageError for the result of another recipe."""
    missing = list[Planned]()
    for run in chosen:
        if not run.result.exists():
            missing.append(run)
        elif (measured := read_result(run.result)["fingerprint"]) != run.fingerprint:
            what = f"the result of another recipe ({measured})"
            do = f"Remove it, and {runs / run.recipe.name}, to train and measure again"
            raise UsageError(what, where=str(run.result), do=do)
    return missing


def train(plan: Plan, missing: Sequence[Planned], options: argparse.Namespace) -> int:
    """Train and measure runs; returns 1 if one failed."""
    failed, settings = 0, (plan, options.runs, options.data)
    items, jobs = prepared(missing, options.data), min(options.jobs, len(missing))
    outcomes = in_processes(_train_and_measure, settings, items, jobs, where=options.runs)
    for number, (planned, outcome) in enumerate(outcomes, 1):
        if isinstance(outcome, FailedRun):
            failed, ended = 1, f" failed: {outcome.reason}"
        else:
            write_json(planned.result, outcome, indent=1)
            _write_labels(plan, Run(options.runs / planned.recipe.name))
            ended = f": {_summary(outcome)}"
        print(f"{number} of {len(missing)}, {planned.recipe.name}{ended}", flush=True)
    return failed


def prepared(missing: Sequence[Planned], data: Path) -> Iterator[Planned]:
    """Prepare the data of each run before it is handed on, so that two processes never prepare the
    same.

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
    if isinstance(end, FailedRun):
        return planned, end
    named = {"system": planned.system, "seed": planned.seed, "fingerprint": planned.fingerprint}
    named["architecture"] = planned.recipe.model.architecture
    return planned, {**named, **measure(Run(folder), plan.contrast)}


def _write_labels(plan: Plan, run: Run) -> None:
    """Write the labels of the sentences of the test sets, which are those of each run, unless they
    are there."""
    path = plan.folder / "labels.json"
    try:
        read_labels(path, plan.tests)
    except SynmtError:
        write_json(path, labels(run))


def _summary(result: dict[str, Any]) -> str:
    parts = [
        f"{name} {test['scores']['bleu']['score']:.2f} BLEU"
        for name, test in result["tests"].items()
    ]
    seconds = result["training"]["processor_seconds"]
    # a training without a logged step does not know its time
    return ", ".join(
        [*parts, *([] if seconds is None else [f"{seconds:,.0f} s of processor time"])]
    )


if __name__ == "__main__":
    sys.exit(main())
