"""Training speed side by side: synmt plain and with every variant, Hugging Face MarianMT of the same size.

All see the same batches in turn: forward, backward and Adam. What is printed: target tokens for each second of wall
time; the time of a step, in processor time, relative to plain synmt; what collation takes for each batch; the same
relative time when batches are put together in the thread beside the steps, as in training; and the speed relative to
MarianMT. All are medians over rounds. A peak of memory is that of a process of its own.

    python benchmarks/train_throughput.py --size small --threads 2
    python benchmarks/train_throughput.py --size base --systems plain pascal deps-san ldd
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from marian import marian_model
from systems import SYSTEMS, batch_for, draw_examples, has_sixteen_heads, variants_in

from synmt.batch import Batch
from synmt.corpus import Example
from synmt.device import autocast, peak_memory
from synmt.loss import smoothed_cross_entropy
from synmt.model.build import build
from synmt.model.seq2seq import Seq2Seq
from synmt.recipe import ModelRecipe, Recipe
from synmt.recipe_file import check_recipe
from synmt.stream import prefetch
from synmt.syntax.pieces import PAD

Step = Callable[[Batch], None]


def recipe_of(size: str, name: str = "plain") -> Recipe:
    values = {"name": "b", "source": "en", "target": "de", "corpus": {"name": "controlled"}}
    plain: ModelRecipe = check_recipe({**values, "model": {"size": size}}, where="benchmark").model
    model: dict = {"size": size}
    if has_sixteen_heads(name):
        model["encoder_heads"] = [16, *[plain.heads] * (plain.encoder_layers - 1)]
    variants = variants_in(name, plain.encoder_layers)
    return check_recipe({**values, "model": model, "syntax": {"variants": variants}}, where="benchmark")


def synmt_model(name: str, options: argparse.Namespace) -> Seq2Seq:
    recipe = recipe_of(options.size, name)
    model = build(recipe.model, recipe.syntax, source_pieces=options.pieces, target_pieces=options.pieces)
    return model.to(options.device).train()


def synmt_step(model: Seq2Seq, options: argparse.Namespace) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(batch: Batch) -> None:
        with autocast(torch.device(options.device), options.precision):
            output, real = model(batch), batch.target_output != PAD
            targets = batch.target_output[real]
            loss, _ = smoothed_cross_entropy(output.states[real], model.output_weight, targets, smoothing=0.1)
        ((loss + sum(output.losses.values())) / len(targets)).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def marian_step(options: argparse.Namespace) -> Step:
    model = marian_model(recipe_of(options.size).model, options.pieces).to(options.device).train()
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


class System:
    """One model with its optimiser, and how long its rounds took.

    steps, fed: seconds of processor time of each round, with batches ready and with collation beside the steps.
    wall: seconds of wall time of each round with batches ready.
    """

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        torch.manual_seed(1)
        self.options = options
        self.model = None if name == "marian" else synmt_model(name, options)
        self.step = marian_step(options) if self.model is None else synmt_step(self.model, options)
        self.steps: list[float] = []
        self.wall: list[float] = []
        self.fed: list[float] = []
        self.collating: list[float] = []

    def round(self, corpus: Sequence[list[Example]]) -> None:
        """Run all batches once with batches ready, once from the thread."""
        began = time.perf_counter()
        batches = [batch_for(self.model, examples) for examples in corpus]
        self.collating.append(time.perf_counter() - began)
        wall, processor = self._run(batches)
        self.wall.append(wall)
        self.steps.append(processor)
        began = time.perf_counter()
        self._run(prefetch(batch_for(self.model, examples) for examples in corpus))
        self.fed.append(time.perf_counter() - began)

    def _run(self, batches: Iterable[Batch]) -> tuple[float, float]:
        wall, processor = time.perf_counter(), time.process_time()
        for batch in batches:
            self.step(batch.to(torch.device(self.options.device)))
        if self.options.device != "cpu":
            torch.cuda.synchronize()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        # a GPU works while the processor waits
        return wall, processor if self.options.device == "cpu" else wall

    def forget(self) -> None:
        """Drop what has been measured so far."""
        for times in (self.steps, self.wall, self.fed, self.collating):
            times.clear()


def measure(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Time every system on the same batches, round by round, in turn."""
    random = np.random.default_rng(0)
    corpus = [
        draw_examples(longest, max(1, options.batch_tokens // longest), options.pieces, random)
        for longest in options.lengths
    ]
    tokens = sum(batch_for(None, examples).target_tokens for examples in corpus)
    systems = {name: System(name, options) for name in options.systems}
    for number in range(options.rounds + 1):
        for system in systems.values():
            system.round(corpus)
            if not number:  # the first round warms up
                system.forget()
    return {name: summary(system, systems, tokens, len(corpus)) for name, system in systems.items()}


def summary(system: System, systems: dict[str, System], tokens: int, batches: int) -> dict[str, float]:
    row = {"tokens_per_second": tokens / statistics.median(system.wall)}
    if "plain" in systems and system.model is not None:
        plain = systems["plain"]
        row["step"] = median_ratio(system.steps, plain.steps)
        row["with_collation"] = median_ratio(system.fed, plain.fed)
        row["collation_ms"] = 1000 * statistics.median(system.collating) / batches
    if "marian" in systems:
        row["marian"] = median_ratio(systems["marian"].wall, system.wall)
    return row


def median_ratio(times: Sequence[float], base: Sequence[float]) -> float:
    return statistics.median(own / other for own, other in zip(times, base, strict=True))


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
    names = ("marian", *SYSTEMS)
    cli.add_argument("--systems", nargs="+", default=list(names), choices=names)
    cli.add_argument("--memory", action="store_true", help="measure peak memory, too")
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
    if options.memory:
        for name, row in found.items():
            row["peak_mb"] = peak_of(name, sys.argv[1:])
    print(json.dumps(found, indent=1) if options.json else table(found, options))


COLUMNS = {
    "tokens_per_second": ("target tokens/s", "{:,.0f}"),
    "step": ("step / plain", "{:.3f}"),
    "collation_ms": ("collation ms/batch", "{:.1f}"),
    "with_collation": ("fed / plain", "{:.3f}"),
    "marian": ("x marian", "{:.2f}"),
    "peak_mb": ("peak MB", "{:,.0f}"),
}


def table(found: dict[str, dict[str, float]], options: argparse.Namespace) -> str:
    shown = [key for key in COLUMNS if any(key in row for row in found.values())]
    title = f"{options.size}, {options.pieces} pieces, {options.precision}, {options.device}, {options.threads} threads"
    lines = [title, f"{'system':<20}" + "".join(f"{COLUMNS[key][0]:>20}" for key in shown)]
    for name, row in found.items():
        cells = (COLUMNS[key][1].format(row[key]) if key in row else "" for key in shown)
        lines.append(f"{name:<20}" + "".join(f"{cell:>20}" for cell in cells))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
