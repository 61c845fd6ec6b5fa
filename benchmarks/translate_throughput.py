"""Sentences per second of synmt and CTranslate2: the same trained weights, the same text, from raw
text to pieces.

Each system translates with the size of batches that is fastest for it, found in a separate round,
and all have one limit for the length of all translations, which few may reach. The systems take
turns, so that other work on the machine hits all of them. Each line of the table has the sentences
per second by the clock and by processor time, and the ratio to CTranslate2 at its best in float32
(without it, to the first system) as the median over the rounds with the smallest and the largest;
below it are the sizes of batches, and the shares of translations that are those of the first
system. The two rank by different length penalties; with --length-penalty 0 they rank alike.

    python benchmarks/translate_throughput.py --run runs/small --text test.en
    python benchmarks/translate_throughput.py --run runs/x --text train.en --sentences 10000
        --systems int8
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

# here three precisions of synmt and CTranslate2 share one process, and a user's process has one
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "1024")

import measuring
import torch

from synmt.decode.translator import Translator
from synmt.exchange.export import export
from synmt.files.reading import read_lines
from synmt.model.device import InferencePrecision

System = Callable[[list[str], int], list[str]]
"""Translates lines in batches of a size."""


def main() -> None:
    """Measure the systems in turn, and print their speeds."""
    options = measuring.arguments(
        __doc__,
        run=Path,
        text=Path,
        sentences=1000,
        beam=4,
        length_penalty=0.0,
        limit=100,
        rounds=5,
        sizes=[32, 64, 128, 256],
        device="cpu",
        systems=[""],
    )
    lines = list(islice(read_lines(options.text), options.sentences))
    with tempfile.TemporaryDirectory() as folder:
        every = all_systems(Path(folder), options)
        chosen = [
            (name, translate)
            for name, translate in every
            if any(part in name for part in options.systems)
        ]
        sizes = {name: fastest(translate, lines, options.sizes) for name, translate in chosen}
        systems = {name: partial(translate, lines, sizes[name]) for name, translate in chosen}
        found = {name: translate() for name, translate in systems.items()}
        times = measuring.take_turns(systems, options.rounds)
    first = next(iter(found))
    exact = [name for name in times if "CTranslate2 float32" in name]
    base = min(exact or [first], key=lambda name: sum(clock for clock, _ in times[name]))
    print(measuring.speeds(times, len(lines), lambda _: base))
    for name, translations in found.items():
        same = sum(line == other for line, other in zip(translations, found[first], strict=True))
        print(
            f"{name}: batches of {sizes[name]}; {same / len(lines):.1%} of the translations are "
            f"those of {first}"
        )


def fastest(translate: System, lines: list[str], sizes: list[int]) -> int:
    """Find the size of batches with which a system is fastest, after a round that warms up."""
    seconds = dict[int, float]()
    for size in (sizes[0], *sizes):
        began = time.perf_counter()
        translate(lines, size)
        seconds[size] = time.perf_counter() - began
    return min(seconds, key=seconds.__getitem__)


def all_systems(folder: Path, options: argparse.Namespace) -> Iterator[tuple[str, System]]:
    """Load every system once for each setting."""
    import ctranslate2

    search = {
        "beam_size": options.beam,
        "length_penalty": options.length_penalty,
        # one limit for all lines, as in CTranslate2
        "max_length_ratio": 1e-9,
        "max_length_extra": options.limit,
    }
    on_cpu, device = options.device == "cpu", options.device
    precisions: tuple[InferencePrecision, ...] = (
        ("float32", "bf16", "int8") if on_cpu else ("float32", "bf16")
    )
    ours = {
        precision: Translator.load(options.run, device=device, precision=precision, **search)
        for precision in precisions
    }
    for precision, translator in ours.items():
        for threads in (1, 2) if on_cpu else (1,):
            yield f"synmt {precision}, {threads}", partial(translate, translator, threads)
    first = ours["float32"]
    lines = list(islice(read_lines(options.text), options.sentences))
    reached = sum(one.degenerate == "limit" for one in first.translate(lines))
    print(f"{reached / len(lines):.1%} of the translations reach the limit")
    recipe = first.models[0].recipe
    export(first.model, recipe, first.source, first.target, folder / "model", "ctranslate2")
    kinds = [
        kind
        for kind in ("float32", "bfloat16", "int8" if on_cpu else "int8_float16")
        if kind in ctranslate2.get_supported_compute_types(device)
    ]
    for kind in kinds:
        for workers, threads in ((1, 1), (1, 2), (2, 1)) if on_cpu else ((1, 1),):
            loaded = ctranslate2.Translator(
                str(folder / "model"),
                device=device,
                inter_threads=workers,
                intra_threads=threads,
                compute_type=kind,
            )
            yield (
                f"CTranslate2 {kind}, {workers} x {threads}",
                partial(their_translate, loaded, first, options.limit),
            )


def translate(translator: Translator, threads: int, lines: list[str], size: int) -> list[str]:
    """Translate with synmt."""
    torch.set_num_threads(threads)
    translator.options = replace(translator.options, batch_size=size)
    return [translation.text for translation in translator.translate(lines)]


def their_translate(
    loaded: Any, translator: Translator, limit: int, lines: list[str], size: int
) -> list[str]:
    """Translate with CTranslate2: the same pieces and options."""
    options = translator.options
    vocabulary = translator.target
    numbers = {piece: n for n, piece in enumerate(vocabulary.pieces(range(len(vocabulary))))}
    sources = [translator.source.encode_ids(line) for line in lines]
    found = loaded.translate_batch(
        [[*translator.source.pieces(ids), "</s>"] for ids in sources],
        beam_size=options.beam_size,
        length_penalty=options.length_penalty,
        max_batch_size=size,
        max_decoding_length=limit,
    )
    return [
        vocabulary.decode([numbers[piece] for piece in result.hypotheses[0]]) for result in found
    ]


if __name__ == "__main__":
    main()
