"""Seconds until a command has written its first line, each time in a new process: wall clock and
processor time.

Commands take turns, so that other work on the machine hits all of them. The first round, which
writes compiled files of Python, does not count. --tree is a run whose model reads trees, --plain
one whose model reads none.

    python benchmarks/first_line.py --tree runs/multi30k-pascal --plain runs/multi30k-tiny --rounds
        5
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import Row, arguments, spread, table

LINE = "A man in an orange hat is staring at something in front of the station.\n"


def main() -> None:
    """Let the commands take turns and print what they took."""
    options = arguments(__doc__, rounds=5, tree=str, plain=str)
    with tempfile.TemporaryDirectory() as folder:
        cache, text = f"{folder}/cache", Path(folder) / "text"
        text.write_text(LINE * 100, encoding="utf-8")
        files = ["--hypotheses", str(text), "--references", str(text), "--source", str(text)]
        # with the cache folder that each uses; None is a new one each time
        commands = {
            "--help": (["--help"], cache),
            "translate, no trees": (["translate", "--run", options.plain], cache),
            "translate, the tree is cached": (["translate", "--run", options.tree], cache),
            "translate, the tree is new": (["translate", "--run", options.tree], None),
            "score, one file": (["score", "-r", str(text), str(text)], None),
            "analyze --by-length": (["analyze", "--by-length", *files], None),
            "train --list": (["train", "--list"], cache),
        }
        taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in commands}
        for _ in range(options.rounds + 1):
            for name, (words, used) in commands.items():
                taken[name].append(run(words, used or tempfile.mkdtemp(dir=folder)))
    rows: list[Row] = []
    for name, (_, *rounds) in taken.items():
        row: Row = {"command": name}
        for what, seconds in zip(
            ("to the first line", "to the end", "of processors"),
            zip(*rounds, strict=True),
            strict=True,
        ):
            row |= spread(f"seconds {what}", seconds)
        rows.append(row)
    print(table(rows))


def run(words: list[str], cache: str) -> tuple[float, ...]:
    """Start a command and give it a line: seconds to its first line, to its end, and of processor
    time."""
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    environment["SYNMT_CACHE"] = cache
    command = [sys.executable, "-m", "synmt", "--quiet", *words]
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin as stdin:
        stdin.write(LINE.encode())
    assert process.stdout.readline()
    first = time.perf_counter() - start
    process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, f"{command} failed"
    return first, time.perf_counter() - start, used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
