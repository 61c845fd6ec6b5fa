"""Systems side by side after few steps: the validation loss of each recipe before and after
training, as a table.

    SYNMT_DATA=... python benchmarks/short_runs.py recipes/multi30k-*.yaml --steps 300 --set
        training.warmup=100

Missing data are parsed and prepared first. Runs are written under --runs and continue after an
interruption.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import torch
from measuring import Row, arguments, table

from synmt.recipe.load import load_recipe
from synmt.reporting.formats import render
from synmt.reporting.values import Column, Report
from synmt.run_folder import Run
from synmt.training.distributed import Processes
from synmt.training.lifecycle import begin_run, check_run
from synmt.training.pipeline import make_trainer, prepare
from synmt.training.preparation import Prepared
from synmt.training.records import Log


def main() -> None:
    """Train each recipe and print the table."""
    options = arguments(
        __doc__,
        "recipes",
        steps=300,
        set=[""],
        data=Path("data"),
        runs=Path("runs/short"),
        threads=1,
    )
    torch.set_num_threads(options.threads)
    rows = [short_run(path, options) for path in options.recipes]
    print(
        render(
            {"": Report(title="", parts=[table(rows, others=Column(title="", digits=3))])},
            "markdown",
        )
    )


def short_run(path: Path, options: argparse.Namespace) -> Row:
    """Train a recipe, unless this was done; return the row of the table."""
    changes = [
        "training.validation_beam_size=0",
        "training.average=1",
        "training.use=last",
        "training.log_every=50",
    ]
    changes += [
        f"training.{key}={options.steps}" for key in ("max_steps", "validate_every", "save_every")
    ]
    recipe = load_recipe(path, [*changes, *filter(None, options.set)])
    run = Run(options.runs / recipe.name)
    check_run(run, recipe, overwrite=False)
    *_, prepared = prepare(recipe, data=options.data)
    assert isinstance(prepared, Prepared)
    run.folder.mkdir(parents=True, exist_ok=True)
    begin_run(run, recipe, prepared, overwrite=False)
    trainer = make_trainer(run, recipe, prepared, Processes())
    result = run.folder / "short.json"
    if not result.exists():
        untrained, began = trainer.validate(), time.perf_counter()
        log = Log(run.folder, trainer.resume())
        for record in trainer.train():
            log.write(record)
        seconds = time.perf_counter() - began
        result.write_text(json.dumps({"untrained": untrained, "seconds": seconds}))
    found = json.loads(result.read_text())
    records = [json.loads(line) for line in run.log.read_text().splitlines()]
    loss = [record["loss"] for record in records if record["kind"] == "validation"][-1]
    others = [record["losses"] for record in records if record.get("losses")]
    falls = [
        f"{name} {others[0][name]:.2f} → {others[-1][name]:.2f}" for name in (others or [()])[-1]
    ]
    weights = sum(weight.numel() for weight in trainer.model.parameters())
    row: Row = {
        "system": recipe.name,
        "weights": weights,
        "untrained": found["untrained"],
        "loss": loss,
    }
    return row | {
        "perplexity": math.exp(loss),
        "auxiliary losses": "; ".join(falls),
        "seconds": found["seconds"],
    }


if __name__ == "__main__":
    main()
