"""Seconds and peak memory of the stages of `prepare`, on generated pairs.

    python benchmarks/scale.py --pairs 1000000 4000000 --cores 1 2

Each measurement is a separate process with a given number of cores. Seconds are those on the clock,
then those of processors, which other work on the machine does not change much, in this process and
in workers that have ended. Memory is `ru_maxrss` at the end of a stage, of the process and of the
largest of its children. The words are drawn by Zipf's law, 1 to `--longest` for a sentence. The
vocabulary learns from at most `--training-lines` lines.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from measuring import Row, arguments, table

WORDS, CHUNK = 60_000, 50_000
Stages = dict[str, dict[str, float]]
"""Of each stage what `Meter` reads."""


def main() -> None:
    """Measure each number of pairs with each number of cores, and print tables."""
    options = arguments(
        __doc__,
        pairs=[1_000_000],
        cores=[1, 2],
        longest=35,
        training_lines=2_000_000,
    )
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_text(folder, pairs, options.longest)
            for cores in options.cores:
                # a separate process, in which no other stage has taken memory
                with ProcessPoolExecutor(1, get_context("spawn"), use, (cores,)) as pool:
                    stages = pool.submit(prepare, folder, cores, options).result()
                rows: list[Row] = [{"stage": name} | used for name, used in stages.items()]
                every = sum(used["seconds"] for used in stages.values())
                rows.append({"stage": "all", "seconds": every})
                print(f"{pairs:,} pairs, {cores} cores", table(rows), sep="\n", flush=True)


def use(cores: int) -> None:
    """Use some of the cores only."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def write_text(folder: Path, pairs: int, longest: int) -> None:
    """Generate both sides; the target is the source in other words, with other lengths."""
    random, letters = np.random.default_rng(1), np.array(list("etaoinsrhdlucmfywgpbvk"))
    cumulated = np.cumsum(1 / np.arange(1, WORDS + 1))
    words = [
        np.array(["".join(random.choice(letters, size)) for size in random.integers(2, 11, WORDS)])
        for _ in range(2)
    ]
    with open(folder / "train.en", "w") as source, open(folder / "train.de", "w") as target:
        for first in range(0, pairs, CHUNK):
            lengths = random.integers(1, longest + 1, min(CHUNK, pairs - first))
            drawn = np.searchsorted(cumulated, random.random(lengths.sum()) * cumulated[-1])
            places = np.split(drawn, np.cumsum(lengths)[:-1])
            for words_of_side, out in zip(words, (source, target), strict=True):
                out.writelines(" ".join(words_of_side[place].tolist()) + ".\n" for place in places)
    for language in ("en", "de"):
        (folder / f"valid.{language}").write_text("a b c\n")


def prepare(folder: Path, cores: int, options: argparse.Namespace) -> Stages:
    """Prepare the text; return what its stages used."""
    from synmt.corpora.resolve import resolve
    from synmt.data.prepare import prepare as preparing
    from synmt.recipe.corpus import CorpusRecipe
    from synmt.recipe.load import check_recipe
    from synmt.reporting.progress import show_progress_with

    corpus = resolve(CorpusRecipe(folder=folder), "en", "de")
    sections = {
        "corpus": {"folder": str(folder)},
        "filters": {"max_words": 80, "max_ratio": 2.0, "duplicates": False},
        "vocabulary": {"size": 8000, "training_lines": options.training_lines},
    }
    recipe = check_recipe(
        {"name": "scale", "source": "en", "target": "de", **sections}, where="benchmark"
    )
    stages, meter = Stages(), Meter()

    @contextmanager
    def display(what: str, *_: object) -> Iterator[Callable[[float], None]]:
        yield lambda amount: None
        stages[what.removeprefix("prepare: ")] = meter.read()

    show_progress_with(display)
    preparing(recipe, corpus, folder / f"prepared-{cores}")
    # the same workers filter and encode: they count when they have ended
    stages["end"] = meter.read()
    return stages


TITLES = (
    *("seconds", "seconds of the processor", "seconds of workers"),
    *("MB", "MB of the largest worker"),
)


class Meter:
    """Reads what was used since the last reading: seconds, of processors, of workers; and the peaks
    of memory in MB."""

    def __init__(self) -> None:
        self.before = self._times()

    def _times(self) -> list[float]:
        times = os.times()
        return [time.perf_counter(), sum(times[:2]), sum(times[2:4])]

    def read(self) -> dict[str, float]:
        """Return the seconds and the memory."""
        before, self.before = self.before, self._times()
        seconds = [after - earlier for after, earlier in zip(self.before, before, strict=True)]
        processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        peaks = [resource.getrusage(who).ru_maxrss // 1024 for who in processes]
        return dict(zip(TITLES, [*seconds, *peaks], strict=True))


if __name__ == "__main__":
    main()
