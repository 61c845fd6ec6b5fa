"""Training speed side by side: synmt plain, synmt with PASCAL, Hugging Face MarianMT of the same size.

All see the same batches in turn, forward, backward and Adam; what is printed are target tokens for each second of
wall time and of processor time, and their ratios to MarianMT (medians over rounds). Each system's peak memory is that
of a process of its own.

    python benchmarks/train_throughput.py --size small --threads 2
    python benchmarks/train_throughput.py --size small --precision bf16
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from marian import marian_model

from synmt.batch import Batch, Sequences
from synmt.device import autocast, peak_memory
from synmt.loss import smoothed_cross_entropy
from synmt.model.build import build
from synmt.recipe import ModelRecipe, SyntaxRecipe
from synmt.recipe_file import check_recipe
from synmt.syntax.pieces import BOS, PAD

Step = Callable[[Batch], None]
SYSTEMS = ("marian", "plain", "pascal")


def recipes(size: str, variants: list[dict]) -> tuple[ModelRecipe, SyntaxRecipe]:
    values = {"name": "b", "source": "en", "target": "de", "corpus": {"name": "controlled"}}
    recipe = check_recipe({**values, "model": {"size": size}, "syntax": {"variants": variants}}, where="benchmark")
    return recipe.model, recipe.syntax


def synmt_step(variants: list[dict], options: argparse.Namespace) -> Step:
    model_recipe, syntax = recipes(options.size, variants)
    model = build(model_recipe, syntax, source_pieces=options.pieces, target_pieces=options.pieces)
    model = model.to(options.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(batch: Batch) -> None:
        with autocast(torch.device(options.device), options.precision):
            states, real = model(batch).states, batch.target_output != PAD
            targets = batch.target_output[real]
            loss, _ = smoothed_cross_entropy(states[real], model.output_weight, targets, smoothing=0.1)
        (loss / len(targets)).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def marian_step(options: argparse.Namespace) -> Step:
    shape, _ = recipes(options.size, [])
    model = marian_model(shape, options.pieces).to(options.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(batch: Batch) -> None:
        labels = batch.target_output.masked_fill(batch.target_output == PAD, -100)
        with autocast(torch.device(options.device), options.precision):
            loss = model(
                input_ids=batch.source.ids,
                attention_mask=batch.source.mask.long(),
                decoder_input_ids=batch.target_input,
                labels=labels,
            ).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def make_step(name: str, options: argparse.Namespace) -> Step:
    torch.manual_seed(1)
    if name == "marian":
        return marian_step(options)
    return synmt_step([{"name": "pascal", "layers": [1]}] if name == "pascal" else [], options)


def draw_batch(longest: int, options: argparse.Namespace, random: np.random.Generator) -> Batch:
    """Draw a bucketed batch: lengths within three pieces of the longest."""
    sentences = max(1, options.batch_tokens // longest)
    lengths = random.integers(max(1, longest - 3), longest + 1, (2, sentences))
    lengths[:, 0] = longest
    draw = torch.from_numpy(random.integers(4, options.pieces, (2, sentences, longest)))
    masks = torch.arange(longest) < torch.from_numpy(lengths)[..., None]
    source, target = draw.masked_fill(~masks, PAD)
    begin = torch.full((sentences, 1), BOS)
    parents = torch.from_numpy(random.random((sentences, longest)).astype("float32") * longest)
    batch = Batch(
        Sequences(source, masks[0]), torch.cat((begin, target[:, :-1]), 1), target, {"parent_middle": parents}, {}
    )
    return batch.to(torch.device(options.device))


def measure(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Time every system on the same batches, round by round, in turn."""
    random = np.random.default_rng(0)
    batches = [draw_batch(longest, options, random) for longest in options.lengths]
    tokens = sum(batch.target_tokens for batch in batches)
    steps = {name: make_step(name, options) for name in options.systems}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    for number in range(options.rounds + 1):
        for name, step in steps.items():
            wall, processor = time.perf_counter(), time.process_time()
            for batch in batches:
                step(batch)
            if options.device != "cpu":
                torch.cuda.synchronize()
            if number:  # the first round warms up
                times[name].append((time.perf_counter() - wall, time.process_time() - processor))
    return {name: summary(rounds, times.get("marian", rounds), tokens) for name, rounds in times.items()}


def summary(rounds: list, base: list, tokens: int) -> dict[str, float]:
    wall = statistics.median(seconds for seconds, _ in rounds)
    ratios = [[b[kind] / r[kind] for r, b in zip(rounds, base, strict=True)] for kind in (0, 1)]
    return {
        "tokens_per_second": tokens / wall,
        "ratio": statistics.median(ratios[0]),
        "cpu_ratio": statistics.median(ratios[1]),
    }


def peak_of(name: str, arguments: list[str]) -> float:
    """Run one system alone in a process and read its peak memory in MB."""
    command = [sys.executable, __file__, *arguments, "--only-memory", name]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--size", default="small", choices=("tiny", "small", "base", "big"))
    cli.add_argument("--pieces", type=int, default=8000, help="size of the joint vocabulary")
    cli.add_argument("--batch-tokens", type=int, default=2048)
    cli.add_argument("--lengths", type=int, nargs="+", default=[12, 20, 28, 45], help="longest sentence of each batch")
    cli.add_argument("--rounds", type=int, default=7)
    cli.add_argument("--threads", type=int, default=2)
    cli.add_argument("--device", default="cpu")
    cli.add_argument("--precision", default="float32", choices=("float32", "bf16", "fp16"))
    cli.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS)
    cli.add_argument("--json", action="store_true")
    cli.add_argument("--only-memory", help=argparse.SUPPRESS)
    options = cli.parse_args()
    torch.set_num_threads(options.threads)
    if options.only_memory:
        options.systems, options.rounds = [options.only_memory], 1
        measure(options)
        print(peak_memory(torch.device(options.device)) / 2**20)
        return
    found = measure(options)
    for name, row in found.items():
        row["peak_mb"] = peak_of(name, sys.argv[1:])
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print(f"{options.size}, {options.pieces} pieces, {options.precision}, {options.device}, {options.threads} threads")
    print(f"{'system':<10}{'target tokens/s':>18}{'x marian':>10}{'x marian (CPU time)':>22}{'peak MB':>10}")
    for name, row in found.items():
        ratios = f"{row['ratio']:>10.2f}{row['cpu_ratio']:>22.2f}"
        print(f"{name:<10}{row['tokens_per_second']:>18,.0f}{ratios}{row['peak_mb']:>10,.0f}")
    if {"plain", "pascal"} <= found.keys():
        print(f"pascal against plain: {found['pascal']['cpu_ratio'] / found['plain']['cpu_ratio']:.3f} (CPU time)")


if __name__ == "__main__":
    main()
