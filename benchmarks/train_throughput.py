"""Training speed side by side: synmt plain and with every variant, and tools with models of the
same size.

The Transformer is compared with Hugging Face's MarianMT and those of eole and JoeyNMT, the LSTM
with JoeyNMT's. All see the same batches in turn: forward, backward and Adam, without clipping. Each
round has batches of other shapes, as in training: some libraries generate code for each shape.
Printed are medians over rounds, ratios with their 95 % interval (bootstrap over rounds):

    tokens/s, tokens/CPU s  target tokens for each second of wall time, and of processor time
    step / base             processor time of a step relative to the plain model of the same
                            architecture
    fed / base              the same with batches made in a thread beside the steps; their collation
                            in milliseconds
    x TOOL                  how many times as fast as the tool, in wall time and in processor time

Where other work runs on the machine, only ratios in processor time hold. On a CPU, the tools
compute in float32, which is faster there. --lengths are those of the longest sentence of each
batch, --pieces is the size of the joint vocabulary. By default, all systems are measured that are
installed.

    python benchmarks/train_throughput.py --systems plain pascal relative --rounds 30 --threads 1
    python benchmarks/train_throughput.py --systems plain marian --precision bf16
    python benchmarks/train_throughput.py --size base --systems lstm sa fa joeynmt
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import measuring
import numpy as np
import torch
from measuring import Row
from peers import PEERS
from systems import ARCHITECTURES, batch_for, draw_examples, model_of, recipe_of
from torch import Tensor

from synmt.data.batch import Batch
from synmt.data.corpus import Example
from synmt.data.stream import prefetch
from synmt.model.device import autocast, choose_device, keep_freed_memory
from synmt.reporting.values import Column, Interval, Table
from synmt.training.loss import smoothed_cross_entropy


def synmt_loss(model: Any, batch: Batch) -> Tensor:
    """Compute the loss of a batch for each target piece."""
    output, positions = model(batch), batch.target_positions
    states, targets = (
        x.flatten(0, 1).index_select(0, positions) for x in (output.states, batch.target_output)
    )
    total, _ = smoothed_cross_entropy(states, model.output_weight, targets, smoothing=0.1)
    return (total + sum(output.losses.values())) / len(targets)


class System:
    """One model with its optimiser, and the seconds of its rounds.

    base: the system that it is compared with.
    wall, steps: of wall time and of processor time, with batches ready.
    fed: with collation beside the steps.
    collating: of collation alone.
    """

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        torch.manual_seed(1)
        self.device, self.reads = choose_device(options.device), None
        if name in PEERS:
            self.base, _, build, self.loss = PEERS[name]
            self.model = build(recipe_of(self.base, options.size).model, options.pieces)
            self.precision = "float32" if self.device.type == "cpu" else options.precision
        else:
            self.base = "lstm" if ARCHITECTURES[name] == "lstm" else "plain"
            self.reads = self.model = model_of(name, options.size, options.pieces)
            self.loss, self.precision = synmt_loss, options.precision
        self.model.to(self.device).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.times: dict[str, list[float]] = {}

    def round(self, corpus: Sequence[list[Example]]) -> None:
        """Run all batches once with batches ready, and once from the thread."""
        began = time.perf_counter()
        batches = [batch_for(self.reads, examples) for examples in corpus]
        self._add("collating", time.perf_counter() - began)
        began = time.perf_counter()
        self._add("steps", self._run(batches))
        self._add("wall", time.perf_counter() - began)
        if self.reads is not None:
            began = time.perf_counter()
            self._run(prefetch(batch_for(self.reads, examples) for examples in corpus))
            self._add("fed", time.perf_counter() - began)

    def _add(self, what: str, seconds: float) -> None:
        self.times.setdefault(what, []).append(seconds)

    def _run(self, batches: Iterable[Batch]) -> float:
        began = measuring.now(self.device)
        for batch in batches:
            with autocast(self.device, self.precision):
                loss = self.loss(self.model, batch.to(self.device))
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        return measuring.now(self.device) - began


def measure(options: argparse.Namespace) -> Table:
    """Time every system on the same batches, round by round, in turn."""
    random, tokens = np.random.default_rng(0), list[int]()
    systems = {name: System(name, options) for name in options.systems}
    sizes = [(longest, max(1, options.batch_tokens // longest)) for longest in options.lengths]
    # the first round warms up
    for number in range(options.rounds + 1):
        # up to an eighth less, so that shapes differ
        rows = [(longest, most - int(random.integers(most // 8 + 1))) for longest, most in sizes]
        corpus = [draw_examples(longest, size, options.pieces, random) for longest, size in rows]
        tokens.append(sum(len(batch_for(None, examples).target_positions) for examples in corpus))
        for system in systems.values():
            system.round(corpus)
            if not number:
                system.times.clear()
    rows = [summary(name, systems, tokens[1:], len(sizes)) for name in systems]
    return measuring.table(rows, others=Column(title="", digits=3))


def summary(name: str, systems: dict[str, System], tokens: Sequence[int], batches: int) -> Row:
    """Summarise a system.

    tokens: target tokens of each round.
    batches: of each round.
    """
    system, row = systems[name], Row(system=name)
    times, base = system.times, systems.get(system.base)
    for title, key in (("tokens/s", "wall"), ("tokens/CPU s", "steps")):
        row[title] = round(float(np.median(np.array(tokens) / times[key])))
    if base and system.reads is not None:
        row |= ratio("step / base", times["steps"], base.times["steps"])
        row |= ratio("fed / base", times["fed"], base.times["fed"])
        row["collation ms/batch"] = 1000 * float(np.median(times["collating"])) / batches
    for peer in PEERS:
        if peer in systems and systems[peer].base == system.base:
            row |= ratio(f"x {peer}", systems[peer].times["wall"], times["wall"])
            row |= ratio(f"x {peer}, CPU", systems[peer].times["steps"], times["steps"])
    return row


def ratio(title: str, times: Sequence[float], base: Sequence[float]) -> Row:
    """Return the median ratio over rounds, and its interval."""
    ratios = np.array(times) / np.array(base)  # (R,)
    medians = np.median(np.random.default_rng(0).choice(ratios, (2000, len(ratios))), axis=1)
    low, high = np.quantile(medians, (0.025, 0.975))
    return {
        title: float(np.median(ratios)),
        f"{title}, 95 % interval": Interval(float(low), float(high)),
    }


def main() -> None:
    """Read the options, measure, and print the table."""
    missing = [
        name for name, (_, module, *_) in PEERS.items() if importlib.util.find_spec(module) is None
    ]
    options = measuring.arguments(
        __doc__,
        size="small",
        pieces=8000,
        batch_tokens=2048,
        lengths=[12, 20, 28, 45],
        rounds=7,
        threads=2,
        device="cpu",
        precision="float32",
        systems=[name for name in (*PEERS, *ARCHITECTURES) if name not in missing],
    )
    for name in options.systems:
        if name in missing or name not in {*PEERS, *ARCHITECTURES}:
            sys.exit(
                f"error: no system is named '{name}', or the Python package of this tool is not "
                "installed"
            )
    keep_freed_memory()
    torch.set_num_threads(options.threads)
    print(
        f"{options.size}, {options.pieces} pieces, {options.precision}, {options.device}, "
        f"{options.threads} threads"
    )
    print(measure(options))


if __name__ == "__main__":
    main()
