"""Sentences per second of synmt and CTranslate2: the same trained weights, the same text, from raw text to pieces.

The systems take turns, so that other work on the machine hits all of them. Each line of the table has the sentences per
second by the clock and by processor time, and the ratio to CTranslate2 in float32 with two threads (without it, to the
first system) as the median over the rounds with the smallest and the largest; below it are the shares of translations
that are those of the first system. The two rank by different length penalties; with --length-penalty 0 they rank alike.

A file is translated by copies of the process, as `synmt translate` does; what they take to start counts.

Without --run, a small Transformer is trained first on Multi30k (which `synmt train` downloads), for --steps steps.

    python benchmarks/translate_throughput.py --text multi30k/test_2016_flickr.en --rounds 5
    python benchmarks/translate_throughput.py --run runs/small --text test.en --busy 5
    python benchmarks/translate_throughput.py --run runs/x --text train.en --sentences 10000 --systems processes int8
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

# here three precisions of synmt and CTranslate2 share one process, and a user's process has one
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "1024")

import measuring
import torch
from ctranslate2_peer import write_ctranslate2

from synmt.data.batch import collate_source
from synmt.decode.inputs import Request, windows
from synmt.decode.next_piece import limits_of
from synmt.decode.remote import remote_translator, translate_windows
from synmt.decode.translation import Translation
from synmt.decode.translator import Translator
from synmt.files.reading import read_lines
from synmt.model.transformer import Transformer
from synmt.recipe.load import check_recipe
from synmt.training.pipeline import train

BASE = "CTranslate2 float32, 1 x 2"
RECIPE = {
    "name": "translate-throughput",
    "source": "en",
    "target": "de",
    "corpus": {"name": "multi30k"},
    "vocabulary": {"kind": "bpe", "size": 8000, "joint": True},
    "model": {"size": "small", "norm": "pre"},
    "training": {"batch_tokens": 1024, "learning_rate": 2e-3, "warmup": 300, "precision": "bf16"},
}

_THEIR_BATCH = 64
"""With larger batches, CTranslate2 was slower, and synmt faster."""

Translations = list[list[int]]
System = Callable[[list[str]], Translations]


def main() -> None:
    """Let the systems take turns and print what they did."""
    options = _options()
    lines = list(islice(read_lines(options.text), options.sentences))
    run = options.run or trained(options.steps)
    with tempfile.TemporaryDirectory() as folder:
        every = all_systems(run, Path(folder), options)
        chosen = [(name, one) for name, one in every if any(part in name for part in options.systems)]
        systems = {name: partial(one, lines) for name, one in chosen}
        found = {name: translate() for name, translate in systems.items()}
        with measuring.busy(options.busy):
            times = measuring.take_turns(systems, options.rounds)
    first = next(iter(found))
    print(measuring.speeds(times, len(lines), "sentences", lambda name: BASE if BASE in times else first))
    for name, translations in found.items():
        same = sum(one == other for one, other in zip(translations, found[first], strict=True))
        print(f"{name}: {same / len(lines):.1%} of the translations are those of {first}")


def trained(steps: int) -> Path:
    """Train the small model; a second call continues or finds it."""
    recipe = {**RECIPE, "training": {**RECIPE["training"], "max_steps": steps}}
    for record in train(check_recipe(recipe, where="the benchmark")):
        print(record, file=sys.stderr)
    return Path("runs") / RECIPE["name"]


def all_systems(run: Path, folder: Path, options: argparse.Namespace) -> Iterator[tuple[str, System]]:
    """Load every system once for each setting."""
    import ctranslate2

    search = {"beam_size": options.beam, "length_penalty": options.length_penalty, "batch_size": options.batch_size}
    how = {"device": "cpu", **search}
    first = Translator.load(run, **how)
    for precision in ("float32", "bf16", "int8"):
        translator = first if precision == "float32" else Translator.load(run, precision=precision, **how)
        for threads in (1, 2):
            yield f"synmt {precision}, {threads}", ours(translator, threads)
        yield f"synmt {precision}, processes", in_processes(translator, run, {**how, "precision": precision})
    assert isinstance(first.model, Transformer)
    write_ctranslate2(first.model, first.models[0].recipe.model, folder)
    kinds = [kind for kind in ("float32", "bfloat16", "int8") if kind in ctranslate2.get_supported_compute_types("cpu")]
    for kind in kinds:
        for workers, threads in ((1, 1), (1, 2), (2, 1)):
            loaded = ctranslate2.Translator(
                str(folder), inter_threads=workers, intra_threads=threads, compute_type=kind
            )
            yield f"CTranslate2 {kind}, {workers} x {threads}", theirs(loaded, first)


def ours(translator: Translator, threads: int) -> System:
    """Translate with synmt."""

    def translate(lines: list[str]) -> Translations:
        torch.set_num_threads(threads)
        return [list(one.best.pieces) for one in translator.translate(lines)]

    return translate


def in_processes(translator: Translator, run: Path, how: dict[str, Any]) -> System:
    """Translate with synmt as its command translates a file of many lines."""

    def translate(lines: list[str]) -> Translations:
        with remote_translator(translator, [run], how, lines=len(lines)) as other:
            size = other.window if other else translator.window
            requests = ([Request(line) for line in window] for window in windows(lines, size))
            found = (one for window in translate_windows(translator, requests, other=other) for one in window)
            return [list(one.best.pieces) for one in found if isinstance(one, Translation)]

    return translate


def theirs(loaded: Any, translator: Translator) -> System:
    """Translate with CTranslate2: the same pieces, options and, for all lines, the largest of our limits."""
    options, vocabulary = translator.options, translator.source

    def translate(lines: list[str]) -> Translations:
        sources = [vocabulary.encode_ids(line) for line in lines]
        longest = max(sources, key=len)
        found = loaded.translate_batch(
            [[*map(str, ids), "</s>"] for ids in sources],
            beam_size=options.beam_size,
            length_penalty=options.length_penalty,
            max_batch_size=min(options.batch_size, _THEIR_BATCH),
            max_decoding_length=int(limits_of(collate_source([longest]), options)),
        )
        pieces = [[int(piece) for piece in one.hypotheses[0]] for one in found]
        # a user needs text
        for one in pieces:
            translator.target.decode(one)
        return pieces

    return translate


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a trained Transformer without variants; default: train one")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--text", type=Path, required=True, help="sentences of the source language, .gz too")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--length-penalty", type=float, default=0.6)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--systems", nargs="+", default=[""], metavar="PART", help="parts of names; default: all")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="processes that do nothing but compute")
    return parser.parse_args()


if __name__ == "__main__":
    main()
