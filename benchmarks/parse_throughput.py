"""Sentences parsed per second: synmt, a Stanza Pipeline called line by line, and Stanza's own bulk call.

    python benchmarks/parse_throughput.py --text shared/data/multi30k/val.en.gz --lines 1000

With the probabilities of arcs (`--arcs`) it also says how many there are, what they weigh and what they take in a file.

Rounds are interleaved, so that a machine shared with others slows all alike; each system's best round counts. Loading
the models is not counted for one process, and is for two: processes are only worth it for longer texts.
"""

import argparse
import os
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np

from synmt.files import read_lines
from synmt.parsing.bulk import parse_file
from synmt.parsing.models import COMPACT
from synmt.parsing.parser import StanzaParser
from synmt.syntax.arcs import format_arcs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="English text, one sentence a line, .gz too")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    settings = parser.parse_args()
    lines = [line for line in islice(read_lines(settings.text), settings.lines) if line.strip()]
    systems = prepare(lines)
    best = dict.fromkeys(systems, 0.0)
    for number in range(settings.rounds):
        for name, run in systems.items():
            start = time.perf_counter()
            run()
            best[name] = max(best[name], len(lines) / (time.perf_counter() - start))
            print(f"round {number + 1}: {name}: {best[name]:.0f} sentences/s at best", flush=True)
    report(best)
    report_arcs(lines)


def prepare(lines):
    """Load every system once; give the function that parses all lines with each."""
    import stanza
    import torch

    torch.set_num_threads(1)
    pipeline = stanza.Pipeline(
        "en", dir=str(COMPACT), download_method=None, tokenize_no_ssplit=True, device="cpu", logging_level="ERROR"
    )
    ours, with_arcs = (StanzaParser("en", device="cpu", arcs=arcs) for arcs in (False, True))
    for parser in (ours, with_arcs):
        parser.parse(lines[:1])
    return {
        "synmt": lambda: to_file(ours, lines, 1),
        "synmt --arcs": lambda: to_file(with_arcs, lines, 1),
        "synmt, 2 processes with loading": lambda: to_file(ours, lines, 2),
        "pipeline, line by line": lambda: [pipeline(line) for line in lines],
        "pipeline, bulk": lambda: pipeline.bulk_process(lines),
    }


def to_file(parser, lines, workers):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "text"
        source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        shard = max(1, -(-len(lines) // (2 * workers))) if workers > 1 else 2000
        list(parse_file(source, Path(folder) / "trees.conllu", parser, workers=workers, shard_lines=shard))


def report(best):
    base = best["pipeline, line by line"]
    print(f"\n{'system':34}{'sentences/s':>12}{'ratio':>8}   ({os.cpu_count()} cores)")
    for name, speed in best.items():
        print(f"{name:34}{speed:12.0f}{speed / base:8.2f}")


def report_arcs(lines):
    """Say how many arcs a word has, which mass they keep, and what they take in the column MISC."""
    parses = StanzaParser("en", device="cpu", arcs=True).parse(lines)
    masses = np.concatenate([np.bincount(parse.arcs.words, weights=parse.arcs.probabilities) for parse in parses])
    arcs = sum(len(parse.arcs.words) for parse in parses)
    size = sum(len(text) for parse in parses for text in format_arcs(parse.arcs, len(parse)))
    print(
        f"\n--arcs: {arcs / len(masses):.1f} arcs and {size / len(masses):.0f} bytes a word; mass kept: "
        f"mean {masses.mean():.5f}, least {masses.min():.5f} ({len(masses):,} words)"
    )


if __name__ == "__main__":
    main()
