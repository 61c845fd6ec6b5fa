"""Systems side by side after few steps: the validation loss of each recipe before and after training, as a table.

    SYNMT_DATA=... python benchmarks/short_runs.py recipes/multi30k-*.yaml --steps 300 --set training.warmup=100

Missing data are parsed and prepared first. Runs are written under --runs and continue after an interruption.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import torch

from synmt.recipe.load import load_recipe
from synmt.run import Run
from synmt.training.distributed import Processes
from synmt.training.lifecycle import begin_run, check_run
from synmt.training.log import Log
from synmt.training.pipeline import make_trainer, prepare
from synmt.training.preparation import Prepared

COLUMNS = ("system", "weights", "untrained", "loss", "perplexity", "auxiliary losses", "seconds")


def short_run(path: Path, options: argparse.Namespace) -> dict[str, object]:
    steps = f"training.max_steps={options.steps}"
    often = [f"training.{key}={options.steps}" for key in ("validate_every", "save_every")]
    fixed = ["training.validation_beam_size=0", "training.average=1", "training.use=last", "training.log_every=50"]
    recipe = load_recipe(path, [steps, *often, *fixed, *options.set])
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
        result.write_text(json.dumps({"untrained": untrained, "seconds": time.perf_counter() - began}))
    records = [json.loads(line) for line in (run.folder / "log.jsonl").read_text().splitlines()]
    losses = [record["losses"] for record in records if record.get("losses")]
    valid = [record["loss"] for record in records if record["kind"] == "validation"]
    return {
        **json.loads(result.read_text()),
        "system": recipe.name,
        "weights": sum(weight.numel() for weight in trainer.model.parameters()),
        "loss": valid[-1],
        "perplexity": math.exp(valid[-1]),
        "auxiliary losses": "; ".join(
            f"{name} {losses[0][name]:.2f} → {losses[-1][name]:.2f}" for name in (losses[-1] if losses else {})
        ),
    }


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("recipes", nargs="+", type=Path)
    cli.add_argument("--steps", type=int, default=300)
    cli.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="overrides for every recipe")
    cli.add_argument("--data", type=Path, default=Path("data"))
    cli.add_argument("--runs", type=Path, default=Path("runs/short"))
    cli.add_argument("--threads", type=int, default=1)
    options = cli.parse_args()
    torch.set_num_threads(options.threads)
    print("| " + " | ".join(COLUMNS) + " |\n|" + " --- |" * len(COLUMNS), flush=True)
    for path in options.recipes:
        row = short_run(path, options)
        cells = [row[name] for name in COLUMNS]
        shown = (f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells)
        print("| " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    main()
