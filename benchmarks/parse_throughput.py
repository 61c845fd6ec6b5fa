"""Sentences parsed per second: synmt, a Stanza Pipeline called line by line, and Stanza's own bulk
call.

    python benchmarks/parse_throughput.py --text multi30k/val.en.gz --lines 1000

Systems take turns, so that other work on the machine slows all alike. The table has medians over
rounds and, round by round, the ratios to Stanza's bulk call with their range, its lines sorted by
length, which is its fastest way. Loading the models is not counted for one process, and is for two:
processes are only worth it for longer texts. For the probabilities of arcs (`--arcs` of
`synmt parse`) it also prints how many there are, which mass they keep, and what they take in a
file. --text has a sentence in each line (.gz too), --model is `compact` or a folder of Stanza
models.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import measuring
import numpy as np

from synmt.files.reading import read_lines
from synmt.parsing.bulk import parse_file
from synmt.parsing.parser import StanzaParser
from synmt.syntax.arcs import format_arcs

_BULK = "Stanza, one bulk call, sorted"


def main() -> None:
    """Measure the systems in turn, and print their speeds."""
    options = measuring.arguments(
        __doc__, text=Path, lines=1000, rounds=3, lang="en", model="compact"
    )
    lines = [line for line in islice(read_lines(options.text), options.lines) if line.strip()]
    plain, with_arcs = (
        StanzaParser(options.lang, model=options.model, device="cpu", arcs=arcs)
        for arcs in (False, True)
    )
    systems = all_systems(plain, with_arcs, lines)
    times = measuring.take_turns(systems, options.rounds)
    print(measuring.speeds(times, len(lines), lambda name: _BULK))
    parses = with_arcs.parse(lines)
    masses = np.concatenate(
        [np.bincount(parse.arcs.words, weights=parse.arcs.probabilities) for parse in parses]
    )
    arcs = sum(len(parse.arcs.words) for parse in parses)
    size = sum(len(text) for parse in parses for text in format_arcs(parse.arcs, len(parse)))
    print(
        f"\n--arcs: {arcs / len(masses):.1f} arcs and {size / len(masses):.0f} bytes a word; "
        "mass kept: "
        f"mean {masses.mean():.5f}, least {masses.min():.5f} ({len(masses):,} words)"
    )


def all_systems(
    plain: StanzaParser, with_arcs: StanzaParser, lines: list[str]
) -> dict[str, Callable[[], object]]:
    """Load every system once; return the function that parses all lines with each."""
    import stanza
    import torch

    torch.set_num_threads(1)
    pipeline = stanza.Pipeline(
        plain.language,
        dir=str(plain.folder),
        download_method=None,
        tokenize_no_ssplit=True,
        device="cpu",
        logging_level="ERROR",
    )
    for parser in (plain, with_arcs):
        parser.parse(lines[:1])
    by_length = sorted(lines, key=len)
    return {
        "synmt": lambda: to_file(plain, lines, 1),
        "synmt --arcs": lambda: to_file(with_arcs, lines, 1),
        "synmt, 2 processes with loading": lambda: to_file(plain, lines, 2),
        "Stanza, one call per line": lambda: [pipeline(line) for line in lines],
        "Stanza, one bulk call": lambda: pipeline.bulk_process(lines),
        _BULK: lambda: pipeline.bulk_process(by_length),
    }


def to_file(parser: StanzaParser, lines: list[str], workers: int) -> None:
    """Parse lines as the command does."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "text"
        source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        shard = max(1, -(-len(lines) // (2 * workers))) if workers > 1 else 2000
        list(
            parse_file(
                source, Path(folder) / "trees.conllu", parser, workers=workers, shard_lines=shard
            )
        )


if __name__ == "__main__":
    main()
