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
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from systems import SYSTEMS, batch_for, draw_examples, draw_pairs
from timed_training import PEERS, System, base_of

from synmt.data.batch_plan import plan_batches
from synmt.data.corpus import Example, PreparedCorpus
from synmt.model.device import keep_freed_memory
from synmt.training.meter import peak_memory


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
    return {name: summary(name, systems, np.array(tokens[1:]), len(options.lengths)) for name in systems}


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
