"""Training speed side by side: synmt plain and with every variant, and tools with models of the same size.

The Transformer is compared with Hugging Face's MarianMT and those of eole, OpenNMT-py and JoeyNMT, the LSTM with
JoeyNMT's and OpenNMT-py's. All see the same batches in turn: forward, backward and Adam, without clipping. Each round
has batches of other shapes, as in training: some libraries generate code for each shape. Printed are medians over
rounds, ratios with their 95 % interval (bootstrap over rounds):

    target tokens/s       of wall time, and for each second of processor time
    step / base           processor time of a step relative to the plain model of the same architecture
    collation, fed / base milliseconds of a batch, and the same ratio with batches made in a thread beside the steps
    x TOOL                how many times as fast as the tool, in wall time and in processor time
    busy / quiet          with --busy N: the work of a second of processor time next to N processes that never rest

Where other work runs on the machine, only ratios in processor time hold. The tools compute in --peer-precision, by
default float32. --prepared takes the lengths of a real text from a folder that `synmt prepare` made.

    python benchmarks/train_throughput.py --systems plain marian eole --prepared data/prepared/multi30k-…
    python benchmarks/train_throughput.py --systems plain pascal relative --rounds 30 --threads 1
    python benchmarks/train_throughput.py --systems plain marian --busy 5 --precision bf16 --dropout 0.1 0.1 0.1
    python benchmarks/train_throughput.py --size base --systems lstm sa fa joeynmt opennmt
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import measuring
import numpy as np
import numpy.typing as npt
import torch
from marian import marian_loss, marian_model
from recurrent_peers import joeynmt_loss, joeynmt_model, opennmt_loss, opennmt_model
from systems import LSTMS, SYSTEMS, batch_for, draw_examples, draw_pairs, model_of, recipe_of
from torch import Tensor, nn
from transformer_peers import (
    eole_transformer,
    eole_transformer_loss,
    joeynmt_transformer,
    joeynmt_transformer_loss,
    opennmt_transformer,
    opennmt_transformer_loss,
)

from synmt.data.batch import Batch
from synmt.data.batch_plan import plan_batches
from synmt.data.corpus import Example, PreparedCorpus
from synmt.data.stream import prefetch
from synmt.model.device import autocast, choose_device, keep_freed_memory
from synmt.model.seq2seq import Seq2Seq
from synmt.training.loss import smoothed_cross_entropy
from synmt.training.meter import peak_memory

PEERS = {
    "marian": ("plain", "transformers", marian_model, marian_loss),
    "eole": ("plain", "eole", eole_transformer, eole_transformer_loss),
    "opennmt-transformer": ("plain", "onmt", opennmt_transformer, opennmt_transformer_loss),
    "joeynmt-transformer": ("plain", "joeynmt", joeynmt_transformer, joeynmt_transformer_loss),
    "joeynmt": ("lstm", "joeynmt", joeynmt_model, joeynmt_loss),
    "opennmt": ("lstm", "onmt", opennmt_model, opennmt_loss),
}
"""Other tools: the system whose size they have, the module they need, their model, and its loss."""


def synmt_loss(model: Seq2Seq) -> Callable[[Batch], Tensor]:
    """Compute the loss of a batch for each target piece."""

    def loss(batch: Batch) -> Tensor:
        output, positions = model(batch), batch.target_positions
        states, targets = (x.flatten(0, 1).index_select(0, positions) for x in (output.states, batch.target_output))
        total, _ = smoothed_cross_entropy(states, model.output_weight, targets, smoothing=0.1)
        return (total + sum(output.losses.values())) / len(targets)

    return loss


def base_of(name: str) -> str:
    """Give the system that a system is compared with."""
    return PEERS[name][0] if name in PEERS else "lstm" if name in LSTMS else "plain"


class System:
    """One model with its optimiser, and how long its rounds took.

    steps, fed: seconds of processor time of each round, with batches ready and with collation beside the steps.
    wall: seconds of wall time of each round with batches ready.
    busy: seconds of processor time of each round beside other processes.
    first_loss: before the first step.
    """

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        torch.manual_seed(1)
        self.device = choose_device(options.device)
        self.precision = options.peer_precision if name in PEERS else options.precision
        if name in PEERS:
            base, _, build_model, loss_of = PEERS[name]
            rates = {} if base == "lstm" else options.rates
            model: nn.Module = build_model(recipe_of(base, options.size, rates).model, options.pieces)
            self.reads, self.loss = None, loss_of(model)
        else:
            model = self.reads = model_of(name, options.size, options.pieces, {} if name in LSTMS else options.rates)
            self.loss = synmt_loss(model)
        model.to(self.device).train()
        self.weights = sum(weight.numel() for weight in model.parameters())
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        self.first_loss: float | None = None
        self.steps: list[float] = []
        self.wall: list[float] = []
        self.busy: list[float] = []
        self.fed: list[float] = []
        self.collating: list[float] = []

    def step(self, batch: Batch) -> None:
        with autocast(self.device, self.precision):
            loss = self.loss(batch)
        if self.first_loss is None:
            self.first_loss = loss.item()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def round(self, corpus: Sequence[list[Example]], busy: int = 0) -> None:
        """Run all batches once with batches ready, once with other processes, once from the thread."""
        began = time.perf_counter()
        batches = [batch_for(self.reads, examples) for examples in corpus]
        self.collating.append(time.perf_counter() - began)
        wall, processor = self._run(batches)
        self.wall.append(wall)
        self.steps.append(processor)
        if busy:
            with measuring.busy(busy):
                self.busy.append(self._run(batches)[1])
        if self.reads is not None:
            began = time.perf_counter()
            self._run(prefetch(batch_for(self.reads, examples) for examples in corpus))
            self.fed.append(time.perf_counter() - began)

    def _run(self, batches: Iterable[Batch]) -> tuple[float, float]:
        wall, processor = time.perf_counter(), time.process_time()
        for batch in batches:
            self.step(batch.to(self.device))
        if self.device.type != "cpu":
            torch.cuda.synchronize()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        # a GPU works while the processor waits
        return wall, processor if self.device.type == "cpu" else wall

    def forget(self) -> None:
        """Drop what has been measured so far."""
        for times in (self.steps, self.wall, self.busy, self.fed, self.collating):
            times.clear()


def measure(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Time every system on the same batches, round by round, in turn."""
    random = np.random.default_rng(0)
    systems = {name: System(name, options) for name in options.systems}
    tokens = []
    for number, corpus in enumerate(islice(draw_rounds(options, random), options.rounds + 1)):
        tokens.append(sum(len(batch_for(None, examples).target_positions) for examples in corpus))
        for system in systems.values():
            system.round(corpus, options.busy)
            if not number:  # the first round warms up
                system.forget()
    return {name: summary(name, systems, np.array(tokens[1:]), len(corpus)) for name in systems}


