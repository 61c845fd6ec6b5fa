"""Seconds and peak memory of `prepare` and of the plan of an epoch, on generated pairs.

    python benchmarks/scale.py --pairs 1000000 4000000 --cores 1 2

Each measurement is a separate process with a given number of cores. Seconds are those on the clock, then those of
processors, which other work on the machine does not change much. Memory is `ru_maxrss` at the end of a stage, of the
process and of the largest of its children. The words are drawn by Zipf's law, 1 to `--longest` for a sentence. The
vocabulary learns from at most `--training-lines` lines. The prepared corpora must be the same with any number of cores.
"""

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

WORDS = 60_000
CHUNK = 50_000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--longest", type=int, default=35, help="words of the longest sentence")
    parser.add_argument("--training-lines", type=int, default=2_000_000)
    parser.add_argument("--duplicates", action="store_true", help="remove duplicates too")
    parser.add_argument("--folder", type=Path, help="where texts are generated; those that are there are used again")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    settings = parser.parse_args()
    if settings.stage:
        STAGES[settings.stage](settings)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = settings.folder or Path(name)
        for pairs in settings.pairs:
            report(pairs, folder, settings)


def report(pairs, folder, settings):
    write_text(folder / f"text-{pairs}", pairs, settings.longest)
    seconds, digests = {}, set()
    for cores in settings.cores:
        made = measured("prepare", pairs, cores, folder, settings)
        digests.add(made.pop("digest"))
        seconds[cores] = sum(stage["seconds"] for stage in made.values())
        show(f"{pairs:,} pairs, {cores} cores", made)
        print(f"    all {seconds[cores]:.1f} s, {seconds[settings.cores[0]] / seconds[cores]:.2f} x", flush=True)
    assert len(digests) == 1, "the files differ"
    show(f"{pairs:,} pairs, an epoch", measured("epoch", pairs, settings.cores[-1], folder, settings))


def measured(stage, pairs, cores, folder, settings):
    command = [sys.executable, __file__, "--stage", stage, "--pairs", str(pairs), "--cores", str(cores)]
    command += ["--folder", str(folder), "--training-lines", str(settings.training_lines)]
    command += ["--duplicates"] * settings.duplicates
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def show(what, stages):
    print(what)
    for name, stage in stages.items():
        children = f" + {stage['child']:,} MB each worker" if stage["child"] else ""
        busy = f"{stage['busy']:8.1f} s" + (f" + {stage['workers']:.1f} s in workers" if stage["workers"] else "")
        print(
            f"    {name:28} {stage['seconds']:8.1f} s, processors {busy:28} {stage['own']:6,} MB{children}", flush=True
        )


def write_text(folder, pairs, longest):
    """Generate both sides; the target is the source in other words, with other lengths."""
    if (folder / "train.de").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1)
    letters = np.array(list("etaoinsrhdlucmfywgpbvk"))
    words = [
        np.array(["".join(random.choice(letters, size)) for size in random.integers(2, 11, WORDS)]) for _ in range(2)
    ]
    cumulated = np.cumsum(1 / np.arange(1, WORDS + 1))
    temporary = [folder / f".train.{language}" for language in ("en", "de")]
    with open(temporary[0], "w") as source, open(temporary[1], "w") as target:
        for first in range(0, pairs, CHUNK):
            count = min(CHUNK, pairs - first)
            lengths = random.integers(1, longest + 1, count)
            drawn = np.searchsorted(cumulated, random.random(lengths.sum()) * cumulated[-1])
            ends = np.cumsum(lengths)
            for own, out in zip(words, (source, target), strict=True):
                text = own[drawn].tolist()
                bounds = zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)
                out.writelines(" ".join(text[start:end]) + ".\n" for start, end in bounds)
    for path, language in zip(temporary, ("en", "de"), strict=True):
        (folder / f"valid.{language}").write_text("a b c\n")
        path.rename(folder / f"train.{language}")


def use(cores):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def prepare(settings):
    use(settings.cores[0])
    from synmt.corpora.resolve import resolve_corpus
    from synmt.data.prepare import prepare as preparing
    from synmt.files.reading import sha256
    from synmt.recipe.corpus import CorpusRecipe
    from synmt.recipe.load import check_recipe

    [pairs] = settings.pairs
    corpus = resolve_corpus(CorpusRecipe(folder=settings.folder / f"text-{pairs}"), "en", "de")
    sections = {
        "corpus": {"folder": str(settings.folder)},
        "filters": {"max_words": 80, "max_ratio": 2.0, "duplicates": settings.duplicates},
        "vocabulary": {"size": 8000, "training_lines": settings.training_lines},
    }
    recipe = check_recipe({"name": "scale", "source": "en", "target": "de", **sections}, where="benchmark")
    folder, stages, meter = settings.folder / f"prepared-{pairs}-{settings.cores[0]}", {}, Meter()
    stage = ""
    for progress in preparing(recipe, corpus, folder):
        if stage and progress.stage != stage:
            stages[stage] = meter.read()
        stage = progress.stage
    # the same workers filter and encode: they count when they have ended
    ended = meter.read()
    stages["train"] |= {name: ended[name] for name in ("workers", "child")}
    stages = {
        name: stages[old] for name, old in (("filter", "filter"), ("vocabulary", "vocabulary"), ("encode", "train"))
    }
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "lock"):
        digest.update(sha256(path).encode())
    print(json.dumps({**stages, "digest": digest.hexdigest()}))


def epoch(settings):
    use(settings.cores[0])
    from synmt.data.corpus import PreparedCorpus
    from synmt.data.stream import Position, Reader
    from synmt.recipe.schema import TrainingRecipe

    [pairs], stages = settings.pairs, {}
    split = PreparedCorpus.open(settings.folder / f"prepared-{pairs}-{settings.cores[0]}").split("train")
    meter = Meter()
    stream = Reader(split, TrainingRecipe(batch_tokens=4096)).forever(Position())
    next(stream)
    stages["until the first batch"] = meter.read()
    rows = 0
    for _ in range(500):
        rows += len(next(stream)[0].lines)
    read = meter.read()
    stages[f"500 batches, {rows / read['seconds']:,.0f} pairs/s"] = read
    del stream
    # no epoch has as many batches, so the next one begins
    next(Reader(split, TrainingRecipe(batch_tokens=4096)).forever(Position(0, 1 << 40)))
    stages["from one epoch to the next"] = meter.read()
    print(json.dumps(stages))


class Meter:
    """Reads what was used since the last reading; memory is the peak so far."""

    def __init__(self):
        self.before = self.now()

    @staticmethod
    def now():
        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        times = [used.ru_utime + used.ru_stime for used in (own, children)]
        return np.array([time.perf_counter(), *times]), own.ru_maxrss, children.ru_maxrss

    def read(self):
        (times, own, child), (before, _, _) = self.now(), self.before
        self.before = self.now()
        seconds, busy, workers = (times - before).tolist()
        return {"seconds": seconds, "busy": busy, "workers": workers, "own": own // 1024, "child": child // 1024}


STAGES = {"prepare": prepare, "epoch": epoch}

if __name__ == "__main__":
    main()
