"""Seconds of `prepare`'s encoding and annotating with one process and with several; the files must be the same.

    python benchmarks/prepare_throughput.py --source train.en --target train.de --trees train.en.conllu --lines 60000

A short text is repeated. Rounds are interleaved, so that a machine shared with others slows all alike; the best round
of each counts. To start the processes is counted.
"""

import argparse
import hashlib
import tempfile
import time
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from synmt.corpora.resolve import resolve_corpus
from synmt.data import encoding
from synmt.data.annotate import annotate
from synmt.data.prepare import prepare
from synmt.files.reading import read_lines
from synmt.parallel.threads import usable_cores
from synmt.recipe.corpus import CorpusRecipe
from synmt.recipe.load import check_recipe
from synmt.syntax.conllu import format_conllu, read_parses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("source", "target", "trees"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=60_000)
    parser.add_argument("--shard-lines", type=int, default=5_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, usable_cores()])
    parser.add_argument("--rounds", type=int, default=1)
    settings = parser.parse_args()
    encoding.SHARD_LINES, encoding._FEW_LINES = settings.shard_lines, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_text(folder, settings)
        best = {}
        for number in range(settings.rounds):
            for workers in settings.workers:
                spent, digest = run(folder, workers)
                best[workers] = {stage: min(best.get(workers, spent)[stage], spent[stage]) for stage in spent}
                print(f"round {number + 1}: {workers} workers: {show(best[workers])}, files {digest}", flush=True)
    one = sum(best[settings.workers[0]].values())
    for workers, spent in best.items():
        print(f"{workers} workers: {one / sum(spent.values()):.2f} x")


def write_text(folder, settings):
    lines, parses = list(read_lines(settings.source)), read_parses(settings.trees, read_lines(settings.source))
    rows = cycle(zip(lines, read_lines(settings.target), list(parses), strict=True))
    names = [folder / "text" / name for name in ("train.en", "train.de", "train.conllu")]
    names[0].parent.mkdir()
    with open(names[0], "w") as source, open(names[1], "w") as target, open(names[2], "w") as trees:
        for number, (line, translation, parse) in enumerate(islice(rows, settings.lines), start=1):
            source.write(f"{line}\n")
            target.write(f"{translation}\n")
            trees.write(format_conllu(parse, line, number))
    for language in ("en", "de"):
        (folder / "text" / f"valid.{language}").write_text("a\n")


def run(folder, workers):
    """Prepare the text; gives the seconds of each stage and a hash of all files."""
    encoding.process_count = lambda shards: workers
    corpus = resolve_corpus(CorpusRecipe(folder=folder / "text"), "en", "de")
    sections = {"corpus": {"name": "controlled"}, "vocabulary": {"size": 4000, "kind": "bpe"}}
    recipe = check_recipe({"name": "bench", "source": "en", "target": "de", **sections}, where="benchmark")
    spent = dict.fromkeys(("train", "trees of train"), 0.0)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        made = Path(name)
        trees = partial(annotate, made, corpus, {"train": folder / "text" / "train.conllu"}, parser={"parser": "given"})
        last = time.perf_counter()
        for steps in (lambda: prepare(recipe, corpus, made), trees):
            for progress in steps():
                now = time.perf_counter()
                if progress.stage in spent:
                    spent[progress.stage] += now - last
                last = now
        digest = hashlib.sha256()
        for path in sorted(path for path in made.rglob("*") if path.is_file() and path.name != "lock"):
            digest.update(path.read_bytes())
    return spent, digest.hexdigest()[:12]


def show(spent):
    return ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in spent.items())


if __name__ == "__main__":
    main()