def draw_rounds(options: argparse.Namespace, random: np.random.Generator) -> Iterator[list[list[Example]]]:
    """Draw the batches of round after round: of the lengths asked for, or of a prepared text, evenly from all."""
    if options.prepared is None:
        sizes = [(longest, max(1, options.batch_tokens // longest)) for longest in options.lengths]
        while True:
            # up to an eighth less, so that shapes differ
            rows = [(longest, most - int(random.integers(most // 8 + 1))) for longest, most in sizes]
            yield [draw_examples(longest, size, options.pieces, random) for longest, size in rows]
    lengths = np.concatenate(list(PreparedCorpus.open(options.prepared).split("train").lengths()))
    plan = plan_batches([lengths], len(lengths), batch_tokens=options.batch_tokens)
    chosen = np.linspace(0, len(plan) - 1, 2 * len(options.lengths) + 1).round().astype(int)[1::2]
    for number in count():
        places = (chosen + number) % len(plan)
        yield [draw_pairs(lengths[plan[place]], options.pieces, random) for place in places]


def summary(name: str, systems: dict[str, System], tokens: npt.NDArray[np.int64], batches: int) -> dict[str, float]:
    """Summarise a system.

    tokens: target tokens of each round.
    """
    system, base = systems[name], base_of(name)
    row = {"tokens_per_second": float(np.median(tokens / np.array(system.wall))), "weights": system.weights}
    row["tokens_per_cpu_second"] = float(np.median(tokens / np.array(system.steps)))
    if system.busy:
        row |= ratio("busy", system.steps, system.busy)
    row["first_loss"] = system.first_loss
    if base in systems and system.reads is not None:
        plain = systems[base]
        row |= ratio("step", system.steps, plain.steps)
        row |= ratio("with_collation", system.fed, plain.fed)
        row["collation_ms"] = 1000 * statistics.median(system.collating) / batches
    for peer in PEERS:
        if peer in systems and base_of(peer) == base:
            row |= ratio(peer, systems[peer].wall, system.wall)
            row |= ratio(f"{peer}_cpu", systems[peer].steps, system.steps)
    return row


def ratio(name: str, times: Sequence[float], base: Sequence[float]) -> dict[str, float]:
    """Give the median ratio over rounds, and the ends of its interval."""
    ratios = np.array(times) / np.array(base)  # (R,)
    medians = np.median(np.random.default_rng(0).choice(ratios, (2000, len(ratios))), axis=1)
    low, high = np.quantile(medians, (0.025, 0.975))
    return {name: float(np.median(ratios)), f"{name}_low": float(low), f"{name}_high": float(high)}


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
    cli.add_argument("--peer-precision", default="float32", choices=("float32", "bf16", "fp16"))
    cli.add_argument("--prepared", type=Path, help="folder of a prepared corpus, whose lengths the batches get")
    cli.add_argument("--busy", type=int, default=0, metavar="N", help="measure next to N busy processes, too")
    cli.add_argument("--dropout", type=float, nargs=3, metavar=("D", "A", "F"), help="dropout, of attention, of ReLU")
    missing = [name for name, (_, module, *_) in PEERS.items() if importlib.util.find_spec(module) is None]
    names = (*PEERS, *SYSTEMS)
    ready = [name for name in names if name not in missing]
    cli.add_argument("--systems", nargs="+", default=ready, choices=names, help="default: all that are installed")
    cli.add_argument("--memory", action="store_true", help="measure peak memory, too")
    cli.add_argument("--json", action="store_true")
    cli.add_argument("--only-memory", help=argparse.SUPPRESS)
    options = cli.parse_args()
    for name in set(options.systems).intersection(missing):
        cli.error(f"{name} needs the Python package {PEERS[name][1]}, which is not installed")
    keep_freed_memory()
    torch.set_num_threads(options.threads)
    keys = ("dropout", "attention_dropout", "activation_dropout")
    options.rates = dict(zip(keys, options.dropout, strict=True)) if options.dropout else {}
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
    "tokens_per_cpu_second": ("tokens/CPU s", "{:,.0f}"),
    "busy": ("busy / quiet", "{:.2f}"),
    "step": ("step / base", "{:.3f}"),
    "collation_ms": ("collation ms/batch", "{:.1f}"),
    "with_collation": ("fed / base", "{:.3f}"),
    **{peer: (f"x {peer}", "{:.2f}") for peer in PEERS},
    **{f"{peer}_cpu": (f"x {peer[:13]}, CPU", "{:.2f}") for peer in PEERS},
    "peak_mb": ("peak MB", "{:,.0f}"),
}


def cell(row: dict[str, float], key: str) -> str:
    form = COLUMNS[key][1]
    interval = f" ({form.format(row[f'{key}_low'])}-{form.format(row[f'{key}_high'])})" if f"{key}_low" in row else ""
    return form.format(row[key]) + interval


def table(found: dict[str, dict[str, float]], options: argparse.Namespace) -> str:
    shown = [key for key in COLUMNS if any(key in row for row in found.values())]
    title = f"{options.size}, {options.pieces} pieces, {options.precision}, {options.device}, {options.threads} threads"
    lines = [title, f"{'system':<20}" + "".join(f"{COLUMNS[key][0]:>23}" for key in shown)]
    for name, row in found.items():
        cells = (cell(row, key) if key in row else "" for key in shown)
        lines.append(f"{name:<20}" + "".join(f"{text:>23}" for text in cells))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
