"""Compare the speed of this checkout with that of another one: first line, parsing, training,
translating, in turns.

Each command is a new process. --run is a trained run, whose test text is parsed and translated and
whose recipe is trained for --steps steps from its prepared corpus, in --folder (what is above
`runs` and `data`).

    git worktree add ../before v1.2
    python benchmarks/two_versions.py --other ../before --folder . --run quickstart
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from measuring import arguments, speeds, take_turns

HERE = Path(__file__).parents[1]


def main() -> None:
    """Let the checkouts take turns and print their speeds."""
    options = arguments(
        __doc__, other=str, folder=".", run="quickstart", test="test", steps=60, rounds=5, repeat=1
    )
    folder = Path(options.folder).resolve()
    run = folder / "runs" / options.run
    text = (run / "tests" / options.test / "source.txt").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "text"
        source.write_text(text * options.repeat, encoding="utf-8")
        parsed = Path(scratch) / "text.conllu"
        numbers = itertools.count()

        def begin(checkout: Path, *words: str, new_cache: bool = False) -> None:
            cache = f"{scratch}/cache-{next(numbers) if new_cache else checkout.name}"
            subprocess.run(
                [sys.executable, "-m", "synmt", "-q", *words],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(checkout), "SYNMT_CACHE": cache},
                check=True,
                stdout=subprocess.DEVNULL,
            )

        def parse(checkout: Path) -> None:
            begin(checkout, "parse", str(source), new_cache=True)

        def train(checkout: Path) -> None:
            recipe, runs = str(run / "recipe.yaml"), f"{scratch}/runs-{next(numbers)}"
            steps = [f"training.max_steps={options.steps}", "name=speed"]
            begin(checkout, "train", recipe, *steps, "--runs", runs, "--data", "data")
            shutil.rmtree(runs)

        def translate(checkout: Path) -> None:
            begin(checkout, "translate", "--run", str(run), "--parses", str(parsed), str(source))

        begin(HERE, "parse", str(source), "-o", str(parsed))
        work: dict[str, Callable[[Path], None]] = {
            "first line": lambda checkout: begin(checkout, "--help"),
            "parse": parse,
            "train": train,
            "translate": translate,
        }
        for name, command in work.items():
            checkouts = {"the other": Path(options.other).resolve(), "this": HERE}
            systems = {f"{name}, {which}": partial(command, at) for which, at in checkouts.items()}
            base = next(iter(systems))
            count = text.count("\n") * options.repeat
            print(speeds(take_turns(systems, options.rounds), count, lambda _, base=base: base))


if __name__ == "__main__":
    main()
