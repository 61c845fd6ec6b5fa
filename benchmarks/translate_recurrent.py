"""Sentences per second of LSTMs, greedy and with a beam of 5: synmt and JoeyNMT, with models of one size.

The weights are random and EOS is next to never chosen, so that both make as many steps as they may: half of
RATIO times the source and EXTRA pieces. No sentence leaves early, which would help synmt alone. The systems take
turns; times are medians over the rounds.

    python benchmarks/translate_recurrent.py --size base --threads 2
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import measuring
import numpy as np
import torch
from recurrent_peers import joeynmt_model
from systems import model_of, recipe_of

from synmt.data.batch import collate_source
from synmt.data.vocabulary import EOS, PAD
from synmt.decode.beam import Member, search
from synmt.decode.options import SearchOptions
from synmt.model.seq2seq import Seq2Seq

Sentences = list[list[int]]
RATIO, EXTRA = 1.5, 20
"""The longest translation allowed is RATIO times its source and EXTRA pieces."""


@dataclass(frozen=True)
class System:
    """translate: sentences of like length, the longest translation allowed -> translations."""

    name: str
    translate: Callable[[Sentences, int], Sentences]

    def run(self, sentences: Sentences, batch_size: int) -> Sentences:
        """Translate everything, longest first."""
        order = sorted(range(len(sentences)), key=lambda number: -len(sentences[number]))
        found: Sentences = [[] for _ in sentences]
        for first in range(0, len(order), batch_size):
            numbers = order[first : first + batch_size]
            batch = [sentences[number] for number in numbers]
            limit = int(RATIO * len(batch[0]) + EXTRA)
            for number, translation in zip(numbers, self.translate(batch, limit), strict=True):
                found[number] = translation
        return found


def draw_sentences(count: int, pieces: int) -> Sentences:
    """Draw sentences whose lengths are those of image captions: 6 to 40 pieces, 15 on average."""
    random = np.random.default_rng(1)
    lengths = random.gamma(6.0, 2.0, count).astype(int).clip(3, 37) + 3
    return [random.integers(EOS + 1, pieces, length).tolist() for length in lengths]


def ours(model: Seq2Seq, beam: int) -> System:
    """Search with synmt."""

    def translate(batch: Sentences, limit: int) -> Sentences:
        source = collate_source([np.array(sentence) for sentence in batch])
        limits = torch.full((len(batch),), limit // 2)  # (B,)
        return [
            best[0].ids
            for best in search(
                [Member(model, source, {})], SearchOptions(beam_size=beam, length_penalty=1.0), limits=limits
            )
        ]

    return System(f"synmt {beam}", translate)


def joeynmt(model: Any, beam: int) -> System:
    """Search with JoeyNMT."""
    from joeynmt.batch import Batch
    from joeynmt.search import search as joeynmt_search

    def translate(batch: Sentences, limit: int) -> Sentences:
        source = collate_source([np.array(sentence) for sentence in batch])
        joey = Batch(
            src=source.ids,
            src_length=source.mask.sum(1),
            src_prompt_mask=None,
            trg=None,
            trg_prompt_mask=None,
            indices=torch.arange(len(batch)),
            device=source.ids.device,
            pad_index=PAD,
            eos_index=EOS,
            is_train=False,
        )
        found, *_ = joeynmt_search(model, joey, limit // 2, beam, beam_alpha=1.0, generate_unk=False)
        return [[piece for piece in row if piece > EOS] for row in found.tolist()]

    return System(f"joeynmt {beam}", translate)


def main() -> None:
    """Let the systems take turns and print what they did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="small", choices=("tiny", "small", "base", "big"))
    parser.add_argument("--pieces", type=int, default=8000, help="size of the vocabulary")
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    sentences = draw_sentences(options.sentences, options.pieces)
    own = model_of("lstm", options.size, options.pieces).eval()
    peer = joeynmt_model(recipe_of("lstm", options.size).model, options.pieces).eval()
    systems = [make(model, beam) for beam in (1, 5) for make, model in ((ours, own), (joeynmt, peer))]
    times: dict[str, list[tuple[float, float]]] = {system.name: [] for system in systems}
    for number in range(options.rounds + 1):
        for system in systems:
            taken = measuring.timed(partial(system.run, sentences, options.batch_size))
            if number:  # the first round warms up
                times[system.name].append(taken)
    print(f"{'system':14} {'sentences/s':>12} {'x joeynmt':>10} {'by CPU time':>12}")
    for name, rows in times.items():
        base = times[f"joeynmt {name.split()[1]}"]
        wall, cpu = (statistics.median(b[of] / a[of] for a, b in zip(rows, base, strict=True)) for of in (0, 1))
        speed = options.sentences / statistics.median(row[0] for row in rows)
        print(f"{name:14} {speed:12.1f} {wall:10.2f} {cpu:12.2f}")


if __name__ == "__main__":
    main()
