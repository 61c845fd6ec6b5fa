"""Sentences parsed per second: synmt, a Stanza Pipeline called line by line, and Stanza's own bulk call.

    python benchmarks/parse_throughput.py --text multi30k/val.en.gz --lines 1000
    python benchmarks/parse_throughput.py --text multi30k/val.en.gz --lines 500 --busy 5

Rounds are interleaved, so that a machine shared with others slows all alike. Each ratio compares a system with Stanza's
bulk call in the same round; the table has its median, least and greatest value, for the time on the clock and for the
processor time of all processes. "Sorted" is the bulk call with its lines sorted by length. Loading the models is not
counted for one process, and is for two: processes are only worth it for longer texts.

With `--busy N` each round is repeated next to N processes that only count, and the last column says how much of the
sentences per second of processor time is left. With the probabilities of arcs (`--arcs` of `synmt parse`) it also says
how many there are, what they weigh and what they take in a file.
"""

import argparse
import os
import tempfile
from itertools import islice
from pathlib import Path

import measuring
import numpy as np

from synmt.files.reading import read_lines
from synmt.parsing.bulk import parse_file
from synmt.parsing.models import COMPACT
from synmt.parsing.parser import StanzaParser
from synmt.syntax.arcs import format_arcs

BULK = "Stanza, one bulk call"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="text, one sentence a line, .gz too")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lang", default="en")
    parser.add_argument("--model", default="compact", help="`compact`, or a folder of Stanza models")
    parser.add_argument("--busy", type=int, default=0, help="processes that only count, next to a second run of each")
    settings = parser.parse_args()
    lines = [line for line in islice(read_lines(settings.text), settings.lines) if line.strip()]
    systems = prepare(lines, settings.lang, settings.model)
    quiet, beside = [], []
    for number in range(settings.rounds):
        quiet.append({name: measuring.timed(run) for name, run in systems.items()})
        if settings.busy:
            with measuring.busy(settings.busy):
                beside.append({name: measuring.timed(run) for name, run in systems.items()})
        print(f"round {number + 1}: " + ", ".join(f"{name} {wall:.1f} s" for name, (wall, _) in quiet[-1].items()))
    report(len(lines), quiet, beside)
    report_arcs(lines, settings.lang, settings.model)


def prepare(lines, language, model):
    """Load every system once; give the function that parses all lines with each."""
    import stanza
    import torch

    torch.set_num_threads(1)
    pipeline = stanza.Pipeline(
        language,
        dir=str(COMPACT if model == "compact" else model),
        download_method=None,
        tokenize_no_ssplit=True,
        device="cpu",
        logging_level="ERROR",
    )
    ours, with_arcs = (StanzaParser(language, model=model, device="cpu", arcs=arcs) for arcs in (False, True))
    for parser in (ours, with_arcs):
        parser.parse(lines[:1])
    by_length = sorted(lines, key=len)
    return {
        "synmt": lambda: to_file(ours, lines, 1),
        "synmt --arcs": lambda: to_file(with_arcs, lines, 1),
        "synmt, 2 processes with loading": lambda: to_file(ours, lines, 2),
        "Stanza, one call per line": lambda: [pipeline(line) for line in lines],
        BULK: lambda: pipeline.bulk_process(lines),
        "Stanza, one bulk call, sorted": lambda: pipeline.bulk_process(by_length),
    }


def to_file(parser, lines, workers):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "text"
        source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        shard = max(1, -(-len(lines) // (2 * workers))) if workers > 1 else 2000
        list(parse_file(source, Path(folder) / "trees.conllu", parser, workers=workers, shard_lines=shard))


def report(lines, quiet, beside):
    columns = ("sentences/s", "ratio", "sentences/CPU s", "ratio of CPU s", "busy / quiet")
    print(f"\n{'system':32}" + "".join(f"{column:>26}" for column in columns) + f"   ({os.cpu_count()} cores)")
    for name in quiet[0]:
        row = []
        for clock in range(2):
            row.append(f"{lines / np.median([times[name][clock] for times in quiet]):.0f}")
            row.append(spread([times[BULK][clock] / times[name][clock] for times in quiet]))
        row.append(spread([one[name][1] / other[name][1] for one, other in zip(quiet, beside, strict=False)]))
        print(f"{name:32}" + "".join(f"{cell:>26}" for cell in row))


def spread(ratios):
    return f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "-"


def report_arcs(lines, language, model):
    """Say how many arcs a word has, which mass they keep, and what they take in the column MISC."""
    parses = StanzaParser(language, model=model, device="cpu", arcs=True).parse(lines)
    masses = np.concatenate([np.bincount(parse.arcs.words, weights=parse.arcs.probabilities) for parse in parses])
    arcs = sum(len(parse.arcs.words) for parse in parses)
    size = sum(len(text) for parse in parses for text in format_arcs(parse.arcs, len(parse)))
    print(
        f"\n--arcs: {arcs / len(masses):.1f} arcs and {size / len(masses):.0f} bytes a word; mass kept: "
        f"mean {masses.mean():.5f}, least {masses.min():.5f} ({len(masses):,} words)"
    )


if __name__ == "__main__":
    main()
