"""Seconds until a command has written its first line, each time in a new process: wall clock and processor time.

Commands take turns, so that other work on the machine hits all of them. The first round, which writes compiled files
of Python, does not count. Without --tree and --plain, both runs are made here, with random weights.

    python benchmarks/first_line.py --rounds 5
    python benchmarks/first_line.py --tree runs/multi30k-pascal --plain runs/multi30k-tiny
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

LINE = "A man in an orange hat is staring at something in front of the station.\n"


@dataclass(frozen=True)
class Command:
    """A command, what it reads, and the cache folder that it uses; None is a new one each time."""

    name: str
    arguments: tuple[str, ...]
    given: str
    cache: Path | None

    def run(self, folder: Path) -> tuple[float, float, float]:
        """Start the command: seconds to its first line, to its end, and of processor time."""
        cache = self.cache or Path(tempfile.mkdtemp(dir=folder))
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        pipe, start = subprocess.PIPE, time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "synmt", "--quiet", *self.arguments],
            stdin=pipe,
            stdout=pipe,
            env={**environment, "SYNMT_CACHE": str(cache)},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(self.given.encode())
        process.stdin.close()
        assert process.stdout.readline()
        first = time.perf_counter() - start
        process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0, f"{self.name} failed"
        return first, time.perf_counter() - start, used.ru_utime + used.ru_stime


def main() -> None:
    """Let the commands take turns and print what they took."""
    options = _options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = _commands(folder, options.tree or _run(folder, "pascal"), options.plain or _run(folder))
        for command in commands:
            command.run(folder)
        taken = [[command.run(folder) for command in commands] for _ in range(options.rounds)]
    print("medians, in brackets the least; seconds to the first line, to the end, of processor time")
    for command, rounds in zip(commands, zip(*taken, strict=True), strict=True):
        values = (f"{statistics.median(column):.2f} ({min(column):.2f})" for column in zip(*rounds, strict=True))
        print(f"{command.name:<32}" + "".join(f"{value:>16}" for value in values))


def _commands(folder: Path, tree: Path, plain: Path) -> list[Command]:
    cache = folder / "cache"
    text = folder / "text"
    text.write_text(LINE * 100, encoding="utf-8")
    files = ("--hypotheses", str(text), "--references", str(text), "--source", str(text))
    return [
        Command("--help", ("--help",), "", cache),
        Command("translate, no trees", ("translate", "--run", str(plain)), LINE, cache),
        Command("translate, the tree is cached", ("translate", "--run", str(tree)), LINE, cache),
        Command("translate, the tree is new", ("translate", "--run", str(tree)), LINE, None),
        Command("score, one file", ("score", "-r", str(text), str(text)), "", None),
        Command("analyze --by-length", ("analyze", "--by-length", *files), "", None),
        Command("train --list", ("train", "--list"), "", cache),
    ]


def _run(folder: Path, *variants: str) -> Path:
    """Write a finished run of size `small` with random weights."""
    from synmt.data.vocabulary_training import train_vocabulary
    from synmt.model.build import build_for
    from synmt.model.weights import save_weights
    from synmt.parsing.parser import StanzaParser
    from synmt.recipe.load import check_recipe
    from synmt.run import Run

    made = folder / "-".join(["run", *variants])
    recipe = check_recipe(
        {
            "name": made.name,
            "source": "en",
            "target": "de",
            "corpus": {"train": [{"source": "-", "target": "-"}], "valid": {"source": "-", "target": "-"}},
            "model": {"size": "small"},
            "syntax": {"variants": [{"name": name, "layers": [1], "heads": 4} for name in variants]},
        },
        where=made.name,
    )
    vocabulary = train_vocabulary([LINE.strip()], recipe.vocabulary.model_copy(update={"size": 300}))
    made.mkdir()
    for side in ("source", "target"):
        vocabulary.save(made, side)
    run = Run(made)
    run.write_recipe(recipe)
    save_weights(build_for(recipe, vocabulary, vocabulary), run.weights)
    run.write_info(name=made.name, status="finished", steps=1, parser=StanzaParser("en").identity)
    return made


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tree", type=Path, help="a run whose model reads trees")
    parser.add_argument("--plain", type=Path, help="a run whose model reads none")
    return parser.parse_args()


if __name__ == "__main__":
    main()
